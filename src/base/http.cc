#include "base/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"

namespace skiff::http {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> unescape(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%') {
      if (i + 2 >= text.size()) return {};
      const int high = hex(text[i + 1]), low = hex(text[i + 2]);
      if (high < 0 || low < 0) return {};
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What Go leaves as it is in a path that it encodes itself.
constexpr std::string_view kPathPlain = "$&+,/:;=@";

std::string escape_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    out += kPathPlain.contains(c) ? std::string(1, c) : escape({&c, 1});
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing where an escape is broken.
std::optional<std::string> unescape_path(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      out += path[i];
      continue;
    }
    if (i + 2 >= path.size()) return {};
    const int high = hex_digit(path[i + 1]), low = hex_digit(path[i + 2]);
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

std::string_view header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

std::optional<std::string> Url::param(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

bool Url::flag(std::string_view name) const {
  const auto value = param(name);
  return value && (value->empty() || *value == "1" || equal_ignoring_case(*value, "true"));
}

std::optional<Url> parse_url(std::string_view target) {
  Url url;
  // The absolute form, as proxies send it: whose host it names does not matter here.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(std::min(target.find_first_of("/?", scheme.size()), target.size()));
  }
  const std::size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  url.gaps = path.contains("//");
  for (std::string_view piece : split(path, '/')) {
    if (piece.empty()) continue;
    auto segment = unescape(piece, false);
    if (!segment || *segment == "." || *segment == ".." || segment->contains('\0')) return {};
    url.segments.push_back(std::move(*segment));
  }
  for (const std::string& segment : url.segments) url.path += "/" + segment;
  if (url.path.empty() || (path.size() > 1 && path.ends_with('/'))) url.path += '/';
  if (mark == std::string_view::npos) return url;
  for (std::string_view pair : split(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto key = unescape(pair.substr(0, equals), true);
    auto value = equals == std::string_view::npos ? std::optional<std::string>("")
                                                  : unescape(pair.substr(equals + 1), true);
    if (!key || !value) return {};
    url.query.emplace_back(std::move(*key), std::move(*value));
  }
  return url;
}

std::string escape(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

std::string_view status_text(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 505:
      return "HTTP Version Not Supported";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

bool is_request_target(std::string_view target) {
  return !target.empty() &&
         std::ranges::none_of(target, [](char c) { return is_control(c) || c == ' '; });
}

bool is_header_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return letter_or_digit(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool is_header_value(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return is_control(c) && c != '\t'; });
}

bool is_host(std::string_view host) {
  return !host.empty() && std::ranges::none_of(host, [](char c) {
    return is_control(c) || std::string_view(" /?#@[]\\\"<>").contains(c);
  });
}

Result<void> check_request(std::string_view method, std::string_view target,
                           const Headers& headers) {
  if (!is_header_name(method)) return fail(Code::kInvalid, "the method of a request is not a word");
  if (!is_request_target(target)) {
    return fail(Code::kInvalid, "a request's path may hold no spaces and no control characters");
  }
  for (const auto& [name, value] : headers) {
    if (!is_header_name(name)) {
      return fail(Code::kInvalid, fmt::format("invalid header field name \"{}\"", escape(name)));
    }
    if (!is_header_value(value)) {
      return fail(Code::kInvalid, fmt::format("invalid header field value for \"{}\"", name));
    }
  }
  return {};
}

std::string request_target(std::string_view path) {
  std::string out(path.starts_with('/') ? "" : "/");
  const std::string_view address = path.substr(0, path.find('#'));
  const std::size_t mark = std::min(address.find('?'), address.size());
  const std::string_view before = address.substr(0, mark);
  const auto decoded = unescape_path(before);
  // To Go a text with control characters or broken escapes is no URL: all of it is the path.
  if (std::ranges::any_of(path, is_control) || !decoded) return out + escape_path(path);
  // A path that is encoded already stays as it is.
  const bool encoded = std::ranges::all_of(before, [](char c) {
    return letter_or_digit(c) || std::string_view("-._~!'()*[]%").contains(c) ||
           kPathPlain.contains(c);
  });
  out += encoded ? std::string(before) : escape_path(*decoded);
  for (const char c : address.substr(mark))
    out += c == ' ' ? std::string("%20") : std::string(1, c);
  return out;
}

}  // namespace skiff::http
