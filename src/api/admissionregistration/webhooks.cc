#include "api/admissionregistration/webhooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/cells.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;
using Texts = std::vector<std::string>;

void set_webhook_defaults(json::value& object) {
  json::object* root = object.if_object();
  if (root == nullptr) return;
  const bool mutates = json::get_string(object, {"kind"}) == "MutatingWebhookConfiguration";
  each(*root, "webhooks", [&](json::object& hook) {
    put(hook, "failurePolicy", "Fail");
    put(hook, "matchPolicy", "Equivalent");
    put(hook, "namespaceSelector", json::object());
    put(hook, "objectSelector", json::object());
    put(hook, "timeoutSeconds", 10);
    if (mutates) put(hook, "reinvocationPolicy", "Never");
    each(hook, "rules", [](json::object& rule) { put(rule, "scope", "*"); });
    json::object* client = find_object(hook, "clientConfig");
    json::object* service = client == nullptr ? nullptr : find_object(*client, "service");
    if (service != nullptr) put(*service, "port", 443);
  });
}

bool contains_word(const Texts& list, std::string_view word) {
  return std::ranges::count(list, word) > 0;
}

// A list that may hold '*' alone, or other words.
void check_words(const Texts& list, std::string_view what, const std::string& path, Rules& rules) {
  if (list.empty()) rules.say(schema::required(path));
  if (list.size() > 1 && contains_word(list, "*")) {
    json::array shown;
    for (const std::string& word : list) shown.emplace_back(json::string(word));
    rules.say(schema::invalid(path, shown,
                              fmt::format("if '*' is present, must not specify other {}", what)));
  }
}

json::value shown(const Texts& list) {
  json::array out;
  for (const std::string& word : list) out.emplace_back(json::string(word));
  return out;
}

void check_resources(const Texts& list, const std::string& path, Rules& rules) {
  if (list.empty()) rules.say(schema::required(path));
  std::set<std::string, std::less<>> any_sub, any_resource;
  bool plain = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = child(path, i);
    const std::string& word = list[i];
    const std::size_t slash = word.find('/');
    if (word.empty()) {
      rules.say(schema::required(at));
      continue;
    }
    if (slash == word.npos) {
      plain = word != "*";
      continue;
    }
    const std::string resource = word.substr(0, slash), sub = word.substr(slash + 1);
    if (any_sub.contains(resource)) {
      rules.say(schema::invalid(
          at, json::string(word),
          fmt::format("if '{}/*' is present, must not specify {}", resource, word)));
    }
    if (any_resource.contains(sub)) {
      rules.say(
          schema::invalid(at, json::string(word),
                          fmt::format("if '*/{}' is present, must not specify {}", sub, word)));
    }
    if (sub == "*") any_sub.insert(resource);
    if (resource == "*") any_resource.insert(sub);
  }
  if (list.size() > 1 && contains_word(list, "*/*")) {
    rules.say(schema::invalid(path, shown(list),
                              "if '*/*' is present, must not specify other resources"));
  }
  if (contains_word(list, "*") && plain) {
    rules.say(schema::invalid(
        path, shown(list),
        "if '*' is present, must not specify other resources without subresources"));
  }
}

void check_webhook_rule(const json::value& rule, const std::string& path, Rules& rules) {
  const auto words = [&](std::string_view field) {
    return json::strings(json::get_array(rule, {field}));
  };
  const Texts operations = words("operations");
  check_words(operations, "operations", child(path, "operations"), rules);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    rules.one_of(child(child(path, "operations"), i), operations[i],
                 {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"});
  }
  check_words(words("apiGroups"), "API groups", child(path, "apiGroups"), rules);
  const Texts versions = words("apiVersions");
  check_words(versions, "API versions", child(path, "apiVersions"), rules);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i].empty()) rules.say(schema::required(child(child(path, "apiVersions"), i)));
  }
  check_resources(words("resources"), child(path, "resources"), rules);
  rules.maybe_one_of(rule, path, "scope", {"*", "Cluster", "Namespaced"});
}

