#include "node/streams/logs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>

#include "node/log_files.h"

namespace skiff::node {
namespace {

constexpr const char* kEntries =
    "2026-11-15T20:00:01.000000001Z stdout F one\n"
    "2026-11-15T20:00:02.500000000Z stderr F two\n"
    "2026-11-15T20:00:03.000000000Z stdout P thr\n"
    "2026-11-15T20:00:03.000000009Z stdout F ee\n"
    "2026-11-15T20:00:04.000000000Z stdout F \n"
    "2026-11-15T20:00:05.000000000Z stdout P end\n";

class Logs : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "skiff-log-" + std::to_string(::getpid());
    std::remove(path_.c_str());
  }
  void TearDown() override {
    std::remove(path_.c_str());
    for (const FullLog& log : full_logs(path_)) std::remove(log.path.c_str());
  }

  // As the shim does with a full file.
  void set_aside(int number) {
    ASSERT_EQ(std::rename(path_.c_str(), fmt::format("{}.{}", path_, number).c_str()), 0);
  }

  void write(const std::string& text) { std::ofstream(path_, std::ios::app) << text << std::flush; }

  // A connection: pulls, and sleeps until it is woken.
  struct Connection {
    std::mutex mutex;
    std::condition_variable woken;
    int wakes = 0;
    std::string body;

    bool pull(http::Stream& stream) {
      return stream.pull(body, [this] {
        const std::lock_guard lock(mutex);
        ++wakes;
        woken.notify_all();
      });
    }
    void wait(int count) {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(woken.wait_for(lock, std::chrono::seconds(20), [&] { return wakes >= count; }));
    }
  };

  std::string read_all(LogRequest request) {
    request.path = path_;
    const auto stream = reader_.open(std::move(request));
    std::string all;
    std::string piece;
    while (stream->pull(piece, [] { ADD_FAILURE() << "nothing to wait for"; })) {
      EXPECT_FALSE(piece.empty());
      all += piece;
      piece.clear();
    }
    return all + piece;
  }

  std::string path_;
  LogReader reader_;
};

TEST_F(Logs, OptionsSelectWhatIsShown) {
  write(kEntries);
  struct Case {
    const char* sentence;
    LogRequest request;
    const char* expected;
  };
  const Case cases[] = {
      {"pieces are joined and an unfinished line has no newline", {}, "one\ntwo\nthree\n\nend"},
      {"the tail counts lines, not pieces", {.tail_lines = 3}, "three\n\nend"},
      {"a tail of nothing is nothing", {.tail_lines = 0}, ""},
      {"a tail longer than the file is the file", {.tail_lines = 99}, "one\ntwo\nthree\n\nend"},
      {"since is a time to the microsecond",
       {.since = parse_time("2026-11-15T20:00:02.5Z")},
       "two\nthree\n\nend"},
      {"a stamp stands once before each line",
       {.tail_lines = 3, .timestamps = true},
       "2026-11-15T20:00:03.000000000Z three\n2026-11-15T20:00:04.000000000Z \n"
       "2026-11-15T20:00:05.000000000Z end"},
      {"the limit cuts inside a line", {.limit_bytes = 6}, "one\ntw"},
      {"a limit of zero is an empty body", {.limit_bytes = 0}, ""},
  };
  for (const Case& c : cases) EXPECT_EQ(read_all(c.request), c.expected) << c.sentence;
}

TEST_F(Logs, AMissingFileIsEmpty) { EXPECT_EQ(read_all({}), ""); }

