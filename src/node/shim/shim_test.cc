// The shim's parts that need no pod; process/ tests the whole.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/limits.h"
#include "node/log_files.h"
#include "node/shim/log_file.h"
#include "node/shim/log_writer.h"
#include "node/shim/mounts.h"
#include "node/shim/program.h"
#include "node/shim/user.h"
#include "node/shim/wire.h"

namespace skiff::node {
namespace {

TEST(LogLines, AreSplitAtNewlinesAndAtTheLimit) {
  const std::string full(limits::kLogLineBytes, 'x');
  struct Case {
    const char* sentence;
    std::vector<std::string> pieces;
    std::string out;
    std::string rest;
  };
  const Case cases[] = {
      {"lines", {"a\n\nb\n"}, "T stdout F a\nT stdout F \nT stdout F b\n", ""},
      {"a line in two reads is one entry", {"a", "b\n"}, "T stdout F ab\n", ""},
      {"an unfinished line is kept", {"a\nb"}, "T stdout F a\n", "b"},
      {"a line of exactly the limit is whole", {full + "\n"}, "T stdout F " + full + "\n", ""},
      {"also when the newline comes later", {full, "\n"}, "T stdout F " + full + "\n", ""},
      {"one byte more makes a piece",
       {full + "y\n"},
       "T stdout P " + full + "\nT stdout F y\n",
       ""},
  };
  for (const Case& c : cases) {
    std::string rest;
    std::string out;
    for (const std::string& piece : c.pieces) append_log_lines("T", "stdout", piece, rest, out);
    EXPECT_EQ(out, c.out) << c.sentence;
    EXPECT_EQ(rest, c.rest) << c.sentence;
  }
}

TEST(LogLines, ABarIsWrittenAsItGrows) {
  struct Case {
    const char* sentence;
    std::string rest, out, left;
  };
  const Case cases[] = {
      {"what is drawn over is a piece", "\r10%\r20%", "T stderr P \r10%\r\n", "20%"},
      {"a bar that stands still is not", "10%", "", "10%"},
      {"half of a line's end stays", "text\r", "", "text\r"},
      {"also behind a bar", "a\rb\r", "T stderr P a\r\n", "b\r"},
      {"nothing is nothing", "", "", ""},
      {"nor is a lone return", "\r", "", "\r"},
  };
  for (const Case& c : cases) {
    std::string rest = c.rest, out;
    append_bars("T", "stderr", rest, out);
    EXPECT_EQ(out, c.out) << c.sentence;
    EXPECT_EQ(rest, c.left) << c.sentence;
  }
}

TEST(LogLines, StampsHaveNineDecimals) {
  const std::string stamp = log_stamp();
  EXPECT_EQ(stamp.size(), std::string("2026-11-15T20:02:55.123456789Z").size());
  EXPECT_TRUE(parse_time(stamp)) << stamp;
}

TEST(Wire, WhatIsWrittenIsRead) {
  const ContainerSpec spec{.name = "main",
                           .attempt = 3,
                           .argv = {"a", "b c"},
                           .env = {"X=\n\"1\""},
                           .mounts = {{"/s", "/t", true}},
                           .uid = 0,
                           .memory_limit_bytes = 1LL << 40};
  const auto read = container_from_json(to_json(spec));
  ASSERT_TRUE(read);
  EXPECT_EQ(json::serialize(to_json(*read)), json::serialize(to_json(spec)));
  EXPECT_EQ(read->uid, 0);
  EXPECT_FALSE(read->gid);
  for (const char* bad : {"", "../x", "a/b", ".x"}) {
    EXPECT_FALSE(container_from_json(to_json(ContainerSpec{.name = bad}))) << bad;
  }
}

TEST(Wire, OnlyTheNewestAttemptIsShownAndHalfWrittenFilesAreNot) {
  const std::string folder = ::testing::TempDir() + "skiff-records-" + std::to_string(::getpid());
  ASSERT_TRUE(make_folders(state_folder(folder)));
  for (const int attempt : {2, 10, 9}) {
    ASSERT_TRUE(write_record(folder, {.name = "main", .attempt = attempt, .pid = attempt}));
  }
  ASSERT_TRUE(write_plain(state_folder(folder) + "/.main.11.json.tmp", "{"));
  ASSERT_TRUE(write_plain(state_folder(folder) + "/main.12.json", "{\"na"));
  const auto records = read_records(folder);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].attempt, 10);
  remove_tree(folder);
}