void check_url(std::string_view url, const std::string& path, Rules& rules) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const std::size_t colon = url.find("://");
  const std::string_view scheme = colon == url.npos ? "" : url.substr(0, colon);
  std::string_view rest = colon == url.npos ? url : url.substr(colon + 3);
  if (scheme != "https") {
    rules.say(schema::invalid(path, json::string(scheme),
                              fmt::format("'https' is the only allowed URL scheme{}", kForm)));
  }
  const auto cut = [&](char mark) {
    const std::size_t at = rest.find(mark);
    const std::string_view tail = at == rest.npos ? "" : rest.substr(at + 1);
    rest = rest.substr(0, at);
    return tail;
  };
  const std::string_view fragment = cut('#'), query = cut('?');
  std::string_view host = colon == url.npos ? "" : rest.substr(0, rest.find('/'));
  const std::size_t at = host.rfind('@');
  const std::string_view user = at == host.npos ? "" : host.substr(0, at);
  if (at != host.npos) host.remove_prefix(at + 1);
  if (host.empty()) {
    rules.say(schema::invalid(path, "", fmt::format("host must be specified{}", kForm)));
  }
  if (at != host.npos && !user.empty()) {
    rules.say(
        schema::invalid(path, json::string(user), "user information is not permitted in the URL"));
  }
  if (!fragment.empty()) {
    rules.say(
        schema::invalid(path, json::string(fragment), "fragments are not permitted in the URL"));
  }
  if (!query.empty()) {
    rules.say(schema::invalid(path, json::string(query),
                              "query parameters are not permitted in the URL"));
  }
}

void check_webhook_service(const json::value& service, const std::string& path, Rules& rules) {
  // A real server takes the two for each other, and clients see what it says.
  if (json::get_string(service, {"namespace"}).empty()) {
    rules.say(schema::required(child(path, "name")));
  }
  if (json::get_string(service, {"name"}).empty()) {
    rules.say(schema::required(child(path, "namespace")));
  }
  const std::int64_t port = json::get_int(service, {"port"}).value_or(0);
  if (port < 1 || port > 65535) {
    rules.say(schema::invalid(child(path, "port"), port,
                              fmt::format("port is not valid: {}", kPortRange)));
  }
  const std::string_view url = json::get_string(service, {"path"});
  if (url.empty() || url == "/") return;
  const std::string at = child(path, "path");
  if (!url.starts_with('/')) {
    rules.say(schema::invalid(at, json::string(url), "must start with a '/'"));
  }
  std::string_view rest = url.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto steps = split(rest, '/');
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty()) {
      rules.say(
          schema::invalid(at, json::string(url), fmt::format("segment[{}] may not be empty", i)));
      continue;
    }
    for (const std::string& bad : names::check_dns1123_subdomain(steps[i])) {
      rules.say(schema::invalid(at, json::string(url), fmt::format("segment[{}]: {}", i, bad)));
    }
  }
}

void check_match_conditions(const json::value& hook, const std::string& path, Rules& rules) {
  constexpr std::size_t kMost = 64;
  const json::array& list = json::get_array(hook, {"matchConditions"});
  if (list.size() > kMost) rules.say(schema::too_many(path, list.size(), kMost));
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = child(path, i);
    if (trim(json::get_string(list[i], {"expression"})).empty()) {
      rules.say(schema::required(child(at, "expression")));
    }
    const std::string_view name = json::get_string(list[i], {"name"});
    if (!rules.needs(list[i], at, "name")) continue;
    rules.called(child(at, "name"), name, names::check_label_key(name));
    if (!seen.insert(name).second) {
      rules.say(schema::duplicate(child(at, "name"), json::string(name)));
    }
  }
}

void check_hook_name(std::string_view name, const std::string& path, Rules& rules) {
  if (name.empty()) {
    rules.say(schema::required(path));
  } else if (const auto bad = names::check_dns1123_subdomain(name); !bad.empty()) {
    rules.say(schema::invalid(path, json::string(name), join(bad, ",")));
  } else if (std::ranges::count(name, '.') < 2) {
    rules.say(schema::invalid(path, json::string(name),
                              "should be a domain with at least three segments separated by dots"));
  }
}

