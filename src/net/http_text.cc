#include "net/http_text.h"

#include <fmt/format.h>
#include <time.h>

#include <array>

#include "base/json.h"
#include "base/strings.h"

namespace skiff::net {
namespace {

bool is_ours(std::string_view name) {
  constexpr std::array kOurs{"content-length", "transfer-encoding", "connection", "date", "server"};
  for (const std::string_view ours : kOurs) {
    if (equal_ignoring_case(name, ours)) return true;
  }
  return false;
}

void append_clean(std::string& out, std::string_view text) {
  for (const char c : text) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
}

// IMF-fixdate, formatted once a second and thread: it is on every answer.
std::string_view date_now() {
  thread_local time_t formatted = 0;
  thread_local std::string text;
  const time_t now = ::time(nullptr);
  if (now != formatted) {
    constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    tm parts{};
    ::gmtime_r(&now, &parts);
    text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                       kDays[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                       kMonths[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900,
                       parts.tm_hour, parts.tm_min, parts.tm_sec);
    formatted = now;
  }
  return text;
}

}  // namespace

std::string render_head(const http::Response& response, const Head& head) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, http::status_text(response.status));
  for (const auto& [name, value] : response.headers) {
    if (is_ours(name)) continue;
    append_clean(out, name);
    out += ": ";
    append_clean(out, value);
    out += "\r\n";
  }
  fmt::format_to(std::back_inserter(out), "Date: {}\r\n", date_now());
  if (!head.server_header.empty()) {
    fmt::format_to(std::back_inserter(out), "Server: {}\r\n", head.server_header);
  }
  if (head.framing == Framing::kLength) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", response.body.size());
  } else if (head.framing == Framing::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (head.framing == Framing::kTunnel) out += "Connection: Upgrade\r\n";
  if (head.close) out += "Connection: close\r\n";
  return out += "\r\n";
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;  // an empty chunk would end the body
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", data.size());
  out += data;
  out += "\r\n";
}

http::Response refusal(int status, std::string_view reason, std::string_view message) {
  json::object body{{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object{}},
                    {"status", "Failure"}, {"message", message}, {"reason", reason},
                    {"code", status}};
  return {.status = status,
          .headers = {{"Content-Type", "application/json"}},
          .body = json::serialize(body) + "\n"};
}

}  // namespace skiff::net