TEST(Format, WhatHasNoNumberIsOfBeforeAndUnderstood) {
  const auto old = sandbox_from_json(*json::parse(R"({"podUid":"u","ip":"10.0.0.2","boot":"b"})"));
  ASSERT_TRUE(old);
  EXPECT_EQ(old->format, 0);
  EXPECT_EQ(old->ip, "10.0.0.2");
  EXPECT_FALSE(old->stopped);
  EXPECT_TRUE(known_format(*old));
  const auto now = sandbox_from_json(to_json(SandboxFile{.spec = {.pod_uid = "u"}}));
  EXPECT_EQ(now->format, kFormat);
  const auto record = record_from_json(*json::parse(R"({"name":"main","state":"exited"})"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->exit_code, 0);
}

TEST(Format, OfANewerSkiffIsNamedAndLeftAlone) {
  SandboxFile file{.format = kFormat + 1, .spec = {.pod_uid = "u", .pod_name = "web"}};
  const auto known = known_format(file);
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code, Code::kServiceUnavailable);
  EXPECT_TRUE(known.error().message.starts_with("pod web was started by a newer Skiff"));
}

TEST(Format, AnOldShimIsNotAskedForWhatItWouldPassOver) {
  struct Case {
    const char* sentence;
    ContainerSpec spec;
    bool old_can;
  };
  const Case cases[] = {
      {"a plain command", {.name = "m", .argv = {"true"}, .memory_limit_bytes = 1}, true},
      {"a volume", {.name = "m", .mounts = {{"/a", "/b"}}}, true},
      {"an image would become the machine's files", {.name = "m", .layers = {"/l"}}, false},
      {"a user would become root", {.name = "m", .uid = 1000}, false},
      {"rights that were taken would be there", {.name = "m", .capabilities = 0}, false},
      {"a root to read only", {.name = "m", .read_only_root = true}, false},
      {"no new privileges", {.name = "m", .no_new_privileges = true}, false},
      {"a volume in memory", {.name = "m", .mounts = {{.memory_bytes = 1}}}, false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(can_run(0, c.spec).has_value(), c.old_can) << c.sentence;
    EXPECT_TRUE(can_run(kFormat, c.spec)) << c.sentence;
  }
}

TEST(Format, AnOldShimThatKnowsNoSuchRequestSaysSoInWords) {
  const auto old = answered_error(*json::parse(R"({"error":"unknown op \"exec\"","code":0})"));
  ASSERT_TRUE(old);
  EXPECT_EQ(old->message,
            "the pod was started by an older Skiff and cannot do this (unknown op \"exec\"); "
            "delete the pod to have it made anew");
  EXPECT_EQ(answered_error(*json::parse(R"({"error":"gone","code":3})"))->code, Code::kNotFound);
  EXPECT_EQ(answered_error(*json::parse(R"({"error":"odd"})"))->code, Code::kInternal);
  EXPECT_FALSE(answered_error(*json::parse("{}")));
}

TEST(Files, RoomThatWasKeptIsWrittenOverAndGivenBack) {
  const std::string folder = ::testing::TempDir() + "skiff-room-" + std::to_string(::getpid());
  ASSERT_TRUE(make_folders(folder));
  keep_room(folder, "file", 8192);
  EXPECT_EQ(std::filesystem::file_size(folder + "/.file.tmp"), 8192U);
  const auto inode = [](const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  };
  const auto kept = inode(folder + "/.file.tmp");
  ASSERT_TRUE(write_atomically(folder, "file", "text"));
  EXPECT_EQ(*read_file(folder + "/file"), "text") << "and nothing of the room behind it";
  EXPECT_EQ(inode(folder + "/file"), kept) << "no other room was taken";
  EXPECT_FALSE(std::filesystem::exists(folder + "/.file.tmp"));
  remove_tree(folder);
}

TEST(Mounts, TheTableIsRead) {
  const auto mounts = parse_mounts(
      "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
      "30 22 8:2 / /my\\040data rw,relatime - xfs /dev/sdb rw\n"
      "broken line\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[1].path, "/my data");
  EXPECT_EQ(mounts[1].type, "xfs");
}

TEST(Mounts, ALinkCannotLeadOutOfTheRoot) {
  const std::string root = ::testing::TempDir() + "skiff-root-" + std::to_string(::getpid());
  ASSERT_TRUE(make_folders(root));
  std::filesystem::create_symlink("/etc", root + "/out");
  std::filesystem::create_symlink("../../../../etc", root + "/up");
  const Fd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const char* path : {"/out/passwd", "/up/passwd"}) {
    EXPECT_FALSE(open_in_root(fd.get(), path, Missing::kIsError)) << path;
  }
  EXPECT_FALSE(open_in_root(fd.get(), "/a/../b", Missing::kMakeFolder));
  EXPECT_TRUE(open_in_root(fd.get(), "/x/y/z", Missing::kMakeFile));
  EXPECT_TRUE(std::filesystem::is_regular_file(root + "/x/y/z"));
  remove_tree(root);
}

TEST(Program, IsLookedUpInThePathOfTheContainer) {
  EXPECT_EQ(*find_program("sh", {"PATH=/nowhere:/bin"}), "/bin/sh");
  EXPECT_EQ(*find_program("/bin/sh", {}), "/bin/sh");
  EXPECT_TRUE(find_program("sh", {})) << "without PATH the usual folders";
  EXPECT_FALSE(find_program("sh", {"PATH=/nowhere"}));
  EXPECT_FALSE(find_program("passwd", {"PATH=/etc"})) << "a file that cannot be run";
}

TEST(LogTail, IsTheTextOfTheLastLinesWithoutWhatTheLogPutsBefore) {
  EXPECT_EQ(log_tail("cut off\n"
                     "2026-01-01T00:00:00.1Z stdout F one\n"
                     "2026-01-01T00:00:00.2Z stderr P tw\n"
                     "2026-01-01T00:00:00.3Z stderr F o\n"
                     "2026-01-01T00:00:00.4Z stdout F \n"),
            "one\ntwo\n\n");
  EXPECT_EQ(log_tail(""), "");
}

TEST(LogTail, KeepsEightyLinesAndTwoThousandBytes) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "T stdout F " + std::to_string(i) + "\n";
  EXPECT_TRUE(log_tail(lines).starts_with("20\n21\n"));
  lines += "T stdout F " + std::string(5000, 'x') + "\n";
  EXPECT_EQ(log_tail(lines), std::string(2047, 'x') + "\n");
}

