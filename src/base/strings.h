// Small things with text that the standard library lacks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skiff {

// Pieces between separators; always at least one, possibly empty. Views into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);  // spaces, tabs and line ends on both sides
std::string lower(std::string_view text);      // ASCII
bool equal_ignoring_case(std::string_view a, std::string_view b);
// In a time that does not depend on where they differ: for secrets.
bool equal_secrets(std::string_view a, std::string_view b);

// As Go's %q writes it: quotes, backslashes and control characters escaped, the rest as it is.
std::string go_quoted(std::string_view text);

}  // namespace skiff
