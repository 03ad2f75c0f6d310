// Whether the body of a write is the kind of object its URL speaks of, in the sentences of the real
// server.
#pragma once

#include <string_view>

#include "apiserver/kinds.h"
#include "apiserver/writes.h"
#include "base/result.h"

namespace skiff::apiserver {

// A body that cannot be read as anything: `why` in the sentence that names the kind wanted and
// shows how the body begins.
Error unrecognized_body(std::string_view kind, std::string_view why, std::string_view body);
// What Go calls a JSON value that does not fit: number, bool.
std::string_view go_word(const json::value& v);

// For create and update of the object itself or its status; `raw` is the body as it was sent.
Result<void> check_body(const KindTable& kinds, const WriteRequest& write, std::string_view raw);

}  // namespace skiff::apiserver
