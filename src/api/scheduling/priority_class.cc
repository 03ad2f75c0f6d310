#include "api/scheduling/priority_class.h"

#include <fmt/format.h>

#include "api/cells.h"
#include "api/meta.h"
#include "api/rules.h"

namespace skiff::api {
namespace {

constexpr std::int64_t kMostForUsers = 1'000'000'000;
constexpr std::string_view kSystemPrefix = "system-";

void set_priority_class_defaults(json::value& object) {
  if (json::object* o = object.if_object()) put(*o, "preemptionPolicy", "PreemptLowerPriority");
}

// It has a generation, which never grows.
void prepare_priority_class(json::value& object, const Admission& context) {
  if (context.old == nullptr) json::set(object, {"metadata", "generation"}, 1);
}

// What is wrong with a class that has a reserved name; nothing about the two that Kubernetes has.
std::string system_complaint(const json::value& object) {
  const std::string_view called = name(object);
  const std::int64_t value = json::get_int(object, {"value"}).value_or(0);
  const std::int64_t expected = called == "system-node-critical"      ? 2 * kMostForUsers + 1000
                                : called == "system-cluster-critical" ? 2 * kMostForUsers
                                                                      : 0;
  if (expected == 0) return fmt::format("{} is not a known system priority class", called);
  if (value != expected)
    return fmt::format("value of {} PriorityClass must be {}", called, expected);
  if (json::get_bool(object, {"globalDefault"}).value_or(false)) {
    return fmt::format("globalDefault of {} PriorityClass must be false", called);
  }
  return {};
}

std::vector<Cause> validate_priority_class(const json::value& object, const Admission& context) {
  Rules rules;
  const std::int64_t value = json::get_int(object, {"value"}).value_or(0);
  if (context.old != nullptr) {
    if (value != json::get_int(*context.old, {"value"}).value_or(0)) {
      rules.say(schema::forbidden("value", "may not be changed in an update."));
    }
    rules.same(json::find(object, {"preemptionPolicy"}),
               json::find(*context.old, {"preemptionPolicy"}), "preemptionPolicy");
    return rules.take();
  }
  if (name(object).starts_with(kSystemPrefix)) {
    if (const std::string why = system_complaint(object); !why.empty()) {
      rules.say(schema::forbidden(
          "metadata.name",
          fmt::format("priority class names with '{}' prefix are reserved for system use only. "
                      "error: {}",
                      kSystemPrefix, why)));
    }
  } else if (value > kMostForUsers) {
    rules.say(schema::forbidden(
        "value",
        fmt::format("maximum allowed value of a user defined priority is {}", kMostForUsers)));
  }
  rules.maybe_one_of(object, "", "preemptionPolicy", {"PreemptLowerPriority", "Never"});
  return rules.take();
}

json::array priority_class_cells(const json::value& object, std::int64_t now_s) {
  return {json::get_int(object, {"value"}).value_or(0),
          json::get_bool(object, {"globalDefault"}).value_or(false),
          json::string(age_cell(object, now_s)),
          json::string(json::get_string(object, {"preemptionPolicy"}))};
}

}  // namespace

std::vector<Kind> scheduling_kinds() {
  return {{.resource = {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false},
           .singular = "priorityclass",
           .short_names = {"pc"},
           .has_generation = false,
           .schema = "io.k8s.api.scheduling.v1.PriorityClass",
           .columns = {{"Value", "integer"},
                       {"Global-Default", "boolean"},
                       {"Age", "string"},
                       {"PreemptionPolicy", "string"}},
           .set_defaults = set_priority_class_defaults,
           .prepare = prepare_priority_class,
           .validate = validate_priority_class,
           .cells = priority_class_cells}};
}

}  // namespace skiff::api
