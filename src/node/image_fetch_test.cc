#include "node/image_fetch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "image/archive.h"
#include "image/test_image.h"
#include "node/container_setup.h"
#include "node/testing/parse.h"

namespace skiff::node {
namespace {

namespace it = image::testing;

class ImageFetch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "layers are unpacked by root only";
    images_ = std::move(*image::Images::open(folder_.at("images")));
  }
  void load(const std::vector<std::string>& layers) {
    const auto source =
        image::string_source(it::docker_archive(it::make_image(layers), {"img:latest"}));
    ASSERT_TRUE(image::load_archive(images_->store(), *source));
  }
  FetchWish wish(std::string policy) const {
    return {.image = "img",
            .reference = *image::parse_reference("img"),
            .policy = std::move(policy),
            .attempt = 3};
  }

  it::TemporaryFolder folder_;
  std::unique_ptr<image::Images> images_;
};

TEST_F(ImageFetch, ThePolicyDecidesWhetherTheStoreIsEnough) {
  EXPECT_FALSE(look_up_image(*images_, wish("IfNotPresent"))) << "a registry must be asked";
  EXPECT_EQ(look_up_image(*images_, wish("Never"))->image.error().reason, "ErrImageNeverPull");
  load({it::tar({it::file("a", "1")})});
  EXPECT_FALSE(look_up_image(*images_, wish("Always")));
  for (const char* policy : {"IfNotPresent", "Never"}) {
    const auto there = look_up_image(*images_, wish(policy));
    ASSERT_TRUE(there) << policy;
    ASSERT_TRUE(there->image) << policy;
    EXPECT_EQ(there->attempt, 3);
    EXPECT_EQ(there->notes.at(0).message, "Container image \"img\" already present on machine");
  }
}

TEST_F(ImageFetch, WhatTheDiskLostIsFetchedAgainWhereItMayBe) {
  load({it::tar({it::file("a", "1")})});
  const auto stored = images_->store().list()->at(0);
  std::filesystem::remove(images_->store().blob_path(stored.manifest));
  EXPECT_FALSE(look_up_image(*images_, wish("IfNotPresent")));
  EXPECT_EQ(look_up_image(*images_, wish("Never"))->image.error().reason, "ImageInspectError");
}

TEST_F(ImageFetch, ARegistryThatIsNotThereIsToldWithTheRemedy) {
  FetchWish away = wish("Always");
  away.image = "localhost:1/x";
  away.reference = *image::parse_reference(away.image);
  const FetchOutcome outcome = pull_image(*images_, away, {});
  ASSERT_FALSE(outcome.image);
  EXPECT_EQ(outcome.image.error().reason, "ErrImagePull");
  EXPECT_NE(outcome.image.error().message.find("skiff image map localhost:1/x --host"),
            std::string::npos);
  ASSERT_EQ(outcome.notes.size(), 2U);
  EXPECT_TRUE(outcome.notes[0].message.starts_with("Failed to pull image \"localhost:1/x\": "));
  EXPECT_EQ(outcome.notes[1].message, "Error: ErrImagePull");
}

TEST_F(ImageFetch, AnImageWithoutFilesCannotRun) {
  load({});
  const auto stored = images_->store().list()->at(0);
  const auto laid = lay_layers({.name = "main"}, *images_, "pod", stored);
  ASSERT_FALSE(laid);
  EXPECT_NE(laid.error().message.find("no files"), std::string::npos);
}

TEST(PullDelay, DoublesFromTenSecondsToFiveMinutes) {
  using std::chrono::seconds;
  EXPECT_EQ(pull_delay(1), Duration(seconds(10)));
  EXPECT_EQ(pull_delay(2), Duration(seconds(20)));
  EXPECT_EQ(pull_delay(5), Duration(seconds(160)));
  EXPECT_EQ(pull_delay(6), Duration(seconds(300)));
  EXPECT_EQ(pull_delay(1000), Duration(seconds(300)));
}

