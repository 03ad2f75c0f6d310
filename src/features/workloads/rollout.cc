#include "features/workloads/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "api/meta.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

constexpr std::size_t kHistoryCharacters = 2000;

std::int64_t read_revision(std::string_view text) {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// What two templates are compared by: the label that tells them apart is no part of it.
json::value bare_template(const json::value& object) {
  json::value out = json::get_object(object, {"spec", "template"});
  json::object& meta = json::make_object(out, {"metadata"});
  meta.erase("creationTimestamp");
  json::make_object(meta, {"labels"}).erase(kTemplateHashLabel);
  return out;
}

bool copied(std::string_view annotation) {
  return annotation != "kubectl.kubernetes.io/last-applied-configuration" &&
         annotation != kRevision && annotation != kRevisionHistory &&
         annotation != kDesiredReplicas && annotation != kMaxReplicas &&
         annotation != "deprecated.deployment.rollback.to";
}

// The old revision joins those before it; the oldest are forgotten where they grow too long.
void remember_revision(json::object& annotations, std::string old_revision) {
  std::string history;
  if (const json::value* kept = annotations.if_contains(kRevisionHistory)) {
    history = json::view(kept->as_string());
  }
  history = history.empty() ? std::move(old_revision) : history + "," + old_revision;
  while (history.size() > kHistoryCharacters && history.contains(',')) {
    history.erase(0, history.find(',') + 1);
  }
  annotations[kRevisionHistory] = history;
}

// A merge patch of what differs; both are objects of texts.
json::object difference(const json::object& before, const json::object& after) {
  json::object out;
  for (const auto& [key, value] : after) {
    const json::value* old = before.if_contains(key);
    if (old == nullptr || *old != value) out[key] = value;
  }
  return out;
}

json::object patch_of(const Set& set) {
  json::object out;
  const json::object notes = difference(json::get_object(*set.seen, {"metadata", "annotations"}),
                                        json::get_object(set.now, {"metadata", "annotations"}));
  if (!notes.empty()) out["metadata"] = json::object{{"annotations", notes}};
  json::object spec;
  for (const std::string_view field : {"replicas", "minReadySeconds"}) {
    const std::int64_t wanted = int_at(set.now, {"spec", field});
    if (int_at(*set.seen, {"spec", field}) != wanted) spec[field] = wanted;
  }
  if (!spec.empty()) out["spec"] = std::move(spec);
  return out;
}

}  // namespace

std::int64_t Set::replicas() const { return int_at(now, {"spec", "replicas"}, 1); }
std::int64_t Set::count(std::string_view field) const { return int_at(now, {"status", field}); }
std::int64_t Set::available() const { return std::min(count("availableReplicas"), replicas()); }
std::int64_t Set::revision() const { return read_revision(api::annotation(now, kRevision)); }
bool Set::deleting() const { return api::deleting(now); }

Rollout::Rollout(const control::Observed& observed, Time now) : observed_(observed), now_(now) {
  const json::value& d = *observed.root;
  replicas_ = int_at(d, {"spec", "replicas"}, 1);
  recreates_ = json::get_string(d, {"spec", "strategy", "type"}) == "Recreate";
  if (!recreates_) {
    surge_ =
        scaled(json::find(d, {"spec", "strategy", "rollingUpdate", "maxSurge"}), replicas_, true);
    unavailable_ = scaled(json::find(d, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}),
                          replicas_, false);
    // Neither one more nor one less: nothing would ever move.
    if (surge_ == 0 && unavailable_ == 0) unavailable_ = 1;
    unavailable_ = std::min(unavailable_, replicas_);
  }
  std::vector<Object> sets = observed.owned[0];
  std::ranges::sort(sets, {}, [](const Object& set) {
    return std::pair(api::created_at(*set), api::name(*set));
  });
  const json::value wanted = bare_template(d);
  for (const Object& seen : sets) {
    Set& set = sets_.emplace_back(Set{.seen = seen, .now = *seen});
    if (current_ == nullptr && bare_template(*seen) == wanted) {
      current_ = &set;
    } else {
      old_.push_back(&set);
    }
  }
}

