#include "apiserver/apply/apply_body.h"

#include <fmt/format.h>

#include "apiserver/status.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "schema/prune.h"

namespace skiff::apiserver {
namespace {

Error bad_options(Cause cause) {
  const api::Resource options{.group = "meta.k8s.io", .kind = "PatchOptions"};
  return invalid(options, "", {std::move(cause)});
}

Result<json::value> parse_apply_body(std::string_view text, std::vector<std::string>& doubled) {
  // Most clients send JSON, which is quicker to read.
  if (trim(text).starts_with('{')) {
    auto parsed = json::parse(text);
    if (parsed && schema::duplicate_fields(text).empty()) return parsed;
  }
  return yaml::parse_lenient(text, doubled);
}

}  // namespace

Result<void> read_patch_options(const http::Url& url, WriteRequest& write) {
  if (write.patch != PatchType::kApply) return {};
  if (url.param("fieldManager").value_or("").empty()) {
    return std::unexpected(bad_options(required("fieldManager", "is required for apply patch")));
  }
  const auto force = url.param("force");
  write.force = force && lower(*force) != "false" && *force != "0";
  return {};
}

Result<void> read_apply_body(const http::Request& request, WriteRequest& write) {
  if (request.body.size() > limits::kRequestBodyBytes) {
    return fail(Code::kTooLarge,
                fmt::format("Request entity too large: limit is {}", limits::kRequestBodyBytes));
  }
  std::vector<std::string> doubled;
  auto parsed = parse_apply_body(request.body, doubled);
  if (!parsed) {
    return fail(Code::kBadRequest,
                fmt::format("error decoding YAML: error converting YAML to JSON: {}",
                            parsed.error().message));
  }
  write.body = std::move(*parsed);
  if (write.body.is_null()) write.body.emplace_object();
  if (doubled.empty() || write.validation == FieldValidation::kIgnore) return {};
  std::string all = "error converting YAML to JSON: yaml: unmarshal errors:";
  for (const std::string& one : doubled) all += "\n  " + one;
  if (write.validation == FieldValidation::kStrict) {
    return fail(Code::kBadRequest, fmt::format("error strict decoding YAML: {}", all));
  }
  write.warnings.push_back(std::move(all));
  return {};
}

}  // namespace skiff::apiserver
