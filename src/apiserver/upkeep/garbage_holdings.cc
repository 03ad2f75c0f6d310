// Emptying namespaces and custom kinds, and telling how far it has come.
#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/upkeep/garbage.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

void take_one(std::map<std::string, std::int64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  if (found != counts.end() && --found->second == 0) counts.erase(found);
}

struct Told {
  std::string_view type;
  bool fault;
  std::string_view reason;
  std::string message;
};

// "pods. has 2 resource instances", "jobs.batch has 1 resource instances"
std::string resources_text(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [key, count] : counts) {
    const bool core = key.find('.') == std::string::npos;
    parts.push_back(fmt::format("{}{} has {} resource instances", key, core ? "." : "", count));
  }
  std::ranges::sort(parts);
  return join(parts, ", ");
}

std::string finalizers_text(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(fmt::format("{} in {} resource instances", name, count));
  }
  return join(parts, ", ");
}

void set_holdings_condition(json::value& object, const Told& told, const std::string& now) {
  json::value& list = json::make_object(object, {"status"})["conditions"];
  if (!list.is_array()) list.emplace_array();
  json::object condition{{"type", json::string(told.type)},
                         {"status", told.fault ? "True" : "False"},
                         {"lastTransitionTime", json::string(now)},
                         {"reason", json::string(told.reason)},
                         {"message", json::string(told.message)}};
  for (json::value& existing : list.get_array()) {
    if (json::get_string(existing, {"type"}) != told.type) continue;
    if (json::get_string(existing, {"status"}) == (told.fault ? "True" : "False")) {
      condition["lastTransitionTime"] = existing.get_object()["lastTransitionTime"];
    }
    existing = std::move(condition);
    return;
  }
  list.get_array().emplace_back(std::move(condition));
}

}  // namespace

void Collector::count_in(const store::Key& key, const Node& node) {
  for (Holdings* at :
       {key.ns.empty() ? nullptr : &by_namespace_[key.ns], &by_resource_[key.resource]}) {
    if (at == nullptr) continue;
    ++at->resources[key.resource];
    for (const std::string& finalizer : node.finalizers) ++at->finalizers[finalizer];
    if (!node.deleting) ++at->staying;
  }
}

void Collector::count_out(const store::Key& key, const Node& node) {
  const auto from = [&](std::map<std::string, Holdings>& all, const std::string& name) {
    const auto found = all.find(name);
    if (found == all.end()) return;
    take_one(found->second.resources, key.resource);
    for (const std::string& finalizer : node.finalizers) {
      take_one(found->second.finalizers, finalizer);
    }
    if (!node.deleting) --found->second.staying;
    if (found->second.resources.empty()) all.erase(found);
  };
  if (!key.ns.empty()) from(by_namespace_, key.ns);
  from(by_resource_, key.resource);
}

bool Collector::remove_staying(const Holdings& holdings, const std::string* ns) {
  if (holdings.staying == 0) return false;
  bool did = false;
  for (const auto& [resource, count] : holdings.resources) {
    for (const store::Key& object : objects_of(resource, ns)) {
      const Node& node = nodes_.at(object);
      if (!node.deleting && remove(object, node.uid, "Background")) did = true;
    }
  }
  return did;
}

std::vector<store::EntryPtr> Collector::plain_events(const std::string& ns) const {
  std::vector<store::EntryPtr> events = store_.list("events", ns).entries;
  std::erase_if(events, [&](const auto& event) { return nodes_.contains(event->key()); });
  return events;
}

void Collector::show_remaining(json::value& object, const Holdings& holdings,
                               const std::string& now) {
  const bool content = !holdings.resources.empty();
  const bool finalizers = !holdings.finalizers.empty();
  for (const Told& told :
       {Told{"NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
             "All resources successfully discovered"},
        Told{"NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
             "All legacy kube types successfully parsed"},
        Told{"NamespaceDeletionContentFailure", false, "ContentDeleted",
             "All content successfully deleted, may be waiting on finalization"},
        Told{"NamespaceContentRemaining", content,
             content ? "SomeResourcesRemain" : "ContentRemoved",
             content ? "Some resources are remaining: " + resources_text(holdings.resources)
                     : "All content successfully removed"},
        Told{"NamespaceFinalizersRemaining", finalizers,
             finalizers ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
             finalizers ? "Some content in the namespace has finalizers remaining: " +
                              finalizers_text(holdings.finalizers)
                        : "All content-preserving finalizers finished"}}) {
    set_holdings_condition(object, told, now);
  }
}

bool Collector::empty_namespace(const store::Key& key) {
  const auto found = by_namespace_.find(key.name);
  Holdings left = found == by_namespace_.end() ? Holdings{} : found->second;
  bool did = remove_staying(left, &key.name);
  const std::vector<store::EntryPtr> events = plain_events(key.name);
  for (const store::EntryPtr& event : events) {
    const std::string uid(api::uid(*event->value()));
    if (remove(event->key(), uid, "Background")) did = true;
  }
  if (did) {
    dirty_.insert(key);  // once the index has seen it, there may be nothing left
    return true;
  }
  left.staying += std::ssize(events);
  if (!events.empty()) left.resources["events"] += std::ssize(events);
  if (left.staying > 0) dirty_.insert(key);  // the disk refused
  const std::string now = rfc3339(clock_.now());
  const auto change = [&](json::value& object) {
    show_remaining(object, left, now);
    if (!left.resources.empty()) return;
    json::array rest;
    for (const json::value& f : json::get_array(object, {"spec", "finalizers"})) {
      if (f != json::value("kubernetes")) rest.push_back(f);
    }
    json::set(object, {"spec", "finalizers"}, std::move(rest));
  };
  return write(key, change, "status");
}

bool Collector::empty_definition(const store::Key& key) {
  // Where the kind is built in, its objects do not depend on the definition.
  if (!kinds_()->built_in(key.name)) {
    const auto found = by_resource_.find(key.name);
    if (found != by_resource_.end()) {
      if (found->second.staying > 0) dirty_.insert(key);
      return remove_staying(found->second,
                            nullptr);  // whoever goes last touches the definition again
    }
  }
  const bool did = remove_finalizer(key, kCrdFinalizer);
  // Names that it held may be what another definition waits for.
  if (did && store_.get(key) == nullptr) retry_names();
  return did;
}

}  // namespace skiff::apiserver
