#include "image/user.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <fstream>

#include "image/test_image.h"

namespace skiff::image {
namespace {

const Accounts kAccounts{
    .passwd =
        "root:x:0:0:root:/root:/bin/sh\n# a remark:x:5:5:::\n"
        "ada:x:1000:1001:Ada:/home/ada:/bin/sh\n42:x:7:8::/seven:\nbroken:x:no:1:::\nshort:x\n",
    .group = "root:x:0:\nwheel:x:10:ada\n"};

TEST(FindUser, ByNameAndByNumber) {
  struct Case {
    const char* wanted;
    User user;
  };
  for (const Case& c : {
           Case{"", {0, 0, "/root"}},
           Case{"root", {0, 0, "/root"}},
           Case{"ada", {1000, 1001, "/home/ada"}},
           Case{"1000", {1000, 1001, "/home/ada"}},
           Case{"42", {7, 8, "/seven"}},
           Case{"5000", {5000, 0, "/"}},
           Case{"ada:wheel", {1000, 10, "/home/ada"}},
           Case{"ada:77", {1000, 77, "/home/ada"}},
           Case{"5000:10", {5000, 10, "/"}},
       }) {
    const auto user = find_user(kAccounts, c.wanted);
    ASSERT_TRUE(user) << c.wanted;
    EXPECT_EQ(*user, c.user) << c.wanted;
  }
}

TEST(FindUser, SaysWhoIsMissing) {
  for (const char* wanted : {"ghost", "ada:ghosts", "broken", "short", "-1"}) {
    EXPECT_FALSE(find_user(kAccounts, wanted)) << wanted;
  }
  EXPECT_EQ(find_user(kAccounts, "ghost").error().message,
            "unable to find user ghost: no matching entries in passwd file");
  EXPECT_EQ(*find_user({}, ""), (User{0, 0, "/root"})) << "an image need not have the file";
}

TEST(ReadFromLayers, TheTopmostFileCounts) {
  const testing::TemporaryFolder folder;
  for (const char* layer : {"top/etc", "below/etc"}) {
    std::filesystem::create_directories(folder.at(layer));
  }
  const std::vector<std::string> layers = {folder.at("top"), folder.at("below")};
  EXPECT_EQ(read_from_layers(layers, "etc/passwd"), "");
  std::ofstream(folder.at("below/etc/passwd")) << "below";
  EXPECT_EQ(read_from_layers(layers, "etc/passwd"), "below");
  std::ofstream(folder.at("top/etc/passwd")) << "top";
  EXPECT_EQ(read_from_layers(layers, "etc/passwd"), "top");
}

TEST(ReadFromLayers, NeverLeavesTheImage) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder.at("top/etc"));
  std::ofstream(folder.at("secret")) << "secret";
  std::filesystem::create_symlink(folder.at("secret"), folder.at("top/etc/passwd"));
  EXPECT_EQ(read_from_layers({folder.at("top")}, "etc/passwd"), "");
  std::filesystem::remove(folder.at("top/etc/passwd"));
  std::filesystem::create_symlink("../../secret", folder.at("top/etc/passwd"));
  EXPECT_EQ(read_from_layers({folder.at("top")}, "etc/passwd"), "");
  std::filesystem::remove(folder.at("top/etc/passwd"));
  std::filesystem::create_symlink("/etc/real", folder.at("top/etc/passwd"));
  std::ofstream(folder.at("top/etc/real")) << "inside";
  EXPECT_EQ(read_from_layers({folder.at("top")}, "etc/passwd"), "inside");
}

TEST(ReadFromLayers, WhatALayerHidesIsNotThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "whiteouts need root";
  const testing::TemporaryFolder folder;
  for (const char* layer : {"top/etc", "below/etc"}) {
    std::filesystem::create_directories(folder.at(layer));
  }
  std::ofstream(folder.at("below/etc/passwd")) << "below";
  const std::vector<std::string> layers = {folder.at("top"), folder.at("below")};
  const std::string etc = folder.at("top/etc");
  ASSERT_EQ(::setxattr(etc.c_str(), "trusted.overlay.opaque", "y", 1, 0), 0);
  EXPECT_EQ(read_from_layers(layers, "etc/passwd"), "");
  ASSERT_EQ(::removexattr(etc.c_str(), "trusted.overlay.opaque"), 0);
  ASSERT_EQ(::mknod(folder.at("top/etc/passwd").c_str(), S_IFCHR, ::makedev(0, 0)), 0);
  EXPECT_EQ(read_from_layers(layers, "etc/passwd"), "");
}

}  // namespace
}  // namespace skiff::image
