#include "api/node/runtime_class.h"

#include "api/cells.h"
#include "api/core/pod.h"
#include "api/rules.h"

namespace skiff::api {
namespace {

std::vector<Cause> validate_runtime_class(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.old != nullptr) {
    rules.same(json::find(object, {"handler"}), json::find(*context.old, {"handler"}), "handler");
    return rules.take();
  }
  const std::string_view handler = json::get_string(object, {"handler"});
  rules.called("handler", handler, names::check_dns1123_label(handler));
  if (const json::value* fixed = present(object, {"overhead", "podFixed"})) {
    rules.add(validate_resources(json::object{{"limits", *fixed}}, "overhead"));
  }
  rules.labels(json::get_object(object, {"scheduling", "nodeSelector"}), "scheduling.nodeSelector");
  const json::array& tolerations = json::get_array(object, {"scheduling", "tolerations"});
  rules.add(validate_tolerations(tolerations, "scheduling.tolerations.tolerations"));
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (tolerations[i] != tolerations[k]) continue;
      rules.say(schema::duplicate(schema::child("scheduling.tolerations", i), tolerations[i]));
      break;
    }
  }
  return rules.take();
}

json::array runtime_class_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(json::get_string(object, {"handler"})),
          json::string(age_cell(object, now_s))};
}

}  // namespace

std::vector<Kind> node_kinds() {
  return {{.resource = {"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false},
           .singular = "runtimeclass",
           .has_generation = false,
           .schema = "io.k8s.api.node.v1.RuntimeClass",
           .columns = {{"Handler", "string"}, {"Age", "string"}},
           .unconditional_update = false,
           .validate = validate_runtime_class,
           .cells = runtime_class_cells}};
}

}  // namespace skiff::api