TEST_F(Logs, TheTailOfALargeFileIsFoundAcrossBlocks) {
  std::string expected;
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    const std::string line = "line " + std::to_string(i) + std::string(i % 97, 'x') + "\n";
    text += "2026-11-15T20:00:01.000000001Z stdout F " + line;
    if (i >= 20'000 - 9'000) expected += line;
  }
  write(text);
  EXPECT_EQ(read_all({.tail_lines = 9'000}), expected);
}

TEST_F(Logs, AnEntryThatIsStillBeingWrittenWaits) {
  write("2026-11-15T20:00:01.000000001Z stdout F one\n2026-11-15T20:00:01.0");
  EXPECT_EQ(read_all({}), "one\n");
}

TEST_F(Logs, AFollowerIsWokenForNewLinesAndEndsWithTheContainer) {
  std::atomic<bool> ended = false;
  const auto stream =
      reader_.open({.path = path_, .follow = true, .ended = [&ended] { return ended.load(); }});
  Connection c;
  ASSERT_TRUE(c.pull(*stream)) << "the file is not there yet";
  EXPECT_TRUE(c.body.empty());
  write("2026-11-15T20:00:01.000000001Z stdout F one\n");
  c.wait(1);
  ASSERT_TRUE(c.pull(*stream));
  EXPECT_EQ(c.body, "one\n");
  c.body.clear();
  ASSERT_TRUE(c.pull(*stream));
  EXPECT_TRUE(c.body.empty());
  write("2026-11-15T20:00:02.000000001Z stdout F last\n");
  ended = true;
  c.wait(2);
  // The last lines come before the end, however the two are ordered.
  bool more = c.pull(*stream);
  EXPECT_EQ(c.body, "last\n");
  while (more) more = c.pull(*stream);
  EXPECT_EQ(c.body, "last\n");
}

TEST_F(Logs, AFollowerThatGoesAwayIsNotWoken) {
  write(kEntries);
  auto stream = reader_.open({.path = path_, .tail_lines = 0, .follow = true});
  Connection c;
  ASSERT_TRUE(c.pull(*stream));
  stream.reset();
  write("2026-11-15T20:00:02.000000001Z stdout F more\n");
  // Another follower hears of the same change; by then the first would have been woken.
  Connection other;
  const auto second = reader_.open({.path = path_, .follow = true});
  while (other.body.find("more") == std::string::npos) ASSERT_TRUE(other.pull(*second));
  other.body.clear();
  ASSERT_TRUE(other.pull(*second));
  write("2026-11-15T20:00:02.000000001Z stdout F again\n");
  other.wait(1);
  EXPECT_EQ(c.wakes, 0);
}

TEST_F(Logs, WhenTheReaderGoesFollowersEnd) {
  auto reader = std::make_unique<LogReader>();
  const auto stream = reader->open({.path = path_, .follow = true});
  Connection c;
  ASSERT_TRUE(c.pull(*stream));
  reader.reset();
  c.wait(1);
  EXPECT_FALSE(c.pull(*stream));
}

std::string entry(int number, const std::string& text) {
  return fmt::format("2026-11-15T20:00:{:02}.000000000Z stdout F {}\n", number, text);
}

TEST_F(Logs, FilesThatWereSetAsideAreReadAsOneLog) {
  write(entry(1, "one") + "2026-11-15T20:00:02.000000000Z stdout P tw\n");
  set_aside(9);
  write("2026-11-15T20:00:02.000000000Z stdout F o\n" + entry(3, "three"));
  set_aside(10);
  write(entry(4, "four"));
  EXPECT_EQ(read_all({}), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(read_all({.tail_lines = 0}), "");
  EXPECT_EQ(read_all({.tail_lines = 1}), "four\n");
  EXPECT_EQ(read_all({.tail_lines = 2}), "three\nfour\n");
  EXPECT_EQ(read_all({.tail_lines = 3}), "two\nthree\nfour\n");
  EXPECT_EQ(read_all({.tail_lines = 99}), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(read_all({.since = parse_time("2026-11-15T20:00:03Z")}), "three\nfour\n");
  EXPECT_EQ(read_all({.limit_bytes = 9}), "one\ntwo\nt");
}

TEST_F(Logs, TheLastLinesAreFoundWhereTheNewestFileIsStillEmpty) {
  write(entry(1, "one") + entry(2, "two") + "2026-11-15T20:00:03.000000000Z stdout P thr\n");
  set_aside(1);
  write("");
  EXPECT_EQ(read_all({.tail_lines = 2}), "two\nthr");
}

TEST_F(Logs, AFollowerMissesNothingHoweverOftenTheFileIsSetAside) {
  write(entry(1, "begin"));
  std::atomic_bool over = false;
  const auto stream =
      reader_.open({.path = path_, .follow = true, .ended = [&] { return over.load(); }});
  Connection connection;
  ASSERT_TRUE(connection.pull(*stream));
  EXPECT_EQ(connection.body, "begin\n");
  std::string expected = "begin\n";
  int wakes = 0;
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(connection.pull(*stream));  // nothing there: it waits
    // Twice before the follower looks again: it must find the one between.
    for (const char* part : {"a", "b", "c"}) {
      const std::string text = fmt::format("{}{}", part, round);
      write(entry(round, text));
      expected += text + "\n";
      if (part[0] != 'c') set_aside(2 * round + (part[0] == 'b'));
    }
    connection.wait(++wakes);
    while (connection.body.size() < expected.size()) {
      const std::size_t before = connection.body.size();
      ASSERT_TRUE(connection.pull(*stream));
      if (connection.body.size() == before) connection.wait(++wakes);
    }
    EXPECT_EQ(connection.body, expected);
  }
  over = true;
  EXPECT_FALSE(connection.pull(*stream));
}

TEST_F(Logs, AFollowerGoesOnWhereItsFileIsNoLongerKept) {
  write(entry(1, "read"));
  const auto stream = reader_.open({.path = path_, .follow = true});
  Connection connection;
  ASSERT_TRUE(connection.pull(*stream));
  set_aside(1);
  write(entry(2, "lost"));
  set_aside(2);
  write(entry(3, "kept"));
  set_aside(3);
  write(entry(4, "new"));
  std::remove((path_ + ".1").c_str());
  std::remove((path_ + ".2").c_str());
  while (connection.body.size() < 14) ASSERT_TRUE(connection.pull(*stream));
  EXPECT_EQ(connection.body, "read\nkept\nnew\n");
}

}  // namespace
}  // namespace skiff::node
