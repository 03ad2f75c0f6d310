// What Go says about a text that is no JSON.
#pragma once

#include <string>
#include <string_view>

namespace skiff::apiserver {

// invalid character 'x' looking for beginning of value; unexpected end of JSON input. Empty for a
// text that is JSON to Go.
std::string json_syntax_error(std::string_view text);

}  // namespace skiff::apiserver
