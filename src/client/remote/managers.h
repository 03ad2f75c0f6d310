// Leaves who manages which field out of an object's text before it is parsed: no controller asks,
// and it is half of a pod.
#pragma once

#include <string>
#include <string_view>

namespace skiff::client {

// Where the metadata stands: in an object itself, or in that of a watch's event.
inline constexpr int kObject = 1;
inline constexpr int kEvent = 2;

// The text without its metadata.managedFields, in the form that servers write (no spaces). Any
// other text, JSON or not, comes back as it is.
std::string without_managers(std::string_view text, int level);

}  // namespace skiff::client