TEST(GoDuration, AsKubeletWritesIt) {
  using std::chrono::milliseconds;
  EXPECT_EQ(go_duration(milliseconds(0)), "0s");
  EXPECT_EQ(go_duration(milliseconds(340)), "340ms");
  EXPECT_EQ(go_duration(milliseconds(1000)), "1s");
  EXPECT_EQ(go_duration(milliseconds(1230)), "1.23s");
  EXPECT_EQ(go_duration(milliseconds(62500)), "1m2.5s");
  EXPECT_EQ(go_duration(milliseconds(3600000)), "1h0m0s");
}

TEST(ImageId, IsTheRepositoryWithTheRegistrysDigest) {
  EXPECT_EQ(image_id({"localhost:5000/a:v1", "sha256:1", "sha256:2"}), "localhost:5000/a@sha256:1");
  EXPECT_EQ(image_id({"r.io/a@sha256:9", "sha256:9", "sha256:2"}), "r.io/a@sha256:9");
}

// A container of a pod from an image with two users.
class ImageSetup : public ::testing::Test {
 protected:
  std::expected<node::Setup, Refusal> set_up(const std::string& container,
                                             const std::string& pod = "{}") {
    const json::value the_container = parse(container), the_pod = parse(pod);
    return set_up_container(
        {.pod = the_pod,
         .container = the_container,
         .image = image_,
         .environment = {
             .pod = the_pod,
             .container = the_container,
             .lookup = [](SourceKind, std::string_view) { return fail(Code::kNotFound, "none"); },
             .machine = {{"SSL_CERT_FILE", "/machine"}}}});
  }
  std::string variable(const node::Setup& setup, const std::string& name) {
    for (const std::string& entry : setup.spec.env) {
      if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    }
    return "(none)";
  }

  ResolvedImage image_{.host = false,
                       .args = {"serve"},
                       .working_dir = "/work",
                       .stored = image::StoredImage{.name = "i:1"},
                       .accounts = {.passwd = "ada:x:1000:1001::/home/ada:\n"},
                       .user = "ada"};
};

TEST_F(ImageSetup, TheImagesUserRunsIt) {
  const auto setup = set_up(R"({"name":"m"})");
  ASSERT_TRUE(setup) << setup.error().message;
  EXPECT_EQ(setup->spec.uid, 1000);
  EXPECT_EQ(setup->spec.gid, 1001);
  EXPECT_EQ(setup->spec.argv, std::vector<std::string>{"serve"});
  EXPECT_EQ(setup->spec.working_dir, "/work");
  EXPECT_EQ(variable(*setup, "HOME"), "/home/ada");
  EXPECT_EQ(variable(*setup, "SSL_CERT_FILE"), "(none)") << "a path of this machine, not of it";
  EXPECT_TRUE(setup->stored);
}

TEST_F(ImageSetup, ThePodMayNameAnother) {
  const auto number = set_up(R"({"name":"m","securityContext":{"runAsUser":5,"runAsGroup":6}})");
  ASSERT_TRUE(number);
  EXPECT_EQ(number->spec.uid, 5);
  EXPECT_EQ(number->spec.gid, 6);
  const auto known =
      set_up(R"({"name":"m"})", R"({"spec":{"securityContext":{"runAsUser":1000}}})");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->spec.gid, 1001) << "the group is in the image";
  image_.env = {{"HOME", "/of/the/image"}};
  EXPECT_EQ(variable(*set_up(R"({"name":"m"})"), "HOME"), "/of/the/image");
}

TEST_F(ImageSetup, AUserWhoIsNotThereIsRefused) {
  image_.user = "ghost";
  const auto setup = set_up(R"({"name":"m"})");
  ASSERT_FALSE(setup);
  EXPECT_EQ(setup.error().reason, "CreateContainerError");
}

TEST_F(ImageSetup, SomebodyMustNameAProgram) {
  image_.args.clear();
  const auto setup = set_up(R"({"name":"m","image":"i:1"})");
  ASSERT_FALSE(setup);
  EXPECT_NE(setup.error().message.find("no command specified"), std::string::npos);
}

}  // namespace
}  // namespace skiff::node
