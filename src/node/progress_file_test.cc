#include "node/progress_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skiff::node {
namespace {

namespace fs = std::filesystem;

class ProgressFileTest : public ::testing::Test {
 protected:
  ProgressFileTest() {
    char pattern[] = "/tmp/skiff-progress-file-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  ~ProgressFileTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  std::string folder_;
};

TEST_F(ProgressFileTest, IsMountedAndNamed) {
  const auto spec = mount_progress({.name = "main"}, folder_);
  ASSERT_TRUE(spec);
  ASSERT_EQ(spec->mounts.size(), 1u);
  EXPECT_EQ(spec->mounts[0].target, "/var/run/skiff/progress");
  EXPECT_EQ(spec->env,
            std::vector<std::string>{"SKIFF_PROGRESS_FILE=/var/run/skiff/progress/main.jsonl"});
  EXPECT_EQ(progress_file(folder_, "main"), spec->mounts[0].source + "/main.jsonl");
}

TEST_F(ProgressFileTest, OfAnEarlierAttemptIsTakenAwayAndThatOfAnotherContainerIsNot) {
  ASSERT_TRUE(mount_progress({.name = "main"}, folder_));
  for (const char* name : {"main", "side"}) {
    std::ofstream(progress_file(folder_, name)) << "{\"step\": 9}\n";
  }
  ASSERT_TRUE(mount_progress({.name = "main", .attempt = 1}, folder_));
  EXPECT_FALSE(fs::exists(progress_file(folder_, "main")));
  EXPECT_TRUE(fs::exists(progress_file(folder_, "side")));
}

TEST_F(ProgressFileTest, ALinkInItsPlaceIsTakenAwayAndWhatItLeadsToIsNot) {
  ASSERT_TRUE(mount_progress({.name = "main"}, folder_));
  std::ofstream(folder_ + "/other") << "x";
  fs::create_symlink(folder_ + "/other", progress_file(folder_, "main"));
  ASSERT_TRUE(mount_progress({.name = "main", .attempt = 1}, folder_));
  EXPECT_FALSE(fs::is_symlink(progress_file(folder_, "main")));
  EXPECT_TRUE(fs::exists(folder_ + "/other"));
}

}  // namespace
}  // namespace skiff::node
