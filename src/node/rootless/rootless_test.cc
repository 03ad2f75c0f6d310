#include "node/rootless/rootless.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "node/rootless/records.h"
#include "node/shim/files.h"

namespace skiff::node {
namespace {

// A process that waits for its end.
struct Sleeper {
  pid_t pid = ::fork();

  Sleeper() {
    if (pid == 0) {
      while (true) ::pause();
    }
  }
  Sleeper(const Sleeper&) = delete;
  ~Sleeper() { end(); }

  void end() {
    if (!lives()) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  // A zombie lives no more, and neither does one that somebody has waited for.
  bool lives() const {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return stat && parse_start_time(*stat);
  }
  ProcessMark mark() const {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return {.pid = pid, .started = stat ? parse_start_time(*stat).value_or("") : ""};
  }
};

class RootlessEnd : public ::testing::Test {
 protected:
  RootlessEnd() {
    char pattern[] = "/tmp/skiff-rootless-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    record_ = {.boot = boot_id(),
               .holder = holder_.mark(),
               .network = network_.mark(),
               .program = "pasta"};
  }
  ~RootlessEnd() override { std::filesystem::remove_all(folder_); }

  void write() { ASSERT_TRUE(write_plain(path(), to_text(record_))); }
  std::string path() const { return folder_ + "/rootless.json"; }
  bool network_ends() const {
    for (int i = 0; i < 60'000 && network_.lives(); ++i) ::usleep(1000);
    return !network_.lives();
  }

  std::string folder_;
  Sleeper holder_, network_;
  RootlessRecord record_;
};

TEST_F(RootlessEnd, TheNetworkOfAHolderThatWasKilledIsEnded) {
  write();
  EXPECT_TRUE(rootless_lives(folder_));
  holder_.end();
  EXPECT_FALSE(rootless_lives(folder_));
  EXPECT_EQ(enter_held(folder_).error().code, Code::kNotFound);
  end_rootless_rest(folder_);
  EXPECT_TRUE(network_ends());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(RootlessEnd, WhileTheHolderLivesOnlyTheEndOfAllEndsIt) {
  write();
  end_rootless_rest(folder_);
  EXPECT_TRUE(rootless_lives(folder_));
  EXPECT_TRUE(network_.lives());
  end_rootless(folder_);
  EXPECT_TRUE(network_ends());
  EXPECT_FALSE(rootless_lives(folder_));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(RootlessEnd, TheEndOfAllAlsoFindsTheNetworkOfAHolderThatWasKilled) {
  write();
  holder_.end();
  end_rootless(folder_);
  EXPECT_TRUE(network_ends());
}

TEST_F(RootlessEnd, AStrangerWhoHasTheNumberIsLeftAlone) {
  record_.network.started += "0";
  write();
  holder_.end();
  end_rootless_rest(folder_);
  EXPECT_FALSE(std::filesystem::exists(path()));
  ::usleep(20'000);
  EXPECT_TRUE(network_.lives()) << "it started at another time";
}

TEST_F(RootlessEnd, ARecordOfAnEarlierRunOfTheMachineSaysNothing) {
  record_.boot = "another";
  write();
  holder_.end();
  end_rootless_rest(folder_);
  end_rootless(folder_);
  ::usleep(20'000);
  EXPECT_TRUE(network_.lives());
}

}  // namespace
}  // namespace skiff::node
