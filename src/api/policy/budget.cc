#include "api/policy/budget.h"

#include "api/cells.h"
#include "api/rules.h"

namespace skiff::api {
namespace {

std::vector<Cause> validate_budget(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.subresource == "status") {
    static const json::value kNothing = json::object();
    const json::value* status = present(object, {"status"});
    for (const std::string_view field :
         {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
      rules.not_negative(status == nullptr ? kNothing : *status, "status", field);
    }
    return rules.take();
  }
  const json::value* least = present(object, {"spec", "minAvailable"});
  const json::value* most = present(object, {"spec", "maxUnavailable"});
  if (least != nullptr && most != nullptr) {
    rules.say(schema::invalid("spec", *json::find(object, {"spec"}),
                              "minAvailable and maxUnavailable cannot be both set"));
  }
  if (least != nullptr) rules.percent_or_number(*least, "spec.minAvailable");
  if (most != nullptr) rules.percent_or_number(*most, "spec.maxUnavailable");
  rules.label_selector(present(object, {"spec", "selector"}), "spec.selector");
  if (present(object, {"spec", "unhealthyPodEvictionPolicy"}) != nullptr) {
    rules.one_of("spec.unhealthyPodEvictionPolicy",
                 json::get_string(object, {"spec", "unhealthyPodEvictionPolicy"}),
                 {"AlwaysAllow", "IfHealthyBudget"});
  }
  return rules.take();
}

json::value amount_cell(const json::value& object, std::string_view field) {
  const json::value* v = present(object, {"spec", field});
  if (v == nullptr) return "N/A";
  return v->is_string() ? *v : json::value(json::string(json::serialize(*v)));
}

json::array budget_cells(const json::value& object, std::int64_t now_s) {
  return {amount_cell(object, "minAvailable"), amount_cell(object, "maxUnavailable"),
          json::get_int(object, {"status", "disruptionsAllowed"}).value_or(0),
          json::string(age_cell(object, now_s))};
}

}  // namespace

std::vector<Kind> policy_kinds() {
  return {{.resource = {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true},
           .singular = "poddisruptionbudget",
           .short_names = {"pdb"},
           .has_status = true,
           .schema = "io.k8s.api.policy.v1.PodDisruptionBudget",
           .columns = {{"Min Available", "string"},
                       {"Max Unavailable", "string"},
                       {"Allowed Disruptions", "integer"},
                       {"Age", "string"}},
           .unconditional_update = false,
           .validate = validate_budget,
           .cells = budget_cells}};
}

}  // namespace skiff::api
