#include "node/progress/progress_desk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skiff::node {
namespace {

using namespace std::chrono_literals;

const Time kNow = *parse_time("2026-11-15T12:00:00Z");

class ProgressDeskTest : public ::testing::Test {
 protected:
  ProgressDeskTest() {
    char pattern[] = "/tmp/skiff-progress-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  ~ProgressDeskTest() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  void say(const std::string& pod, const std::string& line) {
    std::ofstream(folder_ + "/" + pod + ".log", std::ios::app)
        << "2026-11-15T12:00:00Z stdout F " << line << "\n";
  }
  ProgressTarget target(const std::string& pod, bool leads = true, bool ended = false) {
    return {.uid = pod,
            .container = "main",
            .log = folder_ + "/" + pod + ".log",
            .file = folder_ + "/" + pod + ".jsonl",
            .leads = leads,
            .ended = ended};
  }
  // The steps that are to be told: uid:step.
  std::string look(const std::vector<ProgressTarget>& targets, Duration elapsed,
                   std::size_t others = 0) {
    std::string out;
    for (const ProgressNews& news : desk_.look(targets, others, elapsed, kNow)) {
      const auto step = json::get_int(json::value(news.told), {"main", "step"});
      out += (out.empty() ? "" : " ") + news.uid + ":" + std::to_string(step.value_or(-1));
    }
    return out;
  }

  std::string folder_;
  ProgressDesk desk_;
};

TEST_F(ProgressDeskTest, NewsIsToldAtOnceThenSeldom) {
  EXPECT_EQ(look({target("a")}, 0s), "") << "there is no log";
  say("a", "step 1");
  EXPECT_EQ(look({target("a")}, 2s), "a:1");
  say("a", "step 2");
  EXPECT_EQ(look({target("a")}, 4s), "");
  EXPECT_EQ(look({target("a")}, 7s), "a:2");
  EXPECT_EQ(look({target("a")}, 60s), "") << "nothing is new";
}

TEST_F(ProgressDeskTest, ThoseWhoDoNotLeadTellMoreSeldomTheMoreTheyAre) {
  say("a", "step 1");
  EXPECT_EQ(look({target("a", false)}, 0s), "a:1");
  say("a", "step 2");
  EXPECT_EQ(look({target("a", false)}, 29s), "");
  EXPECT_EQ(look({target("a", false)}, 30s, 1000), "") << "a thousand have two a second";
  EXPECT_EQ(look({target("a", false)}, 500s, 1000), "a:2");
}

TEST_F(ProgressDeskTest, TheLastWordIsToldAtOnceAndThenForgotten) {
  say("a", "step 1");
  EXPECT_EQ(look({target("a")}, 0s), "a:1");
  say("a", "step 2");
  EXPECT_EQ(look({target("a", true, true)}, 1s), "a:2");
  EXPECT_EQ(desk_.size(), 0u);
}

TEST_F(ProgressDeskTest, APodThatIsGoneIsForgotten) {
  say("a", "step 1");
  look({target("a")}, 0s);
  EXPECT_EQ(desk_.size(), 1u);
  desk_.forget("a");
  desk_.forget("b");
  EXPECT_EQ(desk_.size(), 0u);
}

TEST_F(ProgressDeskTest, ANewAttemptBeginsAnew) {
  say("a", "step 9/10 loss=1");
  EXPECT_EQ(look({target("a")}, 0s), "a:9");
  ProgressTarget next = target("b");
  next.uid = "a";
  next.attempt = 1;
  EXPECT_EQ(look({next}, 10s), "") << "it has said nothing yet";
  say("b", "step 3");
  const auto news = desk_.look({next}, 0, 20s, kNow);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(json::get_int(json::value(news[0].told), {"main", "step"}), 3);
  EXPECT_EQ(json::find(json::value(news[0].told), {"main", "totalSteps"}), nullptr);
}

TEST_F(ProgressDeskTest, ATalkativeProgramIsReadFromItsNewestWords) {
  say("a", "step 1");
  look({target("a")}, 0s);
  for (int i = 0; i < 20'000; ++i) say("a", "step 2");
  say("a", "step 3");
  EXPECT_EQ(look({target("a")}, 10s), "a:3");
}

TEST_F(ProgressDeskTest, ALogThatWasSetAsideGoesOnInANewFile) {
  say("a", "step 1");
  look({target("a")}, 0s);
  std::filesystem::rename(folder_ + "/a.log", folder_ + "/a.log.1");
  say("a", "step 2");
  EXPECT_EQ(look({target("a")}, 10s), "a:2");
  std::filesystem::resize_file(folder_ + "/a.log", 0);
  EXPECT_EQ(look({target("a")}, 20s), "");
  say("a", "step 3");
  EXPECT_EQ(look({target("a")}, 30s), "a:3");
}

TEST_F(ProgressDeskTest, AProgramsFileIsReadAndNothingElseInItsPlace) {
  const std::string file = folder_ + "/a.jsonl";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(look({target("a")}, 0s), "") << "a pipe does not stop us";
  ::unlink(file.c_str());
  std::ofstream(folder_ + "/secret") << "{\"step\": 666}\n";
  ASSERT_EQ(::symlink((folder_ + "/secret").c_str(), file.c_str()), 0);
  EXPECT_EQ(look({target("a")}, 10s), "") << "a link is not followed";
  ::unlink(file.c_str());
  std::ofstream(file) << "{\"step\": 5}\n";
  EXPECT_EQ(look({target("a")}, 20s), "a:5");
}

}  // namespace
}  // namespace skiff::node
