#include "features/workloads/stateful_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "api/meta.h"
#include "features/workloads/adoption.h"
#include "features/workloads/pods.h"
#include "features/workloads/revisions.h"
#include "features/workloads/set_claims.h"

namespace skiff::workloads {
namespace {

constexpr std::string_view kPodName = "statefulset.kubernetes.io/pod-name";
constexpr std::string_view kPodIndex = "apps.kubernetes.io/pod-index";
constexpr std::string_view kStatefulSetRevision = "controller-revision-hash";
// One plan makes no more than this, so that a typing error does not become one huge write.
constexpr std::int64_t kStatefulSetBurst = 500;

// web-3 of the set web is 3; nothing for what is not called like a member.
std::optional<std::int64_t> ordinal_of(const json::value& set, const json::value& pod) {
  std::string_view name = api::name(pod);
  const std::string prefix = fmt::format("{}-", api::name(set));
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int32_t out = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (out < 0 || std::to_string(out) != name) return std::nullopt;
  return out;
}

std::vector<std::string> called_like(std::string_view member) {
  const std::size_t dash = member.rfind('-');
  if (dash == std::string_view::npos) return {};
  return {std::string(member.substr(0, dash))};
}

class SetPlan {
 public:
  SetPlan(const control::Observed& observed, Time now)
      : set_(*observed.root),
        now_(now),
        revisions_(set_, observed.owned[1], plan_),
        claims_(set_, observed.seen[0]),
        current_(revisions_.known_or_update(
            std::string(json::get_string(set_, {"status", "currentRevision"})))),
        start_(int_at(set_, {"spec", "ordinals", "start"})),
        replicas_(int_at(set_, {"spec", "replicas"}, 1)),
        ordered_(json::get_string(set_, {"spec", "podManagementPolicy"}) != "Parallel"),
        refused_(observed.refused) {
    for (const Object& pod : observed.seen[1]) {
      if (!api::controlled_by(*pod, api::uid(set_))) taken_.emplace(api::name(*pod));
    }
  }

  control::Plan make(const std::vector<Object>& pods, const LabelSelector& selector) {
    sort_out(pods, selector);
    count();
    if (!api::deleting(set_)) {
      // Growing and mending come first, then shrinking, then what is to be renewed.
      if (raise() && lower()) renew();
      std::set<std::string, std::less<>> live{current_, revisions_.update()};
      for (const auto& [ordinal, pod] : members_)
        live.emplace(api::label(*pod, kStatefulSetRevision));
      for (const auto& [ordinal, pod] : surplus_)
        live.emplace(api::label(*pod, kStatefulSetRevision));
      revisions_.truncate(live, plan_);
    }
    leave_out_refused();
    tell();
    return std::move(plan_);
  }

 private:
  std::int64_t partition() const {
    return int_at(set_, {"spec", "updateStrategy", "rollingUpdate", "partition"});
  }

  void sort_out(const std::vector<Object>& pods, const LabelSelector& selector) {
    for (const Object& pod : pods) {
      const auto ordinal = ordinal_of(set_, *pod);
      if (!ordinal || !selector.matches_object(*pod)) {
        if (!api::deleting(*pod) && !api::deleting(set_)) {
          plan_.writes.push_back(release(pod_resource(), *pod, api::uid(set_)));
        }
        taken_.emplace(api::name(*pod));
        continue;
      }
      const bool member = *ordinal >= start_ && *ordinal < start_ + replicas_;
      (member ? members_ : surplus_).emplace(*ordinal, pod);
    }
    for (const auto* list : {&members_, &surplus_}) {
      for (const auto& [ordinal, pod] : *list) {
        if (!healthy(*pod) && first_unhealthy_ == nullptr) first_unhealthy_ = pod.get();
      }
    }
  }

  bool available(const json::value& pod) const {
    const auto wait = until_available(pod, int_at(set_, {"spec", "minReadySeconds"}), now_);
    return phase(pod) == "Running" && wait && *wait <= Duration(0);
  }
  bool healthy(const json::value& pod) const { return available(pod) && !api::deleting(pod); }

  void count() {
    for (const auto* list : {&members_, &surplus_}) {
      for (const auto& [ordinal, pod] : *list) {
        ++total_;
        const bool is_ready = phase(*pod) == "Running" && ready(*pod);
        ready_ += is_ready ? 1 : 0;
        available_ += available(*pod) ? 1 : 0;
        const auto wait = until_available(*pod, int_at(set_, {"spec", "minReadySeconds"}), now_);
        if (is_ready && wait && *wait > Duration(0)) sooner(plan_.requeue_after, *wait);
        if (api::deleting(*pod)) continue;
        const std::string_view revision = api::label(*pod, kStatefulSetRevision);
        of_current_ += revision == current_ ? 1 : 0;
        of_update_ += revision == revisions_.update() ? 1 : 0;
      }
    }
  }

