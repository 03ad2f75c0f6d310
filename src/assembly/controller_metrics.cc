#include "assembly/controller_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace skiff::assembly {
namespace {

const api::Resource kJobSets{
    .group = "jobset.x-k8s.io", .version = "v1alpha2", .plural = "jobsets", .kind = "JobSet"};

}  // namespace

ControllerMetrics::ControllerMetrics(const env::Clock& clock)
    : clock_(clock), training_(clock.now()) {}

control::Controller ControllerMetrics::metered(control::Controller controller) {
  control::Controller out = controller;
  {
    const std::lock_guard lock(mutex_);
    plans_.try_emplace(controller.name);
  }
  out.plan = [this, controller = std::move(controller)](const control::Observed& observed,
                                                        Time now) {
    return count(controller, observed, now);
  };
  return out;
}

control::Plan ControllerMetrics::count(const control::Controller& controller,
                                       const control::Observed& observed, Time now) {
  const Duration began = clock_.elapsed();
  const auto note = [&](std::uint64_t Plans::* result) {
    const double took = std::chrono::duration<double>(clock_.elapsed() - began).count();
    const std::lock_guard lock(mutex_);
    Plans& plans = plans_[controller.name];
    ++(plans.*result);
    plans.seconds += took;
    for (std::size_t i = 0; i < kBounds.size(); ++i) plans.within[i] += took <= kBounds[i] ? 1 : 0;
  };
  try {
    control::Plan plan = controller.plan(observed, now);
    note(plan.requeue_after ? &Plans::with_timer : &Plans::done);
    return plan;
  } catch (...) {
    note(&Plans::broken);
    throw;  // the runtime tells of it
  }
}

control::GlobalController ControllerMetrics::counter() {
  std::vector<api::Resource> watched = training::Tally::watched();
  const std::size_t jobsets = watched.size();
  watched.push_back(kJobSets);
  return {.name = "metrics",
          .watched = std::move(watched),
          .changed =
              [this, jobsets](std::size_t which, const Object& before, const Object& after) {
                const std::lock_guard lock(mutex_);
                if (which == jobsets) {
                  jobsets_.changed(before.get(), after.get());
                } else {
                  training_.changed(which, before.get(), after.get());
                }
              },
          .plan = [](Time) { return control::GlobalPlan{}; }};
}

std::string ControllerMetrics::plans_text() const {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto head = [&](std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(out, "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  };
  head("controller_runtime_reconcile_total", "counter", "Plans made, by controller and result.");
  for (const auto& [name, plans] : plans_) {
    for (const auto& [result, n] : {std::pair("success", plans.done),
                                    {"requeue_after", plans.with_timer},
                                    {"error", plans.broken}}) {
      fmt::format_to(out,
                     "controller_runtime_reconcile_total{{controller=\"{}\",result=\"{}\"}} {}\n",
                     name, result, n);
    }
  }
  head("controller_runtime_reconcile_errors_total", "counter", "Plans that could not be made.");
  for (const auto& [name, plans] : plans_) {
    fmt::format_to(out, "controller_runtime_reconcile_errors_total{{controller=\"{}\"}} {}\n", name,
                   plans.broken);
  }
  head("controller_runtime_reconcile_time_seconds", "histogram", "How long a plan took to make.");
  for (const auto& [name, plans] : plans_) {
    const std::uint64_t all = plans.done + plans.with_timer + plans.broken;
    for (std::size_t i = 0; i <= kBounds.size(); ++i) {
      const bool last = i == kBounds.size();
      fmt::format_to(
          out,
          "controller_runtime_reconcile_time_seconds_bucket{{controller=\"{}\",le=\"{}\"}} {}\n",
          name, last ? "+Inf" : fmt::format("{}", kBounds[i]), last ? all : plans.within[i]);
    }
    fmt::format_to(out,
                   "controller_runtime_reconcile_time_seconds_sum{{controller=\"{0}\"}} {1}\n"
                   "controller_runtime_reconcile_time_seconds_count{{controller=\"{0}\"}} {2}\n",
                   name, plans.seconds, all);
  }
  return text;
}

std::string ControllerMetrics::text() const {
  const std::lock_guard lock(mutex_);
  return training_.text() + jobsets_.text() + plans_text();
}

}  // namespace skiff::assembly
