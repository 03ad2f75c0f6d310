#include "apiserver/wire/list_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "apiserver/status.h"
#include "apiserver/wire/body_check.h"
#include "apiserver/wire/json_syntax.h"
#include "base/base64.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kTokenVersion = "meta.k8s.io/v1";
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kMatch = "resourceVersionMatch";

void check_list(const ListOptions& options, std::vector<Cause>& causes) {
  const auto forbid = [&](std::string_view field, std::string_view why) {
    causes.push_back(forbidden_value(std::string(field), why));
  };
  if (!options.match.empty()) {
    if (options.resource_version.empty()) {
      forbid(kMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (!options.token.empty()) {
      forbid(kMatch, "resourceVersionMatch is forbidden when continue is provided");
    }
    if (options.match != "Exact" && options.match != "NotOlderThan") {
      causes.push_back(unsupported_value(std::string(kMatch), json::string(options.match),
                                         {"Exact", "NotOlderThan", ""}));
    }
    if (options.match == "Exact" && options.resource_version == "0") {
      forbid(kMatch, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (options.initial_events) {
    forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
  }
}

void check_watch(const ListOptions& options, std::vector<Cause>& causes) {
  const auto forbid = [&](std::string_view why) {
    causes.push_back(forbidden_value(std::string(kMatch), why));
  };
  if (options.initial_events && options.match != "NotOlderThan") {
    forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (options.match.empty()) return;
  if (!options.initial_events) {
    forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  }
  if (options.match != "NotOlderThan") {
    causes.push_back(
        unsupported_value(std::string(kMatch), json::string(options.match), {"NotOlderThan"}));
  }
  if (!options.token.empty()) {
    forbid("resourceVersionMatch is forbidden when continue is provided");
  }
}

std::unexpected<Error> bad_token(std::string_view why) {
  return fail(Code::kBadRequest,
              fmt::format("invalid continue token: continue key is not valid: {}", why));
}

Result<void> check_token(const json::value& token) {
  if (!token.is_object() && !token.is_null()) {
    return bad_token(fmt::format(
        "json: cannot unmarshal {} into Go value of type storage.continueToken", go_word(token)));
  }
  for (const auto& [field, type] : {std::pair<std::string_view, std::string_view>{"v", "string"},
                                    {"rv", "int64"},
                                    {"start", "string"}}) {
    const json::value* v = json::find(token, {field});
    if (v == nullptr || v->is_null()) continue;
    if (type == "int64" ? v->is_int64() || v->is_uint64() : v->is_string()) continue;
    return bad_token(
        fmt::format("json: cannot unmarshal {} into Go struct field continueToken.{} of type {}",
                    go_word(*v), field, type));
  }
  return {};
}

}  // namespace

bool query_flag(const http::Url& url, std::string_view name) {
  const auto text = url.param(name);
  return text && lower(*text) != "false" && *text != "0";
}

std::string not_a_number(std::string_view function, std::string_view text) {
  const bool sign = function != "ParseUint" && text.starts_with('-');
  const std::string_view rest = text.substr(sign ? 1 : 0);
  const bool digits =
      !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
  return fmt::format("strconv.{}: parsing \"{}\": {}", function, text,
                     digits ? "value out of range" : "invalid syntax");
}

Result<std::optional<std::int64_t>> query_integer(const http::Url& url, std::string_view name) {
  const auto text = url.param(name);
  if (!text) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end) {
    return fail(Code::kBadRequest, not_a_number("ParseInt", *text));
  }
  return std::optional(number);
}

Result<ListOptions> read_list_options(const http::Url& url, bool watch) {
  ListOptions options{.resource_version = url.param("resourceVersion").value_or(""),
                      .match = url.param(kMatch).value_or(""),
                      .token = url.param("continue").value_or(""),
                      .bookmarks = query_flag(url, "allowWatchBookmarks")};
  SKIFF_ASSIGN(const auto limit, query_integer(url, "limit"));
  SKIFF_ASSIGN(options.timeout_s, query_integer(url, "timeoutSeconds"));
  options.limit = static_cast<std::size_t>(std::max<std::int64_t>(limit.value_or(0), 0));
  if (url.param("sendInitialEvents")) {
    options.initial_events = query_flag(url, "sendInitialEvents");
  }
  const bool from_start = options.resource_version.empty() || options.resource_version == "0";
  if (watch && from_start && !options.initial_events && options.match.empty()) {
    options.initial_events = true;
    options.match = "NotOlderThan";
  }
  std::vector<Cause> causes;
  if (watch) {
    check_watch(options, causes);
  } else {
    check_list(options, causes);
  }
  if (!causes.empty()) return std::unexpected(invalid_options("ListOptions", std::move(causes)));
  return options;
}

std::string encode_continue(const Continue& token) {
  std::string start = token.ns.empty() ? token.name : token.ns + "/" + token.name;
  start += '\0';  // the key after this one
  std::string text = base64::encode(json::serialize(
      json::object{{"v", json::string(kTokenVersion)}, {"rv", token.revision}, {"start", start}}));
  // The alphabet of URLs, as the real server writes it.
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  std::erase(text, '=');
  return text;
}

Result<Continue> decode_continue(std::string_view text) {
  std::size_t bad = std::min(text.find_first_not_of(kAlphabet), text.size());
  if (bad == text.size() && text.size() % 4 == 1) --bad;  // a lone character is no byte
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  const auto bytes = bad < text.size() ? std::nullopt : base64::decode(standard);
  if (!bytes) return bad_token(fmt::format("illegal base64 data at input byte {}", bad));
  const auto parsed = json::parse(*bytes);
  if (!parsed) return bad_token(json_syntax_error(*bytes));
  SKIFF_TRY(check_token(*parsed));
  const std::string_view version = json::get_string(*parsed, {"v"});
  if (version != kTokenVersion) {
    return bad_token(fmt::format("server does not recognize this encoded version {}", version));
  }
  Continue token{.revision = json::get_int(*parsed, {"rv"}).value_or(0)};
  if (token.revision == 0) {
    return bad_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  }
  std::string_view start = json::get_string(*parsed, {"start"});
  if (start.empty()) return bad_token("encoded start key empty (version meta.k8s.io/v1)");
  if (start.back() == '\0') start.remove_suffix(1);
  const std::size_t slash = start.find('/');
  if (slash != std::string_view::npos) token.ns = start.substr(0, slash);
  token.name = slash == std::string_view::npos ? start : start.substr(slash + 1);
  return token;
}

}  // namespace skiff::apiserver
