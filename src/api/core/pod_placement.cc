// Where a pod may run: affinity, tolerations, spread.
#include <fmt/format.h>

#include "api/core/pod.h"
#include "api/core/pod_checks.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kRequiredAffinity = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferredAffinity = "preferredDuringSchedulingIgnoredDuringExecution";

void check_node_requirement(const json::value& term, bool check_values, const std::string& path,
                            Rules& rules) {
  const std::string_view op = json::get_string(term, {"operator"});
  const json::array& values = json::get_array(term, {"values"});
  const std::string at = child(path, "values");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      rules.say(schema::required(at, "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      rules.say(schema::forbidden(
          at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1) {
      rules.say(
          schema::required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  } else {
    rules.say(schema::invalid(child(path, "operator"), json::string(op),
                              "not a valid selector operator"));
  }
  const std::string_view key = json::get_string(term, {"key"});
  rules.called(child(path, "key"), key, names::check_label_key(key));
  for (std::size_t i = 0; check_values && i < values.size(); ++i) {
    const std::string_view text = values[i].is_string() ? json::view(values[i].get_string()) : "";
    rules.called(child(at, i), text, names::check_label_value(text));
  }
}

void check_node_field(const json::value& term, const std::string& path, Rules& rules) {
  const std::string_view op = json::get_string(term, {"operator"});
  const json::array& values = json::get_array(term, {"values"});
  if (op != "In" && op != "NotIn") {
    rules.say(schema::invalid(child(path, "operator"), json::string(op),
                              "not a valid selector operator"));
  } else if (values.size() != 1) {
    rules.say(schema::required(child(path, "values"),
                               "must be only one value when `operator` is 'In' or 'NotIn' for node "
                               "field selector"));
  }
  const std::string_view key = json::get_string(term, {"key"});
  if (key != "metadata.name") {
    rules.say(
        schema::invalid(child(path, "key"), json::string(key), "not a valid field selector key"));
  }
}

void check_node_term(const json::value& term, bool check_values, const std::string& path,
                     Rules& rules) {
  const json::array& labels = json::get_array(term, {"matchExpressions"});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check_node_requirement(labels[i], check_values, child(child(path, "matchExpressions"), i),
                           rules);
  }
  const json::array& fields = json::get_array(term, {"matchFields"});
  for (std::size_t i = 0; i < fields.size(); ++i) {
    check_node_field(fields[i], child(child(path, "matchFields"), i), rules);
  }
}

void check_weight(const json::value& term, const std::string& path, Rules& rules) {
  const std::int64_t weight = json::get_int(term, {"weight"}).value_or(0);
  if (weight < 1 || weight > 100) {
    rules.say(schema::invalid(child(path, "weight"), weight, "must be in the range 1-100"));
  }
}

void check_pod_term(const json::value& term, const std::string& path, Rules& rules) {
  rules.label_selector(present(term, {"labelSelector"}), child(path, "labelSelector"));
  rules.label_selector(present(term, {"namespaceSelector"}), child(path, "namespaceSelector"));
  for (const std::string& ns : json::strings(json::get_array(term, {"namespaces"}))) {
    rules.called(child(path, "namespace"), ns, names::check_dns1123_label(ns));
  }
  rules.needs(term, path, "topologyKey", "can not be empty");
  const std::string_view key = json::get_string(term, {"topologyKey"});
  rules.called(child(path, "topologyKey"), key, names::check_label_key(key));
}

void check_pod_affinity(const json::value& affinity, const std::string& path, Rules& rules) {
  const json::array& must = json::get_array(affinity, {kRequiredAffinity});
  for (std::size_t i = 0; i < must.size(); ++i) {
    check_pod_term(must[i], child(child(path, kRequiredAffinity), i), rules);
  }
  const json::array& wish = json::get_array(affinity, {kPreferredAffinity});
  for (std::size_t i = 0; i < wish.size(); ++i) {
    const std::string at = child(child(path, kPreferredAffinity), i);
    check_weight(wish[i], at, rules);
    static const json::value kNothing = json::object();
    const json::value* term = present(wish[i], {"podAffinityTerm"});
    check_pod_term(term == nullptr ? kNothing : *term, child(at, "podAffinityTerm"), rules);
  }
}

}  // namespace

std::vector<Cause> validate_node_selector(const json::value& selector, const std::string& path) {
  Rules rules;
  const std::string at = child(path, "nodeSelectorTerms");
  const json::array& terms = json::get_array(selector, {"nodeSelectorTerms"});
  if (terms.empty()) rules.say(schema::required(at, "must have at least one node selector term"));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    check_node_term(terms[i], true, child(at, i), rules);
  }
  return rules.take();
}

