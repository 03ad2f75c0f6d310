// What must hold of training jobs: one pod for each index, no success runs again, no more pods
// replaced than the limit allows, one cluster in every TF_CONFIG, counts that are no larger than
// the job ever was, and a memory of what succeeded.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "api/meta.h"
#include "features/training/testing/checks.h"
#include "sim/checkers/checkers.h"

namespace skiff::sim::checkers {
namespace {

using training::testing::Complaint;

class Training : public Checker {
 public:
  using Check = Complaint (*)(const json::value& job, const std::vector<Object>& pods);
  Training(std::string_view name, Check check) : name_(name), check_(check) {}

  std::string_view name() const override { return name_; }

  std::optional<std::string> check(const View& view) override {
    for (const std::string& resource : view.roots) {
      for (const Object& job : view.of(resource)) {
        if (training::testing::kind_of(*job) == nullptr) continue;
        if (Complaint complaint = check_(*job, view.of("pods"))) return complaint;
      }
    }
    return std::nullopt;
  }

 private:
  const std::string_view name_;
  const Check check_;
};

const json::value* replica_specs(const json::value& job) {
  for (const std::string_view key : {"tfReplicaSpecs", "pytorchReplicaSpecs"}) {
    if (const json::value* specs = json::find(job, {"spec", key})) return specs;
  }
  return nullptr;
}

// A job that is made smaller counts its old pods for a while, so the largest size counts.
class Counts : public Checker {
 public:
  std::string_view name() const override { return "job-counts"; }

  std::optional<std::string> check(const View& view) override {
    for (const std::string& resource : view.roots) {
      for (const Object& job : view.of(resource)) {
        if (auto complaint = check_job(*job)) return complaint;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> check_job(const json::value& job) {
    const json::value* specs = replica_specs(job);
    if (specs == nullptr) return std::nullopt;
    for (const auto& [role, counts] : json::get_object(job, {"status", "replicaStatuses"})) {
      const std::string_view name = role;
      if (json::find(*specs, {name}) == nullptr) continue;
      std::int64_t& largest = largest_[{std::string(api::uid(job)), std::string(name)}];
      largest = std::max(largest, json::get_int(*specs, {name, "replicas"}).value_or(1));
      const std::int64_t active = json::get_int(counts, {"active"}).value_or(0);
      if (active > largest) {
        return fmt::format("{} counts {} active {} replicas and never had more than {}",
                           api::name(job), active, name, largest);
      }
    }
    return std::nullopt;
  }

  std::map<std::pair<std::string, std::string>, std::int64_t> largest_ = {};
};

// Counts and memory are written as one status: who counts a success remembers it.
Complaint forgotten_success(const json::value& job, const std::vector<Object>&) {
  // When the job has succeeded, replicas that still ran are counted as successes, too; a suspended
  // job starts from the beginning when it goes on, so it forgets.
  for (const std::string_view state : {"Succeeded", "Suspended"}) {
    if (api::condition_true(job, state)) return std::nullopt;
  }
  for (const auto& [role, counts] : json::get_object(job, {"status", "replicaStatuses"})) {
    if (json::get_int(counts, {"succeeded"}).value_or(0) == 0) continue;
    if (json::get_object(job, {"status", "replicaHistory"}).empty()) {
      return fmt::format("{} counts a success of {} and does not remember it", api::name(job),
                         std::string_view(role));
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::unique_ptr<Checker>> make_training() {
  using namespace training::testing;
  std::vector<std::unique_ptr<Checker>> out;
  out.push_back(std::make_unique<Training>("job-slots", doubled_slot));
  out.push_back(std::make_unique<Training>("job-success", rerun_success));
  out.push_back(std::make_unique<Training>(
      "job-limit",
      [](const json::value& job, const std::vector<Object>&) { return over_limit(job); }));
  out.push_back(std::make_unique<Training>("job-cluster", torn_cluster));
  out.push_back(std::make_unique<Training>("job-memory", forgotten_success));
  out.push_back(std::make_unique<Counts>());
  return out;
}

}  // namespace skiff::sim::checkers
