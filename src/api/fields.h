// Protobuf field numbers of built-in types, for reading what clients send in that encoding.
#pragma once

#include <string_view>

namespace skiff::api {

// A line per definition that is a message, made by tools/gen_fields.py; lives as long as the
// program:
//
//   io.k8s.api.core.v1.Probe exec=1.1? httpGet=1.2? timeoutSeconds=3
//
// 1.2 is field 2 of the message in field 1, which JSON does without. `?` marks a pointer: where it
// is absent, a zero stands for nothing.
std::string_view builtin_fields();

}  // namespace skiff::api
