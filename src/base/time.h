// Points in time and how Kubernetes writes them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace skiff {

using Time = std::chrono::sys_time<std::chrono::microseconds>;
using Duration = std::chrono::microseconds;

// 2026-11-15T20:02:55Z, the form of metav1.Time.
std::string rfc3339(Time t);
// With six decimals, the form of metav1.MicroTime.
std::string rfc3339_micro(Time t);
// Any RFC 3339 time with or without a fraction, with Z or an offset.
std::optional<Time> parse_time(std::string_view text);
// kubectl's AGE: 45s, 3m20s, 17m, 5h12m, 3d4h, 25d.
std::string age(Duration d);

}  // namespace skiff
