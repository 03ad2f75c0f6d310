#include <charconv>

#include "api/apps/apps.h"
#include "api/cells.h"
#include "api/core/pod_template.h"
#include "api/core/pod_warnings.h"
#include "api/help.h"
#include "api/meta.h"
#include "base/selectors.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

// How often the template changed. The field is of an older version of the API; this is where the
// present one shows it.
constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

void set_daemon_set_defaults(json::value& object) {
  // Written by whoever writes the object, counted by the server.
  if (object.is_object() && annotation(object, kTemplateGeneration).empty()) {
    json::set(object, {"metadata", "annotations", kTemplateGeneration}, "0");
  }
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : object_in(*root, "spec");
  if (spec == nullptr) return;
  default_pod_template(*spec);
  if (json::object* strategy = object_in(*spec, "updateStrategy")) {
    default_text(*strategy, "type", "RollingUpdate");
    const bool rolls = text_in(*strategy, "type") == "RollingUpdate";
    if (json::object* rolling = rolls ? object_in(*strategy, "rollingUpdate") : nullptr) {
      default_int(*rolling, "maxUnavailable", 1);
      default_int(*rolling, "maxSurge", 0);
    }
  }
  default_int(*spec, "revisionHistoryLimit", 10);
  if (json::object* status = object_in(*root, "status")) {
    for (const std::string_view field : {"currentNumberScheduled", "numberMisscheduled",
                                         "desiredNumberScheduled", "numberReady"}) {
      default_int(*status, field, 0);
    }
  }
}

