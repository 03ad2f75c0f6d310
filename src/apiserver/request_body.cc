#include "apiserver/request_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "apiserver/status.h"
#include "apiserver/wire/body_check.h"
#include "apiserver/wire/json_syntax.h"
#include "apiserver/wire/list_options.h"
#include "apiserver/wire/protobuf.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kWarningCharacters = 256;
constexpr std::size_t kWarningsCharacters = 4096;
constexpr std::size_t kFieldManagerBytes = 128;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, starts_character));
}

std::string_view first_characters(std::string_view utf8, std::size_t count) {
  std::size_t end = 0;
  while (end < utf8.size() && (!starts_character(utf8[end]) || count-- > 0)) ++end;
  return utf8.substr(0, end);
}

// ?dryRun= may be given several times, as a list in a body.
void check_dry_run(const std::vector<std::string>& words, WriteRequest& request,
                   std::vector<Cause>& causes) {
  json::array list;
  bool fine = true;
  for (const std::string& word : words) {
    list.emplace_back(json::string(word));
    fine = fine && word == "All";
    request.dry_run = true;
  }
  if (!fine) causes.push_back(unsupported_value("dryRun", list, {"All"}));
}

std::vector<std::string> all_of(const http::Url& url, std::string_view name) {
  std::vector<std::string> out;
  for (const auto& [key, value] : url.query) {
    if (key == name) out.push_back(value);
  }
  return out;
}

void check_manager(const std::string& manager, std::vector<Cause>& causes) {
  if (manager.size() > kFieldManagerBytes) {
    causes.push_back(
        {.field = "fieldManager",
         .reason = "FieldValueTooLong",
         .message = fmt::format("Too long: may not be more than {} bytes", kFieldManagerBytes)});
  }
  for (std::size_t i = 0; i < manager.size(); ++i) {
    const auto c = static_cast<unsigned char>(manager[i]);
    if (c >= ' ' && c != 0x7f) continue;
    std::string quoted;
    for (const char each : manager) {
      const auto byte = static_cast<unsigned char>(each);
      quoted += byte < ' ' || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, each);
    }
    causes.push_back(
        {.field = "fieldManager",
         .reason = "FieldValueInvalid",
         .message = fmt::format("Invalid value: \"{}\": invalid character U+{:04X} (at "
                                "position {})",
                                quoted, c, i)});
  }
}

void check_validation(const http::Url& url, WriteRequest& request, std::vector<Cause>& causes) {
  const std::string word = url.param("fieldValidation").value_or("");
  if (word == "Strict") {
    request.validation = FieldValidation::kStrict;
  } else if (word == "Ignore") {
    request.validation = FieldValidation::kIgnore;
  } else if (!word.empty() && word != "Warn") {
    causes.push_back(
        unsupported_value("fieldValidation", json::string(word), {"", "Ignore", "Strict", "Warn"}));
  }
}

bool applies(const http::Request& request) {
  return media_type(request).starts_with("application/apply-patch");
}

// What the query says, where no body says it.
Result<json::value> delete_options_of(const http::Url& url) {
  json::object out;
  SKIFF_ASSIGN(const auto grace, query_integer(url, "gracePeriodSeconds"));
  if (grace) out["gracePeriodSeconds"] = *grace;
  if (const auto policy = url.param("propagationPolicy")) out["propagationPolicy"] = *policy;
  if (url.param("orphanDependents")) {
    out["orphanDependents"] = query_flag(url, "orphanDependents");
  }
  json::array words;
  for (const std::string& word : all_of(url, "dryRun")) words.emplace_back(json::string(word));
  if (!words.empty()) out["dryRun"] = std::move(words);
  return out;
}

std::vector<Cause> check_propagation(const json::value& options) {
  constexpr std::string_view kField = "propagationPolicy";
  const json::value* policy = json::find(options, {kField});
  if (policy == nullptr || policy->is_null()) return {};
  std::vector<Cause> causes;
  if (json::get_bool(options, {"orphanDependents"})) {
    causes.push_back(invalid_value(std::string(kField), *policy,
                                   "orphanDependents and deletionPropagation cannot be both set"));
  }
  const std::string_view word = json::get_string(*policy, {});
  if (word != "Foreground" && word != "Background" && word != "Orphan") {
    causes.push_back(unsupported_value(std::string(kField), *policy,
                                       {"Foreground", "Background", "Orphan", "nil"}));
  }
  return causes;
}

}  // namespace

Result<void> check_size(const http::Request& request) {
  if (request.body.size() <= limits::kRequestBodyBytes) return {};
  return fail(Code::kTooLarge,
              fmt::format("Request entity too large: limit is {}", limits::kRequestBodyBytes));
}

Result<json::value> parse_json(std::string_view text) {
  auto parsed = json::parse(text);
  if (parsed || !json_syntax_error(text).empty()) return parsed;
  return json::parse(json::with_replacements(text));
}

std::string media_type(const http::Request& request) {
  const std::string_view whole = http::header(request.headers, "Content-Type");
  return lower(trim(whole.substr(0, whole.find(';'))));
}

