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
// Values that the operations of one JSON patch may put somewhere, each counted every time.
inline constexpr std::size_t kJsonPatchMovedValues = 10'000'000;

// Deep enough for any schema, shallow enough that recursion cannot exhaust a thread's stack.
inline constexpr std::size_t kJsonDepth = 128;
// A YAML alias may repeat a node; the expanded document may not be larger than this.
inline constexpr std::size_t kYamlNodes = 500'000;
// And so many bytes of text may be copied for anchors, aliases and merges in a whole stream: a
// document that needs more than a request may hold cannot be sent as JSON either.
inline constexpr std::size_t kYamlCopiedBytes = kRequestBodyBytes;

// The path of a field in a sentence is cut here: one key may be as long as the body, and a hundred
// thousand fields below it would each repeat it.
inline constexpr std::size_t kFieldPathBytes = 1024;
// So many unknown or doubled fields of a body are named, as Kubernetes does.
inline constexpr std::size_t kNamedFields = 100;
// So many causes of a refusal are listed, and so many warnings about one object are looked for.
inline constexpr std::size_t kNamedCauses = 1'000;
inline constexpr std::size_t kNamedWarnings = 1'000;
// Ports and files of a pod are compared with so many others for a warning that two are alike: the
// pairs of all of them are too many.
inline constexpr std::size_t kComparedForWarnings = 100;

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

// The kernel takes no longer argument or variable ("NAME=value") than this (MAX_ARG_STRLEN), and no
// more than this of all of them together with the usual limit of a stack.
inline constexpr std::size_t kArgumentBytes = 128 * 1024;
inline constexpr std::size_t kArgumentsBytes = 2 * 1024 * 1024;

// A path of the kernel (PATH_MAX).
inline constexpr std::size_t kPathBytes = 4096;
// What the files of all volumes of a pod may hold. A config map or secret has at most 1 MiB, but a
// volume may name each many times.
inline constexpr std::size_t kVolumeFileBytes = 32 * 1024 * 1024;
// What the node agent holds of containers that are about to start; the others wait.
inline constexpr std::size_t kStartingBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kStartingContainers = 64;

// Steps that a comparison of the rules somebody grants with those they hold may take: a tenth of a
// second or so. Roles of people take some thousands.
inline constexpr std::size_t kRuleSteps = 4'000'000;

// A log line longer than this is split, as CRI runtimes do.
inline constexpr std::size_t kLogLineBytes = 16 * 1024;
// A log file that has grown to this is set aside, and so many of a container are kept: kubelet's.
inline constexpr std::int64_t kLogFileBytes = 10 * 1024 * 1024;
inline constexpr int kLogFiles = 5;

inline constexpr std::size_t kReplicasPerJob = 10'000;

}  // namespace skiff::limits
