// What the server says about table columns that many kinds have.
#pragma once

#include <string_view>

namespace skiff::api {

inline constexpr std::string_view kAgeHelp =
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It is not guaranteed to be set in happens-before order across separate operations. Clients "
    "may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the "
    "system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
inline constexpr std::string_view kContainersHelp = "Names of each container in the template.";
inline constexpr std::string_view kImagesHelp =
    "Images referenced by each container in the template.";
inline constexpr std::string_view kReadyPodsHelp = "Number of the pod with ready state";

}  // namespace skiff::api