Result<json::value> parse_body(const http::Request& request, const schema::Registry& registry,
                               std::string_view kind, std::vector<std::string>& doubled) {
  SKIFF_TRY(check_size(request));
  const auto refuse = [&](std::string_view why) -> Result<json::value> {
    if (kind.empty()) return fail(Code::kBadRequest, std::string(why));
    return std::unexpected(unrecognized_body(kind, why, request.body));
  };
  const std::string type = media_type(request);
  if (kind.empty() && trim(request.body).empty()) return json::value();
  if (type == kProtobufType) {
    auto decoded = decode_protobuf(registry, request.body);
    if (!decoded && decoded.error().code == Code::kBadRequest) {
      return refuse(decoded.error().message);
    }
    return decoded;
  }
  if (type == "application/yaml" || type.ends_with("+yaml")) {
    auto parsed = yaml::parse_lenient(request.body, doubled);
    return parsed ? std::move(parsed) : refuse(parsed.error().message);
  }
  if (type.empty() || type == "application/json") {
    auto parsed = parse_json(request.body);
    if (parsed) return parsed;
    const std::string why = json_syntax_error(request.body);
    if (!why.empty()) {
      return refuse(fmt::format("couldn't get version/kind; json parse error: {}", why));
    }
    return fail(Code::kBadRequest,
                fmt::format("the body cannot be handled as a {}: {}",
                            kind.empty() ? "DeleteOptions" : kind, parsed.error().message));
  }
  return fail(Code::kUnsupportedMediaType,
              fmt::format("the body of the request was in an unknown format - accepted media types "
                          "include: application/json, application/yaml, {}",
                          kProtobufType));
}

std::vector<std::string_view> patch_types(const ServedKind& kind) {
  if (kind.custom) {
    return {"application/json-patch+json", "application/merge-patch+json",
            "application/apply-patch+yaml"};
  }
  return {"application/json-patch+json", "application/merge-patch+json",
          "application/strategic-merge-patch+json", "application/apply-patch+yaml"};
}

Result<PatchType> patch_type(const http::Request& request, const ServedKind& kind) {
  const std::string type = media_type(request);
  if (type == "application/json-patch+json") return PatchType::kJson;
  if (type == "application/merge-patch+json") return PatchType::kMerge;
  if (type == "application/strategic-merge-patch+json" && !kind.custom) {
    return PatchType::kStrategic;
  }
  if (type == "application/apply-patch+yaml") return PatchType::kApply;
  std::string accepted;
  for (const std::string_view one : patch_types(kind)) {
    accepted += (accepted.empty() ? "" : ", ") + std::string(one);
  }
  return fail(Code::kUnsupportedMediaType,
              fmt::format("the body of the request was in an unknown format - accepted media types "
                          "include: {}",
                          accepted));
}

Result<void> read_options(const http::Request& http, const http::Url& url, WriteRequest& request) {
  std::vector<Cause> causes;
  if (request.verb == Verb::kPatch && url.param("force") && !applies(http)) {
    causes.push_back(forbidden_value("force", "may not be specified for non-apply patch"));
  }
  request.manager = url.param("fieldManager").value_or("");
  check_manager(request.manager, causes);
  check_dry_run(all_of(url, "dryRun"), request, causes);
  check_validation(url, request, causes);
  if (causes.empty()) return {};
  return std::unexpected(invalid_options(request.verb == Verb::kCreate   ? "CreateOptions"
                                         : request.verb == Verb::kUpdate ? "UpdateOptions"
                                                                         : "PatchOptions",
                                         std::move(causes)));
}

Result<void> read_delete_options(const json::value& body, const http::Url& url,
                                 WriteRequest& request) {
  json::value given = body;
  if (body.is_null()) {
    SKIFF_ASSIGN(given, delete_options_of(url));
  }
  std::vector<Cause> causes = check_propagation(given);
  check_dry_run(json::strings(json::get_array(given, {"dryRun"})), request, causes);
  if (!causes.empty()) return std::unexpected(invalid_options("DeleteOptions", std::move(causes)));
  DeleteOptions& options = request.remove;
  options.grace_period_s = json::get_int(given, {"gracePeriodSeconds"});
  options.propagation = json::get_string(given, {"propagationPolicy"});
  if (const auto orphan = json::get_bool(given, {"orphanDependents"})) {
    options.propagation = *orphan ? "Orphan" : "Background";
  }
  if (const std::string_view uid = json::get_string(given, {"preconditions", "uid"});
      !uid.empty()) {
    request.uid = uid;
  }
  if (const std::string_view version =
          json::get_string(given, {"preconditions", "resourceVersion"});
      !version.empty()) {
    request.resource_version = version;
  }
  return {};
}

void warn_first(const std::string& warning, http::Response& response) {
  const auto said =
      std::ranges::find(response.headers, "Warning", &http::Headers::value_type::first);
  std::vector<http::Headers::value_type> others(said, response.headers.end());
  response.headers.erase(said, response.headers.end());
  add_warnings({warning}, response);
  response.headers.insert(response.headers.end(), others.begin(), others.end());
}

void add_warnings(const std::vector<std::string>& warnings, http::Response& response) {
  std::vector<std::string_view> told;
  std::unordered_set<std::string_view> known;
  std::size_t all = 0;
  for (const std::string& warning : warnings) {
    if (!known.insert(warning).second) continue;
    told.emplace_back(warning);
    all += characters(warning);
  }
  const bool cut = all > kWarningsCharacters;
  std::size_t written = 0;
  for (const std::string_view warning : told) {
    // The one that passes the limit is still written.
    if (cut && written >= kWarningsCharacters) return;
    const std::string_view text = cut ? first_characters(warning, kWarningCharacters) : warning;
    written += characters(text);
    std::string quoted;
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    response.headers.emplace_back("Warning", fmt::format("299 - \"{}\"", quoted));
  }
}

}  // namespace skiff::apiserver
