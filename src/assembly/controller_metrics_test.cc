#include "assembly/controller_metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace skiff::assembly {
namespace {

using namespace std::chrono_literals;

struct HandClock : env::Clock {
  Time now() const override { return {}; }
  Duration elapsed() const override { return at; }
  Duration at = {};
};

bool says(const ControllerMetrics& metrics, std::string_view line) {
  return ("\n" + metrics.text()).find("\n" + std::string(line) + "\n") != std::string::npos;
}

TEST(ControllerMetrics, count_plans_by_what_came_of_them) {
  HandClock clock;
  ControllerMetrics metrics(clock);
  int calls = 0;
  const control::Controller metered = metrics.metered(
      {.name = "tfjob-controller", .plan = [&](const control::Observed&, Time) -> control::Plan {
         clock.at += 20ms;
         ++calls;
         if (calls == 2) return {.requeue_after = 1s};
         if (calls == 3) throw std::runtime_error("broken");
         return {};
       }});
  EXPECT_TRUE(says(metrics, R"(controller_runtime_reconcile_total{controller="tfjob-controller",)"
                            R"(result="success"} 0)"))
      << "its names are there before its first plan";
  metered.plan({}, {});
  EXPECT_EQ(metered.plan({}, {}).requeue_after, Duration(1s)) << "the plan is passed on";
  EXPECT_THROW(metered.plan({}, {}), std::runtime_error);
  for (const char* result : {"success", "requeue_after", "error"}) {
    EXPECT_TRUE(says(metrics, fmt::format("controller_runtime_reconcile_total{{controller=\"tfjob-"
                                          "controller\",result=\"{}\"}} 1",
                                          result)))
        << metrics.text();
  }
  EXPECT_TRUE(says(
      metrics, R"(controller_runtime_reconcile_errors_total{controller="tfjob-controller"} 1)"));
  const std::string time = "controller_runtime_reconcile_time_seconds";
  for (const auto& [bound, n] : {std::pair("0.005", 0), {"0.025", 3}, {"+Inf", 3}}) {
    EXPECT_TRUE(says(metrics, fmt::format("{}_bucket{{controller=\"tfjob-controller\",le=\"{}\"}} "
                                          "{}",
                                          time, bound, n)))
        << metrics.text();
  }
  EXPECT_TRUE(says(metrics, time + R"(_count{controller="tfjob-controller"} 3)"));
}

Object object(std::string_view text) {
  return std::make_shared<const json::value>(*json::parse(text));
}

TEST(ControllerMetrics, count_what_the_controllers_look_after) {
  const HandClock clock;
  ControllerMetrics metrics(clock);
  const control::GlobalController counter = metrics.counter();
  const auto place = [&](std::string_view plural) {
    return static_cast<std::size_t>(
        std::ranges::find(counter.watched, plural, &api::Resource::plural) -
        counter.watched.begin());
  };
  ASSERT_LT(place("jobsets"), counter.watched.size());
  counter.changed(place("paddlejobs"), {}, object(R"({"metadata":{"name":"a","namespace":"team",
      "creationTimestamp":"2026-11-15T12:00:00Z"}})"));
  counter.changed(place("jobsets"), object(R"({"metadata":{"name":"a","namespace":"team"}})"),
                  object(R"({"metadata":{"name":"a","namespace":"team"},
                             "status":{"conditions":[{"type":"Failed","status":"True"}]}})"));
  EXPECT_TRUE(says(metrics, R"(training_operator_jobs_created_total{job_namespace="team",)"
                            R"(framework="paddle"} 1)"));
  EXPECT_TRUE(says(metrics, R"(jobset_failed_total{jobset_name="a",namespace="team"} 1)"));
  EXPECT_TRUE(counter.plan({}).batches.empty());
}

}  // namespace
}  // namespace skiff::assembly
