#include "scheduler/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>

#include "api/meta.h"
#include "scheduler/amount.h"

namespace skiff::scheduler {
namespace {

std::size_t number_in(std::string_view text) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc{} && end == text.data() + text.size() ? n : 0;
}

bool finished(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

// Pods that name a scheduler we do not stand in for are left to it.
bool ours(const json::value& pod) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "", "default-scheduler", "skiff", "volcano", "scheduler-plugins-scheduler"};
  const std::string_view name = json::get_string(pod, {"spec", "schedulerName"});
  return std::ranges::find(kNames, name) != kNames.end();
}

std::string gang_of(const json::value& pod) {
  std::string_view name = api::annotation(pod, kGangAnnotation);
  if (name.empty()) name = api::label(pod, kPodGroupLabel);
  if (name.empty() || number_in(api::annotation(pod, kGangMinAnnotation)) == 0) return {};
  return std::string(api::ns(pod)) + "/" + std::string(name);
}

// Whether a pod runs until somebody takes it away. A gang ends with its job, whatever its pods do.
bool lasts(const json::value& pod) {
  return !api::deleting(pod) && gang_of(pod).empty() &&
         json::get_string(pod, {"spec", "restartPolicy"}, "Always") == "Always";
}

std::string text_at(const json::value& pod, std::initializer_list<std::string_view> path) {
  const json::value* found = json::find(pod, path);
  return found == nullptr ? std::string() : json::serialize(*found);
}

// By resource name: requests, and limits where a request is missing, as the API defaults them.
std::map<std::string_view, std::int64_t> container_requests(const json::value& container) {
  std::map<std::string_view, std::int64_t> out;
  for (const std::string_view field : {"requests", "limits"}) {
    for (const auto& [name, quantity] : json::get_object(container, {"resources", field})) {
      out.try_emplace(std::string_view(name.data(), name.size()), milli_of(quantity));
    }
  }
  return out;
}

void put(std::map<std::string, Object>& objects, const Object& before, const Object& after) {
  if (after == nullptr) {
    objects.erase(std::string(api::name(*before)));
  } else {
    objects[std::string(api::name(*after))] = after;
  }
}

// Of containers that stay; those of a pod in the machine's network are given by the API.
std::set<std::string> host_ports(const json::value& pod) {
  std::set<std::string> out;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::value& container : json::get_array(pod, {"spec", list})) {
      if (list == "initContainers" && json::get_string(container, {"restartPolicy"}) != "Always") {
        continue;
      }
      for (const json::value& port : json::get_array(container, {"ports"})) {
        const std::int64_t host = json::get_int(port, {"hostPort"}).value_or(0);
        if (host <= 0) continue;
        out.insert(
            fmt::format("{}{}/{}", kHostPort, json::get_string(port, {"protocol"}, "TCP"), host));
      }
    }
  }
  return out;
}

}  // namespace

std::size_t Books::number(std::string_view resource) {
  const auto it = numbers_.find(resource);
  if (it != numbers_.end()) return it->second;
  const std::size_t next = snapshot_.resources.size();
  snapshot_.resources.emplace_back(resource);
  numbers_.emplace(resource, next);
  return next;
}

// Containers run together; init containers run before them one by one, but those that restart
// always stay and count from then on.
Requests Books::requests_of(const json::value& pod) {
  std::map<std::string_view, std::int64_t> total;
  for (const json::value& container : json::get_array(pod, {"spec", "containers"})) {
    for (const auto& [name, milli] : container_requests(container)) total[name] += milli;
  }
  std::map<std::string_view, std::int64_t> peak;
  std::map<std::string_view, std::int64_t> sidecars;
  for (const json::value& init : json::get_array(pod, {"spec", "initContainers"})) {
    const bool stays = json::get_string(init, {"restartPolicy"}) == "Always";
    for (const auto& [name, milli] : container_requests(init)) {
      if (stays) sidecars[name] += milli;
      const std::int64_t now = stays ? sidecars[name] : milli + sidecars[name];
      peak[name] = std::max(peak[name], now);
    }
  }
  for (const auto& [name, milli] : sidecars) total[name] += milli;
  for (const auto& [name, milli] : peak) total[name] = std::max(total[name], milli);
  for (const auto& [name, quantity] : json::get_object(pod, {"spec", "overhead"})) {
    total[std::string_view(name.data(), name.size())] += milli_of(quantity);
  }
  Requests out{{kPodCount, 1000}};
  for (const auto& [name, milli] : total) {
    if (milli > 0) out.emplace_back(number(name), milli);
  }
  for (const std::string& port : host_ports(pod)) out.emplace_back(number(port), 1000);
  return out;
}

