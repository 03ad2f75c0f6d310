#include "apiserver/wire/delete_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "apiserver/request_body.h"
#include "apiserver/wire/body_check.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

// Where the body says nothing, it is of this version.
constexpr std::string_view kVersion = "meta.k8s.io/v1";

std::unexpected<Error> unreadable(std::string message) {
  return fail(Code::kUnknown, std::move(message));
}

struct OptionField {
  std::string_view path;
  bool (*fits)(const json::value& v);
  std::string_view go_type;
};

bool is_text(const json::value& v) { return v.is_string(); }
bool is_flag(const json::value& v) { return v.is_bool(); }
bool is_integer(const json::value& v) { return v.is_int64() || v.is_uint64(); }
bool is_list(const json::value& v) { return v.is_array(); }
bool is_object(const json::value& v) { return v.is_object(); }

constexpr OptionField kOptionFields[] = {
    {"gracePeriodSeconds", is_integer, "int64"},
    {"preconditions", is_object, "v1.Preconditions"},
    {"orphanDependents", is_flag, "bool"},
    {"propagationPolicy", is_text, "v1.DeletionPropagation"},
    {"dryRun", is_list, "[]string"},
};
constexpr OptionField kPreconditions[] = {{"uid", is_text, "types.UID"},
                                          {"resourceVersion", is_text, "string"}};

template <std::size_t n>
Result<void> check_fields(const json::value& options, const OptionField (&fields)[n],
                          std::string_view parent) {
  for (const OptionField& field : fields) {
    const json::value* v = json::find(options, {field.path});
    if (v == nullptr || v->is_null() || field.fits(*v)) continue;
    const std::string fraction = v->is_double() ? fmt::format(" {}", v->get_double()) : "";
    return unreadable(
        fmt::format("json: cannot unmarshal {}{} into Go struct field {}{} of type {}", go_word(*v),
                    fraction, parent, field.path, field.go_type));
  }
  return {};
}

Result<void> check_options(const json::value& options) {
  if (!options.is_object()) {
    return unreadable(
        fmt::format("couldn't get version/kind; json parse error: json: cannot "
                    "unmarshal {} into Go value of type {}",
                    go_word(options), kHeadType));
  }
  for (const std::string_view head : {"apiVersion", "kind"}) {
    const json::value* v = json::find(options, {head});
    if (v == nullptr || v->is_null() || v->is_string()) continue;
    return unreadable(
        fmt::format("couldn't get version/kind; json parse error: json: cannot "
                    "unmarshal {} into Go struct field .{} of type string",
                    go_word(*v), head));
  }
  const std::string_view given = json::get_string(options, {"apiVersion"});
  if (std::ranges::count(given, '/') > 1) {
    return unreadable(fmt::format("unexpected GroupVersion string: {}", given));
  }
  const std::string_view kind = json::get_string(options, {"kind"});
  if (!kind.empty() && kind != "DeleteOptions") {
    return unreadable(
        fmt::format("no kind \"{}\" is registered for version \"{}\" in scheme "
                    "\"pkg/runtime/scheme.go:110\"",
                    kind, given.empty() ? kVersion : given));
  }
  SKIFF_TRY(check_fields(options, kOptionFields, "DeleteOptions."));
  if (const json::value* wanted = json::find(options, {"preconditions"}); wanted != nullptr) {
    SKIFF_TRY(check_fields(*wanted, kPreconditions, "Preconditions.preconditions."));
  }
  for (const json::value& word : json::get_array(options, {"dryRun"})) {
    if (word.is_string()) continue;
    return unreadable(
        fmt::format("json: cannot unmarshal {} into Go struct field DeleteOptions.dryRun of type "
                    "string",
                    go_word(word)));
  }
  return {};
}

}  // namespace

Result<json::value> parse_delete_options(const http::Request& request,
                                         const schema::Registry& registry) {
  std::vector<std::string> doubled;  // of no interest here
  auto body = parse_body(request, registry, "", doubled);
  if (!body && body.error().code == Code::kBadRequest) return unreadable(body.error().message);
  if (!body) return body;
  if (body->is_null()) {
    if (request.body.empty() || !trim(request.body).empty()) return body;
    return unreadable("couldn't get version/kind; json parse error: unexpected end of JSON input");
  }
  SKIFF_TRY(check_options(*body));
  return body;
}

}  // namespace skiff::apiserver
