// The memory of this process as a whole.
#pragma once

namespace skiff::env {

// Returns to the machine what was freed. It looks at the whole heap, and others wait meanwhile: for
// whoever has let go of much.
void give_back_memory();

}  // namespace skiff::env
