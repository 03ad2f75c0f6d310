#include "sim/workloads/training.h"

#include <fmt/format.h>

#include <utility>

#include "api/meta.h"
#include "features/training/engine/plan.h"
#include "features/training/feature.h"
#include "features/training/testing/checks.h"
#include "features/training/testing/random_job.h"

namespace skiff::sim {
namespace {

using training::JobKind;

constexpr std::uint64_t kTrainingJobs = 6;

class Training : public Workload {
 public:
  std::string_view name() const override { return "training"; }
  std::vector<api::Kind> kinds() const override { return training::make().kinds; }
  std::vector<std::pair<std::string, schema::Schema>> schemas() const override {
    return training::make().schemas;
  }
  std::vector<control::Controller> controllers() const override {
    return training::make().controllers;
  }

  void people(client::Client& client, Time now, Random& random) override {
    if (!began_) began_ = now;
    const bool may_suspend = now - *began_ < kSuspendsUntil;
    resume_all(client);
    if (made_ < kTrainingJobs && random.chance(70)) {
      create(client, random, may_suspend);
    } else if (made_ > 0) {
      change(client, random, may_suspend);
    }
  }

  PodScript script(const json::value&, unsigned, bool calm, Random& random) override {
    PodScript out{.start_after = std::chrono::milliseconds(10 + random.below(3'000)),
                  .run_for = std::chrono::milliseconds(100 + random.below(60'000))};
    if (calm) return out;
    switch (random.below(10)) {
      case 0:
        out.exit_code = 1;
        break;
      case 1:
        out.exit_code = 143;
        break;
      case 2:
        out.exit_code = 137;
        out.oom = true;
        break;
      case 3:
        out.run_for = std::chrono::hours(1);  // as good as a hang; the job's deadline ends it
        break;
      default:
        break;
    }
    return out;
  }

  bool finished(const json::value& root) const override {
    return training::testing::job_finished(root);
  }
  std::string slot(const json::value& child) const override {
    return training::testing::slot_of(child);
  }

 private:
  struct Made {
    const JobKind* kind = nullptr;
    std::string name = {};
  };

  void create(client::Client& client, Random& random, bool may_suspend) {
    const std::vector<const JobKind*>& all = training::job_kinds();
    const JobKind& kind = *all[random.below(all.size())];
    Made made{.kind = &kind, .name = fmt::format("job{}", made_++)};
    json::value job = training::testing::random_job(kind, made.name, random);
    json::set(job, {"metadata", "namespace"}, "default");
    if (!may_suspend) json::make_object(job, {"spec", "runPolicy"}).erase("suspend");
    // A pod under Always never ends, and a hang lasts an hour: the deadline ends the job.
    json::set(job, {"spec", "runPolicy", "activeDeadlineSeconds"}, between(random, 30, 1'800));
    if (random.chance(30)) {
      json::set(job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}, between(random, 0, 600));
    }
    const bool made_it =
        client.write({.resource = kind.resource, .ns = "default", .body = std::move(job)})
            .has_value();
    if (made_it) jobs_.push_back(std::move(made));
  }

  void change(client::Client& client, Random& random, bool may_suspend) {
    if (jobs_.empty()) return;
    const Made& job = jobs_[random.below(jobs_.size())];
    switch (random.below(5)) {
      case 0:
        if (random.chance(30)) remove(client, job.kind->resource, job.name);
        break;
      case 1:
        if (may_suspend) patch(client, job, {{"runPolicy", json::object{{"suspend", true}}}});
        break;
      case 2: {
        const json::object count{{"replicas", between(random, 1, 3)}};
        patch(client, job, {{job.kind->replicas_field, {{"Worker", count}}}});
        break;
      }
      case 3:
        remove_a_pod(client, random);
        break;
      default:
        break;
    }
  }

  void resume_all(client::Client& client) {
    for (const Made& job : jobs_) {
      const Result<json::value> seen = client.get(job.kind->resource, "default", job.name);
      if (!seen || !json::get_bool(*seen, {"spec", "runPolicy", "suspend"}).value_or(false)) {
        continue;
      }
      patch(client, job, {{"runPolicy", json::object{{"suspend", false}}}});
    }
  }

  // What people write may fail (the job may be gone); they try something else next time.
  void patch(client::Client& client, const Made& job, json::value spec) {
    (void)client.write({.verb = client::Verb::kMergePatch,
                        .resource = job.kind->resource,
                        .ns = "default",
                        .name = job.name,
                        .body = json::object{{"spec", std::move(spec)}}});
  }

  void remove(client::Client& client, const api::Resource& resource, std::string name) {
    (void)client.write({.verb = client::Verb::kDelete,
                        .resource = resource,
                        .ns = "default",
                        .name = std::move(name),
                        .body = json::object{}});
  }

  void remove_a_pod(client::Client& client, Random& random) {
    const Result<client::List> pods = client.list(training::pod_resource(), "default", {});
    if (!pods || pods->items.empty()) return;
    const Object& pod = pods->items[random.below(pods->items.size())];
    remove(client, training::pod_resource(), std::string(api::name(*pod)));
  }

  std::optional<Time> began_ = {};
  std::uint64_t made_ = 0;
  std::vector<Made> jobs_ = {};
};

}  // namespace

std::unique_ptr<Workload> make_training() { return std::make_unique<Training>(); }

}  // namespace skiff::sim
