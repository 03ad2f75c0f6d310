// The kernel's capabilities as one number: bit N stands for capability N.
#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <string_view>

namespace skiff::node {

using Capabilities = std::uint64_t;

constexpr Capabilities capability(int number) { return Capabilities{1} << number; }

inline constexpr Capabilities kAllCapabilities = (Capabilities{1} << (CAP_LAST_CAP + 1)) - 1;

// What container engines give by default, without making device nodes: nothing here limits which
// devices a pod may open, so a pod that could make the machine's disk would not be private.
inline constexpr Capabilities kDefaultCapabilities =
    capability(CAP_CHOWN) | capability(CAP_DAC_OVERRIDE) | capability(CAP_FOWNER) |
    capability(CAP_FSETID) | capability(CAP_KILL) | capability(CAP_SETGID) |
    capability(CAP_SETUID) | capability(CAP_SETPCAP) | capability(CAP_NET_RAW) |
    capability(CAP_NET_BIND_SERVICE) | capability(CAP_SETFCAP) | capability(CAP_SYS_CHROOT) |
    capability(CAP_AUDIT_WRITE);

// By the kernel's name, with or without "CAP_", in any case; nothing for a name it does not have.
Capabilities capability_named(std::string_view name);

}  // namespace skiff::node
