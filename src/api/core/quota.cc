#include "api/core/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/cells.h"
#include "api/core/resource_names.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

// ResourceQuota

void check_amounts(const json::value& object, std::initializer_list<std::string_view> path,
                   const std::string& text, Rules& rules) {
  for (const auto& [key, amount] : json::get_object(object, path)) {
    const std::string at = entry(text, std::string_view(key));
    check_quota_resource_name(key, at, rules);
    check_quota_amount(key, amount, at, rules);
  }
}

bool known_scope(std::string_view scope) {
  static const std::set<std::string_view> kScopes = {"Terminating",
                                                     "NotTerminating",
                                                     "BestEffort",
                                                     "NotBestEffort",
                                                     "PriorityClass",
                                                     "VolumeAttributesClass",
                                                     "CrossNamespacePodAffinity"};
  return kScopes.contains(scope);
}

bool scope_fits(std::string_view scope, std::string_view resource) {
  const bool count = resource == "pods";
  const bool claims = resource == "persistentvolumeclaims";
  if (scope == "BestEffort") return count;
  if (scope == "VolumeAttributesClass") return claims || resource == "requests.storage";
  static const std::set<std::string_view> kCompute = {
      "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"};
  return !known_scope(scope) || count || kCompute.contains(resource);
}

bool conflicting(const std::set<std::string_view>& scopes) {
  return (scopes.contains("BestEffort") && scopes.contains("NotBestEffort")) ||
         (scopes.contains("Terminating") && scopes.contains("NotTerminating"));
}

bool misapplied(const json::value& object, std::string_view scope) {
  return std::ranges::any_of(json::get_object(object, {"spec", "hard"}), [&](const auto& member) {
    return standard_quota_resource(member.key()) && !scope_fits(scope, member.key());
  });
}

void check_scopes(const json::value& object, Rules& rules) {
  const json::array& list = json::get_array(object, {"spec", "scopes"});
  std::set<std::string_view> seen;
  for (const json::value& item : list) {
    const std::string_view scope = item.is_string() ? json::view(item.get_string()) : "";
    if (!known_scope(scope)) rules.say(schema::invalid("spec.scopes", list, "unsupported scope"));
    if (misapplied(object, scope)) {
      rules.say(schema::invalid("spec.scopes", list, "unsupported scope applied to resource"));
    }
    seen.insert(scope);
  }
  if (conflicting(seen)) rules.say(schema::invalid("spec.scopes", list, "conflicting scopes"));
}

void check_scope_term(const json::value& object, const json::value& term, Rules& rules) {
  const std::string path = "spec.scopeSelector.matchExpressions";
  const std::string_view scope = json::get_string(term, {"scopeName"});
  const std::string_view op = json::get_string(term, {"operator"});
  const json::array& values = json::get_array(term, {"values"});
  if (!known_scope(scope)) {
    rules.say(schema::invalid(child(path, "scopeName"), json::string(scope), "unsupported scope"));
  }
  if (misapplied(object, scope)) {
    rules.say(schema::invalid(path, *json::find(object, {"spec", "scopeSelector"}),
                              "unsupported scope applied to resource"));
  }
  if (known_scope(scope) && scope != "PriorityClass" && scope != "VolumeAttributesClass" &&
      op != "Exists") {
    rules.say(schema::invalid(
        child(path, "operator"), json::string(op),
        "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
        "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
        "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"));
  }
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      rules.say(schema::required(
          child(path, "values"),
          "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      rules.say(schema::invalid(
          child(path, "values"), values,
          "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"));
    }
  } else {
    rules.say(schema::invalid(child(path, "operator"), json::string(op),
                              "not a valid selector operator"));
  }
}

