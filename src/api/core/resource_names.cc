#include "api/core/resource_names.h"

#include <algorithm>
#include <array>

namespace skiff::api {
namespace {

constexpr std::array<std::string_view, 3> kContainer{"cpu", "memory", "ephemeral-storage"};
constexpr std::array<std::string_view, 9> kCounted{"pods",
                                                   "resourcequotas",
                                                   "services",
                                                   "replicationcontrollers",
                                                   "secrets",
                                                   "configmaps",
                                                   "persistentvolumeclaims",
                                                   "services.nodeports",
                                                   "services.loadbalancers"};
constexpr std::array<std::string_view, 7> kComputed{
    "requests.cpu",    "requests.memory", "requests.ephemeral-storage",
    "limits.cpu",      "limits.memory",   "limits.ephemeral-storage",
    "requests.storage"};

bool in(const auto& list, std::string_view name) {
  return !name.empty() && std::ranges::count(list, name) > 0;
}

bool qualified(std::string_view name) { return name.contains('/'); }

// A name of somebody else's: not requests.*, not kubernetes.io/*, and good behind "requests.".
bool extended(std::string_view name) {
  if (name.contains("kubernetes.io/") || name.starts_with("requests.")) return false;
  return names::check_label_key("requests." + std::string(name)).empty();
}

}  // namespace

bool huge_pages(std::string_view name) { return name.starts_with("hugepages-"); }

bool native_resource(std::string_view name) {
  return !qualified(name) || name.contains("kubernetes.io/");
}

bool standard_quota_resource(std::string_view name) {
  return in(kContainer, name) || in(kCounted, name) || in(kComputed, name) || huge_pages(name) ||
         name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
}

bool overcommit_allowed(std::string_view name) {
  return native_resource(name) && !huge_pages(name);
}

void check_resource_name(std::string_view name, const std::string& path, Rules& rules) {
  if (const auto bad = names::check_label_key(name); !bad.empty()) {
    rules.called(path, name, bad);
  } else if (!qualified(name) && !standard_quota_resource(name) && name != "storage") {
    rules.say(schema::invalid(path, json::string(name),
                              "must be a standard resource type or fully qualified"));
  }
}

void check_container_resource_name(std::string_view name, const std::string& path, Rules& rules) {
  check_resource_name(name, path, rules);
  if (!qualified(name)) {
    if (!in(kContainer, name) && !huge_pages(name)) {
      rules.say(
          schema::invalid(path, json::string(name), "must be a standard resource for containers"));
    }
  } else if (!native_resource(name) && !extended(name)) {
    rules.say(schema::invalid(path, json::string(name),
                              "doesn't follow extended resource name standard"));
  }
}

void check_quota_resource_name(std::string_view name, const std::string& path, Rules& rules) {
  check_resource_name(name, path, rules);
  if (!qualified(name) && !standard_quota_resource(name)) {
    rules.say(schema::invalid(path, json::string(name), "must be a standard resource for quota"));
  }
}

void check_quota_amount(std::string_view name, const json::value& amount, const std::string& path,
                        Rules& rules) {
  const Quantity q = quantity_of(amount);
  if (q.negative()) rules.say(schema::invalid(path, json::string(q.text()), kNotNegative));
  if ((in(kCounted, name) || (!native_resource(name) && extended(name))) && q.milli() % 1000 != 0) {
    rules.say(schema::invalid(path, amount, "must be an integer"));
  }
}

}  // namespace skiff::api