  // Makes what is missing and replaces what has ended. False where an ordered set has to wait.
  bool raise() {
    std::int64_t made = 0;
    for (std::int64_t ordinal = start_; ordinal < start_ + replicas_ && made < kStatefulSetBurst;
         ++ordinal) {
      const auto there = members_.find(ordinal);
      bool settled = false;
      if (there == members_.end()) {
        create(ordinal);
        ++made;
      } else {
        settled = tend(ordinal, *there->second);
      }
      if (ordered_ && !settled) return false;
    }
    return true;
  }

  // True if nothing that comes after it has to wait for the pod.
  bool tend(std::int64_t ordinal, const json::value& pod) {
    if (ended(pod)) {
      if (!api::deleting(pod)) remove(pod);
      return false;
    }
    const bool pending = phase(pod) == "Pending" && !api::deleting(pod);
    if (pending) claims_.provide(ordinal, plan_);
    if (!pending && ordered_ && !healthy(pod)) return false;
    claims_.retain(pod, ordinal, false, plan_);
    if (!api::deleting(pod) && api::label(pod, kPodName) != api::name(pod)) {
      json::object labels{{kPodName, json::string(api::name(pod))},
                          {kPodIndex, std::to_string(ordinal)}};
      plan_.writes.push_back(
          patch(pod_resource(), pod, {{"metadata", json::object{{"labels", std::move(labels)}}}}));
    }
    return healthy(pod);
  }

  void create(std::int64_t ordinal) {
    const std::string name = fmt::format("{}-{}", api::name(set_), ordinal);
    if (taken_.contains(name)) return refuse(name, fmt::format("pods \"{}\" already exists", name));
    if (const auto why = claims_.provide(ordinal, plan_)) return refuse(name, *why);
    const bool old =
        json::find(set_, {"spec", "updateStrategy", "rollingUpdate"}) != nullptr
            ? ordinal < start_ + partition()
            : rolls(set_) && ordinal < start_ + int_at(set_, {"status", "currentReplicas"});
    const std::string& revision = old ? current_ : revisions_.update();
    json::value pod = pod_from(revisions_.pod_template(revision), name, set_);
    json::set(pod, {"metadata", "generateName"}, json::string(fmt::format("{}-", api::name(set_))));
    json::object& labels = json::make_object(pod, {"metadata", "labels"});
    labels[kPodName] = name;
    labels[kPodIndex] = std::to_string(ordinal);
    labels[kStatefulSetRevision] = revision;
    json::set(pod, {"spec", "hostname"}, json::string(name));
    const std::string_view service = json::get_string(set_, {"spec", "serviceName"});
    if (!service.empty()) json::set(pod, {"spec", "subdomain"}, json::string(service));
    claims_.mount(pod, ordinal);
    plan_.writes.push_back(creation(pod_resource(), set_, std::move(pod)));
    plan_.notes.push_back(success("SuccessfulCreate", "create", name));
  }

  // What was refused a moment ago and all that came after it would be refused again.
  void leave_out_refused() {
    if (!refused_) return;
    const std::vector<std::string> pods = leave_out(plan_, *refused_);
    for (const std::string& pod : pods) {
      std::erase(plan_.notes, success("SuccessfulCreate", "create", pod));
    }
    if (!pods.empty()) refuse(pods.front(), refused_->message);
  }

  void refuse(std::string_view pod, std::string_view why) {
    plan_.notes.push_back(
        {.warning = true,
         .reason = "FailedCreate",
         .message = fmt::format("create Pod {} in StatefulSet {} failed error: {}", pod,
                                api::name(set_), why)});
  }

  // Removes what is beyond the size, the highest first. False where that is not done yet.
  bool lower() {
    bool claims_moved = false;
    for (const auto& [ordinal, pod] : surplus_) {
      claims_moved = claims_.retain(*pod, ordinal, true, plan_) || claims_moved;
    }
    // A claim must know its pod before the pod goes, or nobody would collect it.
    if (claims_moved) return false;
    for (auto it = surplus_.rbegin(); it != surplus_.rend(); ++it) {
      const json::value& pod = *it->second;
      if (ordered_ && (api::deleting(pod) || (!available(pod) && &pod != first_unhealthy_))) {
        return false;
      }
      if (api::deleting(pod)) continue;
      remove(pod);
      if (ordered_) return false;
    }
    return true;
  }

