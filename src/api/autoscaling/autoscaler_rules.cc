#include <fmt/format.h>

#include <array>

#include "api/autoscaling/autoscaling.h"
#include "api/rules.h"
#include "base/names.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

const json::value kNoSpec = json::object();

// What can stand in a path.
void check_target_segment(std::string_view text, const std::string& path, std::string_view missing,
                          Causes& out) {
  if (text.empty()) {
    out.push_back(schema::required(path, missing));
  } else if (text == "." || text == "..") {
    out.push_back(schema::invalid(path, json::string(text), fmt::format("may not be '{}'", text)));
  } else {
    for (const std::string_view bad : {"/", "%"}) {
      if (text.find(bad) == text.npos) continue;
      out.push_back(
          schema::invalid(path, json::string(text), fmt::format("may not contain '{}'", bad)));
    }
  }
}

struct VersionRule {
  bool skip = false;      // it was so before
  bool core_too = false;  // a kind without group is allowed
};

void check_target_reference(const json::value& reference, const std::string& path, VersionRule rule,
                            Causes& out) {
  check_target_segment(json::get_string(reference, {"kind"}), child(path, "kind"), "", out);
  check_target_segment(json::get_string(reference, {"name"}), child(path, "name"), "", out);
  if (rule.skip) return;
  const std::string_view version = json::get_string(reference, {"apiVersion"});
  const auto parts = split(version, '/');
  if (parts.size() > 2) {
    out.push_back(schema::invalid(child(path, "apiVersion"), json::string(version),
                                  fmt::format("unexpected GroupVersion string: {}", version)));
  } else if (!rule.core_too && (parts.size() < 2 || parts[0].empty())) {
    out.push_back(schema::invalid(child(path, "apiVersion"), json::string(version),
                                  "apiVersion must specify API group"));
  }
}

void check_target(const json::value& target, const std::string& path, Causes& out) {
  const std::string_view type = json::get_string(target, {"type"});
  if (type.empty()) {
    out.push_back(schema::required(child(path, "type"), "must specify a metric target type"));
  }
  if (!is_one_of(type, {"Utilization", "Value", "AverageValue"})) {
    out.push_back(schema::invalid(child(path, "type"), json::string(type),
                                  "must be either Utilization, Value, or AverageValue"));
  }
  for (const std::string_view field : {"value", "averageValue"}) {
    if (!present(target, {field})) continue;
    const auto q = Quantity::from_json(*json::find(target, {field}));
    if (q && (q->zero() || q->negative())) {
      out.push_back(
          schema::invalid(child(path, field), json::string(q->text()), "must be positive"));
    }
  }
  const auto utilization = json::get_int(target, {"averageUtilization"});
  if (utilization && *utilization < 1) {
    out.push_back(
        schema::invalid(child(path, "averageUtilization"), *utilization, "must be greater than 0"));
  }
}

void check_identifier(const json::value& source, const std::string& path, Causes& out) {
  check_target_segment(json::get_string(source, {"metric", "name"}), child(path, "metric.name"),
                       "must specify a metric name", out);
}

// A resource's use, of the whole pod or of one container.
void check_usage(const json::value& source, const std::string& path, Causes& out) {
  const json::value& target = value_at(source, {"target"});
  check_target(target, child(path, "target"), out);
  const bool value = present(target, {"averageValue"});
  const bool utilization = present(target, {"averageUtilization"});
  if (!value && !utilization) {
    out.push_back(schema::required(child(path, "target.averageUtilization"),
                                   "must set either a target raw value or a target utilization"));
  }
  if (value && utilization) {
    out.push_back(
        schema::forbidden(child(path, "target.averageValue"),
                          "may not set both a target raw value and a target utilization"));
  }
}

