// Images of pods: mapped, stored, pulled.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "image/archive.h"
#include "image/test_image.h"
#include "node/testing/agent_fixture.h"

namespace skiff::node {
namespace {

class ImageAgentTest : public AgentTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "layers are unpacked by root only";
    auto opened = image::Images::open(folder_ + "/images");
    ASSERT_TRUE(opened);
    images_ = std::move(*opened);
    options_.images_host = false;
    options_.images = images_.get();
  }
  void TearDown() override { agent_.reset(); }
  void load(const std::string& name) {
    namespace it = image::testing;
    const auto image = it::make_image({it::tar({it::file("etc/passwd", "u:x:7:8::/h:\n")})},
                                      {{"User", "u"}, {"Env", json::array{"WORD=x"}}});
    const auto source = image::string_source(it::docker_archive(image, {name}));
    ASSERT_TRUE(image::load_archive(images_->store(), *source));
  }
  std::vector<std::string> reasons() {
    std::vector<std::string> out;
    for (const Object& event : client_.list(kEvents, "", {})->items) {
      out.emplace_back(json::get_string(*event, {"reason"}));
    }
    return out;
  }

  std::unique_ptr<image::Images> images_;
};

TEST_F(ImageAgentTest, AnImageOfTheStoreIsRunAndHeldWhileThePodIsThere) {
  load("img:latest");
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const ContainerSpec spec = runtime_->started().at(0);
  EXPECT_EQ(spec.layers.size(), 1U);
  EXPECT_EQ(spec.uid, 7);
  EXPECT_EQ(spec.gid, 8);
  EXPECT_NE(std::ranges::find(spec.env, "WORD=x"), spec.env.end());
  EXPECT_NE(std::ranges::find(spec.env, "HOME=/h"), spec.env.end());
  const auto pod = client_.get(kPods, "default", "p");
  const std::string id(
      json::get_string(json::get_array(*pod, {"status", "containerStatuses"}).at(0), {"imageID"}));
  EXPECT_TRUE(id.starts_with("docker.io/library/img@sha256:")) << id;
  EXPECT_EQ(images_->store().owners(), std::vector<std::string>{"u1"});
  remove_pod("p", 0);
  EXPECT_TRUE(eventually([&] { return images_->store().owners().empty(); }));
}

TEST_F(ImageAgentTest, AnImageThatWasRemovedBetweenTwoTriesIsLookedForAgain) {
  load("img:latest");
  script("p", {FakeRuntime::Script{.refuses_start = "busy"}, FakeRuntime::Script{.forever = true}});
  start();
  create_pod("p", "u1", "", R"(,"imagePullPolicy":"Never")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "RunContainerError"; }));
  ASSERT_TRUE(images_->store().remove(*image::parse_reference("img")));
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImageNeverPull"; }));
}

TEST_F(ImageAgentTest, WithThePolicyNeverAnImageIsWaitedFor) {
  start();
  create_pod("p", "u1", "", R"(,"imagePullPolicy":"Never")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImageNeverPull"; }));
  EXPECT_EQ(waiting("p", "message"),
            "Container image \"img\" is not present with pull policy of Never");
  load("img:latest");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; })) << "the next look finds it";
}

TEST_F(ImageAgentTest, AMappingComesBeforeTheStoreAndAfterAFailedPull) {
  start();
  create_pod("p", "u1", "", R"(,"image":"localhost:1/none:1","imagePullPolicy":"Always")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImagePull"; }));
  EXPECT_NE(waiting("p", "message").find("skiff image map"), std::string::npos);
  const auto told = reasons();
  EXPECT_NE(std::ranges::find(told, "Pulling"), told.end());
  EXPECT_NE(std::ranges::find(told, "Failed"), told.end());
  create(kMappings, R"({"metadata":{"name":"m"},"spec":{"pattern":"localhost:1/*","host":true}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_TRUE(runtime_->started().at(0).layers.empty());
  EXPECT_TRUE(images_->store().owners().empty());
}

TEST_F(ImageAgentTest, ANameThatIsNoneIsToldAsSuch) {
  start();
  create_pod("p", "u1", "", R"(,"image":"No Name")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "InvalidImageName"; }));
  const auto told = reasons();
  EXPECT_NE(std::ranges::find(told, "InspectFailed"), told.end());
}

TEST_F(ImageAgentTest, WhatPodsOfAnEarlierLifeHeldIsLetGo) {
  load("img:latest");
  ASSERT_TRUE(images_->store().use("long-gone", images_->store().list()->at(0)));
  start();
  EXPECT_TRUE(eventually([&] { return images_->store().owners().empty(); }));
}

}  // namespace
}  // namespace skiff::node
