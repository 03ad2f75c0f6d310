// File descriptors that travel between Skiff and a shim, beside the bytes of their conversation.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>
#include <vector>

#include "node/shim/files.h"

namespace skiff::node {

inline constexpr std::size_t kDescriptorsMax = 3;

// They go with the first bytes. False where the other side is gone.
bool send_descriptors(int fd, std::string_view text, std::span<const int> descriptors);
// As read(2); what comes with the bytes is added to `descriptors`.
ssize_t receive_descriptors(int fd, std::span<char> into, std::vector<Fd>& descriptors);

}  // namespace skiff::node
