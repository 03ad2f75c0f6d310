#include "image/auth.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace skiff::image {
namespace {

Keyring keyring(std::string_view text) {
  Keyring out;
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  out.add(*parsed);
  return out;
}

std::vector<std::string> users(const Keyring& ring, std::string_view image) {
  std::vector<std::string> out;
  for (const Credentials& c : ring.lookup(*parse_reference(image))) out.push_back(c.username);
  return out;
}

using Names = std::vector<std::string>;

TEST(Keyring, ReadsWhatDockerLoginWrites) {
  const Keyring ring = keyring(R"({"auths":{
      "https://index.docker.io/v1/":{"auth":")" +
                               base64::encode("hub:pass:word") + R"("},
      "ghcr.io":{"username":"u","password":"p"},
      "helped.io":{}}})");
  const auto hub = ring.lookup(*parse_reference("busybox"));
  ASSERT_EQ(hub.size(), 1U);
  EXPECT_EQ(hub[0], (Credentials{"hub", "pass:word", ""})) << "only the first colon parts";
  EXPECT_EQ(users(ring, "ghcr.io/a/b"), Names{"u"});
  EXPECT_TRUE(users(ring, "helped.io/a").empty()) << "a helper has them, not the file";
  EXPECT_TRUE(users(ring, "quay.io/a").empty());
}

TEST(Keyring, ReadsTheOlderFormToo) {
  EXPECT_EQ(
      users(keyring(R"({"localhost:5000":{"username":"u","password":"p"}})"), "localhost:5000/x"),
      Names{"u"});
}

TEST(Keyring, ThePathAndTheStarsDecideWhoFits) {
  const Keyring ring = keyring(R"({"auths":{
      "r.io":{"username":"all","password":"p"},
      "r.io/team":{"username":"team","password":"p"},
      "*.corp.io":{"username":"corp","password":"p"},
      "a-*.corp.io":{"username":"a","password":"p"}}})");
  EXPECT_EQ(users(ring, "r.io/team/x"), (Names{"team", "all"})) << "the most special first";
  EXPECT_EQ(users(ring, "r.io/teams/x"), Names{"all"});
  EXPECT_EQ(users(ring, "b.corp.io/x"), Names{"corp"});
  EXPECT_EQ(users(ring, "a-1.corp.io/x"), (Names{"a", "corp"}));
  EXPECT_TRUE(users(ring, "x.b.corp.io/x").empty()) << "a star is one label";
}

TEST(Keyring, TakesIdentityTokens) {
  const auto found =
      keyring(R"({"auths":{"r.io":{"identitytoken":"t"}}})").lookup(*parse_reference("r.io/x"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].identity_token, "t");
}

TEST(Challenge, OfABearerNamesTheRealm) {
  const auto bearer = parse_challenge(
      R"(Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push")");
  ASSERT_TRUE(bearer);
  EXPECT_TRUE(bearer->bearer);
  EXPECT_EQ(bearer->realm, "https://auth.docker.io/token");
  EXPECT_EQ(bearer->service, "registry.docker.io");
  EXPECT_EQ(bearer->scope, "repository:a/b:pull,push") << "a comma within quotes parts nothing";
  EXPECT_EQ(parse_challenge(R"(bearer realm=https://x/y, service=z)")->service, "z");
}

TEST(Challenge, MayBeBasicOrNothingWeKnow) {
  const auto basic = parse_challenge(R"(Basic realm="a \"b\"")");
  ASSERT_TRUE(basic);
  EXPECT_FALSE(basic->bearer);
  EXPECT_EQ(basic->realm, "a \"b\"");
  EXPECT_TRUE(parse_challenge("Basic"));
  EXPECT_FALSE(parse_challenge("Negotiate"));
  EXPECT_FALSE(parse_challenge(""));
  EXPECT_FALSE(parse_challenge("Bearer")) << "without a realm there is nobody to ask";
  EXPECT_TRUE(parse_challenge(R"(Basic realm="never closed)"));
}

TEST(BasicHeader, IsBase64) { EXPECT_EQ(basic_header({"a", "b"}), "Basic YTpi"); }

}  // namespace
}  // namespace skiff::image
