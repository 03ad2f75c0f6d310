#include "api/apiregistration/api_service.h"

#include <fmt/format.h>

#include "api/cells.h"
#include "api/help.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/base64.h"

namespace skiff::api {
namespace {

constexpr std::int64_t kServicePort = 443;
constexpr std::int64_t kMostGroupPriority = 20000;
constexpr std::int64_t kMostVersionPriority = 1000;

void set_api_service_defaults(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : find_object(*root, "spec");
  json::object* service = spec == nullptr ? nullptr : find_object(*spec, "service");
  if (service != nullptr) put(*service, "port", kServicePort);
}

json::object availability(const json::value& object, std::string_view now) {
  const bool local = present(object, {"spec", "service"}) == nullptr;
  return {{"type", "Available"},
          {"status", local ? "True" : "False"},
          {"lastTransitionTime", json::string(now)},
          {"reason", local ? "Local" : "NotAggregated"},
          {"message", local ? "Local APIServices are always available"
                            : "this server passes no requests on to other API servers: the group "
                              "and version are not served"}};
}

// The server itself says whether the group and version are served, from the first moment.
void prepare_api_service(json::value& object, const Admission& context) {
  if (!context.subresource.empty()) return;
  json::object next = availability(object, context.now);
  const json::object* now = condition(object, "Available");
  if (now != nullptr && json::get_string(*now, {"reason"}) == json::get_string(next, {"reason"})) {
    return;
  }
  json::make_object(object, {"status"})["conditions"] = json::array{std::move(next)};
}

void check_name(const json::value& object, Rules& rules) {
  const std::string wanted = fmt::format("{}.{}", json::get_string(object, {"spec", "version"}),
                                         json::get_string(object, {"spec", "group"}));
  if (name(object) == wanted) return;
  rules.say(
      schema::invalid("metadata.name", json::string(name(object)),
                      fmt::format("must be `spec.version+\".\"+spec.group`: \"{}\"", wanted)));
}

void check_priority(const json::value& object, std::string_view field, std::int64_t most,
                    Rules& rules) {
  const std::int64_t value = json::get_int(object, {"spec", field}).value_or(0);
  if (value > 0 && value <= most) return;
  rules.say(schema::invalid(schema::child("spec", field), value,
                            fmt::format("must be positive and less than {}", most)));
}

void check_backing_service(const json::value& object, Rules& rules) {
  const std::string_view bundle = json::get_string(object, {"spec", "caBundle"});
  const bool insecure = json::get_bool(object, {"spec", "insecureSkipTLSVerify"}).value_or(false);
  const json::value* service = present(object, {"spec", "service"});
  if (service == nullptr) {
    if (!bundle.empty()) {
      const std::size_t bytes = base64::decode(bundle).value_or("").size();
      rules.say(schema::invalid("spec.caBundle", json::string(fmt::format("{} bytes", bytes)),
                                "local APIServices may not have a caBundle"));
    }
    if (insecure) {
      rules.say(schema::invalid("spec.insecureSkipTLSVerify", true,
                                "local APIServices may not have insecureSkipTLSVerify"));
    }
    return;
  }
  rules.needs(*service, "spec.service", "namespace");
  rules.needs(*service, "spec.service", "name");
  const std::int64_t port = json::get_int(*service, {"port"}).value_or(kServicePort);
  if (port < 1 || port > 65535) {
    rules.say(schema::invalid("spec.service.port", port,
                              fmt::format("port is not valid: {}", kPortRange)));
  }
  if (insecure && !bundle.empty()) {
    rules.say(schema::invalid("spec.insecureSkipTLSVerify", true,
                              "may not be true if caBundle is present"));
  }
}

std::vector<Cause> validate_api_service(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.subresource == "status") {
    const json::array& conditions = json::get_array(object, {"status", "conditions"});
    for (std::size_t i = 0; i < conditions.size(); ++i) {
      rules.one_of(schema::child(schema::child("status.conditions", i), "status"),
                   json::get_string(conditions[i], {"status"}), {"True", "False", "Unknown"});
    }
    return rules.take();
  }
  check_name(object, rules);
  const std::string_view group = json::get_string(object, {"spec", "group"});
  const std::string_view version = json::get_string(object, {"spec", "version"});
  if (group.empty() && version != "v1") {
    rules.say(schema::required("spec.group",
                               "only v1 may have an empty group and it better be legacy kube"));
  }
  if (!group.empty()) rules.called("spec.group", group, names::check_dns1123_subdomain(group));
  rules.called("spec.version", version, names::check_dns1035_label(version));
  check_priority(object, "groupPriorityMinimum", kMostGroupPriority, rules);
  check_priority(object, "versionPriority", kMostVersionPriority, rules);
  check_backing_service(object, rules);
  return rules.take();
}

json::array api_service_cells(const json::value& object, std::int64_t now_s) {
  std::string service = "Local";
  if (const json::value* at = present(object, {"spec", "service"})) {
    service =
        fmt::format("{}/{}", json::get_string(*at, {"namespace"}), json::get_string(*at, {"name"}));
  }
  std::string available = "Unknown";
  if (const json::object* found = condition(object, "Available")) {
    available = json::get_string(*found, {"status"});
    const std::string reason(json::get_string(*found, {"reason"}));
    if (available != "True" && !reason.empty()) available += fmt::format(" ({})", reason);
  }
  return {json::string(service), json::string(available), json::string(age_cell(object, now_s))};
}

}  // namespace

std::vector<Kind> apiregistration_kinds() {
  return {{.resource = {"apiregistration.k8s.io", "v1", "apiservices", "APIService", false},
           .singular = "apiservice",
           .categories = {"api-extensions"},
           .has_status = true,
           .has_generation = false,
           .schema = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
           .columns = {{"Service", "string"}, {"Available", "string"}, {"Age", "string"}},
           .unconditional_update = false,
           .set_defaults = set_api_service_defaults,
           .prepare = prepare_api_service,
           .validate = validate_api_service,
           .cells = api_service_cells}};
}

}  // namespace skiff::api
