#include "sim/workloads/jobs.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "features/workloads/job.h"
#include "features/workloads/job_policies.h"
#include "features/workloads/pods.h"

namespace skiff::sim {
namespace {

constexpr std::uint64_t kBatchJobs = 6;

class Jobs : public Workload {
 public:
  std::string_view name() const override { return "jobs"; }
  std::vector<api::Kind> kinds() const override { return {}; }
  std::vector<control::Controller> controllers() const override {
    return {workloads::job_controller()};
  }

  void people(client::Client& client, Time now, Random& random) override {
    if (!began_) began_ = now;
    for (std::uint64_t i = 0; i < made_; ++i) {
      patch(client, fmt::format("job{}", i), {{"suspend", false}});
    }
    if (made_ < kBatchJobs && random.chance(70)) return create(client, random);
    if (made_ == 0) return;
    const std::string job = fmt::format("job{}", random.below(made_));
    switch (random.below(4)) {
      case 0:
        if (now - *began_ < kSuspendsUntil) patch(client, job, {{"suspend", true}});
        break;
      case 1:
        patch(client, job, {{"parallelism", between(random, 1, 3)}});
        break;
      case 2:
        remove_a_pod(client, random);
        break;
      default:
        break;
    }
  }

  PodScript script(const json::value&, unsigned, bool calm, Random& random) override {
    PodScript out{.start_after = std::chrono::milliseconds(10 + random.below(3'000)),
                  .run_for = std::chrono::milliseconds(100 + random.below(60'000))};
    if (calm) return out;
    const std::uint64_t fate = random.below(8);
    if (fate == 0) out.exit_code = 1;
    if (fate == 1) out.run_for = std::chrono::hours(1);  // the job's deadline ends it
    return out;
  }

  bool finished(const json::value& root) const override {
    return api::condition_true(root, "Complete") || api::condition_true(root, "Failed");
  }
  // Pods without an index fill no place of their own. One that the job gave up fills none any more.
  std::string slot(const json::value& child) const override {
    if (!api::annotation(child, workloads::kCounted).empty()) return {};
    const auto index = workloads::completion_index(child);
    return index ? std::to_string(*index) : std::string();
  }

 private:
  void create(client::Client& client, Random& random) {
    json::object spec{
        {"completions", between(random, 1, 4)},
        {"parallelism", between(random, 1, 3)},
        {"backoffLimit", between(random, 0, 6)},
        {"activeDeadlineSeconds", between(random, 30, 1'800)},
        {"template",
         {{"spec",
           {{"restartPolicy", "Never"},
            {"containers", json::array{json::object{{"name", "main"}, {"image", "work"}}}}}}}}};
    if (random.chance(50)) spec["completionMode"] = "Indexed";
    if (random.chance(30)) spec["ttlSecondsAfterFinished"] = between(random, 0, 600);
    (void)client.write(
        {.resource = workloads::job_resource(),
         .ns = "default",
         .body = json::object{{"apiVersion", "batch/v1"},
                              {"kind", "Job"},
                              {"metadata", {{"name", fmt::format("job{}", made_++)}}},
                              {"spec", std::move(spec)}}});
  }

  // What people write may fail (the job may be gone); they try something else next time.
  void patch(client::Client& client, std::string job, json::object spec) {
    (void)client.write({.verb = client::Verb::kMergePatch,
                        .resource = workloads::job_resource(),
                        .ns = "default",
                        .name = std::move(job),
                        .body = json::object{{"spec", std::move(spec)}}});
  }

  void remove_a_pod(client::Client& client, Random& random) {
    const Result<client::List> pods = client.list(workloads::pod_resource(), "default", {});
    if (!pods || pods->items.empty()) return;
    const Object& pod = pods->items[random.below(pods->items.size())];
    (void)client.write({.verb = client::Verb::kDelete,
                        .resource = workloads::pod_resource(),
                        .ns = "default",
                        .name = std::string(api::name(*pod)),
                        .body = json::object{}});
  }

  std::optional<Time> began_ = {};
  std::uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_jobs() { return std::make_unique<Jobs>(); }

}  // namespace skiff::sim
