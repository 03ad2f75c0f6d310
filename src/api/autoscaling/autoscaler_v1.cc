// autoscaling/v1 knows one target, the use of CPU. Everything else that v2 has is carried in
// annotations, in the older form that v1's types had for it.
#include "api/autoscaling/autoscaling.h"
#include "api/rules.h"

namespace skiff::api {
namespace {

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";

void move_field(const json::value& from, Path path, json::object& to, std::string_view name) {
  if (const json::value* v = present(from, path)) to[name] = *v;
}

bool is_cpu_use(const json::value& metric) {
  return json::get_string(metric, {"type"}) == "Resource" &&
         json::get_string(metric, {"resource", "name"}) == "cpu" &&
         present(metric, {"resource", "target", "averageUtilization"}) != nullptr;
}

std::string source_field(const json::value& metric) {
  std::string name(json::get_string(metric, {"type"}));
  if (!name.empty()) name[0] = static_cast<char>(name[0] | 0x20);  // to lower case
  return name;
}

// One metric of a spec (with "target") or of a status (with "current"), from v2 to v1.
json::object metric_to_v1(const json::value& metric, bool status) {
  const std::string_view amount = status ? "current" : "target";
  const std::string prefix = status ? "current" : "target";
  const std::string name = source_field(metric);
  json::object out{{"type", json::string(json::get_string(metric, {"type"}))}};
  const json::value* source = present(metric, {name});
  if (source == nullptr) return out;
  json::object inner;
  if (name == "resource" || name == "containerResource") {
    move_field(*source, {"name"}, inner, "name");
    move_field(*source, {amount, "averageUtilization"}, inner, prefix + "AverageUtilization");
    move_field(*source, {amount, "averageValue"}, inner, prefix + "AverageValue");
    move_field(*source, {"container"}, inner, "container");
  } else if (name == "pods") {
    move_field(*source, {"metric", "name"}, inner, "metricName");
    move_field(*source, {amount, "averageValue"}, inner, prefix + "AverageValue");
    move_field(*source, {"metric", "selector"}, inner, "selector");
  } else if (name == "object") {
    move_field(*source, {"describedObject"}, inner, "target");
    move_field(*source, {"metric", "name"}, inner, "metricName");
    inner[prefix + "Value"] = "0";
    move_field(*source, {amount, "value"}, inner, prefix + "Value");
    move_field(*source, {"metric", "selector"}, inner, "selector");
    move_field(*source, {amount, "averageValue"}, inner, "averageValue");
  } else if (name == "external") {
    move_field(*source, {"metric", "name"}, inner, "metricName");
    move_field(*source, {"metric", "selector"}, inner, "metricSelector");
    move_field(*source, {amount, "value"}, inner, prefix + "Value");
    move_field(*source, {amount, "averageValue"}, inner, prefix + "AverageValue");
  }
  out[name] = std::move(inner);
  return out;
}

// The type of a target is not in v1: it follows from which amount is given.
std::string_view target_type(const json::object& target) {
  if (target.contains("averageUtilization")) return "Utilization";
  if (target.contains("averageValue")) return "AverageValue";
  return "Value";
}

json::object metric_to_v2(const json::value& metric, bool status) {
  const std::string prefix = status ? "current" : "target";
  const std::string name = source_field(metric);
  json::object out{{"type", json::string(json::get_string(metric, {"type"}))}};
  const json::value* source = present(metric, {name});
  if (source == nullptr) return out;
  json::object inner, amount, identifier;
  move_field(*source, {"name"}, inner, "name");
  move_field(*source, {"container"}, inner, "container");
  move_field(*source, {prefix + "AverageUtilization"}, amount, "averageUtilization");
  move_field(*source, {prefix + "AverageValue"}, amount, "averageValue");
  move_field(*source, {prefix + "Value"}, amount, "value");
  move_field(*source, {"metricName"}, identifier, "name");
  move_field(*source, {"selector"}, identifier, "selector");
  move_field(*source, {"metricSelector"}, identifier, "selector");
  if (name == "object") {
    move_field(*source, {"target"}, inner, "describedObject");
    move_field(*source, {"averageValue"}, amount, "averageValue");
    const json::value* value = amount.if_contains("value");
    if (amount.contains("averageValue") && value != nullptr && *value == json::value("0")) {
      amount.erase("value");
    }
  }
  if (!status) amount["type"] = json::string(target_type(amount));
  if (!identifier.empty()) inner["metric"] = std::move(identifier);
  inner[status ? "current" : "target"] = std::move(amount);
  out[name] = std::move(inner);
  return out;
}

// The server writes the behavior with the names of its own fields.
struct Renamed {
  std::string_view plain, own;
};
constexpr Renamed kRenamed[] = {{"scaleUp", "ScaleUp"},
                                {"scaleDown", "ScaleDown"},
                                {"stabilizationWindowSeconds", "StabilizationWindowSeconds"},
                                {"selectPolicy", "SelectPolicy"},
                                {"policies", "Policies"},
                                {"tolerance", "Tolerance"},
                                {"type", "Type"},
                                {"value", "Value"},
                                {"periodSeconds", "PeriodSeconds"}};

json::value renamed(const json::value& v, bool to_own) {
  if (const json::array* list = v.if_array()) {
    json::array out;
    for (const json::value& item : *list) out.push_back(renamed(item, to_own));
    return out;
  }
  const json::object* o = v.if_object();
  if (o == nullptr) return v;
  json::object out;
  for (const auto& [key, value] : *o) {
    if (value.is_null()) continue;
    for (const Renamed& r : kRenamed) {
      if (std::string_view(key) == (to_own ? r.plain : r.own)) {
        out[to_own ? r.own : r.plain] = renamed(value, to_own);
      }
    }
  }
  return out;
}

json::array convert_each(const json::array& metrics, bool status,
                         json::object (*convert)(const json::value&, bool)) {
  json::array out;
  for (const json::value& metric : metrics) out.emplace_back(convert(metric, status));
  return out;
}

// The JSON in an annotation, which goes with it; null where there is none.
json::value take_note(json::value& object, std::string_view key) {
  json::object& notes = json::make_object(object, {"metadata", "annotations"});
  const json::value* found = notes.if_contains(key);
  json::value out;
  if (found != nullptr && found->is_string()) {
    if (auto parsed = json::parse(json::view(found->get_string()))) out = std::move(*parsed);
  }
  notes.erase(key);
  if (notes.empty()) json::make_object(object, {"metadata"}).erase("annotations");
  return out;
}

void put_note(json::value& object, std::string_view key, const json::value& value) {
  json::make_object(object, {"metadata", "annotations"})[key] = json::serialize(value);
}

json::object cpu_use(std::int64_t utilization, bool status) {
  json::object amount{{"averageUtilization", utilization}};
  if (!status) amount["type"] = "Utilization";
  return {{"type", "Resource"},
          {"resource",
           json::object{{"name", "cpu"}, {status ? "current" : "target", std::move(amount)}}}};
}

}  // namespace

void autoscaler_to_v2(json::value& object) {
  if (!object.is_object()) return;
  json::value metrics = take_note(object, kMetrics), current = take_note(object, kCurrentMetrics);
  json::value conditions = take_note(object, kConditions), behavior = take_note(object, kBehavior);
  json::object& spec = json::make_object(object, {"spec"});
  json::array all;
  if (metrics.is_array()) all = convert_each(metrics.get_array(), false, metric_to_v2);
  const auto wanted = json::get_int(object, {"spec", "targetCPUUtilizationPercentage"});
  constexpr std::int64_t kCpuUtilization = 80;
  if (wanted || all.empty()) all.emplace_back(cpu_use(wanted.value_or(kCpuUtilization), false));
  spec.erase("targetCPUUtilizationPercentage");
  spec["metrics"] = std::move(all);
  if (behavior.is_object()) spec["behavior"] = renamed(behavior, false);
  if (json::find(object, {"status"}) == nullptr) return;
  json::object& status = json::make_object(object, {"status"});
  const auto used = json::get_int(object, {"status", "currentCPUUtilizationPercentage"});
  status.erase("currentCPUUtilizationPercentage");
  if (current.is_array()) {
    status["currentMetrics"] = convert_each(current.get_array(), true, metric_to_v2);
  } else if (used) {
    status["currentMetrics"] = json::array{cpu_use(*used, true)};
  }
  if (conditions.is_array()) status["conditions"] = std::move(conditions);
}

void autoscaler_to_v1(json::value& object) {
  if (!object.is_object()) return;
  const json::array metrics = json::get_array(object, {"spec", "metrics"});
  const json::array current = json::get_array(object, {"status", "currentMetrics"});
  const json::value conditions = json::get_array(object, {"status", "conditions"});
  json::object& spec = json::make_object(object, {"spec"});
  json::array others;
  for (const json::value& metric : metrics) {
    if (!is_cpu_use(metric)) {
      others.emplace_back(metric_to_v1(metric, false));
    } else if (!spec.contains("targetCPUUtilizationPercentage")) {
      move_field(metric, {"resource", "target", "averageUtilization"}, spec,
                 "targetCPUUtilizationPercentage");
    }
  }
  spec.erase("metrics");
  json::value behavior;
  if (const json::value* found = spec.if_contains("behavior")) behavior = renamed(*found, true);
  spec.erase("behavior");
  if (json::find(object, {"status"}) != nullptr) {
    json::object& status = json::make_object(object, {"status"});
    for (const json::value& metric : current) {
      if (json::get_string(metric, {"resource", "name"}) != "cpu") continue;
      move_field(metric, {"resource", "current", "averageUtilization"}, status,
                 "currentCPUUtilizationPercentage");
    }
    status.erase("currentMetrics");
    status.erase("conditions");
    for (const std::string_view field : {"currentReplicas", "desiredReplicas"}) {
      if (!status.contains(field)) status[field] = 0;
    }
  }
  if (!others.empty()) put_note(object, kMetrics, others);
  if (!current.empty())
    put_note(object, kCurrentMetrics, convert_each(current, true, metric_to_v1));
  if (behavior.is_object()) put_note(object, kBehavior, behavior);
  if (!conditions.get_array().empty()) put_note(object, kConditions, conditions);
}

}  // namespace skiff::api
