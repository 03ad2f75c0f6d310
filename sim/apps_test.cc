// The workload of apps with one controller spoiled at a time: each mistake must be noticed, or the
// checkers are worth nothing.
#include "sim/workloads/apps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "features/workloads/pods.h"
#include "sim/world.h"

namespace skiff::sim {
namespace {

constexpr std::uint64_t kSeedsOfApps = 60;

using Spoil = std::function<void(control::Controller&)>;
using SpoilGlobal = std::function<void(control::GlobalController&)>;

// Passes everything on but the controllers.
class Spoiled : public Workload {
 public:
  Spoiled(std::string controller, Spoil spoil, SpoilGlobal spoil_global)
      : controller_(std::move(controller)),
        spoil_(std::move(spoil)),
        spoil_global_(std::move(spoil_global)) {}

  std::string_view name() const override { return sound_->name(); }
  std::vector<api::Kind> kinds() const override { return sound_->kinds(); }
  std::vector<control::Controller> controllers() const override {
    auto out = sound_->controllers();
    for (control::Controller& one : out) {
      if (spoil_ && one.name == controller_) spoil_(one);
    }
    return out;
  }
  std::vector<control::GlobalController> global_controllers() const override {
    auto out = sound_->global_controllers();
    for (control::GlobalController& one : out) {
      if (spoil_global_ && one.name == controller_) spoil_global_(one);
    }
    return out;
  }
  bool heartbeats() const override { return sound_->heartbeats(); }
  void people(client::Client& client, Time now, Random& random) override {
    sound_->people(client, now, random);
  }
  void finish(client::Client& client, Time now, Random& random) override {
    sound_->finish(client, now, random);
  }
  bool again(client::Client& client, Random& random) override {
    return sound_->again(client, random);
  }
  PodScript script(const json::value& pod, unsigned run, bool calm, Random& random) override {
    return sound_->script(pod, run, calm, random);
  }
  bool finished(const json::value& root) const override { return sound_->finished(root); }
  std::optional<std::string> unsettled(const View& view) const override {
    return sound_->unsettled(view);
  }
  Duration rest() const override { return sound_->rest(); }
  std::string slot(const json::value& child) const override { return sound_->slot(child); }

