#include "client/remote/status.h"

#include <fmt/format.h>

#include <charconv>

#include "base/strings.h"

namespace skiff::client {
namespace {

constexpr std::size_t kShownBytes = 300;

std::optional<int> retry_after_seconds(const http::Response& response) {
  const std::string_view text = http::header(response.headers, "Retry-After");
  int seconds = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end) return {};
  return seconds;
}

}  // namespace

Error error_of_status(const json::value& status) {
  const int code = static_cast<int>(json::get_int(status, {"code"}).value_or(500));
  Error out{.code = code_from_status(code, json::get_string(status, {"reason"})),
            .message = std::string(json::get_string(status, {"message"})),
            .group = std::string(json::get_string(status, {"details", "group"})),
            .resource = std::string(json::get_string(status, {"details", "kind"})),
            .name = std::string(json::get_string(status, {"details", "name"}))};
  if (out.message.empty()) out.message = fmt::format("the server answered {}", code);
  for (const json::value& cause : json::get_array(status, {"details", "causes"})) {
    out.causes.push_back({.field = std::string(json::get_string(cause, {"field"})),
                          .reason = std::string(json::get_string(cause, {"reason"})),
                          .message = std::string(json::get_string(cause, {"message"}))});
  }
  const auto seconds = json::get_int(status, {"details", "retryAfterSeconds"});
  if (seconds && *seconds > 0) out.retry_after_s = static_cast<int>(*seconds);
  return out;
}

Error error_of(const http::Response& response) {
  const auto status = json::parse(response.body);
  Error out;
  if (status && json::get_string(*status, {"kind"}) == "Status") {
    out = error_of_status(*status);
  } else {
    out.code = code_from_status(response.status, {});
    out.message = fmt::format("the server answered {} {}", response.status,
                              http::status_text(response.status));
    const std::string_view body = trim(response.body);
    if (!body.empty()) out.message += fmt::format(": {}", body.substr(0, kShownBytes));
  }
  if (!out.retry_after_s) out.retry_after_s = retry_after_seconds(response);
  return out;
}

Result<json::value> body_of(const http::Response& response) {
  if (response.status < 200 || response.status > 299) return std::unexpected(error_of(response));
  auto body = json::parse(response.body);
  if (!body) {
    return fail(Code::kInternal, "the server's answer cannot be read: " + body.error().message);
  }
  return body;
}

}  // namespace skiff::client