void Books::hold(const control::Key& key, const Held& held, int sign) {
  if (!held.gang.empty() && sign > 0) snapshot_.placed[held.gang][key] = held.member;
  if (!held.gang.empty() && sign < 0) {
    auto& members = snapshot_.placed[held.gang];
    members.erase(key);
    if (members.empty()) snapshot_.placed.erase(held.gang);
  }
  for (const control::Key& claim : held.claims) {
    std::size_t& users = snapshot_.claim_users[claim];
    users = sign > 0 ? users + 1 : users - 1;
    if (users == 0) snapshot_.claim_users.erase(claim);
  }
  Amounts& used = snapshot_.used[held.node];
  used.resize(std::max(used.size(), snapshot_.resources.size()));
  for (const auto& [resource, milli] : held.requests) used[resource] += sign * milli;
  if (!held.lasting) return;
  Amounts& lasting = snapshot_.lasting[held.node];
  lasting.resize(std::max(lasting.size(), snapshot_.resources.size()));
  for (const auto& [resource, milli] : held.requests) lasting[resource] += sign * milli;
}

void Books::pod_changed(const Object& before, const Object& after) {
  const control::Key key = control::key_of(after != nullptr ? *after : *before);
  snapshot_.pending.erase(key);
  if (const auto it = held_.find(key); it != held_.end()) {
    hold(key, it->second, -1);
    held_.erase(it);
  }
  if (after == nullptr) return;
  const json::value& pod = *after;
  // What has ended holds nothing, neither room nor a place in its gang: its successor, where there
  // is to be one, must come with the others.
  if (finished(pod)) return;
  const std::string_view node = json::get_string(pod, {"spec", "nodeName"});
  if (!node.empty()) {
    Held held{.node = std::string(node), .requests = requests_of(pod), .lasting = lasts(pod)};
    for (const api::ClaimUse& use : api::claims_of(pod)) {
      held.claims.push_back({key.ns, use.claim});
    }
    // Nor has a member on its way out its place any more.
    if (!api::deleting(pod)) held.gang = gang_of(pod);
    if (!held.gang.empty()) {
      held.member = std::make_shared<const Member>(
          Member{.key = key,
                 .uid = std::string(api::uid(pod)),
                 .resource_version = std::string(api::resource_version(pod))});
    }
    hold(key, held, 1);
    held_.emplace(key, std::move(held));
    return;
  }
  if (api::deleting(pod) || !ours(pod)) return;
  if (!json::get_array(pod, {"spec", "schedulingGates"}).empty()) return;
  auto waiting = std::make_shared<Pod>();
  waiting->key = key;
  waiting->object = after;
  waiting->requests = requests_of(pod);
  waiting->priority = json::get_int(pod, {"spec", "priority"}).value_or(0);
  waiting->created = api::created_at(pod).value_or(Time{});
  waiting->gang = gang_of(pod);
  waiting->gang_min = number_in(api::annotation(pod, kGangMinAnnotation));
  for (const auto& [resource, milli] : waiting->requests) {
    waiting->signature += std::to_string(resource) + "=" + std::to_string(milli) + ",";
  }
  waiting->signature += text_at(pod, {"spec", "nodeSelector"}) + "|" +
                        text_at(pod, {"spec", "tolerations"}) + "|" +
                        text_at(pod, {"spec", "affinity", "nodeAffinity"});
  waiting->claims = api::claims_of(pod);
  // Two pods with the same claims have the same volumes to reach.
  for (const api::ClaimUse& use : waiting->claims) {
    waiting->signature += "|" + key.ns + "/" + use.claim;
  }
  snapshot_.pending.emplace(key, std::move(waiting));
}

void Books::claim_changed(const Object& before, const Object& after) {
  const control::Key key = control::key_of(after != nullptr ? *after : *before);
  if (after == nullptr) {
    snapshot_.claims.erase(key);
  } else {
    snapshot_.claims[key] = after;
  }
}

void Books::volume_changed(const Object& before, const Object& after) {
  put(snapshot_.volumes, before, after);
}

void Books::class_changed(const Object& before, const Object& after) {
  put(snapshot_.classes, before, after);
}

void Books::node_changed(const Object& before, const Object& after) {
  const std::string name(api::name(after != nullptr ? *after : *before));
  snapshot_.nodes.erase(name);
  if (after == nullptr) return;
  auto node = std::make_shared<Node>();
  node->name = name;
  node->object = after;
  // A node that has never reported is taken at its word; one that reports trouble is not.
  node->ready = api::condition(*after, "Ready") == nullptr || api::condition_true(*after, "Ready");
  node->unschedulable = json::get_bool(*after, {"spec", "unschedulable"}).value_or(false);
  for (const json::value& taint : json::get_array(*after, {"spec", "taints"})) {
    node->tainted |= json::get_string(taint, {"effect"}) != "PreferNoSchedule";
  }
  const json::object& allocatable = json::get_object(*after, {"status", "allocatable"});
  // A node that sets no bound on pods has none.
  node->allocatable = {allocatable.contains("pods") ? 0 : std::numeric_limits<std::int64_t>::max()};
  for (const auto& [resource, quantity] : allocatable) {
    const std::size_t at = number(std::string_view(resource.data(), resource.size()));
    node->allocatable.resize(std::max(node->allocatable.size(), at + 1));
    node->allocatable[at] = milli_of(quantity);
  }
  snapshot_.nodes.emplace(name, std::move(node));
}

}  // namespace skiff::scheduler
