#include "node/usage/meter.h"

#include <gtest/gtest.h>

#include "env/sim/clock.h"
#include "node/testing/no_runtime.h"

namespace skiff::node {
namespace {

using std::chrono::seconds;

// Counts how often it is asked, and tells what the test says.
class Scripted final : public NoRuntime {
 public:
  std::vector<std::optional<Reading>> measure(const std::vector<MeasureTarget>& targets,
                                              bool memory) override {
    ++asked;
    with_memory += memory ? 1 : 0;
    std::vector<std::optional<Reading>> out;
    for (const MeasureTarget& target : targets) {
      const auto found = readings.find(target.pod_uid + "/" + target.container);
      out.push_back(found == readings.end() ? std::nullopt : std::optional(found->second));
    }
    return out;
  }
  std::map<std::string, Reading> readings = {};
  int asked = 0;
  int with_memory = 0;
};

class MeterTest : public ::testing::Test {
 protected:
  RunningPod pod(const std::string& uid, std::vector<std::string> containers) const {
    RunningPod out{.uid = uid, .ns = "default", .name = "pod-" + uid};
    for (std::string& name : containers) {
      out.runs.push_back({.container = name, .pid = 5, .started_at = clock_.now() - seconds(3600)});
    }
    return out;
  }

  env::sim::Clock clock_;
  Scripted runtime_;
  std::optional<Reading> machine_ = Reading{};
  Meter meter_{runtime_, clock_, "n1", [this] { return machine_; }};
};

TEST_F(MeterTest, WithoutPodsOnlyTheMachineIsRead) {
  meter_.sample({}, false);
  clock_.advance(seconds(10));
  machine_ = Reading{.cpu_ns = 5'000'000'000, .memory_bytes = 42};
  const apiserver::Usage usage = meter_.usage({});
  EXPECT_EQ(runtime_.asked, 0);
  ASSERT_EQ(usage.nodes.size(), 1u);
  EXPECT_EQ(usage.nodes[0].name, "n1");
  EXPECT_EQ(usage.nodes[0].used.cpu_nano, 500'000'000);
  EXPECT_EQ(usage.nodes[0].used.memory_bytes, 42);
  EXPECT_EQ(usage.nodes[0].measured.window, seconds(10));
  EXPECT_TRUE(usage.pods.empty());
}

TEST_F(MeterTest, APodIsToldWhenAllItsContainersAreMeasured) {
  const std::vector<RunningPod> running = {pod("a", {"one", "two"}), pod("b", {"one"})};
  runtime_.readings = {{"a/one", {}}, {"b/one", {}}};
  meter_.sample(running, false);
  clock_.advance(seconds(10));
  runtime_.readings = {{"a/one", {}}, {"a/two", {}}, {"b/one", {.cpu_ns = 1'000'000'000}}};
  auto usage = meter_.usage(running);
  ASSERT_EQ(usage.pods.size(), 1u) << "a second container of the first is known for a moment only";
  EXPECT_EQ(usage.pods[0].name, "pod-b");
  EXPECT_EQ(usage.pods[0].containers[0].used.cpu_nano, 100'000'000);
  EXPECT_EQ(usage.pods[0].measured.at, clock_.now());
  clock_.advance(seconds(10));
  usage = meter_.usage(running);
  ASSERT_EQ(usage.pods.size(), 2u);
  EXPECT_EQ(usage.pods[0].containers.size(), 2u);
}

TEST_F(MeterTest, WhoAsksOftenIsAnsweredFromTheBook) {
  const std::vector<RunningPod> running = {pod("a", {"one"})};
  runtime_.readings = {{"a/one", {}}};
  for (int i = 0; i < 10; ++i) meter_.usage(running);
  EXPECT_EQ(runtime_.asked, 1);
  clock_.advance(seconds(1));
  meter_.usage(running);
  EXPECT_EQ(runtime_.asked, 2);
}

TEST_F(MeterTest, MemoryIsReadForThoseWhoAskOnly) {
  const std::vector<RunningPod> running = {pod("a", {"one"})};
  runtime_.readings = {{"a/one", {.memory_bytes = 77}}};
  for (int i = 0; i < 3; ++i) {
    meter_.sample(running, false);
    clock_.advance(seconds(10));
  }
  EXPECT_EQ(runtime_.with_memory, 0);
  meter_.sample(running, false);
  const auto usage = meter_.usage(running);  // in the same moment: the book has no memory to tell
  EXPECT_EQ(runtime_.with_memory, 1);
  ASSERT_EQ(usage.pods.size(), 1u);
  EXPECT_EQ(usage.pods[0].containers[0].used.memory_bytes, 77);
}

TEST_F(MeterTest, AnotherRunOfAContainerIsAnotherThing) {
  std::vector<RunningPod> running = {pod("a", {"one"})};
  runtime_.readings = {{"a/one", {.cpu_ns = 90'000'000'000}}};
  meter_.sample(running, false);
  clock_.advance(seconds(10));
  running[0].runs[0].attempt = 1;
  running[0].runs[0].started_at = clock_.now() - seconds(2);
  runtime_.readings = {{"a/one", {.cpu_ns = 1'000'000'000}}};
  const auto usage = meter_.usage(running);
  ASSERT_EQ(usage.pods.size(), 1u);
  EXPECT_EQ(usage.pods[0].containers[0].used.cpu_nano, 500'000'000);
  EXPECT_EQ(usage.pods[0].measured.window, seconds(2));
}

TEST_F(MeterTest, APodThatHasEndedIsNotTold) {
  const std::vector<RunningPod> running = {pod("a", {"one"})};
  runtime_.readings = {{"a/one", {}}};
  meter_.sample(running, false);
  clock_.advance(seconds(10));
  ASSERT_EQ(meter_.usage(running).pods.size(), 1u);
  EXPECT_TRUE(meter_.usage({}).pods.empty());
}

class MeterGpuTest : public MeterTest {
 protected:
  // Ten seconds later: every container used a CPU, and a megabyte a second came in.
  void look(const std::vector<RunningPod>& running) {
    clock_.advance(seconds(10));
    used_ += 10'000'000'000;
    received_ += 10'000'000;
    runtime_.readings["a/main"] = {.cpu_ns = used_, .memory_bytes = 5};
    full_.sample(running, true);
  }
  RunningPod trainer(std::int64_t limit_milli) const {
    RunningPod out = pod("a", {"main"});
    out.shown = "worker-1";
    out.runs[0].gpus = {"GPU-1"};
    out.runs[0].cpu_limit_milli = limit_milli;
    return out;
  }
  std::int64_t used_ = 0, received_ = 0;
  Meter full_{runtime_, clock_, "n1", [this] { return machine_; },
              [this](int) {
                return std::optional(NetworkReading{.received = received_, .sent = received_ / 10});
              }};
};

TEST_F(MeterGpuTest, TellsGpusAndNetworkOfAPod) {
  const std::vector<RunningPod> running = {trainer(0)};
  look(running);
  look(running);
  const auto usage =
      full_.usage(running, {{"GPU-1", {.busy_percent = 40, .memory_bytes = 2048}}, {"GPU-2", {}}});
  ASSERT_EQ(usage.pods.size(), 1u);
  const auto& more = usage.pods[0].containers[0].more;
  EXPECT_EQ(more.at("nvidia.com/gpu"), "400m");
  EXPECT_EQ(more.at("nvidia.com/gpu.memory"), "2Ki");
  EXPECT_EQ(more.at("skiff.dev/network-in"), "1000000");
  EXPECT_EQ(more.at("skiff.dev/network-out"), "100000");
}

TEST_F(MeterGpuTest, AnIdleGpuBesideAFullCpuIsToldOnce) {
  const std::vector<RunningPod> running = {trainer(1000)};
  std::vector<UsageNote> told;
  for (int i = 0; i < 40; ++i) {
    look(running);
    for (UsageNote& note : full_.idle(running, {{"GPU-1", {.busy_percent = 12}}}, 64)) {
      told.push_back(std::move(note));
    }
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].uid, "a");
  EXPECT_TRUE(told[0].message.starts_with(
      "GPU 0 of worker-1 was 12 % busy in the last 2 min while the CPU was full"))
      << told[0].message;
}

TEST_F(MeterGpuTest, OneCpuOfSixtyFourIsNotFull) {
  const std::vector<RunningPod> running = {trainer(0)};
  for (int i = 0; i < 40; ++i) {
    look(running);
    EXPECT_TRUE(full_.idle(running, {{"GPU-1", {.busy_percent = 12}}}, 64).empty());
  }
}

}  // namespace
}  // namespace skiff::node
