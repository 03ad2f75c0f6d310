#include "apiserver/access/bootstrap_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "api/meta.h"
#include "apiserver/access/bootstrap_roles.h"
#include "apiserver/access/coverage.h"
#include "apiserver/access/policy.h"
#include "apiserver/access/rules.h"
#include "base/check.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

json::object metadata_of(std::string_view name) {
  return {{"name", json::string(name)},
          {"annotations", {{kAutoUpdate, "true"}}},
          {"labels", {{"kubernetes.io/bootstrapping", "rbac-defaults"}}}};
}

json::object object_of(std::string_view kind, std::string_view name) {
  return {{"apiVersion", json::string(std::string(kRbacGroup) + "/v1")},
          {"kind", json::string(kind)},
          {"metadata", metadata_of(name)}};
}

std::string label_of(std::string_view word) {
  return fmt::format("{}/{}", kRbacGroup, word.substr(1));
}

json::value role_of(const std::vector<std::string_view>& words) {
  json::value role = object_of("ClusterRole", words[1]);
  json::array selectors;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string label = label_of(words[i]);
    if (words[i].starts_with('+')) {
      json::set(role, {"metadata", "labels", label}, "true");
    } else {
      selectors.emplace_back(json::object{{"matchLabels", {{label, "true"}}}});
    }
  }
  if (!selectors.empty()) {
    json::set(role, {"aggregationRule", "clusterRoleSelectors"}, std::move(selectors));
  }
  role.get_object()["rules"].emplace_array();
  return role;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view word : split(text, ',')) out.emplace_back(word == R"("")" ? "" : word);
  return out;
}

Rule rule_of_words(const std::vector<std::string_view>& words) {
  Rule rule{.verbs = list_of(words[0])};
  if (words[1] == "url") {
    rule.urls = list_of(words[2]);
    return rule;
  }
  rule.groups = list_of(words[1]);
  rule.resources = list_of(words[2]);
  if (words.size() > 3) rule.names = list_of(words[3]);
  return rule;
}

json::value binding_of_words(const std::vector<std::string_view>& words) {
  json::value binding = object_of("ClusterRoleBinding", words[1]);
  binding.get_object()["roleRef"] = json::object{{"apiGroup", json::string(kRbacGroup)},
                                                 {"kind", "ClusterRole"},
                                                 {"name", json::string(words[2])}};
  json::array subjects;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::size_t colon = words[i].find(':');
    const std::string_view kind = words[i].substr(0, colon), name = words[i].substr(colon + 1);
    json::object subject{{"kind", json::string(kind)}};
    if (kind == "ServiceAccount") {
      const std::size_t slash = name.find('/');
      subject["name"] = json::string(name.substr(slash + 1));
      subject["namespace"] = json::string(name.substr(0, slash));
    } else {
      subject["apiGroup"] = json::string(kRbacGroup);
      subject["name"] = json::string(name);
    }
    subjects.emplace_back(std::move(subject));
  }
  if (!subjects.empty()) binding.get_object()["subjects"] = std::move(subjects);
  return binding;
}

std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> out;
  bool goes_on = false;
  for (std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    if (goes_on) {
      out.back() += trim(line);
    } else {
      out.emplace_back(line);
    }
    goes_on = line.ends_with(',') || line.ends_with('\\');
    if (out.back().ends_with('\\')) out.back().pop_back();
  }
  return out;
}

std::vector<json::value> parse_policy(std::string_view text) {
  std::vector<json::value> out;
  for (const std::string& line : logical_lines(text)) {
    const auto words = split(trim(line), ' ');
    if (line.starts_with(' ')) {
      SKIFF_CHECK(!out.empty() && words.size() >= 3, "a rule follows its role");
      out.back().get_object()["rules"].get_array().emplace_back(to_json(rule_of_words(words)));
    } else if (words[0] == "role") {
      out.push_back(role_of(words));
    } else {
      out.push_back(binding_of_words(words));
    }
  }
  return out;
}

// Entries of `to` win.
void merge_words(json::value& object, const json::value& expected, std::string_view what) {
  for (const auto& [key, value] : json::get_object(expected, {"metadata", what})) {
    json::object& target = json::make_object(object, {"metadata", what});
    if (!target.contains(key)) target[key] = value;
  }
}

void add_absent(json::value& object, std::initializer_list<std::string_view> path,
                const json::array& wanted) {
  json::array list = json::get_array(object, path);
  const std::size_t before = list.size();
  for (const json::value& entry : wanted) {
    if (std::ranges::find(list, entry) == list.end()) list.push_back(entry);
  }
  if (list.size() != before) json::set(object, path, std::move(list));
}

}  // namespace

const std::vector<json::value>& bootstrap_policy() {
  static const std::vector<json::value> kPolicy = parse_policy(bootstrap_roles());
  return kPolicy;
}

json::value reconciled(const json::value& existing, const json::value& expected) {
  if (api::annotation(existing, kAutoUpdate) == "false") return nullptr;
  json::value next = existing;
  merge_words(next, expected, "annotations");
  merge_words(next, expected, "labels");
  if (api::kind(expected) == "ClusterRole") {
    const std::vector<Rule> held = rules_of(existing), wanted = rules_of(expected);
    const auto lacking = missing(pointers(held), wanted);
    // Of a role that has grown too large to be compared, all that it must have is put in again.
    const bool known = lacking && !lacking->more;
    const std::vector<Rule>& added = known ? lacking->rights : wanted;
    json::array rules = json::get_array(existing, {"rules"});
    const std::size_t before = rules.size();
    for (const Rule& rule : added) {
      json::value one = to_json(rule);
      if (known || std::ranges::find(rules, one) == rules.end()) rules.push_back(std::move(one));
    }
    if (rules.size() != before) json::set(next, {"rules"}, std::move(rules));
    const json::array& selectors =
        json::get_array(expected, {"aggregationRule", "clusterRoleSelectors"});
    if (selectors.empty()) {
      next.get_object().erase("aggregationRule");
    } else {
      add_absent(next, {"aggregationRule", "clusterRoleSelectors"}, selectors);
    }
  } else {
    add_absent(next, {"subjects"}, json::get_array(expected, {"subjects"}));
  }
  return next == existing ? json::value() : next;
}

}  // namespace skiff::apiserver
