// Whether the body of a write is the kind of object its URL speaks of, in the sentences of the real
// server.
#pragma once

#include <string_view>

#include "apiserver/kinds.h"
#include "apiserver/writes.h"
#include "base/result.h"

namespace skiff::apiserver {

// What Go calls a JSON value that does not fit.
std::string_view go_word(const json::value& v);
// The type that the real server reads first, to know what a body is.
inline constexpr std::string_view kHeadType =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
    "\"json:\\\"kind,omitempty\\\"\" }";
// A body that cannot be read as anything: `why` in the sentence that names the kind wanted and
// shows how the body begins.
Error unrecognized_body(std::string_view kind, std::string_view why, std::string_view body);

// For create and update of the object itself or its status; `raw` is the body as it was sent.
Result<void> check_body(const KindTable& kinds, const WriteRequest& write, std::string_view raw);

}  // namespace skiff::apiserver