void check_metric_source(const json::value& source, std::string_view kind, const std::string& path,
                         Causes& out) {
  const json::value& target = value_at(source, {"target"});
  const std::string value_path = child(path, "target.averageValue");
  const bool value = present(target, {"value"}), average = present(target, {"averageValue"});
  if (kind == "resource" || kind == "containerResource") {
    if (json::get_string(source, {"name"}).empty()) {
      out.push_back(schema::required(child(path, "name"), "must specify a resource name"));
    }
    const std::string_view container = json::get_string(source, {"container"});
    if (kind == "containerResource" && container.empty()) {
      out.push_back(schema::required(child(path, "container"), "must specify a container"));
    } else if (kind == "containerResource") {
      for (const std::string& bad : names::check_dns1123_label(container)) {
        out.push_back(schema::invalid(child(path, "container"), json::string(container), bad));
      }
    }
    check_usage(source, path, out);
    return;
  }
  if (kind == "object") {
    check_target_reference(value_at(source, {"describedObject"}), child(path, "describedObject"),
                           {.core_too = true}, out);
  }
  check_identifier(source, path, out);
  check_target(target, child(path, "target"), out);
  if (kind == "pods" && !average) {
    out.push_back(schema::required(value_path, "must specify a positive target averageValue"));
  } else if (kind == "object" && !value && !average) {
    out.push_back(schema::required(value_path, "must set either a target value or averageValue"));
  } else if (kind == "external" && !value && !average) {
    out.push_back(schema::required(
        value_path, "must set either a target value for metric or a per-pod target"));
  } else if (kind == "external" && value && average) {
    out.push_back(
        schema::forbidden(child(path, "target.value"),
                          "may not set both a target value for metric and a per-pod target"));
  }
}

void check_metric(const json::value& metric, const std::string& path, Causes& out) {
  const std::vector<std::string> types = {"ContainerResource", "External", "Object", "Pods",
                                          "Resource"};
  const std::string_view type = json::get_string(metric, {"type"});
  const bool known = std::ranges::find(types, type) != types.end();
  if (type.empty()) {
    out.push_back(schema::required(child(path, "type"), "must specify a metric source type"));
  }
  const Cause unknown = schema::unsupported(child(path, "type"), json::string(type), types);
  if (!known) out.push_back(unknown);
  std::vector<std::string_view> sources;
  for (const std::string_view kind :
       {"object", "external", "pods", "resource", "containerResource"}) {
    if (!present(metric, {kind})) continue;
    sources.push_back(kind);
    if (sources.size() == 1)
      check_metric_source(value_at(metric, {kind}), kind, child(path, kind), out);
  }
  std::string expected(type);
  if (!expected.empty()) expected[0] = static_cast<char>(expected[0] | 0x20);  // to lower case
  if (!known) {
    out.push_back(unknown);
    expected.clear();
  } else if (!present(metric, {expected})) {
    out.push_back(schema::required(child(path, expected),
                                   "must populate information for the given metric source"));
  }
  if (sources.size() == 1) return;
  for (const std::string_view kind : sources) {
    if (kind == expected) continue;
    out.push_back(
        schema::forbidden(child(path, kind), "must populate the given metric source only"));
  }
}

void check_scaling_rules(const json::value& rules, const std::string& path, Causes& out) {
  constexpr std::int64_t kMostWindow = 3600, kMostPeriod = 1800;
  const auto window = json::get_int(rules, {"stabilizationWindowSeconds"});
  const std::string window_path = child(path, "stabilizationWindowSeconds");
  if (window && *window < 0) {
    out.push_back(schema::invalid(window_path, *window, "must be greater than or equal to zero"));
  }
  if (window && *window > kMostWindow) {
    out.push_back(schema::invalid(window_path, *window, "must be less than or equal to 3600"));
  }
  const std::string_view select = json::get_string(rules, {"selectPolicy"});
  if (present(rules, {"selectPolicy"}) && !is_one_of(select, {"Disabled", "Max", "Min"})) {
    out.push_back(schema::unsupported(child(path, "selectPolicy"), json::string(select),
                                      {"Disabled", "Max", "Min"}));
  }
  const json::array& policies = json::get_array(rules, {"policies"});
  if (policies.empty()) {
    out.push_back(schema::required(child(path, "policies"), "must specify at least one Policy"));
  }
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const std::string place = child(child(path, "policies"), i);
    const std::string_view type = json::get_string(policies[i], {"type"});
    if (type != "Pods" && type != "Percent") {
      out.push_back(
          schema::unsupported(child(place, "type"), json::string(type), {"Percent", "Pods"}));
    }
    for (const std::string_view field : {"value", "periodSeconds"}) {
      const std::int64_t n = count(policies[i], {field});
      if (n <= 0)
        out.push_back(schema::invalid(child(place, field), n, "must be greater than zero"));
    }
    const std::int64_t period = count(policies[i], {"periodSeconds"});
    if (period > kMostPeriod) {
      out.push_back(schema::invalid(child(place, "periodSeconds"), period,
                                    "must be less than or equal to 1800"));
    }
  }
}

}  // namespace