std::int64_t template_generation(const json::value& object) {
  const std::string_view text = annotation(object, kTemplateGeneration);
  std::int64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

void prepare_daemon_set(json::value& object, const Admission& context) {
  const json::value* old = context.old;
  std::int64_t generation = 1;
  if (context.subresource == "status") return;
  if (old == nullptr) {
    generation = std::max<std::int64_t>(1, template_generation(object));
  } else {
    generation = template_generation(*old);
    if (value_at(object, {"spec", "template"}) != value_at(*old, {"spec", "template"}))
      ++generation;
  }
  json::object* root = object.if_object();
  json::object* metadata = root == nullptr ? nullptr : object_in(*root, "metadata");
  json::object* notes = metadata == nullptr ? nullptr : object_in(*metadata, "annotations");
  if (notes != nullptr) (*notes)[kTemplateGeneration] = std::to_string(generation);
}

void check_daemon_set_rolling(const json::value& rolling, const std::string& path, Causes& out) {
  const json::value none = 0;
  const json::value* unavailable = json::find(rolling, {"maxUnavailable"});
  const json::value* surge = json::find(rolling, {"maxSurge"});
  if (unavailable == nullptr) unavailable = &none;
  if (surge == nullptr) surge = &none;
  const std::string low = child(path, "maxUnavailable"), high = child(path, "maxSurge");
  check_int_or_percent(*unavailable, low, out);
  check_int_or_percent(*surge, high, out);
  check_at_most_100_percent(*unavailable, low, out);
  check_at_most_100_percent(*surge, high, out);
  const bool falls = int_or_percent(*unavailable) != 0, rises = int_or_percent(*surge) != 0;
  if (falls && rises) {
    out.push_back(schema::invalid(high, *surge, "may not be set when maxUnavailable is non-zero"));
  } else if (!falls && !rises) {
    out.push_back(schema::required(low, "cannot be 0 when maxSurge is 0"));
  }
}

void check_daemon_set_strategy(const json::value& spec, Causes& out) {
  const std::string path = "spec.updateStrategy";
  const std::string_view type = json::get_string(spec, {"updateStrategy", "type"});
  const json::value* rolling = json::find(spec, {"updateStrategy", "rollingUpdate"});
  if (type == "RollingUpdate") {
    if (rolling != nullptr) check_daemon_set_rolling(*rolling, child(path, "rollingUpdate"), out);
  } else if (type != "OnDelete") {
    json::value shown = nullptr;
    if (rolling != nullptr && rolling->is_object()) {
      shown = json::object{{"MaxUnavailable", value_at(*rolling, {"maxUnavailable"})},
                           {"MaxSurge", value_at(*rolling, {"maxSurge"})}};
    }
    out.push_back(schema::unsupported(
        path, json::object{{"Type", json::string(type)}, {"RollingUpdate", std::move(shown)}},
        {"RollingUpdate", "OnDelete"}));
  }
}

void check_daemon_set_spec(const json::value& object, Causes& out) {
  const json::value& spec = value_at(object, {"spec"});
  const json::value* selector = json::find(spec, {"selector"});
  const json::value& pod = value_at(spec, {"template"});
  const json::object& labels = json::get_object(pod, {"metadata", "labels"});
  check_label_selector(selector, "spec.selector", out);
  if (const auto fits = selects(selector, labels); fits && !*fits) {
    out.push_back(schema::invalid("spec.template.metadata.labels", shown_map(labels),
                                  "`selector` does not match template `labels`"));
  }
  if (selector != nullptr && selector->is_object() &&
      json::get_object(*selector, {"matchLabels"}).empty() &&
      json::get_array(*selector, {"matchExpressions"}).empty()) {
    out.push_back(schema::invalid("spec.selector", shown_selector(selector),
                                  "empty selector is invalid for daemonset"));
  }
  check_pod_template(pod, "spec.template", out);
  check_always_running(pod, "spec.template", "DaemonSet", out);
  check_counts(spec, "spec", {"minReadySeconds"}, out);
  check_daemon_set_strategy(spec, out);
  check_counts(spec, "spec", {"revisionHistoryLimit"}, out);
}

std::vector<Cause> validate_daemon_set(const json::value& object, const Admission& context) {
  Causes out;
  if (context.old != nullptr && context.subresource == "status") {
    check_counts(value_at(object, {"status"}), "status",
                 {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                  "numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable",
                  "numberUnavailable", "collisionCount"},
                 out);
    check_collisions(object, *context.old, out);
    return out;
  }
  if (context.old != nullptr) {
    check_immutable(json::find(object, {"spec", "selector"}),
                    json::find(*context.old, {"spec", "selector"}), "spec.selector", out);
  }
  check_daemon_set_spec(object, out);
  return out;
}

std::vector<std::string> daemon_set_warnings(const json::value& object, const Admission& context) {
  std::vector<std::string> out;
  warn_of_template(object, context, "spec.template", out);
  return out;
}

json::array daemon_set_cells(const json::value& object, std::int64_t now_s) {
  const json::value& pod = value_at(object, {"spec", "template", "spec"});
  const std::string nodes = LabelSelector::from_map(json::get_object(pod, {"nodeSelector"})).text();
  return {count(object, {"status", "desiredNumberScheduled"}),
          count(object, {"status", "currentNumberScheduled"}),
          count(object, {"status", "numberReady"}),
          count(object, {"status", "updatedNumberScheduled"}),
          count(object, {"status", "numberAvailable"}),
          json::string(or_none(nodes)),
          json::string(age_cell(object, now_s)),
          names_cell(pod),
          images_cell(pod),
          selector_cell(json::find(object, {"spec", "selector"}))};
}

std::vector<Column> daemon_set_columns() {
  const std::string docs =
      " More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/";
  return {
      {"Desired", "integer", "", 0,
       "The total number of nodes that should be running the daemon pod (including nodes correctly "
       "running the daemon pod)." +
           docs},
      {"Current", "integer", "", 0,
       "The number of nodes that are running at least 1 daemon pod and are supposed to run the "
       "daemon pod." +
           docs},
      {"Ready", "integer", "", 0,
       "The number of nodes that should be running the daemon pod and have one or more of the "
       "daemon pod running and ready."},
      {"Up-to-date", "integer", "", 0,
       "The total number of nodes that are running updated daemon pod"},
      {"Available", "integer", "", 0,
       "The number of nodes that should be running the daemon pod and have one or more of the "
       "daemon pod running and available (ready for at least spec.minReadySeconds)"},
      {"Node Selector", "string", "", 0,
       "NodeSelector is a selector which must be true for the pod to fit on a node. Selector which "
       "must match a node's labels for the pod to be scheduled on that node. More info: "
       "https://kubernetes.io/docs/concepts/configuration/assign-pod-node/"},
      {"Age", "string", "", 0, std::string(kAgeHelp)},
      {"Containers", "string", "", 1, std::string(kContainersHelp)},
      {"Images", "string", "", 1, std::string(kImagesHelp)},
      {"Selector", "string", "", 1,
       "A label query over pods that are managed by the daemon set. Must match in order to be "
       "controlled. If empty, defaulted to labels on Pod template. More info: "
       "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
       "#label-selectors"}};
}

}  // namespace

Kind daemon_set_kind() {
  return {.resource = {"apps", "v1", "daemonsets", "DaemonSet", true},
          .singular = "daemonset",
          .short_names = {"ds"},
          .categories = {"all"},
          .has_status = true,
          .schema = "io.k8s.api.apps.v1.DaemonSet",
          .columns = daemon_set_columns(),
          .set_defaults = set_daemon_set_defaults,
          .prepare = prepare_daemon_set,
          .validate = validate_daemon_set,
          .warnings = daemon_set_warnings,
          .cells = daemon_set_cells};
}

}  // namespace skiff::api
