#include "image/tar.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "image/test_image.h"

namespace skiff::image {
namespace {

using testing::file;
using testing::folder;
using testing::link;
using testing::tar;

struct Read {
  std::vector<TarEntry> entries = {};
  std::vector<std::string> contents = {};
  std::string error = {};
};

// A source that gives a few bytes at a time: nothing may depend on how they arrive.
class Trickle : public Source {
 public:
  explicit Trickle(std::string text) : text_(std::move(text)) {}
  Result<std::size_t> read(char* out, std::size_t size) override {
    const std::size_t n = std::min({size, std::size_t{7}, text_.size() - at_});
    text_.copy(out, n, at_);
    at_ += n;
    return n;
  }

 private:
  const std::string text_;
  std::size_t at_ = 0;
};

Read read_all(const std::string& archive) {
  Trickle source(archive);
  TarReader reader(source);
  Read out;
  while (true) {
    const auto entry = reader.next();
    if (!entry) out.error = entry.error().message;
    if (!entry || !*entry) return out;
    out.entries.push_back(**entry);
    std::string text;
    char piece[13];
    while (true) {
      const auto n = reader.read(piece, sizeof piece);
      if (!n) {
        out.error = n.error().message;
        return out;
      }
      if (*n == 0) break;
      text.append(piece, *n);
    }
    out.contents.push_back(text);
  }
}

// A header as other programs write them.
std::string raw(char flag, std::string_view name, std::string_view contents,
                std::string_view magic = std::string_view("ustar  \0", 8)) {
  std::string block(512, '\0');
  name.substr(0, 100).copy(block.data(), 100);
  fmt::format("{:07o}", 0644).copy(block.data() + 100, 8);
  fmt::format("{:011o}", contents.size()).copy(block.data() + 124, 12);
  block[156] = flag;
  magic.copy(block.data() + 257, 8);
  std::string(8, ' ').copy(block.data() + 148, 8);
  unsigned sum = 0;
  for (const unsigned char c : block) sum += c;
  fmt::format("{:06o}", sum).copy(block.data() + 148, 6);
  block[154] = '\0';
  block += contents;
  block.append((512 - contents.size() % 512) % 512, '\0');
  return block;
}
const std::string kEnd(1024, '\0');

TEST(Tar, WhatIsWrittenIsReadBack) {
  const std::string deep = std::string(150, 'd') + "/" + std::string(150, 'e');
  const Read read = read_all(tar({
      folder("a/"),
      file("a/empty", ""),
      file("a/block", std::string(512, 'x')),
      file("a/odd", std::string(513, 'y'), 04755),
      link("a/link", "../elsewhere"),
      link("a/hard", "a/odd", TarType::kHardLink),
      file(deep, "far"),
      link("b", deep),
      {.entry = {.path = "c",
                 .uid = 1000,
                 .gid = 1001,
                 .mtime = 1234567890,
                 .xattrs = {{"user.k", "v"}}}},
  }));
  EXPECT_EQ(read.error, "");
  ASSERT_EQ(read.entries.size(), 9U);
  EXPECT_EQ(read.entries[0].type, TarType::kFolder);
  EXPECT_EQ(read.contents[1], "");
  EXPECT_EQ(read.contents[2], std::string(512, 'x'));
  EXPECT_EQ(read.contents[3], std::string(513, 'y'));
  EXPECT_EQ(read.entries[3].mode, 04755U);
  EXPECT_EQ(read.entries[4].type, TarType::kSymLink);
  EXPECT_EQ(read.entries[4].link, "../elsewhere");
  EXPECT_EQ(read.entries[5].type, TarType::kHardLink);
  EXPECT_EQ(read.entries[6].path, deep);
  EXPECT_EQ(read.contents[6], "far");
  EXPECT_EQ(read.entries[7].link, deep);
  EXPECT_EQ(read.entries[8].uid, 1000U);
  EXPECT_EQ(read.entries[8].gid, 1001U);
  EXPECT_EQ(read.entries[8].mtime, 1234567890);
  EXPECT_EQ(read.entries[8].xattrs.at("user.k"), "v");
  EXPECT_TRUE(read.entries[0].xattrs.empty()) << "records are about one entry only";
}

TEST(Tar, ReadsGnusLongNames) {
  const std::string name(250, 'n');
  const Read read = read_all(raw('L', "././@LongLink", name + std::string(1, '\0')) +
                             raw('0', name.substr(0, 100), "text") + raw('0', "next", "") + kEnd);
  ASSERT_EQ(read.entries.size(), 2U) << read.error;
  EXPECT_EQ(read.entries[0].path, name);
  EXPECT_EQ(read.contents[0], "text");
  EXPECT_EQ(read.entries[1].path, "next");
}

TEST(Tar, ReadsThePrefixOfUstarOnly) {
  const auto with_prefix = [](std::string_view magic) {
    std::string block = raw('0', "name", "", magic);
    std::string_view("over").copy(block.data() + 345, 4);
    std::string(8, ' ').copy(block.data() + 148, 8);
    unsigned sum = 0;
    for (const unsigned char c : block) sum += c;
    fmt::format("{:06o}", sum).copy(block.data() + 148, 6);
    return read_all(block + kEnd).entries.at(0).path;
  };
  EXPECT_EQ(with_prefix(std::string_view("ustar\00000", 8)), "over/name");
  EXPECT_EQ(with_prefix(std::string_view("ustar  \0", 8)), "name") << "GNU keeps times there";
}

TEST(Tar, PaxRecordsMayHoldAnything) {
  const Read read =
      read_all(raw('x', "pax", "17 path=new\nname\n13 uid=70000\n20 mtime=12.3456789\n") +
               raw('g', "global", "13 uid=99999\n") + raw('0', "old", "") + kEnd);
  ASSERT_EQ(read.entries.size(), 1U) << read.error;
  EXPECT_EQ(read.entries[0].path, "new\nname");
  EXPECT_EQ(read.entries[0].uid, 70000U);
  EXPECT_EQ(read.entries[0].mtime, 12);
}

TEST(Tar, ASecondPaxHeaderTakesThePlaceOfTheFirst) {
  const Read read = read_all(raw('x', "pax", "13 uid=70000\n") + raw('x', "pax", "12 gid=7000\n") +
                             raw('0', "file", "") + kEnd);
  ASSERT_EQ(read.entries.size(), 1U) << read.error;
  EXPECT_NE(read.entries[0].uid, 70000U);
  EXPECT_EQ(read.entries[0].gid, 7000U);
}

TEST(Tar, OldArchivesMarkFoldersByTheirSlash) {
  const Read read = read_all(raw('\0', "dir/", "", "") + kEnd);
  ASSERT_EQ(read.entries.size(), 1U);
  EXPECT_EQ(read.entries[0].type, TarType::kFolder);
}

TEST(Tar, BrokenArchivesAreErrors) {
  std::string wrong_sum = tar({file("a", "text")});
  wrong_sum[0] = 'b';
  const std::string whole = tar({file("a", std::string(2000, 'x'))});
  for (const std::string& archive :
       {wrong_sum, whole.substr(0, 100), whole.substr(0, 600), std::string(512, 'x'),
        raw('S', "sparse", "") + kEnd, raw('x', "pax", "99 path=a\n") + kEnd,
        raw('x', "pax", "no length") + kEnd, raw('x', "pax", "5 a\nb") + kEnd}) {
    EXPECT_FALSE(read_all(archive).error.empty()) << archive.substr(0, 20);
  }
  EXPECT_TRUE(read_all("").error.empty()) << "nothing at all is an empty archive";
  EXPECT_TRUE(read_all(kEnd).entries.empty());
}

TEST(Tar, AHeaderThatClaimsToBeHugeIsRefusedBeforeItIsRead) {
  std::string block = raw('L', "x", "");
  std::string("77777777777").copy(block.data() + 124, 11);
  std::string(8, ' ').copy(block.data() + 148, 8);
  unsigned sum = 0;
  for (const unsigned char c : block) sum += c;
  fmt::format("{:06o}", sum).copy(block.data() + 148, 6);
  EXPECT_NE(read_all(block).error.find("too long"), std::string::npos);
}

}  // namespace
}  // namespace skiff::image
