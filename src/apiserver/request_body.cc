#include "apiserver/request_body.h"

#include <fmt/format.h>

#include <charconv>

#include "apiserver/protobuf.h"
#include "apiserver/status.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kWarningBytes = 256;
constexpr std::size_t kWarningsBytes = 4096;
constexpr std::size_t kFieldManagerBytes = 128;

std::string media_type(const http::Request& request) {
  const std::string_view whole = http::header(request.headers, "Content-Type");
  return lower(trim(whole.substr(0, whole.find(';'))));
}

Result<void> check_size(const http::Request& request) {
  if (request.body.size() <= limits::kRequestBodyBytes) return {};
  return fail(Code::kTooLarge,
              fmt::format("Request entity too large: limit is {}", limits::kRequestBodyBytes));
}

Result<void> read_dry_run(std::string_view value, WriteRequest& request) {
  if (value.empty()) return {};
  if (value != "All") {
    return fail(Code::kBadRequest,
                fmt::format("dryRun: Unsupported value: \"{}\": supported values: \"All\"", value));
  }
  request.dry_run = true;
  return {};
}

// 422 about the options that a write of this sort takes.
Result<void> check_manager(std::string_view manager, Verb verb) {
  const api::Resource options{.group = "meta.k8s.io",
                              .kind = verb == Verb::kCreate   ? "CreateOptions"
                                      : verb == Verb::kUpdate ? "UpdateOptions"
                                                              : "PatchOptions"};
  if (manager.size() > kFieldManagerBytes) {
    const Cause cause{
        .field = "fieldManager",
        .reason = "FieldValueTooLong",
        .message = fmt::format("Too long: may not be more than {} bytes", kFieldManagerBytes)};
    return std::unexpected(invalid(options, "", {cause}));
  }
  for (std::size_t i = 0; i < manager.size(); ++i) {
    const auto c = static_cast<unsigned char>(manager[i]);
    if (c >= ' ' && c != 0x7f) continue;
    const std::string quoted =
        fmt::format("\"{}\\x{:02x}{}\"", manager.substr(0, i), c, manager.substr(i + 1));
    const Cause cause{
        .field = "fieldManager",
        .reason = "FieldValueInvalid",
        .message = fmt::format("Invalid value: {}: invalid character U+{:04X} (at position {})",
                               quoted, c, i)};
    return std::unexpected(invalid(options, "", {cause}));
  }
  return {};
}

}  // namespace

Result<json::value> parse_body(const http::Request& request) {
  SKIFF_TRY(check_size(request));
  if (trim(request.body).empty()) return json::value();
  const std::string type = media_type(request);
  if (type == kProtobufType) return decode_protobuf(request.body);
  if (type == "application/yaml" || type == "text/yaml" || type == "application/x-yaml") {
    return yaml::parse(request.body);
  }
  // curl sends form data unless told otherwise; what is JSON is taken as such.
  if (type.empty() || type == "application/json" || type == "*/*" ||
      type.ends_with("-patch+json")) {
    return json::parse(request.body);
  }
  return fail(Code::kUnsupportedMediaType,
              fmt::format("the body of the request was in an unknown format - accepted media types "
                          "include: application/json, application/yaml, {}",
                          kProtobufType));
}

Result<PatchType> patch_type(const http::Request& request, const ServedKind& kind) {
  const std::string type = media_type(request);
  if (type == "application/json-patch+json") return PatchType::kJson;
  if (type == "application/merge-patch+json") return PatchType::kMerge;
  if (type == "application/strategic-merge-patch+json" && !kind.custom) {
    return PatchType::kStrategic;
  }
  if (type == "application/apply-patch+yaml") return PatchType::kApply;
  return fail(Code::kUnsupportedMediaType,
              fmt::format("the body of the request was in an unknown format - accepted media types "
                          "include: application/json-patch+json, application/merge-patch+json{}, "
                          "application/apply-patch+yaml",
                          kind.custom ? "" : ", application/strategic-merge-patch+json"));
}

Result<void> read_options(const http::Url& url, WriteRequest& request) {
  SKIFF_TRY(read_dry_run(url.param("dryRun").value_or(""), request));
  const std::string validation = url.param("fieldValidation").value_or("");
  if (validation == "Strict") {
    request.validation = FieldValidation::kStrict;
  } else if (validation == "Ignore") {
    request.validation = FieldValidation::kIgnore;
  } else if (!validation.empty() && validation != "Warn") {
    return fail(Code::kBadRequest,
                fmt::format("fieldValidation: Unsupported value: \"{}\": supported values: "
                            "\"Ignore\", \"Strict\", \"Warn\"",
                            validation));
  }
  const std::string manager = url.param("fieldManager").value_or("");
  SKIFF_TRY(check_manager(manager, request.verb));
  request.manager = manager;
  return {};
}

Result<void> read_delete_options(const json::value& body, const http::Url& url,
                                 WriteRequest& request) {
  DeleteOptions& options = request.remove;
  if (const auto text = url.param("gracePeriodSeconds"); text && !text->empty()) {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (error != std::errc{} || end != text->data() + text->size()) {
      return fail(Code::kBadRequest,
                  fmt::format("gracePeriodSeconds \"{}\" is not a number", *text));
    }
    options.grace_period_s = seconds;
  }
  options.propagation = url.param("propagationPolicy").value_or("");
  if (url.param("orphanDependents") == "true") options.propagation = "Orphan";
  if (const auto seconds = json::get_int(body, {"gracePeriodSeconds"})) {
    options.grace_period_s = seconds;
  }
  if (const std::string_view policy = json::get_string(body, {"propagationPolicy"});
      !policy.empty()) {
    options.propagation = policy;
  }
  if (const auto orphan = json::get_bool(body, {"orphanDependents"})) {
    options.propagation = *orphan ? "Orphan" : "Background";
  }
  if (const std::string_view uid = json::get_string(body, {"preconditions", "uid"}); !uid.empty()) {
    request.uid = uid;
  }
  if (const std::string_view version = json::get_string(body, {"preconditions", "resourceVersion"});
      !version.empty()) {
    request.resource_version = version;
  }
  for (const std::string& word : json::strings(json::get_array(body, {"dryRun"}))) {
    SKIFF_TRY(read_dry_run(word, request));
  }
  return {};
}

void add_warnings(const std::vector<std::string>& warnings, http::Response& response) {
  std::size_t total = 0;
  for (const std::string& warning : warnings) {
    std::string quoted;
    for (const char c : std::string_view(warning).substr(0, kWarningBytes)) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    total += quoted.size();
    if (total > kWarningsBytes) return;
    response.headers.emplace_back("Warning", fmt::format("299 - \"{}\"", quoted));
  }
}

}  // namespace skiff::apiserver