void check_client(const json::value& hook, const std::string& path, Rules& rules) {
  const json::value* url = present(hook, {"clientConfig", "url"});
  const json::value* service = present(hook, {"clientConfig", "service"});
  if ((url == nullptr) == (service == nullptr)) {
    rules.say(schema::required(path, "exactly one of url or service is required"));
  } else if (url != nullptr) {
    check_url(json::get_string(*url, {}), child(path, "url"), rules);
  } else {
    check_webhook_service(*service, child(path, "service"), rules);
  }
}

void check_review_versions(const json::value& hook, const std::string& path, Rules& rules) {
  const Texts versions = json::strings(json::get_array(hook, {"admissionReviewVersions"}));
  if (versions.empty()) {
    rules.say(schema::required(path, "must specify one of v1, v1beta1"));
    return;
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (!seen.insert(versions[i]).second) {
      rules.say(schema::invalid(child(path, i), json::string(versions[i]), "duplicate version"));
      continue;
    }
    rules.called(child(path, i), versions[i], names::check_dns1035_label(versions[i]));
  }
  if (!seen.contains("v1") && !seen.contains("v1beta1")) {
    rules.say(schema::invalid(path, shown(versions), "must include at least one of v1, v1beta1"));
  }
}

void check_hook(const json::value& hook, const std::string& path, Rules& rules) {
  check_hook_name(json::get_string(hook, {"name"}), child(path, "name"), rules);
  const json::array& list = json::get_array(hook, {"rules"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_webhook_rule(list[i], child(child(path, "rules"), i), rules);
  }
  rules.maybe_one_of(hook, path, "failurePolicy", {"Fail", "Ignore"});
  rules.maybe_one_of(hook, path, "matchPolicy", {"Equivalent", "Exact"});
  if (present(hook, {"sideEffects"}) == nullptr) {
    rules.say(
        schema::required(child(path, "sideEffects"), "must specify one of None, NoneOnDryRun"));
  }
  rules.maybe_one_of(hook, path, "sideEffects", {"None", "NoneOnDryRun"});
  const auto timeout = json::get_int(hook, {"timeoutSeconds"});
  if (timeout && (*timeout < 1 || *timeout > 30)) {
    rules.say(schema::invalid(child(path, "timeoutSeconds"), *timeout,
                              "the timeout value must be between 1 and 30 seconds"));
  }
  rules.label_selector(present(hook, {"namespaceSelector"}), child(path, "namespaceSelector"));
  rules.label_selector(present(hook, {"objectSelector"}), child(path, "objectSelector"));
  rules.maybe_one_of(hook, path, "reinvocationPolicy", {"IfNeeded", "Never"});
  check_client(hook, child(path, "clientConfig"), rules);
  check_match_conditions(hook, child(path, "matchConditions"), rules);
  check_review_versions(hook, child(path, "admissionReviewVersions"), rules);
}

std::vector<Cause> validate_webhook(const json::value& object, const Admission&) {
  Rules rules;
  std::set<std::string_view> seen;
  const json::array& hooks = json::get_array(object, {"webhooks"});
  for (std::size_t i = 0; i < hooks.size(); ++i) {
    const std::string path = child("webhooks", i);
    check_hook(hooks[i], path, rules);
    const std::string_view name = json::get_string(hooks[i], {"name"});
    if (!name.empty() && !seen.insert(name).second) {
      rules.say(schema::duplicate(child(path, "name"), json::string(name)));
    }
  }
  return rules.take();
}

json::array webhook_cells(const json::value& object, std::int64_t now_s) {
  return {json::get_array(object, {"webhooks"}).size(), json::string(age_cell(object, now_s))};
}

Kind webhook_kind(std::string plural, std::string name) {
  return {.resource = {"admissionregistration.k8s.io", "v1", std::move(plural), name, false},
          .singular = lower(name),
          .categories = {"api-extensions"},
          .schema = "io.k8s.api.admissionregistration.v1." + name,
          .columns = {{"Webhooks", "integer"}, {"Age", "string"}},
          .unconditional_update = false,
          .set_defaults = set_webhook_defaults,
          .validate = validate_webhook,
          .cells = webhook_cells};
}

}  // namespace

std::vector<Kind> admissionregistration_kinds() {
  return {webhook_kind("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
          webhook_kind("validatingwebhookconfigurations", "ValidatingWebhookConfiguration")};
}

}  // namespace skiff::api
