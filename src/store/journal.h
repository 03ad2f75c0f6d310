// What every journal agrees on besides the interface in store.h.
#pragma once

#include "store/store.h"

namespace skiff::store {

// A power cut loses lazy writes that others have already seen, with their revisions. Were those
// given out again, a watch could resume at one of them and miss what now bears the same number.
// So a journal that opens after a power cut reports a last revision further on by this much, more
// than the store ever leaves unsynced: whoever asks for a lost revision is told to list again.
inline constexpr Revision kLostRevisions = 1'000'000;

}  // namespace skiff::store
