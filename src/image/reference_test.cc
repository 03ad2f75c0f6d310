#include "image/reference.h"

#include <gtest/gtest.h>

namespace skiff::image {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(Reference, FillsInDockersDefaults) {
  struct Case {
    std::string text, whole;
  };
  for (const Case& c : {
           Case{"busybox", "docker.io/library/busybox:latest"},
           Case{"busybox:1.35", "docker.io/library/busybox:1.35"},
           Case{"me/app", "docker.io/me/app:latest"},
           Case{"docker.io/busybox", "docker.io/library/busybox:latest"},
           Case{"index.docker.io/me/app:v1", "docker.io/me/app:v1"},
           Case{"ghcr.io/a/b/c:v1.2-x_y", "ghcr.io/a/b/c:v1.2-x_y"},
           Case{"localhost/app", "localhost/app:latest"},
           Case{"localhost:5000/app", "localhost:5000/app:latest"},
           Case{"10.0.0.1:5000/a__b/c--d:t", "10.0.0.1:5000/a__b/c--d:t"},
           Case{"[::1]:5000/app:t", "[::1]:5000/app:t"},
           Case{"busybox@" + kDigest, "docker.io/library/busybox@" + kDigest},
           Case{"busybox:1@" + kDigest, "docker.io/library/busybox@" + kDigest},
       }) {
    const auto parsed = parse_reference(c.text);
    ASSERT_TRUE(parsed) << c.text << ": " << parsed.error().message;
    EXPECT_EQ(parsed->text(), c.whole) << c.text;
  }
}

TEST(Reference, KeepsTheTagBesideADigest) {
  const auto parsed = parse_reference("busybox:1@" + kDigest);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->tag, "1");
  EXPECT_EQ(parsed->digest, kDigest);
}

TEST(Reference, RefusesWhatIsNoName) {
  for (const std::string& text :
       {std::string(""), std::string(":v1"), std::string("a//b"), std::string("a/"),
        std::string("-a"), std::string("a..b"), std::string("a___b"), std::string("a:b:c"),
        std::string("a b"), std::string("a:"), std::string("a:-x"), std::string("../a"),
        std::string("a@sha256:12"), std::string("a@md5:") + std::string(64, 'a'),
        std::string("host:99999/a"), std::string("host:x/a"), std::string(300, 'a'),
        std::string("a:") + std::string(129, 't'), std::string(64, 'f')}) {
    const auto parsed = parse_reference(text);
    ASSERT_FALSE(parsed) << text << " became " << parsed->text();
    EXPECT_NE(parsed.error().message.find("couldn't parse image name"), std::string::npos);
  }
  const auto capitals = parse_reference("me/App");
  ASSERT_FALSE(capitals);
  EXPECT_NE(capitals.error().message.find("must be lowercase"), std::string::npos);
}

TEST(Reference, OnlyThisMachineIsSpokenToInTheClear) {
  for (const char* here : {"localhost", "localhost:5000", "127.0.0.1:5000", "[::1]:5000"}) {
    EXPECT_FALSE(registry_address(here)->tls) << here;
  }
  for (const char* away : {"ghcr.io", "ghcr.io:80", "10.0.0.1:5000", "localhost.example.com"}) {
    EXPECT_TRUE(registry_address(away)->tls) << away;
  }
  EXPECT_EQ(registry_address("docker.io")->host, "registry-1.docker.io");
  EXPECT_EQ(registry_address("docker.io")->port, 443);
  EXPECT_EQ(registry_address("[::1]:5000")->host, "::1");
  EXPECT_EQ(registry_address("[::1]:5000")->port, 5000);
  EXPECT_FALSE(registry_address("a:0"));
}

TEST(Reference, ADigestIsSha256AndNothingElse) {
  EXPECT_TRUE(is_digest(kDigest));
  EXPECT_FALSE(is_digest("sha256:" + std::string(63, 'a')));
  EXPECT_FALSE(is_digest("sha256:" + std::string(64, 'A')));
  EXPECT_FALSE(is_digest("sha256:../../" + std::string(58, 'a'))) << "it names files";
  EXPECT_FALSE(is_digest("sha512:" + std::string(64, 'a')));
  EXPECT_EQ(digest_hex(kDigest), std::string(64, 'a'));
}

}  // namespace
}  // namespace skiff::image