 private:
  const std::unique_ptr<Workload> sound_ = make_apps();
  const std::string controller_;
  const Spoil spoil_;
  const SpoilGlobal spoil_global_;
};

// It sees its root otherwise than it is.
Spoil sees(std::function<void(json::value& root)> change) {
  return [change = std::move(change)](control::Controller& controller) {
    controller.plan = [change, plan = controller.plan](const control::Observed& observed,
                                                       Time now) {
      control::Observed other = observed;
      json::value root = *observed.root;
      change(root);
      other.root = std::make_shared<const json::value>(std::move(root));
      return plan(other, now);
    };
  };
}

void does_nothing(control::Controller& controller) {
  controller.plan = [](const control::Observed&, Time) { return control::Plan(); };
}

struct PlantedMistake {
  std::string_view what = {};
  std::string controller = {};
  std::string noticed_by = {};
  Spoil spoil = {};
  SpoilGlobal spoil_global = {};
};

void keep_taints(control::GlobalController& controller) {
  controller.plan = [plan = controller.plan](Time now) {
    control::GlobalPlan out = plan(now);
    std::erase_if(out.batches, [](const control::Batch& batch) {
      return std::ranges::any_of(batch.writes, [](const client::Write& write) {
        const json::value* taints = json::find(write.body, {"spec", "taints"});
        return taints != nullptr && taints->is_null();
      });
    });
    return out;
  };
}

std::vector<PlantedMistake> mistakes() {
  const auto does_nothing_global = [](control::GlobalController& controller) {
    controller.plan = [](Time) { return control::GlobalPlan(); };
  };
  const auto forgets_its_pods = [](control::Controller& controller) {
    controller.plan = [plan = controller.plan](const control::Observed& observed, Time now) {
      control::Observed other = observed;
      if (other.owned[0].size() > 1) other.owned[0].pop_back();
      return plan(other, now);
    };
  };
  return {
      {"a StatefulSet ignores the order", "statefulset-controller", "app-order",
       sees([](json::value& root) {
         json::set(root, {"spec", "podManagementPolicy"}, "Parallel");
       })},
      {"a StatefulSet makes one pod too many", "statefulset-controller", "app-replicas",
       sees([](json::value& root) {
         json::set(root, {"spec", "replicas"}, workloads::int_at(root, {"spec", "replicas"}) + 1);
       })},
      {"a ReplicaSet does not know all of its pods", "replicaset-controller", "app-replicas",
       forgets_its_pods},
      {"a Deployment surges more than it may", "deployment-controller", "app-surge",
       sees([](json::value& root) {
         if (json::find(root, {"spec", "strategy", "rollingUpdate"}) == nullptr) return;
         json::set(root, {"spec", "strategy", "rollingUpdate", "maxSurge"}, 5);
       })},
      {"a Deployment rolls without any care", "deployment-controller", "app-available",
       sees([](json::value& root) {
         if (json::find(root, {"spec", "strategy", "rollingUpdate"}) == nullptr) return;
         json::set(root, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}, "100%");
       })},
      {"a DaemonSet does not know all of its pods", "daemonset-controller", "app-daemons",
       forgets_its_pods},
      {"a CronJob starts whatever runs", "cronjob-controller", "app-cron",
       sees([](json::value& root) { json::set(root, {"spec", "concurrencyPolicy"}, "Allow"); })},
      {"nobody looks after Deployments", "deployment-controller", "liveness", does_nothing},
      {"nobody looks after StatefulSets", "statefulset-controller", "liveness", does_nothing},
      {"nobody looks after DaemonSets", "daemonset-controller", "liveness", does_nothing},
      {"nobody looks after ReplicaSets", "replicaset-controller", "liveness", does_nothing},
      {"nobody looks after ReplicationControllers", "replication-controller", "liveness",
       does_nothing},
      {"nobody looks after Jobs", "job-controller", "liveness", does_nothing},
      {"nobody looks after budgets", "controllermanager", "liveness", does_nothing},
      {"nobody looks after endpoints", "endpoint-controller", "liveness", does_nothing},
      {"nobody looks after claims",
       "persistentvolume-controller",
       "liveness",
       {},
       does_nothing_global},
      {"a node that is back stays tainted", "node-controller", "liveness", {}, keep_taints},
  };
}

// Who complains first, in the first seed that fails.
std::string complaint(const PlantedMistake& mistake) {
  for (std::uint64_t seed = 1; seed <= kSeedsOfApps; ++seed) {
    Options options = Options::from_seed(seed);
    options.patience = std::chrono::hours(1);
    Spoiled workload(mistake.controller, mistake.spoil, mistake.spoil_global);
    const auto failure = World(options, workload).run();
    if (!failure) continue;
    const std::string by = failure->substr(0, failure->find(':'));
    if (by == mistake.noticed_by || seed == kSeedsOfApps) return by;
  }
  return {};
}

TEST(Apps, every_mistake_of_a_controller_is_noticed) {
  for (const PlantedMistake& mistake : mistakes()) {
    EXPECT_EQ(complaint(mistake), mistake.noticed_by) << mistake.what;
  }
}

TEST(Apps, every_checker_and_every_controller_has_a_mistake) {
  const auto has = [](auto matches) {
    const std::vector<PlantedMistake> all = mistakes();
    return std::ranges::any_of(all, matches);
  };
  for (const auto& checker : all_checkers()) {
    if (!checker->name().starts_with("app-")) continue;
    EXPECT_TRUE(has([&](const PlantedMistake& m) { return m.noticed_by == checker->name(); }))
        << checker->name();
  }
  const std::unique_ptr<Workload> sound = make_apps();
  for (const control::Controller& one : sound->controllers()) {
    EXPECT_TRUE(has([&](const PlantedMistake& m) { return m.controller == one.name && m.spoil; }))
        << one.name;
  }
  for (const control::GlobalController& one : sound->global_controllers()) {
    EXPECT_TRUE(has([&](const PlantedMistake& m) { return m.controller == one.name; })) << one.name;
  }
}

TEST(Apps, that_are_sound_settle) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto workload = make_apps();
    EXPECT_EQ(World(Options::from_seed(seed), *workload).run(), std::nullopt) << seed;
  }
}

}  // namespace
}  // namespace skiff::sim