  // One pod at a time, from the highest ordinal down to the partition.
  void renew() {
    if (!rolls(set_)) return;
    // The partition counts replicas, not ordinals.
    for (std::int64_t i = replicas_ - 1; i >= partition(); --i) {
      const auto there = members_.find(start_ + i);
      if (there == members_.end()) return;
      const json::value& pod = *there->second;
      if (api::label(pod, kStatefulSetRevision) != revisions_.update() && !api::deleting(pod)) {
        if (!ended(pod)) remove(pod);
        if (api::label(pod, kStatefulSetRevision) == current_) --of_current_;
        return;
      }
      if (!healthy(pod)) return;
    }
  }

  void remove(const json::value& pod) {
    plan_.writes.push_back(removal(pod_resource(), pod));
    plan_.notes.push_back(success("SuccessfulDelete", "delete", api::name(pod)));
  }

  control::Note success(std::string_view reason, std::string_view verb,
                        std::string_view pod) const {
    return {.reason = std::string(reason),
            .message =
                fmt::format("{} Pod {} in StatefulSet {} successful", verb, pod, api::name(set_))};
  }

  void tell() {
    json::object status = json::get_object(set_, {"status"});
    std::string current = current_;
    if (rolls(set_) && of_update_ == replicas_ && ready_ == replicas_ && total_ == replicas_) {
      current = revisions_.update();
      of_current_ = of_update_;
    }
    status["observedGeneration"] = int_at(set_, {"metadata", "generation"});
    status["replicas"] = total_;
    status["availableReplicas"] = available_;
    set_count(status, "readyReplicas", ready_);
    set_count(status, "currentReplicas", of_current_);
    set_count(status, "updatedReplicas", of_update_);
    status["currentRevision"] = current;
    status["updateRevision"] = revisions_.update();
    status["collisionCount"] = revisions_.collisions();
    json::value after = std::move(status);
    const json::value* before = json::find(set_, {"status"});
    if (before == nullptr || *before != after) plan_.status = std::move(after);
  }

  control::Plan plan_ = {};
  const json::value& set_;
  const Time now_;
  const Revisions revisions_;
  const SetClaims claims_;
  const std::string current_;
  const std::int64_t start_;
  const std::int64_t replicas_;
  const bool ordered_;
  const std::optional<control::Refusal> refused_;
  std::map<std::int64_t, Object> members_ = {};
  std::map<std::int64_t, Object> surplus_ = {};
  std::set<std::string, std::less<>> taken_ = {};  // names that pods of others have
  const json::value* first_unhealthy_ = nullptr;
  std::int64_t total_ = 0, ready_ = 0, available_ = 0, of_current_ = 0, of_update_ = 0;
};

}  // namespace

const api::Resource& stateful_set_resource() {
  static const api::Resource kResource{
      .group = "apps", .version = "v1", .plural = "statefulsets", .kind = "StatefulSet"};
  return kResource;
}

control::Plan plan_stateful_set(const control::Observed& observed, Time now) {
  const auto selector = selector_of(*observed.root);
  // The server admits none; whatever is here instead must not take every pod for its own.
  if (!selector) return {};
  control::Plan adoptions;
  std::vector<Object> members = observed.seen[1];
  std::erase_if(members, [&](const Object& pod) { return !ordinal_of(*observed.root, *pod); });
  adopt(pod_resource(), *observed.root, *selector, members, adoptions);
  if (observed.seen.size() > 2) {
    adopt(revision_resource(), *observed.root, *selector, observed.seen[2], adoptions);
  }
  if (!adoptions.writes.empty()) return adoptions;
  return SetPlan(observed, now).make(observed.owned[0], *selector);
}

control::Controller stateful_set_controller() {
  return {.name = "statefulset-controller",
          .root = stateful_set_resource(),
          .owned = {pod_resource(), revision_resource()},
          .seen = {claims_of_sets(),
                   {.resource = pod_resource(),
                    .wants =
                        [](const json::value& set) {
                          return std::vector<std::string>{std::string(api::name(set))};
                        },
                    .has = [](const json::value& pod) { return called_like(api::name(pod)); },
                    .writes = true},
                   orphans(revision_resource())},
          .hears_refusals = true,
          .plan = plan_stateful_set};
}

}  // namespace skiff::workloads
