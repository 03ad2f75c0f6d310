#include "apiserver/wire/patch_body.h"

#include <fmt/format.h>

#include "apiserver/request_body.h"
#include "apiserver/wire/body_check.h"
#include "apiserver/wire/json_syntax.h"

namespace skiff::apiserver {

Result<json::value> parse_patch(const http::Request& request, PatchType type) {
  SKIFF_TRY(check_size(request));
  const auto refuse = [&](std::string_view why) {
    return fail(
        Code::kBadRequest,
        fmt::format("{}{}", type == PatchType::kStrategic ? "" : "error decoding patch: ", why));
  };
  auto body = parse_json(request.body);
  if (!body) {
    const std::string why = json_syntax_error(request.body);
    return refuse(why.empty() ? body.error().message : why);
  }
  const bool list = type == PatchType::kJson;
  if (body->is_null()) return list ? json::value(json::array()) : json::value(json::object());
  if (list ? body->is_array() : body->is_object()) return body;
  return refuse(fmt::format("json: cannot unmarshal {} into Go value of type {}", go_word(*body),
                            list ? "[]handlers.jsonPatchOp" : "map[string]interface {}"));
}

}  // namespace skiff::apiserver
