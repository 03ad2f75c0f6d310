// The memory of this process as a whole.
#pragma once

namespace skiff::env {

// Returns to the machine what was freed. It looks at the whole heap, and others wait meanwhile: for
// whoever has let go of much.
void give_back_memory();

// For a thread that mostly waits: what it frees is everybody's at once. Dozens of such threads
// would else each keep some hundred kilobytes for their own next call.
void keep_no_spare_memory();

}  // namespace skiff::env
