#include "api/core/replication.h"

#include "api/cells.h"
#include "api/core/pod.h"
#include "api/core/pod_warnings.h"
#include "api/rules.h"
#include "base/selectors.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

void default_template(json::object& owner, std::string_view field) {
  json::object* inner = find_object(owner, field);
  if (inner != nullptr) default_pod_spec(json::make_object(*inner, {"spec"}));
}

void set_pod_template_defaults(json::value& object) {
  if (json::object* root = object.if_object()) {
    if (!root->contains("template")) (*root)["template"] = json::object();
    default_template(*root, "template");
  }
}

std::vector<Cause> validate_template(const json::value& object, const Admission&) {
  const json::value* body = present(object, {"template"});
  return body == nullptr ? std::vector<Cause>{} : validate_pod_template(*body, "template");
}

std::string joined_of_template(const json::value& pod_template, std::string_view field) {
  std::vector<std::string> out;
  for (const json::value& c : json::get_array(pod_template, {"spec", "containers"})) {
    out.emplace_back(json::get_string(c, {field}));
  }
  return join(out, ",");
}

std::string labels_text(const json::object& labels) {
  return or_none(LabelSelector::from_map(labels).text());
}

json::array template_cells(const json::value& object, std::int64_t) {
  static const json::value kNothing = json::object();
  const json::value* found = present(object, {"template"});
  const json::value& body = found == nullptr ? kNothing : *found;
  return {json::string(joined_of_template(body, "name")),
          json::string(joined_of_template(body, "image")),
          json::string(labels_text(json::get_object(body, {"metadata", "labels"})))};
}

void default_controller(json::value& object) {
  if (!object.is_object()) return;
  json::object& spec = json::make_object(object, {"spec"});
  default_template(spec, "template");
  put(spec, "replicas", 1);
  const json::object labels = json::get_object(object, {"spec", "template", "metadata", "labels"});
  if (labels.empty()) return;
  if (json::get_object(object, {"spec", "selector"}).empty()) spec["selector"] = labels;
  if (json::get_object(object, {"metadata", "labels"}).empty()) {
    json::set(object, {"metadata", "labels"}, labels);
  }
}

std::vector<Cause> validate_controller(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.subresource == "status") {
    for (const std::string_view field : {"replicas", "fullyLabeledReplicas", "readyReplicas",
                                         "availableReplicas", "observedGeneration"}) {
      rules.not_negative(child("status", field),
                         json::get_int(object, {"status", field}).value_or(0));
    }
    return rules.take();
  }
  rules.not_negative("spec.minReadySeconds",
                     json::get_int(object, {"spec", "minReadySeconds"}).value_or(0));
  const json::object& selector = json::get_object(object, {"spec", "selector"});
  if (selector.empty()) rules.say(schema::required("spec.selector"));
  rules.not_negative("spec.replicas", json::get_int(object, {"spec", "replicas"}).value_or(0));
  const json::value* body = present(object, {"spec", "template"});
  if (body == nullptr) {
    rules.say(schema::required("spec.template"));
    return rules.take();
  }
  const json::object& labels = json::get_object(*body, {"metadata", "labels"});
  if (!selector.empty() && !LabelSelector::from_map(selector).matches(labels)) {
    rules.say(schema::invalid("spec.template.metadata.labels",
                              labels.empty() ? json::value() : json::value(labels),
                              "`selector` does not match template `labels`"));
  }
  rules.add(validate_pod_template(*body, "spec.template"));
  rules.one_of("spec.template.spec.restartPolicy",
               json::get_string(*body, {"spec", "restartPolicy"}), {"Always"});
  if (present(*body, {"spec", "activeDeadlineSeconds"}) != nullptr) {
    rules.say(schema::forbidden("spec.template.spec.activeDeadlineSeconds",
                                "activeDeadlineSeconds in ReplicationController is not Supported"));
  }
  return rules.take();
}

json::array controller_cells(const json::value& object, std::int64_t now_s) {
  static const json::value kNothing = json::object();
  const json::value* found = present(object, {"spec", "template"});
  const json::value& body = found == nullptr ? kNothing : *found;
  return {json::get_int(object, {"spec", "replicas"}).value_or(0),
          json::get_int(object, {"status", "replicas"}).value_or(0),
          json::get_int(object, {"status", "readyReplicas"}).value_or(0),
          json::string(age_cell(object, now_s)),
          json::string(joined_of_template(body, "name")),
          json::string(joined_of_template(body, "image")),
          json::string(labels_text(json::get_object(object, {"spec", "selector"})))};
}

std::vector<std::string> template_warnings(const json::value& object, const Admission& context) {
  std::vector<std::string> out;
  warn_of_template(object, context, "template", out);
  return out;
}

std::optional<std::string> replication_field_text(const json::value& object,
                                                  std::string_view path) {
  if (path != "status.replicas") return std::nullopt;
  return std::to_string(json::get_int(object, {"status", "replicas"}).value_or(0));
}

}  // namespace

Kind pod_template_kind() {
  return {.resource = {"", "v1", "podtemplates", "PodTemplate", true},
          .singular = "podtemplate",
          .returns_deleted = true,
          .schema = "io.k8s.api.core.v1.PodTemplate",
          .columns = {{"Containers", "string"}, {"Images", "string"}, {"Pod Labels", "string"}},
          .set_defaults = set_pod_template_defaults,
          .validate = validate_template,
          .warnings = template_warnings,
          .cells = template_cells};
}

Kind replication_controller_kind() {
  return {.resource = {"", "v1", "replicationcontrollers", "ReplicationController", true},
          .singular = "replicationcontroller",
          .short_names = {"rc"},
          .categories = {"all"},
          .has_status = true,
          .scale = ScalePaths{.spec = ".spec.replicas",
                              .status = ".status.replicas",
                              .selector = ".spec.selector"},
          .schema = "io.k8s.api.core.v1.ReplicationController",
          .columns = {{"Desired", "integer"},
                      {"Current", "integer"},
                      {"Ready", "integer"},
                      {"Age", "string"},
                      {"Containers", "string", "", 1},
                      {"Images", "string", "", 1},
                      {"Selector", "string", "", 1}},
          .selectable = {"status.replicas"},
          .set_defaults = default_controller,
          .validate = validate_controller,
          .warnings = workload_warnings,
          .field_text = replication_field_text,
          .cells = controller_cells};
}

}  // namespace skiff::api
