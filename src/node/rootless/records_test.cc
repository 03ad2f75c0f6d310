#include "node/rootless/records.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

TEST(RootlessRecord, IsReadAsItWasWritten) {
  const RootlessRecord record{.boot = "b",
                              .holder = {.pid = 12, .started = "345"},
                              .network = {.pid = 13, .started = "346"},
                              .program = "pasta"};
  EXPECT_EQ(parse_record(to_text(record)), record);
}

TEST(RootlessRecord, ThatIsBrokenIsNone) {
  for (const char* text :
       {"", "{", "{}", R"({"boot":"b","holder":{"pid":12,"started":"1"}})",
        R"({"holder":{"pid":0,"started":"1"},"network":{"pid":3,"started":"1"}})",
        R"({"holder":{"pid":-1,"started":"1"},"network":{"pid":3,"started":"1"}})"}) {
    EXPECT_FALSE(parse_record(text)) << text;
  }
}

TEST(StartTime, IsTheTwentySecondWordWhateverTheProgramIsCalled) {
  const std::string rest = " S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 98765 111 222\n";
  EXPECT_EQ(parse_start_time("7 (skiff)" + rest), "98765");
  EXPECT_EQ(parse_start_time("7 (a) S 1 (b)" + rest), "98765");
  EXPECT_FALSE(parse_start_time("7 (skiff)" + std::string(" Z") + rest.substr(2))) << "it ended";
  EXPECT_FALSE(parse_start_time(""));
  EXPECT_FALSE(parse_start_time("7 (skiff) S 1 2"));
}

TEST(IdRanges, AreTheUsersByNameOrNumber) {
  const std::string text = "# granted\nann:100000:65536\n1001:200000:1000\nbob:300000:0\nbad:x:1\n";
  EXPECT_EQ(parse_id_range(text, "ann", 1000), (IdRange{100000, 65536}));
  EXPECT_EQ(parse_id_range(text, "cid", 1001), (IdRange{200000, 1000}));
  EXPECT_FALSE(parse_id_range(text, "bob", 1002)) << "none at all";
  EXPECT_FALSE(parse_id_range(text, "bad", 1003));
  EXPECT_FALSE(parse_id_range(text, "", 1004)) << "a user without a name";
}

TEST(NameServers, OnTheLoopbackAloneAreOutOfReach) {
  EXPECT_TRUE(only_loopback_servers("nameserver 127.0.0.53\noptions edns0\n"));
  EXPECT_TRUE(only_loopback_servers("  nameserver 127.0.0.1\nnameserver ::1\n"));
  EXPECT_FALSE(only_loopback_servers("nameserver 127.0.0.53\nnameserver 10.0.0.1\n"));
  EXPECT_FALSE(only_loopback_servers("")) << "there is nothing to ask at all";
  EXPECT_FALSE(only_loopback_servers("# nameserver 127.0.0.1\n"));
}

}  // namespace
}  // namespace skiff::node