std::vector<Cause> validate_quota(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.subresource == "status") {
    check_amounts(object, {"status", "hard"}, "status.hard", rules);
    check_amounts(object, {"status", "used"}, "status.used", rules);
    return rules.take();
  }
  check_amounts(object, {"spec", "hard"}, "spec.hard", rules);
  check_scopes(object, rules);
  std::set<std::string_view> seen;
  for (const json::value& term :
       json::get_array(object, {"spec", "scopeSelector", "matchExpressions"})) {
    check_scope_term(object, term, rules);
    seen.insert(json::get_string(term, {"scopeName"}));
  }
  if (conflicting(seen)) {
    rules.say(schema::invalid("spec.scopeSelector.matchExpressions",
                              json::get_array(object, {"spec", "scopes"}), "conflicting scopes"));
  }
  if (context.old != nullptr) {
    const auto scopes = [](const json::value& o) {
      const auto list = json::strings(json::get_array(o, {"spec", "scopes"}));
      return std::set<std::string>(list.begin(), list.end());
    };
    if (scopes(object) != scopes(*context.old)) {
      rules.say(
          schema::invalid("spec.scopes", json::get_array(object, {"spec", "scopes"}), kImmutable));
    }
  }
  return rules.take();
}

json::array quota_cells(const json::value& object, std::int64_t now_s) {
  std::map<std::string, std::string> hard;
  for (const auto& [key, amount] : json::get_object(object, {"status", "hard"})) {
    hard[std::string(key)] = quantity_of(amount).text();
  }
  std::vector<std::string> requests, limits;
  for (const auto& [name, amount] : hard) {
    const json::value* used = json::find(object, {"status", "used", name});
    (name.starts_with("limits.") ? limits : requests)
        .push_back(fmt::format("{}: {}/{}", name, used == nullptr ? "0" : quantity_of(*used).text(),
                               amount));
  }
  return {json::string(join(requests, ", ")), json::string(join(limits, ", ")),
          json::string(age_cell(object, now_s))};
}

// LimitRange

void fill_missing(json::object& limit, std::string_view to, std::string_view from) {
  const json::object source = json::get_object(limit, {from});
  if (source.empty()) return;
  json::object& target = json::make_object(limit, {to});
  for (const auto& [key, amount] : source) put(target, key, amount);
}

void default_limits(json::value& object) {
  json::object* root = object.if_object();
  json::object* spec = root == nullptr ? nullptr : find_object(*root, "spec");
  if (spec == nullptr) return;
  each(*spec, "limits", [](json::object& limit) {
    if (json::get_string(limit, {"type"}) != "Container") return;
    fill_missing(limit, "default", "max");
    fill_missing(limit, "defaultRequest", "default");
    fill_missing(limit, "defaultRequest", "min");
  });
}

struct Limit {
  const json::value& item;
  std::string path;

  std::optional<Quantity> amount(std::string_view field, std::string_view key) const {
    const json::value* v = json::find(item, {field, key});
    return v == nullptr ? std::nullopt : std::optional(quantity_of(*v));
  }
  std::string at(std::string_view field, std::string_view key) const {
    return entry(child(path, field), key);
  }
};

// One amount may not be more than another.
struct Order {
  std::string_view less, more;
  std::string_view where, shown;  // the field that is named, and the one whose amount is told
  std::string_view less_text, more_text;
};

void check_order(const Limit& limit, std::string_view key, const Order& order, Rules& rules) {
  const auto low = limit.amount(order.less, key), high = limit.amount(order.more, key);
  if (!low || !high || *low <= *high) return;
  rules.say(schema::invalid(limit.at(order.where, key),
                            json::string(limit.amount(order.shown, key)->text()),
                            fmt::format("{} value {} is greater than {} value {}", order.less_text,
                                        low->text(), order.more_text, high->text())));
}

void check_ratio(const Limit& limit, std::string_view key, Rules& rules) {
  const auto ratio = limit.amount("maxLimitRequestRatio", key);
  if (!ratio) return;
  const std::string at = limit.at("maxLimitRequestRatio", key);
  const json::value text = json::string(ratio->text());
  if (*ratio < Quantity::of(1)) {
    rules.say(schema::invalid(at, text, fmt::format("ratio {} is less than 1", ratio->text())));
  }
  const auto least = limit.amount("min", key), most = limit.amount("max", key);
  if (!least || !most || least->zero()) return;
  const double bound = static_cast<double>(most->milli()) / static_cast<double>(least->milli());
  if (static_cast<double>(ratio->milli()) / 1000 > bound) {
    rules.say(schema::invalid(
        at, text, fmt::format("ratio {} is greater than max/min = {:f}", ratio->text(), bound)));
  }
}

