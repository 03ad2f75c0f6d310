// What must hold of training jobs: one pod for each index, no success runs again, no more pods
// replaced than the limit allows, and one cluster in every TF_CONFIG.
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
  return out;
}

}  // namespace skiff::sim::checkers