TEST(UserMap, SaysWhoIsRootOutside) {
  const UserMap machine = parse_user_map("         0          0 4294967295\n");
  EXPECT_TRUE(machine.whole);
  EXPECT_FALSE(machine.single);
  const UserMap single = parse_user_map("         0       1000          1\n");
  EXPECT_FALSE(single.whole);
  EXPECT_TRUE(single.single);
  EXPECT_EQ(single.outside, 1000);
  const UserMap many = parse_user_map("   0   1000   1\n   1   100000   65536\n");
  EXPECT_FALSE(many.whole);
  EXPECT_FALSE(many.single);
  EXPECT_EQ(many.outside, 1000);
  EXPECT_TRUE(parse_user_map("").whole) << "a kernel without user namespaces";
  EXPECT_FALSE(parse_user_map("0 0 65536\n").whole) << "root's own namespace, but not all users";
}

TEST(Account, IsReadFromTheFilesOfTheContainer) {
  constexpr std::string_view kPasswd =
      "root:x:0:0:root:/root:/bin/sh\n# a remark\nbroken:x\njovyan:x:1000:100::/home/jovyan:\n";
  constexpr std::string_view kGroup =
      "root:x:0:\nusers:x:100:\nwheel:x:10:root,jovyan\ndocker:x:999:jovyan\nodd:x:many:jovyan\n";
  const Account known = find_account(1000, kPasswd, kGroup);
  EXPECT_EQ(known.gid, 100);
  EXPECT_EQ(known.groups, (std::vector<int>{10, 999}));
  const Account unknown = find_account(77, kPasswd, kGroup);
  EXPECT_EQ(unknown.gid, 0);
  EXPECT_TRUE(unknown.groups.empty());
  EXPECT_EQ(find_account(0, "", "").gid, 0);
}

