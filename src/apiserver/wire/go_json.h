// What Go's decoder says about a text that is no JSON. Clients see the sentence, scripts search it.
#pragma once

#include <string>
#include <string_view>

namespace skiff::apiserver {

// The first thing that is wrong, in Go's words; empty where the text is one JSON value.
std::string go_json_error(std::string_view text);

}  // namespace skiff::apiserver