bool Rollout::has_deadline() const {
  const auto seconds = json::get_int(deployment(), {"spec", "progressDeadlineSeconds"});
  return seconds && *seconds != std::numeric_limits<std::int32_t>::max();
}

std::vector<Set*> Rollout::all() const {
  std::vector<Set*> out = old_;
  if (current_ != nullptr) out.push_back(current_);
  return out;
}

std::vector<Set*> Rollout::active_old() const {
  std::vector<Set*> out = old_;
  std::erase_if(out, [](const Set* set) { return set->replicas() == 0; });
  return out;
}

void Rollout::annotate(Set& set) const {
  json::object& annotations = json::make_object(set.now, {"metadata", "annotations"});
  annotations[kDesiredReplicas] = std::to_string(replicas_);
  annotations[kMaxReplicas] = std::to_string(replicas_ + surge_);
}

bool Rollout::scale(Set& set, std::int64_t size) {
  const std::int64_t before = set.replicas();
  annotate(set);
  if (before == size) return false;
  json::set(set.now, {"spec", "replicas"}, size);
  notes_.push_back(
      {.reason = "ScalingReplicaSet",
       .message = fmt::format("Scaled {} replica set {} from {} to {}",
                              before < size ? "up" : "down", api::name(set.now), before, size)});
  return true;
}

json::object Rollout::selector_with(std::string_view hash) const {
  json::object selector = json::get_object(deployment(), {"spec", "selector"});
  json::make_object(selector, {"matchLabels"})[kTemplateHashLabel] = json::string(hash);
  return selector;
}

bool Rollout::make_current() {
  if (current_ != nullptr) return true;
  const json::value& d = deployment();
  json::value pod_template = json::get_object(d, {"spec", "template"});
  const std::string hash = template_hash(pod_template, int_at(d, {"status", "collisionCount"}));
  const std::string name = fmt::format("{}-{}", api::name(d), hash);
  for (const Set& set : sets_) {
    if (api::name(set.now) == name) return false;
  }
  json::object& labels = json::make_object(pod_template, {"metadata", "labels"});
  labels[kTemplateHashLabel] = hash;
  json::object meta{{"name", name},
                    {"labels", labels},
                    {"ownerReferences", json::array{api::owner_reference(d)}}};
  json::object spec{
      {"replicas", 0}, {"selector", selector_with(hash)}, {"template", std::move(pod_template)}};
  set_count(spec, "minReadySeconds", int_at(d, {"spec", "minReadySeconds"}));
  Set& set = sets_.emplace_back();
  set.now = json::object{{"apiVersion", "apps/v1"},
                         {"kind", "ReplicaSet"},
                         {"metadata", std::move(meta)},
                         {"spec", std::move(spec)}};
  current_ = &set;
  const std::int64_t size = next_size(*this, 0);
  if (size > 0) scale(set, size);
  annotate(set);
  renew_current();
  return true;
}

void Rollout::renew_current() {
  if (current_ == nullptr) return;
  std::int64_t newest = 0;
  for (const Set* set : old_) newest = std::max(newest, set->revision());
  const std::string before(api::annotation(current_->now, kRevision));
  json::object& annotations = json::make_object(current_->now, {"metadata", "annotations"});
  for (const auto& [key, value] : json::get_object(deployment(), {"metadata", "annotations"})) {
    if (copied(key)) annotations[key] = value;
  }
  if (read_revision(before) < newest + 1) {
    annotations[kRevision] = std::to_string(newest + 1);
    if (!before.empty()) remember_revision(annotations, before);
  }
  const std::int64_t min_ready = int_at(deployment(), {"spec", "minReadySeconds"});
  if (int_at(current_->now, {"spec", "minReadySeconds"}) != min_ready) {
    json::set(current_->now, {"spec", "minReadySeconds"}, min_ready);
  }
}

void Rollout::clean_up() {
  const auto limit = json::get_int(deployment(), {"spec", "revisionHistoryLimit"});
  if (!limit) return;
  std::vector<Set*> sets = old_;
  std::erase_if(sets, [](const Set* set) { return set->deleting(); });
  std::ranges::sort(sets, {},
                    [](const Set* set) { return std::pair(set->revision(), api::name(set->now)); });
  const auto surplus = static_cast<std::int64_t>(sets.size()) - *limit;
  for (std::int64_t i = 0; i < surplus; ++i) {
    Set& set = *sets[static_cast<std::size_t>(i)];
    const bool settled =
        int_at(set.now, {"metadata", "generation"}) <= set.count("observedGeneration");
    if (set.replicas() == 0 && set.count("replicas") == 0 && settled) set.doomed = true;
  }
}