TEST(Account, GroupsAreTheFirstThoseGivenAndTheUsersOwnEachOnce) {
  const Account account{.gid = 100, .groups = {10, 999}};
  EXPECT_EQ(all_groups({}, account), (std::vector<int>{100, 10, 999}));
  EXPECT_EQ(all_groups({.gid = 5, .groups = {999, 7}}, account), (std::vector<int>{5, 999, 7, 10}));
  EXPECT_EQ(all_groups({.groups = {7}, .own_groups = false}, account), (std::vector<int>{100, 7}));
}

TEST(Wire, CarriesTheRightsOfAContainer) {
  const ContainerSpec spec{.name = "main",
                           .groups = {5, 6},
                           .own_groups = false,
                           .capabilities = kAllCapabilities,
                           .privileged = true,
                           .no_new_privileges = true,
                           .read_only_root = true,
                           .oom_score_adj = -997,
                           .gpus = std::vector<int>{3, 0}};
  const auto back = container_from_json(*json::parse(json::serialize(to_json(spec))));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->groups, spec.groups);
  EXPECT_FALSE(back->own_groups);
  EXPECT_EQ(back->capabilities, kAllCapabilities);
  EXPECT_TRUE(back->privileged && back->no_new_privileges && back->read_only_root);
  EXPECT_EQ(back->oom_score_adj, -997);
  EXPECT_EQ(back->gpus, (std::vector<int>{3, 0}));
  const auto old = container_from_json(*json::parse(R"({"name":"main"})"));
  EXPECT_EQ(old->capabilities, kDefaultCapabilities) << "a shim of before knows nothing of them";
  EXPECT_FALSE(old->gpus) << "nobody counted them";
  const ContainerSpec none{.name = "main", .gpus = std::vector<int>{}};
  EXPECT_EQ(container_from_json(to_json(none))->gpus, std::vector<int>{}) << "it asked for none";
}

TEST(LogFile, IsSetAsideWhenFullAndOnlyTheNewestAreKept) {
  const std::string folder = ::testing::TempDir() + "skiff-logfile-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/0.log.old") << "not ours";
  const std::string path = folder + "/0.log";
  auto log = LogFile::open(path, 10);
  ASSERT_TRUE(log);
  const auto write = [&](const std::string& text) {
    EXPECT_TRUE(write_all(log->fd(), text));
    log->rotate_where_full();
  };
  write("123456789");
  EXPECT_TRUE(full_logs(path).empty()) << "it is not full yet";
  for (int i = 1; i <= 7; ++i) write("entry number " + std::to_string(i));
  write("rest");
  const auto full = full_logs(path);
  ASSERT_EQ(full.size(), 4U) << "five with the one that is written";
  EXPECT_EQ(full.front().number, 4);
  EXPECT_EQ(*read_file(full.front().path), "entry number 4");
  EXPECT_EQ(*read_file(full.back().path), "entry number 7");
  EXPECT_EQ(*read_file(path), "rest");
  log = LogFile::open(path, 10);
  write("123456");
  EXPECT_EQ(full_logs(path).back().number, 8) << "the numbers go on";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skiff::node
