#include "image/unpack.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <fstream>
#include <sstream>

#include "image/test_image.h"

namespace skiff::image {
namespace {

namespace fs = std::filesystem;
using testing::File;
using testing::file;
using testing::folder;
using testing::link;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

class Unpack : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "layers are unpacked by root only";
    fs::create_directory(root());
    std::ofstream(folder_.at("outside")) << "untouched";
  }
  std::string root() const { return folder_.at("root"); }
  std::string at(const std::string& name) const { return root() + "/" + name; }
  Result<void> unpack(const std::vector<File>& files) {
    const auto source = string_source(testing::tar(files));
    return unpack_layer(*source, root());
  }
  struct stat info(const std::string& name) const {
    struct stat out{};
    EXPECT_EQ(::lstat(at(name).c_str(), &out), 0) << name;
    return out;
  }
  // Nothing beside the root was made or changed.
  void expect_outside_untouched() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector<std::string>{"outside", "root"}));
    EXPECT_EQ(text_of(folder_.at("outside")), "untouched");
  }
  bool opaque(const std::string& name) const {
    char value = 0;
    return ::lgetxattr(at(name).c_str(), "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Unpack, FilesFoldersAndLinksWithTheirAttributes) {
  File owned = file("bin/tool", "#!", 04755);
  owned.entry.uid = 1000;
  owned.entry.gid = 1001;
  owned.entry.mtime = 1000000000;
  File dated = folder("bin");
  dated.entry.mtime = 900000000;
  ASSERT_TRUE(unpack({dated,
                      owned,
                      link("bin/sh", "tool"),
                      link("hard", "bin/tool", TarType::kHardLink),
                      file("no/folder/entry", "x"),
                      {.entry = {.path = "pipe", .type = TarType::kFifo, .mode = 0600}}}));
  EXPECT_EQ(text_of(at("bin/tool")), "#!");
  const struct stat tool = info("bin/tool");
  EXPECT_EQ(tool.st_mode & 07777, 04755U) << "set after the owner, who takes it away";
  EXPECT_EQ(tool.st_uid, 1000U);
  EXPECT_EQ(tool.st_gid, 1001U);
  EXPECT_EQ(tool.st_mtime, 1000000000);
  EXPECT_EQ(info("bin").st_mtime, 900000000) << "after its files";
  EXPECT_EQ(fs::read_symlink(at("bin/sh")), "tool");
  EXPECT_EQ(info("hard").st_ino, tool.st_ino);
  EXPECT_EQ(text_of(at("no/folder/entry")), "x");
  EXPECT_TRUE(S_ISFIFO(info("pipe").st_mode));
}

TEST_F(Unpack, ALaterEntryReplacesAnEarlierOne) {
  ASSERT_TRUE(unpack({file("a", "1"), file("a", "2"), folder("b"), file("b/x", "x"), link("b", "a"),
                      folder("c"), file("c/kept", "k"), folder("c")}));
  EXPECT_EQ(text_of(at("a")), "2");
  EXPECT_TRUE(fs::is_symlink(at("b")));
  EXPECT_EQ(text_of(at("c/kept")), "k");
}

TEST_F(Unpack, PathsThatLeadOutAreRefused) {
  for (const char* path : {"../outside", "a/../../outside", "/../outside", "..", "a/.."}) {
    EXPECT_FALSE(unpack({file(path, "taken")})) << path;
  }
  EXPECT_FALSE(unpack({link("h", "../outside", TarType::kHardLink)}));
  expect_outside_untouched();
}

TEST_F(Unpack, AnAbsolutePathIsOneOfTheImage) {
  ASSERT_TRUE(unpack({file("/etc/x", "inside")}));
  EXPECT_EQ(text_of(at("etc/x")), "inside");
}

TEST_F(Unpack, LinksOfTheArchiveCannotLeadOut) {
  // Through an absolute link, a relative one, and one to a file.
  ASSERT_TRUE(unpack({link("abs", folder_.path()), link("rel", "../"), link("to", "../outside")}));
  (void)unpack({file("abs/outside", "taken")});
  (void)unpack({file("rel/outside", "taken")});
  (void)unpack({file("to", "replaced")});
  (void)unpack({link("hard", "abs/outside", TarType::kHardLink)});
  (void)unpack({folder("rel/made"), link("rel/linked", "x")});
  expect_outside_untouched();
  EXPECT_EQ(text_of(at("to")), "replaced") << "the link itself, not what it points to";
  EXPECT_FALSE(fs::is_symlink(at("to")));
}

TEST_F(Unpack, AHardLinkToALinkDoesNotFollowIt) {
  ASSERT_TRUE(unpack({link("s", folder_.at("outside")), link("h", "s", TarType::kHardLink)}));
  EXPECT_TRUE(fs::is_symlink(at("h")));
  expect_outside_untouched();
}

TEST_F(Unpack, DevicesAreLeftOut) {
  ASSERT_TRUE(unpack({{.entry = {.path = "disk", .type = TarType::kBlockDevice}},
                      {.entry = {.path = "mem", .type = TarType::kCharDevice}},
                      file("after", "x")}));
  EXPECT_FALSE(fs::exists(at("disk")));
  EXPECT_FALSE(fs::exists(at("mem"))) << "it would be a whiteout";
  EXPECT_TRUE(fs::exists(at("after")));
}

TEST_F(Unpack, WhiteoutsBecomeWhatOverlayfsTakesForThem) {
  ASSERT_TRUE(unpack({folder("d"), file("d/.wh.gone", ""), file("d/.wh..wh..opq", ""),
                      file("d/.wh..wh.plnk", "")}));
  const struct stat gone = info("d/gone");
  EXPECT_TRUE(S_ISCHR(gone.st_mode));
  EXPECT_EQ(gone.st_rdev, 0U);
  EXPECT_TRUE(opaque("d"));
  EXPECT_FALSE(fs::exists(at("d/.wh.gone")));
  EXPECT_FALSE(fs::exists(at("d/.wh..wh.plnk"))) << "aufs' own";
}

TEST_F(Unpack, AWhiteoutBesideANewOneHidesOnlyTheOld) {
  ASSERT_TRUE(unpack({file("f", "new"), file(".wh.f", ""), folder("a"), file(".wh.a", ""),
                      file(".wh.b", ""), folder("b"), file(".wh.c", ""), file("c", "new")}));
  EXPECT_EQ(text_of(at("f")), "new");
  EXPECT_TRUE(opaque("a")) << "the folder below must not show through";
  EXPECT_TRUE(opaque("b")) << "in either order";
  EXPECT_EQ(text_of(at("c")), "new");
}

TEST_F(Unpack, AWhiteoutOfNothingIsRefused) {
  for (const char* path : {".wh.", ".wh..", ".wh..."}) {
    EXPECT_FALSE(unpack({file(path, "")})) << path;
  }
  expect_outside_untouched();
}

TEST_F(Unpack, OrdersToOverlayfsAreNotTakenFromAnArchive) {
  File sly = folder("d");
  sly.entry.xattrs = {
      {"trusted.overlay.opaque", "y"}, {"trusted.overlay.redirect", "/etc"}, {"user.note", "fine"}};
  ASSERT_TRUE(unpack({sly}));
  EXPECT_FALSE(opaque("d"));
  char value[8] = {};
  EXPECT_EQ(::lgetxattr(at("d").c_str(), "trusted.overlay.redirect", value, sizeof value), -1);
  EXPECT_EQ(::lgetxattr(at("d").c_str(), "user.note", value, sizeof value), 4);
}

TEST_F(Unpack, ABrokenArchiveIsAnError) {
  const auto source =
      string_source(testing::tar({file("a", std::string(5000, 'x'))}).substr(0, 3000));
  EXPECT_FALSE(unpack_layer(*source, root()));
}

}  // namespace
}  // namespace skiff::image
