#include "env/posix/program.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace skiff::env::posix {
namespace {

using namespace std::chrono_literals;

TEST(Program, GivesItsOutputAndItsExitCode) {
  const auto done = run_program({.arguments = {"sh", "-c", "echo one; echo two; exit 3"}});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output, "one\ntwo\n");
  EXPECT_EQ(done->exit_code, 3);
}

TEST(Program, SeesOurEnvironmentAndWhatIsAdded) {
  setenv("SKIFF_TEST_KEPT", "kept", 1);
  setenv("SKIFF_TEST_OTHER", "old", 1);
  const auto done =
      run_program({.arguments = {"sh", "-c", "echo $SKIFF_TEST_KEPT $SKIFF_TEST_OTHER $MORE"},
                   .environment = {{"SKIFF_TEST_OTHER", "new"}, {"MORE", "more"}}});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "kept new more\n");
}

TEST(Program, ReadsNothingUnlessItMay) {
  const auto done = run_program({.arguments = {"cat"}, .timeout = 10s});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output, "");
}

TEST(Program, ThatASignalEndsTellsWhich) {
  const auto done = run_program({.arguments = {"sh", "-c", "kill -9 $$"}});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->exit_code, 137);
}

TEST(Program, ThatIsMissingSlowOrEndlessIsAnError) {
  EXPECT_EQ(run_program({.arguments = {"no-such-program-anywhere"}}).error().code, Code::kNotFound);
  const auto slow = run_program({.arguments = {"sleep", "60"}, .timeout = 50ms});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::kTimeout);
  const auto loud = run_program({.arguments = {"yes"}, .output_bytes = 10'000});
  ASSERT_FALSE(loud);
  EXPECT_EQ(loud.error().code, Code::kTooLarge);
}

}  // namespace
}  // namespace skiff::env::posix
