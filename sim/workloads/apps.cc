#include "sim/workloads/apps.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

#include "api/meta.h"
#include "features/nodes/feature.h"
#include "features/storage/feature.h"
#include "features/workloads/cron_job.h"
#include "features/workloads/daemon_nodes.h"
#include "features/workloads/daemon_set.h"
#include "features/workloads/disruption.h"
#include "features/workloads/endpoints.h"
#include "features/workloads/feature.h"
#include "features/workloads/pods.h"
#include "features/workloads/replica_set.h"
#include "features/workloads/stateful_set.h"
#include "sim/workloads/app_bodies.h"
#include "sim/workloads/app_state.h"

namespace skiff::sim {
namespace {

struct App {
  const api::Resource& (*resource)() = nullptr;
  AppBody body = nullptr;
  std::string_view name = {};
  bool sized = false;   // has spec.replicas
  bool rolls = false;   // follows a change of its template
  bool serves = false;  // has a service
  bool budget = false;
};

// A seed has some of them.
const std::array<App, 10> kApps = {{
    {workloads::deployment_resource, deployment_body, "web", true, true, true, true},
    {workloads::deployment_resource, deployment_body, "shop", true, true, true, false},
    {workloads::stateful_set_resource, stateful_set_body, "db", true, true, true, true},
    {workloads::stateful_set_resource, stateful_set_body, "queue", true, true, false, false},
    {workloads::daemon_set_resource, daemon_set_body, "agent", false, true, false, false},
    {workloads::daemon_set_resource, daemon_set_body, "probe", false, true, true, false},
    {workloads::replica_set_resource, replica_set_body, "set", true, false, true, true},
    {workloads::replication_controller_resource, replication_controller_body, "elder", true, false,
     false, false},
    {workloads::cron_job_resource, cron_job_body, "clean", false, false, false, false},
    {workloads::cron_job_resource, cron_job_body, "report", false, false, false, false},
}};

bool is_cron(const App& app) { return app.body == cron_job_body; }
bool is_deployment(const App& app) { return app.body == deployment_body; }

class Apps : public Workload {
 public:
  std::string_view name() const override { return "apps"; }
  std::vector<api::Kind> kinds() const override { return {}; }
  std::vector<control::Controller> controllers() const override {
    return workloads::make([](const std::string&) -> Result<TimeZone> { return TimeZone(); });
  }
  std::vector<control::GlobalController> global_controllers() const override {
    return {storage::make({.folder = "/volumes"}), nodes::make()};
  }
  bool heartbeats() const override { return true; }

  void people(client::Client& client, Time, Random& random) override {
    if (apps_.empty()) choose(client, random);
    for (std::uint64_t i = 1 + random.below(5); i > 0; --i) act(client, random);
  }

  void finish(client::Client& client, Time, Random& random) override {
    if (apps_.empty()) choose(client, random);
    for (const App* app : apps_) {
      if (!client.get(app->resource(), "default", app->name)) make(client, *app, random);
      if (is_cron(*app)) patch(client, *app, {{"suspend", true}});
      if (is_deployment(*app)) patch(client, *app, {{"paused", false}});
    }
    for (const Object& node : all(client, workloads::node_resource())) cordon(client, *node, false);
    for (const Object& pod : all(client, workloads::pod_resource())) {
      if (api::label(*pod, "app") == "debug") remove(client, workloads::pod_resource(), *pod, {});
    }
  }

  // A rollout and another size for each, to be watched closely.
  bool again(client::Client& client, Random& random) override {
    if (std::exchange(again_, true)) return false;
    for (const App* app : apps_) {
      if (app->sized && random.chance(30)) scale(client, *app, random);
      if (app->rolls) roll(client, *app, "last");
    }
    return true;
  }

