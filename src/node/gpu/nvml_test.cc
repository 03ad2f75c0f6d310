// With the library of testing/fake_nvml.cc in the place of the driver's.
#include "node/gpu/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace skiff::node {
namespace {

TEST(Nvml, TellsWhatTheLibraryTells) {
  ::setenv("FAKE_NVML", "GPU-aa:0:24576:1024:75,GPU-bb:3:8192:0:0", 1);
  const auto nvml = Nvml::open(FAKE_NVML_LIBRARY);
  ASSERT_TRUE(nvml) << nvml.error().message;
  const auto gpus = (*nvml)->gpus();
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 2u);
  EXPECT_EQ((*gpus)[0].uuid, "GPU-aa");
  EXPECT_EQ((*gpus)[0].name, "Fake GPU 9000");
  EXPECT_EQ((*gpus)[0].memory_bytes, std::int64_t{24576} << 20);
  EXPECT_EQ((*gpus)[1].uuid, "GPU-bb");
  EXPECT_EQ((*gpus)[1].minor, 3);
  const auto loads = (*nvml)->loads();
  ASSERT_TRUE(loads) << loads.error().message;
  ASSERT_EQ(loads->size(), 2u);
  EXPECT_EQ((*loads)[0].busy_percent, 75);
  EXPECT_EQ((*loads)[0].memory_bytes, std::int64_t{1024} << 20);
  EXPECT_EQ((*loads)[1].busy_percent, 0);
}

TEST(Nvml, AMachineWithoutTheLibraryHasNone) {
  const auto nvml = Nvml::open("libno-such-driver.so.1");
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().code, Code::kNotFound);
}

TEST(Nvml, ALibraryWithoutItsDriverSaysWhy) {
  ::setenv("FAKE_NVML", "broken", 1);
  const auto nvml = Nvml::open(FAKE_NVML_LIBRARY);
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().code, Code::kInternal);
  EXPECT_NE(nvml.error().message.find("Driver Not Loaded"), std::string::npos);
}

TEST(Nvml, AnotherLibraryOfTheNameIsRefused) {
  const auto nvml = Nvml::open("libc.so.6");
  ASSERT_FALSE(nvml);
  EXPECT_NE(nvml.error().message.find("it has no nvmlInit_v2"), std::string::npos);
}

}  // namespace
}  // namespace skiff::node
