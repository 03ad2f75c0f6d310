#include "apiserver/wire/body_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/status.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kShown = 30;
std::string summary(std::string_view body) {
  if (body.empty()) return "<empty>";
  const std::string_view shown = body.substr(0, kShown);
  std::string out;
  if (body.front() == '{') {
    out = shown;
  } else {
    for (const char c : shown) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return body.size() > kShown ? out + " ..." : out;
}

std::string_view body_group(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

std::string_view version_of(std::string_view api_version) {
  return api_version.substr(api_version.find('/') + 1);  // npos + 1 is 0
}

std::string go_package(std::string_view group) {
  return group.empty() ? "core" : std::string(group.substr(0, group.find('.')));
}

bool served(const KindTable& kinds, std::string_view api_version, std::string_view kind) {
  return std::ranges::any_of(kinds.all(), [&](const auto& one) {
    return one->resource().kind == kind && one->resource().api_version() == api_version;
  });
}

std::unexpected<Error> cannot_be(std::string_view kind, std::string_view version,
                                 std::string_view wanted, std::string_view why) {
  return fail(Code::kBadRequest, fmt::format("{} in version \"{}\" cannot be handled as a {}: {}",
                                             kind, version, wanted, why));
}

std::unexpected<Error> other_version(std::string_view given, std::string_view expected) {
  return fail(Code::kBadRequest,
              fmt::format("the API version in the data ({}) does not match the expected API "
                          "version ({})",
                          given, expected));
}

Result<void> check_custom(const ServedKind& kind, const json::value& body, std::string_view raw) {
  const api::Resource& r = kind.resource();
  const std::string_view word = api::kind(body), version = api::api_version(body);
  if (word.empty() || version.empty()) {
    return std::unexpected(unrecognized_body(
        r.kind,
        fmt::format("Object '{}' is missing in '{}'", word.empty() ? "Kind" : "apiVersion", raw),
        raw));
  }
  if (version != r.api_version()) return other_version(version, r.api_version());
  if (word != r.kind) {
    api::Resource other = r;
    other.kind = word;
    const std::string_view name = api::name(body);
    return std::unexpected(
        invalid(other, name,
                {invalid_value("kind", json::string(word), fmt::format("must be {}", r.kind))}));
  }
  return {};
}

Result<void> check_built_in(const KindTable& kinds, const ServedKind& kind,
                            const json::value& body) {
  const api::Resource& r = kind.resource();
  const std::string expected = r.api_version();
  const std::string_view word = api::kind(body).empty() ? r.kind : api::kind(body);
  const std::string_view given =
      api::api_version(body).empty() ? std::string_view(expected) : api::api_version(body);
  if (word == r.kind && given == expected) return {};
  const std::string_view group = body_group(given);
  if (!served(kinds, given, word)) {
    return cannot_be(word, version_of(given), r.kind,
                     fmt::format("no kind \"{}\" is registered for version \"{}\" in scheme "
                                 "\"pkg/runtime/scheme.go:110\"",
                                 word, given));
  }
  if (word == r.kind && group == r.group) return other_version(given, expected);
  return cannot_be(word, version_of(given), r.kind,
                   fmt::format("converting ({}.{}) to ({}.{}): unknown conversion",
                               version_of(given), word, go_package(r.group), r.kind));
}

}  // namespace

Error unrecognized_body(std::string_view kind, std::string_view why, std::string_view body) {
  return {
      .code = Code::kBadRequest,
      .message = fmt::format("the object provided is unrecognized (must be of type {}): {} ({})",
                             kind, why, summary(body))};
}

std::string_view go_word(const json::value& v) {
  if (v.is_array()) return "array";
  if (v.is_string()) return "string";
  if (v.is_bool()) return "bool";
  return v.is_object() ? "object" : "number";
}

Result<void> check_body(const KindTable& kinds, const WriteRequest& write, std::string_view raw) {
  const api::Resource& r = write.kind->resource();
  if (!write.body.is_object()) {
    return std::unexpected(unrecognized_body(
        r.kind,
        fmt::format("couldn't get version/kind; json parse error: json: cannot unmarshal {} into "
                    "Go value of type {}",
                    go_word(write.body), kHeadType),
        raw));
  }
  for (const std::string_view key : {"apiVersion", "kind"}) {
    const json::value* v = write.body.get_object().if_contains(key);
    if (v == nullptr || v->is_string() || v->is_null()) continue;
    return std::unexpected(unrecognized_body(
        r.kind,
        fmt::format("couldn't get version/kind; json parse error: json: cannot unmarshal {} into "
                    "Go struct field .{} of type string",
                    go_word(*v), key),
        raw));
  }
  if (write.kind->custom) {
    SKIFF_TRY(check_custom(*write.kind, write.body, raw));
  } else {
    SKIFF_TRY(check_built_in(kinds, *write.kind, write.body));
  }
  const json::value* metadata = write.body.get_object().if_contains("metadata");
  if (metadata != nullptr && !metadata->is_object() && !metadata->is_null()) {
    return cannot_be(r.kind, r.version, r.kind,
                     fmt::format("json: cannot unmarshal {} into Go struct field {}.metadata of "
                                 "type v1.ObjectMeta",
                                 go_word(*metadata), r.kind));
  }
  const std::string_view name = api::name(write.body);
  if (write.verb == Verb::kUpdate && !name.empty() && name != write.name) {
    return fail(Code::kBadRequest,
                fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                            name, write.name));
  }
  if (write.verb == Verb::kUpdate && name.empty()) {
    return fail(Code::kBadRequest,
                fmt::format("the name of the object ({} based on URL) was undeterminable: name "
                            "must be provided",
                            write.name));
  }
  return {};
}

}  // namespace skiff::apiserver
