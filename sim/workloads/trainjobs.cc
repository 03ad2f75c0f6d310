#include "sim/workloads/trainjobs.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "features/jobsets/feature.h"
#include "features/trainer/feature.h"
#include "features/trainer/mpi.h"
#include "features/trainer/trainjob.h"
#include "features/workloads/job.h"
#include "features/workloads/job_policies.h"
#include "features/workloads/pods.h"

namespace skiff::sim {
namespace {

constexpr std::uint64_t kTrainJobs = 5;
constexpr std::int64_t kTorchRuntimes = 4;
constexpr std::int64_t kMpiRuntimes = 3;
constexpr std::int64_t kRuntimes = kTorchRuntimes + kMpiRuntimes;

json::object part(std::string_view name, std::string_view step, std::int64_t backoff_limit) {
  const json::object labels{{trainer::kStepLabel, json::string(step)}};
  const bool trains = step == trainer::kTrainerStep || name == trainer::kNode;
  const json::string container(trains ? trainer::kNode : name);
  const json::object main{{"name", container},
                          {"image", "work"},
                          {"resources", {{"requests", {{"cpu", "1"}}}}},
                          {"volumeMounts", json::array{json::object{{"name", "initializer"},
                                                                    {"mountPath", "/workspace"}}}}};
  return {{"name", json::string(name)},
          {"template",
           {{"metadata", {{"labels", labels}}},
            {"spec",
             {{"backoffLimit", backoff_limit},
              {"template",
               {{"spec",
                 {{"restartPolicy", "Never"},
                  {"volumes", json::array{json::object{{"name", "initializer"},
                                                       {"emptyDir", json::object{}}}}},
                  {"containers", json::array{main}}}}}}}}}}};
}

class TrainJobs : public Workload {
 public:
  std::string_view name() const override { return "trainjobs"; }
  std::vector<api::Kind> kinds() const override {
    std::vector<api::Kind> out = trainer::make().kinds;
    out.push_back(jobsets::make().kind);
    return out;
  }
  std::vector<std::pair<std::string, schema::Schema>> schemas() const override {
    auto out = trainer::make().schemas;
    for (auto& entry : jobsets::make().schemas) out.push_back(std::move(entry));
    return out;
  }
  std::vector<control::Controller> controllers() const override {
    return {trainer::make().controller, jobsets::make().controller, workloads::job_controller()};
  }

  void people(client::Client& client, Time now, Random& random) override {
    if (!began_) began_ = now;
    make_runtimes(client, random);
    for (std::uint64_t i = 0; i < made_; ++i) patch(client, i, false);
    if (made_ < kTrainJobs && random.chance(70)) return create(client, random);
    if (made_ == 0) return;
    const bool may_suspend = now - *began_ < kSuspendsUntil;
    switch (random.below(6)) {
      case 0:
        if (may_suspend) patch(client, random.below(made_), true);
        break;
      case 1:
        remove_one(client, workloads::pod_resource(), random);
        break;
      case 2:
        remove_one(client, workloads::job_resource(), random);
        break;
      case 3:
        if (may_suspend) remove_one(client, trainer::jobset_resource(), random);
        break;
      case 4:
        spoil_map(client, random.below(made_));
        break;
      default:
        remove_companion(client, random);
        break;
    }
  }

