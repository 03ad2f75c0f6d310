// Every bound of the product in one place, each with its reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace skiff::limits {

// Kubernetes' own limits, so that what it refuses we refuse too.
inline constexpr std::size_t kRequestBodyBytes = 3 * 1024 * 1024;
inline constexpr std::size_t kAnnotationBytes = 256 * 1024;
inline constexpr std::size_t kJsonPatchOperations = 10'000;
inline constexpr std::size_t kNameBytes = 253;

// Deep enough for any schema, shallow enough that recursion cannot exhaust a thread's stack.
inline constexpr std::size_t kJsonDepth = 128;
// A YAML alias may repeat a node; the expanded document may not be larger than this.
inline constexpr std::size_t kYamlNodes = 500'000;

inline constexpr std::size_t kHttpHeaderBytes = 64 * 1024;
inline constexpr std::size_t kHttpConnections = 4'096;
inline constexpr std::chrono::seconds kHttpIdle{120};
// A head, and again a body, must be whole this soon after its first byte; slower clients hold
// sockets.
inline constexpr std::chrono::seconds kHttpRequest{30};

// Watch history kept per resource: about ten minutes of a busy job controller.
inline constexpr std::size_t kWatchEvents = 20'000;
// Bytes a watcher may be behind before its stream is closed; it comes back with its revision.
inline constexpr std::size_t kWatchBufferBytes = 8 * 1024 * 1024;

// A log line longer than this is split, as CRI runtimes do.
inline constexpr std::size_t kLogLineBytes = 16 * 1024;
// A log file that has grown to this is set aside, and so many of a container are kept: kubelet's.
inline constexpr std::int64_t kLogFileBytes = 10 * 1024 * 1024;
inline constexpr int kLogFiles = 5;

inline constexpr std::size_t kReplicasPerJob = 10'000;

}  // namespace skiff::limits