void check_affinity(const json::value& spec, const std::string& path, Rules& rules) {
  if (const json::value* node = present(spec, {"affinity", "nodeAffinity"})) {
    const std::string at = child(path, "nodeAffinity");
    if (const json::value* must = present(*node, {kRequiredAffinity})) {
      rules.add(validate_node_selector(*must, child(at, kRequiredAffinity)));
    }
    const json::array& wish = json::get_array(*node, {kPreferredAffinity});
    for (std::size_t i = 0; i < wish.size(); ++i) {
      const std::string here = child(child(at, kPreferredAffinity), i);
      check_weight(wish[i], here, rules);
      if (const json::value* term = present(wish[i], {"preference"})) {
        check_node_term(*term, false, child(here, "preference"), rules);
      }
    }
  }
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    if (const json::value* affinity = present(spec, {"affinity", kind})) {
      check_pod_affinity(*affinity, child(path, kind), rules);
    }
  }
}

std::vector<Cause> validate_tolerations(const json::array& tolerations, const std::string& path) {
  Rules rules;
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    const std::string at = child(path, i);
    const json::value& t = tolerations[i];
    const std::string_view key = json::get_string(t, {"key"});
    const std::string_view op = json::get_string(t, {"operator"});
    const std::string_view value = json::get_string(t, {"value"});
    const std::string_view effect = json::get_string(t, {"effect"});
    if (!key.empty()) {
      rules.called(child(at, "key"), key, names::check_label_key(key));
    } else if (op != "Exists") {
      rules.say(schema::invalid(child(at, "operator"), json::string(op),
                                "operator must be Exists when `key` is empty, which means \"match "
                                "all values and all keys\""));
    }
    if (present(t, {"tolerationSeconds"}) != nullptr && effect != "NoExecute") {
      rules.say(schema::invalid(child(at, "effect"), json::string(effect),
                                "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    if (op.empty() || op == "Equal") {
      rules.called(child(at, "operator"), value, names::check_label_value(value));
    } else if (op != "Exists") {
      rules.one_of(child(at, "operator"), op, {"Equal", "Exists"});
    } else if (!value.empty()) {
      rules.say(schema::invalid(child(at, "operator"), json::string(value),
                                "value must be empty when `operator` is 'Exists'"));
    }
    if (!effect.empty()) {
      rules.one_of(child(at, "effect"), effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"});
    }
  }
  return rules.take();
}

void check_topology_spread(const json::value& spec, const std::string& path, Rules& rules) {
  const json::array& list = json::get_array(spec, {"topologySpreadConstraints"});
  const auto same_as = [&](std::size_t i, std::size_t k, std::string_view field) {
    return json::get_string(list[i], {field}) == json::get_string(list[k], {field});
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = child(path, i);
    const std::int64_t skew = json::get_int(list[i], {"maxSkew"}).value_or(0);
    if (skew <= 0) {
      rules.say(schema::invalid(child(at, "maxSkew"), skew, "must be greater than zero"));
    }
    rules.needs(list[i], at, "topologyKey", "can not be empty");
    const std::string_view action = json::get_string(list[i], {"whenUnsatisfiable"});
    rules.one_of(child(at, "whenUnsatisfiable"), action, {"DoNotSchedule", "ScheduleAnyway"});
    for (std::size_t k = i + 1; k < list.size(); ++k) {
      if (!same_as(i, k, "topologyKey") || !same_as(i, k, "whenUnsatisfiable")) continue;
      rules.say(schema::duplicate(
          child(at, "{topologyKey, whenUnsatisfiable}"),
          json::string(
              fmt::format("{{{}, {}}}", json::get_string(list[i], {"topologyKey"}), action))));
      break;
    }
    if (const auto domains = json::get_int(list[i], {"minDomains"})) {
      if (*domains <= 0) {
        rules.say(schema::invalid(child(at, "minDomains"), *domains, "must be greater than zero"));
      }
      if (action != "DoNotSchedule") {
        rules.say(schema::invalid(
            child(at, "minDomains"), *domains,
            fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                        action)));
      }
    }
    rules.maybe_one_of(list[i], at, "nodeAffinityPolicy", {"Honor", "Ignore"});
    rules.maybe_one_of(list[i], at, "nodeTaintsPolicy", {"Honor", "Ignore"});
    rules.label_selector(present(list[i], {"labelSelector"}), child(at, "labelSelector"));
  }
}

}  // namespace skiff::api