  PodScript script(const json::value& pod, unsigned, bool calm, Random& random) override {
    PodScript out{.start_after = std::chrono::milliseconds(10 + random.below(3'000)),
                  .run_for = std::chrono::milliseconds(100 + random.below(40'000))};
    // It waits for what the launcher starts in it, and goes with it.
    const bool waits = api::annotation(pod, trainer::kHostAnnotation) == trainer::kNode;
    if (waits && (calm || random.chance(80))) out.run_for = std::chrono::hours(1);
    if (calm) return out;
    const std::uint64_t fate = random.below(8);
    if (fate == 0) out.exit_code = 1;
    if (fate == 1) out.run_for = std::chrono::hours(1);  // the job's deadline ends it
    return out;
  }

  bool finished(const json::value& root) const override {
    return api::condition_true(root, "Complete") || api::condition_true(root, "Completed") ||
           api::condition_true(root, "Failed");
  }
  // The Job's place; one that it gave up fills none any more.
  std::string slot(const json::value& child) const override {
    if (!api::annotation(child, workloads::kCounted).empty()) return {};
    const auto index = workloads::completion_index(child);
    return index ? std::to_string(*index) : std::string();
  }

 private:
  void make_runtimes(client::Client& client, Random& random) {
    if (runtimes_) return;
    runtimes_ = true;
    for (std::int64_t i = 0; i < kTorchRuntimes; ++i) make_torch_runtime(client, i, random);
    for (std::int64_t i = 0; i < kMpiRuntimes; ++i) make_mpi_runtime(client, i, random);
  }

  // Runtime 0 fails with its first pod, the others try again; the last two fetch data first, and
  // with the last one a Job trains and another one evaluates, both together.
  static void make_torch_runtime(client::Client& client, std::int64_t i, Random& random) {
    json::object node = part("node", trainer::kTrainerStep, i);
    json::array parts;
    if (i >= kTorchRuntimes - 2) {
      parts.push_back(part(trainer::kDatasetInitializer, trainer::kDatasetInitializer, 3));
      node["dependsOn"] = json::array{json::object{
          {"name", json::string(trainer::kDatasetInitializer)}, {"status", "Complete"}}};
    }
    json::object group;
    if (i == kTorchRuntimes - 1) {
      group["coscheduling"] = json::object{};
      parts.push_back(part("evaluate", "", 2));
    }
    parts.push_back(std::move(node));
    json::object spec{{"replicatedJobs", std::move(parts)}};
    if (i > 0) spec["failurePolicy"] = {{"maxRestarts", i}};
    make_runtime(client, i, {{"numNodes", 2}, {"torch", json::object{}}}, std::move(group),
                 std::move(spec), random);
  }

  // The first fails with its launcher, or with the first node that does; with the last one data is
  // fetched first. Whether the launcher trains, too, is the seed's to say.
  static void make_mpi_runtime(client::Client& client, std::int64_t i, Random& random) {
    json::object node = part(trainer::kNode, "", i);
    json::object launcher = part(trainer::kLauncher, trainer::kTrainerStep, i);
    launcher["dependsOn"] =
        json::array{json::object{{"name", json::string(trainer::kNode)}, {"status", "Ready"}}};
    json::array parts;
    if (i == kMpiRuntimes - 1) {
      parts.push_back(part(trainer::kDatasetInitializer, trainer::kDatasetInitializer, 3));
      node["dependsOn"] = json::array{json::object{
          {"name", json::string(trainer::kDatasetInitializer)}, {"status", "Complete"}}};
    }
    parts.push_back(std::move(node));
    parts.push_back(std::move(launcher));
    json::object spec{{"replicatedJobs", std::move(parts)},
                      {"successPolicy",
                       {{"operator", "All"},
                        {"targetReplicatedJobs", json::array{json::string(trainer::kLauncher)}}}}};
    if (i > 0) spec["failurePolicy"] = {{"maxRestarts", i}};
    make_runtime(client, kTorchRuntimes + i,
                 {{"numNodes", 2}, {"mpi", {{"runLauncherAsNode", random.chance(50)}}}}, {},
                 std::move(spec), random);
  }

  static void make_runtime(client::Client& client, std::int64_t number, json::object policy,
                           json::object group, json::object jobset, Random& random) {
    if (random.chance(30)) jobset["ttlSecondsAfterFinished"] = between(random, 0, 300);
    (void)client.write(
        {.resource = trainer::cluster_runtime_resource(),
         .body = json::object{{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                              {"kind", "ClusterTrainingRuntime"},
                              {"metadata", {{"name", fmt::format("runtime{}", number)}}},
                              {"spec",
                               {{"mlPolicy", std::move(policy)},
                                {"podGroupPolicy", std::move(group)},
                                {"template", {{"spec", std::move(jobset)}}}}}}});
  }

  void create(client::Client& client, Random& random) {
    (void)client.write(
        {.resource = trainer::trainjob_resource(),
         .ns = "default",
         .body = json::object{
             {"apiVersion", "trainer.kubeflow.org/v1alpha1"},
             {"kind", "TrainJob"},
             {"metadata", {{"name", fmt::format("job{}", made_++)}}},
             {"spec",
              {{"runtimeRef", {{"name", fmt::format("runtime{}", random.below(kRuntimes))}}},
               {"trainer", {{"numNodes", between(random, 1, 3)}}},
               {"activeDeadlineSeconds", between(random, 30, 1'800)}}}}});
  }

  // What people write may fail (the job may be gone); they try something else next time.
  void patch(client::Client& client, std::uint64_t job, bool suspend) {
    (void)client.write({.verb = client::Verb::kMergePatch,
                        .resource = trainer::trainjob_resource(),
                        .ns = "default",
                        .name = fmt::format("job{}", job),
                        .body = json::object{{"spec", {{"suspend", suspend}}}}});
  }

  // Files, the account or the rights of a launcher, or the runtime as a job has kept it.
  void remove_companion(client::Client& client, Random& random) {
    std::vector<api::Resource> kinds = trainer::mpi_kinds();
    kinds.push_back(trainer::config_map_resource());
    remove_one(client, kinds[random.below(kinds.size())], random);
  }

  void spoil_map(client::Client& client, std::uint64_t job) {
    (void)client.write({.verb = client::Verb::kMergePatch,
                        .resource = trainer::config_map_resource(),
                        .ns = "default",
                        .name = fmt::format("job{}-mpi-hostfile", job),
                        .body = json::object{{"data", {{"pods", "nonsense"}, {"hostfile", ""}}}}});
  }

  void remove_one(client::Client& client, const api::Resource& resource, Random& random) {
    const Result<client::List> all = client.list(resource, "default", {});
    if (!all || all->items.empty()) return;
    (void)client.write(
        {.verb = client::Verb::kDelete,
         .resource = resource,
         .ns = "default",
         .name = std::string(api::name(*all->items[random.below(all->items.size())])),
         .body = json::object{{"propagationPolicy", "Background"}}});
  }

  std::optional<Time> began_ = {};
  bool runtimes_ = false;
  std::uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_trainjobs() { return std::make_unique<TrainJobs>(); }

}  // namespace skiff::sim