control::Plan Rollout::finish(json::object status) {
  control::Plan plan;
  bool makes = false;
  for (const Set& set : sets_) {
    if (set.seen == nullptr) {
      plan.writes.push_back(creation(replica_set_resource(), deployment(), set.now));
      makes = true;
    } else if (set.doomed) {
      plan.writes.push_back(removal(replica_set_resource(), *set.seen));
    } else if (json::object changes = patch_of(set); !changes.empty()) {
      plan.writes.push_back(patch(replica_set_resource(), *set.seen, std::move(changes)));
    }
  }
  plan.notes = notes_;
  const std::string_view revision =
      current_ == nullptr ? std::string_view() : api::annotation(current_->now, kRevision);
  if (!makes && !revision.empty() && !api::deleting(deployment()) &&
      api::annotation(deployment(), kRevision) != revision) {
    plan.writes.push_back(patch(
        deployment_resource(), deployment(),
        {{"metadata", {{"annotations", json::object{{kRevision, json::string(revision)}}}}}}));
    return plan;
  }
  const json::value* before = json::find(deployment(), {"status"});
  json::value after = std::move(status);
  if (before == nullptr || *before != after) plan.status = std::move(after);
  return plan;
}

std::int64_t sum_replicas(const std::vector<Set*>& sets) {
  std::int64_t out = 0;
  for (const Set* set : sets) out += set->replicas();
  return out;
}

std::int64_t sum(const std::vector<Set*>& sets, std::string_view status_field) {
  std::int64_t out = 0;
  for (const Set* set : sets) out += set->count(status_field);
  return out;
}

std::int64_t next_size(const Rollout& rollout, std::int64_t size) {
  if (rollout.recreates()) return rollout.replicas();
  const std::int64_t room = rollout.replicas() + rollout.surge() - sum_replicas(rollout.all());
  if (room <= 0) return size;
  return size + std::min(room, rollout.replicas() - size);
}

void scale_in_proportion(Rollout& rollout) {
  std::vector<Set*> sets = rollout.active_old();
  if (rollout.current() != nullptr && rollout.current()->replicas() > 0) {
    sets.push_back(rollout.current());
  }
  const std::int64_t wanted = rollout.replicas();
  const std::int64_t allowed = wanted > 0 ? wanted + rollout.surge() : 0;
  const std::int64_t to_add = allowed - sum_replicas(sets);
  // The largest first; among equals the newest when growing, the oldest when shrinking.
  std::ranges::sort(sets, [&](const Set* a, const Set* b) {
    if (a->replicas() != b->replicas()) return a->replicas() > b->replicas();
    const auto age = [](const Set* set) {
      return std::pair(api::created_at(set->now), api::name(set->now));
    };
    return to_add > 0 ? age(a) > age(b) : age(a) < age(b);
  });
  std::map<Set*, std::int64_t> sizes;
  std::int64_t added = 0;
  for (Set* set : sets) {
    const std::int64_t size = set->replicas();
    std::int64_t share = -size;
    if (wanted != 0) {
      std::int64_t base = read_revision(api::annotation(set->now, kMaxReplicas));
      if (base == 0) base = int_at(rollout.deployment(), {"status", "replicas"});
      share = base == 0 ? 0
                        : std::lround(static_cast<double>(size * (wanted + rollout.surge())) /
                                      static_cast<double>(base)) -
                              size;
    }
    const std::int64_t left = to_add - added;
    share = to_add > 0 ? std::min(share, left) : std::max(share, left);
    if (to_add == 0) share = 0;
    sizes[set] = size + share;
    added += share;
  }
  if (!sets.empty()) {
    sizes[sets.front()] = std::max<std::int64_t>(0, sizes[sets.front()] + to_add - added);
  }
  for (Set* set : sets) rollout.scale(*set, sizes[set]);
}

}  // namespace skiff::workloads
