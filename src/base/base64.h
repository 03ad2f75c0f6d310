// Base64 with the standard alphabet and padding, as Secrets carry their data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace skiff::base64 {

std::string encode(std::string_view bytes);
// Line ends are skipped, as Go's decoder does. Anything else foreign, or wrong padding, is nothing.
std::optional<std::string> decode(std::string_view text);

}  // namespace skiff::base64