  PodScript script(const json::value& pod, unsigned, bool calm, Random& random) override {
    PodScript out{.start_after = std::chrono::milliseconds(10 + random.below(3'000)),
                  .run_for = std::chrono::hours(10'000)};
    const bool ends = json::get_string(pod, {"spec", "restartPolicy"}) == "Never";
    if (ends) out.run_for = std::chrono::milliseconds(100 + random.below(90'000));
    if (calm) return out;
    const std::uint64_t fate = random.below(8);
    if (fate == 0) out.start_after = std::chrono::seconds(random.below(120));
    if (fate == 1) {
      out.exit_code = 1;
      out.run_for = std::chrono::milliseconds(100 + random.below(30'000));
    }
    return out;
  }

  bool finished(const json::value& root) const override {
    return api::kind(root) == "Job" && job_ended(root);
  }
  std::optional<std::string> unsettled(const View& view) const override {
    return unsettled_apps(view);
  }
  // So long after the faults even the last pod that was to fail, on a node twenty times too slow,
  // has done so.
  Duration rest() const override { return again_ ? Duration{} : std::chrono::minutes(12); }
  // StatefulSets name theirs; a node of a DaemonSet is looked after by a checker.
  std::string slot(const json::value& child) const override {
    return std::string(api::label(child, "apps.kubernetes.io/pod-index"));
  }

 private:
  void choose(client::Client& client, Random& random) {
    (void)client.write(storage::default_class());
    const std::uint64_t first = random.below(kApps.size());
    for (std::uint64_t i = 0; i < kApps.size(); ++i) {
      if (i == first || random.chance(45)) apps_.push_back(&kApps[i]);
    }
    for (const App* app : apps_) {
      if (app->serves) create(client, workloads::service_resource(), service_body(app->name));
      if (app->budget) {
        create(client, workloads::budget_resource(), budget_body(app->name, random));
      }
      if (random.chance(70)) make(client, *app, random);
    }
  }

  void act(client::Client& client, Random& random) {
    const App& app = *apps_[random.below(apps_.size())];
    if (!client.get(app.resource(), "default", app.name)) return make(client, app, random);
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
        if (app.rolls) roll(client, app, fmt::format("v{}", 1 + random.below(4)));
        if (is_cron(app)) patch(client, app, {{"suspend", random.chance(30)}});
        break;
      case 3:
      case 4:
        if (app.sized) scale(client, app, random);
        break;
      case 5:
        if (is_deployment(app)) patch(client, app, {{"paused", random.chance(50)}});
        break;
      case 6:
        if (random.chance(30)) remove_app(client, app, random);
        break;
      case 7:
      case 8:
        meddle_with_pod(client, random);
        break;
      default:
        meddle_with_node(client, random);
        break;
    }
  }

  void make(client::Client& client, const App& app, Random& random) {
    create(client, app.resource(), app.body(app.name, random));
  }

  // What people write may fail; they try something else next time.
  static void create(client::Client& client, const api::Resource& resource, json::value body) {
    (void)client.write({.resource = resource, .ns = "default", .body = std::move(body)});
  }
  static void patch(client::Client& client, const App& app, json::object spec) {
    (void)client.write({.verb = client::Verb::kMergePatch,
                        .resource = app.resource(),
                        .ns = "default",
                        .name = std::string(app.name),
                        .body = json::object{{"spec", std::move(spec)}}});
  }
  static void scale(client::Client& client, const App& app, Random& random) {
    patch(client, app, {{"replicas", static_cast<std::int64_t>(random.below(5))}});
  }
  static void roll(client::Client& client, const App& app, std::string_view version) {
    patch(client, app,
          {{"template", {{"metadata", {{"annotations", {{kVersion, json::string(version)}}}}}}}});
  }
  static void remove(client::Client& client, const api::Resource& resource,
                     const json::value& object, json::object options) {
    (void)client.write({.verb = client::Verb::kDelete,
                        .resource = resource,
                        .ns = std::string(api::ns(object)),
                        .name = std::string(api::name(object)),
                        .body = std::move(options)});
  }
  static std::vector<Object> all(client::Client& client, const api::Resource& resource) {
    const Result<client::List> listed =
        client.list(resource, resource.namespaced ? "default" : "", {});
    return listed ? listed->items : std::vector<Object>();
  }

  // It is made once more later, and then finds what was left behind.
  static void remove_app(client::Client& client, const App& app, Random& random) {
    constexpr std::array<std::string_view, 4> kPolicies = {"Background", "Background", "Foreground",
                                                           "Orphan"};
    const auto object = client.get(app.resource(), "default", app.name);
    // What a CronJob or a Job leaves behind nobody takes up again.
    const std::uint64_t policies = is_cron(app) ? 3 : 4;
    const std::string_view policy = kPolicies[random.below(policies)];
    if (object) {
      remove(client, app.resource(), *object, {{"propagationPolicy", json::string(policy)}});
    }
  }

  static void meddle_with_pod(client::Client& client, Random& random) {
    const std::vector<Object> pods = all(client, workloads::pod_resource());
    if (pods.empty()) return;
    const json::value& pod = *pods[random.below(pods.size())];
    client::Write write{.resource = workloads::pod_resource(),
                        .ns = "default",
                        .name = std::string(api::name(pod))};
    const std::uint64_t what = random.below(5);
    const json::object* owner = api::controller_of(pod);
    const bool of_job =
        owner != nullptr && json::get_string(json::value(*owner), {"kind"}) == "Job";
    if (what < 2) {
      remove(client, workloads::pod_resource(), pod, {});
    } else if (what < 4) {
      write.subresource = "eviction";
      write.body = json::object{
          {"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", write.name}}}};
      (void)client.write(write);
    } else if (!of_job) {
      write.verb = client::Verb::kMergePatch;
      write.body = json::object{{"metadata", {{"labels", {{"app", "debug"}}}}}};
      (void)client.write(write);
    }
  }

  static void cordon(client::Client& client, const json::value& node, bool on) {
    (void)client.write({.verb = client::Verb::kMergePatch,
                        .resource = workloads::node_resource(),
                        .name = std::string(api::name(node)),
                        .body = json::object{{"spec", {{"unschedulable", on}}}}});
  }

  static void meddle_with_node(client::Client& client, Random& random) {
    const std::vector<Object> nodes = all(client, workloads::node_resource());
    if (nodes.empty()) return;
    const json::value& node = *nodes[random.below(nodes.size())];
    switch (random.below(5)) {
      case 0:
        cordon(client, node, true);
        break;
      case 1:
        remove(client, workloads::node_resource(), node, {});
        break;
      case 2:
        cordon(client, node, false);
        break;
      default: {
        json::value pool = nullptr;
        if (random.chance(60)) pool = kPool;
        (void)client.write(
            {.verb = client::Verb::kMergePatch,
             .resource = workloads::node_resource(),
             .name = std::string(api::name(node)),
             .body = json::object{{"metadata", {{"labels", {{kPoolLabel, std::move(pool)}}}}}}});
        break;
      }
    }
  }

  std::vector<const App*> apps_ = {};
  bool again_ = false;
};

}  // namespace

std::unique_ptr<Workload> make_apps() { return std::make_unique<Apps>(); }

}  // namespace skiff::sim
