#include "control/apply.h"

#include <algorithm>
#include <utility>

#include "api/meta.h"

namespace skiff::control {
namespace {

int rank(client::Verb verb) {
  switch (verb) {
    case client::Verb::kDelete:
      return 0;
    case client::Verb::kCreate:
      return 1;
    case client::Verb::kUpdate:
    case client::Verb::kMergePatch:
    case client::Verb::kJsonPatch:
    case client::Verb::kApply:
      return 2;
  }
  return 2;
}

// The observed object that a write acts on, or null.
const json::value* target_of(const Controller& controller, const Observed& observed,
                             const client::Write& write) {
  const auto matches = [&](const Object& object) {
    return api::name(*object) == write.name && api::ns(*object) == write.ns;
  };
  if (write.resource.key() == controller.root.key()) {
    return matches(observed.root) ? observed.root.get() : nullptr;
  }
  for (std::size_t i = 0; i < controller.owned.size() && i < observed.owned.size(); ++i) {
    if (controller.owned[i].key() != write.resource.key()) continue;
    const auto it = std::ranges::find_if(observed.owned[i], matches);
    if (it != observed.owned[i].end()) return it->get();
  }
  for (std::size_t i = 0; i < controller.seen.size() && i < observed.seen.size(); ++i) {
    if (controller.seen[i].resource.key() != write.resource.key()) continue;
    const auto it = std::ranges::find_if(observed.seen[i], matches);
    if (it != observed.seen[i].end()) return it->get();
  }
  return nullptr;
}

void fill_preconditions(const Controller& controller, const Observed& observed,
                        client::Write& write) {
  if (write.verb == client::Verb::kCreate && write.subresource.empty()) {
    if (write.ns.empty() && write.resource.namespaced) write.ns = api::ns(*observed.root);
    return;
  }
  const bool complete = !write.uid.empty() &&
                        (write.verb != client::Verb::kUpdate || !write.resource_version.empty());
  if (complete) return;
  const json::value* target = target_of(controller, observed, write);
  if (target == nullptr) return;
  if (write.uid.empty()) write.uid = api::uid(*target);
  // An update replaces everything, so it must not overwrite what it has not seen. A patch may.
  if (write.verb == client::Verb::kUpdate && write.resource_version.empty()) {
    write.resource_version = api::resource_version(*target);
  }
}

client::Write on_root(const Controller& controller, const Observed& observed, client::Verb verb) {
  return {.verb = verb,
          .resource = controller.root,
          .ns = std::string(api::ns(*observed.root)),
          .name = std::string(api::name(*observed.root)),
          .uid = std::string(api::uid(*observed.root)),
          .resource_version = std::string(api::resource_version(*observed.root))};
}

// Changes nothing, and fails where the root is no longer as it was observed.
client::Write root_unchanged(const Controller& controller, const Observed& observed) {
  client::Write write = on_root(controller, observed, client::Verb::kMergePatch);
  write.body = json::object{};
  return write;
}

bool creates(const std::vector<client::Write>& writes) {
  return std::ranges::any_of(writes, [](const client::Write& write) {
    return write.verb == client::Verb::kCreate && write.subresource.empty();
  });
}

}  // namespace

std::vector<client::Write> arrange(const Controller& controller, const Observed& observed,
                                   Plan plan) {
  std::vector<client::Write> writes;
  writes.reserve(plan.writes.size() + 2);
  // Children made for a root that is gone are collected at once. As long as the cache shows that
  // root, and no child, they would be made again and again. A status says it as well as this.
  if (plan.only_if_unchanged || (creates(plan.writes) && !plan.status)) {
    writes.push_back(root_unchanged(controller, observed));
  }
  for (int turn = 0; turn <= 2; ++turn) {
    for (client::Write& write : plan.writes) {
      if (rank(write.verb) == turn) writes.push_back(std::move(write));
    }
  }
  for (client::Write& write : writes) fill_preconditions(controller, observed, write);

  if (plan.status) {
    client::Write status = on_root(controller, observed, client::Verb::kUpdate);
    status.subresource = "status";
    status.body = *observed.root;
    json::set(status.body, {"status"}, *std::move(plan.status));
    writes.push_back(std::move(status));
  }
  if (plan.delete_root) {
    client::Write removal = on_root(controller, observed, client::Verb::kDelete);
    // Our own status write has just changed the revision; the uid still protects a successor.
    if (plan.status) removal.resource_version.clear();
    removal.body = json::object{
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
    writes.push_back(std::move(removal));
  }
  return writes;
}

}  // namespace skiff::control