void check_key(const Limit& limit, std::string_view key, Rules& rules) {
  constexpr std::string_view kRequest = "defaultRequest";
  static constexpr Order kOrders[] = {
      {"min", "max", "min", "min", "min", "max"},
      {"min", kRequest, kRequest, kRequest, "min", "default request"},
      {kRequest, "max", kRequest, kRequest, "default request", "max"},
      {kRequest, "default", kRequest, kRequest, "default request", "default limit"},
      {"min", "default", "default", "min", "min", "default"},
      {"default", "max", "default", "max", "default", "max"},
  };
  for (const Order& order : kOrders) check_order(limit, key, order, rules);
  check_ratio(limit, key, rules);
  const auto standard = limit.amount("default", key), request = limit.amount("defaultRequest", key);
  if (!overcommit_allowed(key) && standard && request && *standard != *request) {
    rules.say(
        schema::invalid(limit.at("defaultRequest", key), json::string(request->text()),
                        fmt::format("default value {} must equal to defaultRequest value {} in {}",
                                    standard->text(), request->text(), key)));
  }
}

void check_limit(const Limit& limit, Rules& rules) {
  const std::string_view type = json::get_string(limit.item, {"type"});
  std::set<std::string> keys;
  const auto names = [&](std::string_view field) {
    for (const auto& [key, amount] : json::get_object(limit.item, {field})) {
      if (type == "Pod" || type == "Container") {
        check_container_resource_name(key, limit.at(field, key), rules);
      } else {
        check_resource_name(key, limit.at(field, key), rules);
      }
      keys.insert(std::string(key));
    }
  };
  names("max");
  names("min");
  for (const std::string_view field : {"default", "defaultRequest"}) {
    if (type != "Pod") {
      names(field);
    } else if (!json::get_object(limit.item, {field}).empty()) {
      rules.say(
          schema::forbidden(child(limit.path, field), "may not be specified when `type` is 'Pod'"));
    }
  }
  if (type == "PersistentVolumeClaim" && !limit.amount("min", "storage") &&
      !limit.amount("max", "storage")) {
    rules.say(schema::required(
        child(limit.path, "limits"),
        "either minimum or maximum storage value is required, but neither was provided"));
  }
  names("maxLimitRequestRatio");
  for (const std::string& key : keys) check_key(limit, key, rules);
}

std::vector<Cause> validate_limits(const json::value& object, const Admission&) {
  Rules rules;
  std::set<std::string_view> seen;
  const json::array& limits = json::get_array(object, {"spec", "limits"});
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const std::string path = child("spec.limits", i);
    const std::string_view type = json::get_string(limits[i], {"type"});
    if (const auto bad = names::check_label_key(type); !bad.empty()) {
      rules.called(child(path, "type"), type, bad);
    } else if (!type.contains('/') && type != "Pod" && type != "Container" &&
               type != "PersistentVolumeClaim") {
      rules.say(schema::invalid(child(path, "type"), json::string(type),
                                "must be a standard limit type or fully qualified"));
    }
    if (!seen.insert(type).second) {
      rules.say(schema::duplicate(child(path, "type"), json::string(type)));
    }
    check_limit({limits[i], path}, rules);
  }
  return rules.take();
}

json::array limit_cells(const json::value& object, std::int64_t) {
  return {json::string(json::get_string(object, {"metadata", "creationTimestamp"}))};
}

}  // namespace

Kind resource_quota_kind() {
  return {.resource = {"", "v1", "resourcequotas", "ResourceQuota", true},
          .singular = "resourcequota",
          .short_names = {"quota"},
          .returns_deleted = true,
          .has_status = true,
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.ResourceQuota",
          .columns = {{"Request", "string"}, {"Limit", "string"}, {"Age", "string"}},
          .validate = validate_quota,
          .cells = quota_cells};
}

Kind limit_range_kind() {
  return {.resource = {"", "v1", "limitranges", "LimitRange", true},
          .singular = "limitrange",
          .short_names = {"limits"},
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.LimitRange",
          .columns = {{"Created At", "date"}},
          .set_defaults = default_limits,
          .validate = validate_limits,
          .cells = limit_cells};
}

}  // namespace skiff::api
