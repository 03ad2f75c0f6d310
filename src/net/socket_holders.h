// Which processes hold a socket, as /proc says it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace skiff::net {

// Looking at so many takes about a quarter of a second. Where a machine has more of them open, or a
// pod has opened so many in order to be overlooked, nobody is trusted without a token.
inline constexpr std::size_t kMostDescriptors = 250'000;

// True where at least one process holds the socket and `good` says yes to each that does. This
// process is asked about first, the others in the order of /proc; the first that is not good ends
// the search.
bool only_held_by(std::uint64_t inode, const std::function<bool(pid_t)>& good,
                  std::size_t most = kMostDescriptors);

}  // namespace skiff::net
