#include "node/gpu/gpu_book.h"

#include <gtest/gtest.h>

#include "node/gpu/device_files.h"

namespace skiff::node {
namespace {

std::vector<Gpu> machine(int count) {
  std::vector<Gpu> out;
  for (int i = 0; i < count; ++i) {
    out.push_back({.uuid = "GPU-" + std::to_string(i),
                   .name = "NVIDIA A100-SXM4-80GB",
                   .minor = i,
                   .memory_bytes = std::int64_t{80} << 30});
  }
  return out;
}

std::vector<std::string> uuids(const Result<std::vector<Gpu>>& given) {
  EXPECT_TRUE(given) << given.error().message;
  std::vector<std::string> out;
  if (given) {
    for (const Gpu& gpu : *given) out.push_back(gpu.uuid);
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(GpuBook, WholeGpusGoToOneContainerEach) {
  GpuBook book(machine(3));
  EXPECT_EQ(uuids(book.take("a", "main", 2, false)), (Names{"GPU-0", "GPU-1"}));
  EXPECT_EQ(uuids(book.take("b", "main", 1, false)), Names{"GPU-2"});
  EXPECT_EQ(book.free(), 0u);
  const auto none = book.take("c", "main", 1, false);
  ASSERT_FALSE(none);
  EXPECT_EQ(
      none.error().message,
      "container \"main\" asks for 1 of nvidia.com/gpu, and 0 of the 3 on this node are free");
}

TEST(GpuBook, ARestartedContainerHasTheSameOnes) {
  GpuBook book(machine(3));
  (void)book.take("a", "main", 1, false);
  (void)book.take("b", "main", 1, false);
  book.release("a");
  EXPECT_EQ(uuids(book.take("b", "main", 1, false)), Names{"GPU-1"});
}

TEST(GpuBook, WhatAPodHadIsFreeWhenItEnds) {
  GpuBook book(machine(2));
  (void)book.take("a", "one", 1, false);
  (void)book.take("a", "two", 1, false);
  EXPECT_FALSE(book.take("b", "main", 2, false));
  book.release("a");
  EXPECT_EQ(uuids(book.take("b", "main", 2, false)), (Names{"GPU-0", "GPU-1"}));
}

TEST(GpuBook, ARefusalTakesNothing) {
  GpuBook book(machine(2));
  EXPECT_FALSE(book.take("a", "main", 3, false));
  EXPECT_EQ(book.free(), 2u);
  EXPECT_TRUE(book.kept("a").empty());
}

TEST(GpuBook, WhatAnInitContainerHadIsThereForTheOthers) {
  GpuBook book(machine(2));
  EXPECT_EQ(uuids(book.take("a", "prepare", 2, true)), (Names{"GPU-0", "GPU-1"}));
  EXPECT_EQ(uuids(book.take("a", "check", 1, true)), Names{"GPU-0"});
  EXPECT_EQ(uuids(book.take("a", "one", 1, false)), Names{"GPU-0"});
  EXPECT_EQ(uuids(book.take("a", "two", 1, false)), Names{"GPU-1"});
}

TEST(GpuBook, AnotherLifeKnowsWhoseTheyAre) {
  GpuBook book(machine(2));
  (void)book.take("a", "main", 1, false);
  const json::value kept = book.kept("a");
  EXPECT_EQ(json::serialize(kept), R"({"main":{"gpus":["GPU-0"],"init":false}})");
  GpuBook next(machine(2));
  next.hold("a", kept);
  next.hold("b", json::value("rubbish"));
  EXPECT_EQ(uuids(next.take("b", "main", 1, false)), Names{"GPU-1"});
  EXPECT_EQ(uuids(next.take("a", "main", 1, false)), Names{"GPU-0"});
}

TEST(GpuBook, AGpuThatHasLeftTheMachineIsReplaced) {
  GpuBook book(machine(2));
  book.hold("a", *json::parse(R"({"main":{"gpus":["GPU-9"],"init":false}})"));
  EXPECT_EQ(uuids(book.take("a", "main", 1, false)), Names{"GPU-0"});
}

TEST(GpuView, AContainerIsToldItsOwnAndNoOthers) {
  const auto two = gpu_variables(machine(2));
  EXPECT_EQ(two[0], (std::pair<std::string, std::string>("NVIDIA_VISIBLE_DEVICES", "GPU-0,GPU-1")));
  EXPECT_EQ(two[1], (std::pair<std::string, std::string>("CUDA_VISIBLE_DEVICES", "GPU-0,GPU-1")));
  const auto none = gpu_variables({});
  EXPECT_EQ(none[0].second, "void");
  EXPECT_EQ(none[1].second, "");
}

TEST(GpuView, DeviceFilesFollowTheNumbers) {
  EXPECT_TRUE(gpu_device_shown("nvidia1", {1}));
  EXPECT_FALSE(gpu_device_shown("nvidia0", {1}));
  EXPECT_FALSE(gpu_device_shown("nvidia10", {1}));
  EXPECT_FALSE(gpu_device_shown("nvidia0", {}));
  for (const char* shared : {"nvidiactl", "nvidia-uvm", "nvidia-modeset", "nvidia-caps"}) {
    EXPECT_TRUE(gpu_device_shown(shared, {0})) << shared;
    EXPECT_FALSE(gpu_device_shown(shared, {})) << shared;
  }
  EXPECT_TRUE(gpu_device_shown("dri", {})) << "another vendor's";
}

TEST(GpuView, LimitsSayHowManyAreWanted) {
  const auto wanted = [](std::string_view text) { return gpus_wanted(*json::parse(text)); };
  EXPECT_EQ(wanted(R"({"resources":{"limits":{"nvidia.com/gpu":"2"}}})"), 2);
  EXPECT_EQ(wanted(R"({"resources":{"limits":{"nvidia.com/gpu":1}}})"), 1);
  EXPECT_EQ(wanted(R"({"resources":{"limits":{"cpu":"4"}}})"), 0);
  EXPECT_EQ(wanted(R"({})"), 0);
}

TEST(GpuView, LabelsAreThoseOfNvidiasDiscovery) {
  const auto labels = gpu_labels(machine(2));
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-A100-SXM4-80GB");
  EXPECT_EQ(labels.at("nvidia.com/gpu.memory"), "81920");
  EXPECT_TRUE(gpu_labels({}).empty());
  EXPECT_EQ(gpu_labels({{.name = " odd (name)! "}}).at("nvidia.com/gpu.product"), "odd--name");
}

TEST(GpuView, UseIsToldForAllTogether) {
  const auto usage = gpu_usage({{.busy_percent = 75, .memory_bytes = 1 << 20},
                                {.busy_percent = 50, .memory_bytes = 2 << 20}});
  EXPECT_EQ(usage.at("nvidia.com/gpu"), "1250m");
  EXPECT_EQ(usage.at("nvidia.com/gpu.memory"), "3072Ki");
  EXPECT_TRUE(gpu_usage({}).empty());
}

}  // namespace
}  // namespace skiff::node
