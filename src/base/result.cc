#include "base/result.h"

#include <array>

namespace skiff {
namespace {

struct Row {
  Code code;
  int http;
  std::string_view reason;
};

constexpr std::array kRows{
    Row{Code::kBadRequest, 400, "BadRequest"},
    Row{Code::kUnauthorized, 401, "Unauthorized"},
    Row{Code::kForbidden, 403, "Forbidden"},
    Row{Code::kNotFound, 404, "NotFound"},
    Row{Code::kMethodNotAllowed, 405, "MethodNotAllowed"},
    Row{Code::kNotAcceptable, 406, "NotAcceptable"},
    Row{Code::kAlreadyExists, 409, "AlreadyExists"},
    Row{Code::kConflict, 409, "Conflict"},
    Row{Code::kExpired, 410, "Expired"},
    Row{Code::kTooLarge, 413, "RequestEntityTooLarge"},
    Row{Code::kUnsupportedMediaType, 415, "UnsupportedMediaType"},
    Row{Code::kInvalid, 422, "Invalid"},
    Row{Code::kTooManyRequests, 429, "TooManyRequests"},
    Row{Code::kInternal, 500, "InternalError"},
    Row{Code::kUnknown, 500, ""},
    Row{Code::kServiceUnavailable, 503, "ServiceUnavailable"},
    Row{Code::kTimeout, 504, "Timeout"},
};

const Row& row(Code code) {
  for (const Row& r : kRows) {
    if (r.code == code) return r;
  }
  return kRows[13];  // an unlisted code is our bug, and that is what InternalError says
}

}  // namespace

int http_code(Code code) { return row(code).http; }

std::string_view reason(Code code) { return row(code).reason; }

Code code_from_status(int http_status, std::string_view reason) {
  for (const Row& r : kRows) {
    if (r.reason == reason && !reason.empty()) return r.code;
  }
  if (reason == "Gone") return Code::kExpired;
  for (const Row& r : kRows) {
    if (r.http == http_status) return r.code;
  }
  return Code::kInternal;
}

}  // namespace skiff