void check_autoscaler(const json::value& object, const Admission& context, Causes& out) {
  if (context.subresource == "status") {
    check_counts(value_at(object, {"status"}), "status", {"currentReplicas", "desiredReplicas"},
                 out);
    return;
  }
  const json::value& spec = value_at(object, {"spec"});
  const json::value& old = context.old == nullptr ? kNoSpec : value_at(*context.old, {"spec"});
  const std::int64_t least = json::get_int(spec, {"minReplicas"}).value_or(1);
  const std::int64_t most = count(spec, {"maxReplicas"});
  const std::int64_t bound = json::get_int(old, {"minReplicas"}) == 0 ? 0 : 1;
  if (least < bound) {
    out.push_back(schema::invalid("spec.minReplicas", least,
                                  fmt::format("must be greater than or equal to {}", bound)));
  }
  if (most < 1) out.push_back(schema::invalid("spec.maxReplicas", most, "must be greater than 0"));
  if (most < least) {
    out.push_back(schema::invalid("spec.maxReplicas", most,
                                  "must be greater than or equal to `minReplicas`"));
  }
  const json::value& reference = value_at(spec, {"scaleTargetRef"});
  const auto same = [&](std::string_view field) {
    return json::get_string(reference, {field}) == json::get_string(old, {"scaleTargetRef", field});
  };
  check_target_reference(
      reference, "spec.scaleTargetRef",
      {.skip = context.old != nullptr && same("apiVersion") && same("kind"),
       .core_too = json::get_string(reference, {"kind"}) == "ReplicationController"},
      out);
  const json::array& metrics = json::get_array(spec, {"metrics"});
  bool outside = false;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    check_metric(metrics[i], child("spec.metrics", i), out);
    outside = outside || is_one_of(json::get_string(metrics[i], {"type"}), {"Object", "External"});
  }
  if (least == 0 && !outside) {
    out.push_back(schema::forbidden("spec.metrics",
                                    "must specify at least one Object or External metric to "
                                    "support scaling to zero replicas"));
  }
  for (const std::string_view direction : {"scaleUp", "scaleDown"}) {
    if (!present(spec, {"behavior", direction})) continue;
    check_scaling_rules(value_at(spec, {"behavior", direction}), child("spec.behavior", direction),
                        out);
  }
}

std::string targets_cell(const json::value& object) {
  const json::array& metrics = json::get_array(object, {"spec", "metrics"});
  const json::array& statuses = json::get_array(object, {"status", "currentMetrics"});
  if (metrics.empty()) return "<none>";
  constexpr std::size_t kShown = 2;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < metrics.size() && i < kShown; ++i) {
    std::string kind(json::get_string(metrics[i], {"type"}));
    if (kind.empty()) kind = "?";
    kind[0] = static_cast<char>(kind[0] | 0x20);
    const json::value& source = value_at(metrics[i], {kind});
    const json::value& now =
        i < statuses.size() ? value_at(statuses[i], {kind, "current"}) : kNoSpec;
    const auto amount = [](const json::value& from, std::string_view field) -> std::string {
      const json::value* v = json::find(from, {field});
      if (v == nullptr || v->is_null()) return "<unknown>";
      const auto q = Quantity::from_json(*v);
      return q ? q->text() : "<unknown>";
    };
    const auto percent = [](const json::value& from, std::string_view none) -> std::string {
      const auto n = json::get_int(from, {"averageUtilization"});
      return n ? fmt::format("{}%", *n) : std::string(none);
    };
    const json::value& target = value_at(source, {"target"});
    const bool average = present(target, {"averageValue"});
    if (kind == "resource" || kind == "containerResource") {
      out.push_back(
          fmt::format("{}: {}/{}", json::get_string(source, {"name"}),
                      average ? amount(now, "averageValue") : percent(now, "<unknown>"),
                      average ? amount(target, "averageValue") : percent(target, "<auto>")));
    } else if (kind == "pods") {
      out.push_back(amount(now, "averageValue") + "/" + amount(target, "averageValue"));
    } else if (kind == "object" || kind == "external") {
      out.push_back(average ? amount(now, "averageValue") + "/" + amount(target, "averageValue") +
                                  " (avg)"
                            : amount(now, "value") + "/" + amount(target, "value"));
    } else {
      out.emplace_back("<unknown type>");
    }
  }
  std::string text = join(out, ", ");
  if (metrics.size() > kShown) text += fmt::format(" + {} more...", metrics.size() - kShown);
  return text;
}

}  // namespace skiff::api
