#include "node/token_cache.h"

#include <gtest/gtest.h>

#include "env/sim/clock.h"

namespace skiff::node {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class TokenCacheTest : public ::testing::Test {
 protected:
  std::string get(const TokenWish& wish) {
    const auto token = cache_.get(wish);
    return token ? *token : "error: " + token.error().message;
  }

  env::sim::Clock clock_;
  int made_ = 0;
  bool broken_ = false;
  TokenSource source_ = [this](const TokenWish& wish) -> Result<std::string> {
    if (broken_) return fail(Code::kInternal, "no keys");
    return wish.pod + "#" + std::to_string(++made_);
  };
  TokenCache cache_{source_, clock_};
  const TokenWish wish_{.ns = "ns", .account = "a", .pod = "p", .pod_uid = "u", .seconds = 1000};
};

TEST_F(TokenCacheTest, ATokenIsKeptForFourFifthsOfItsLife) {
  EXPECT_EQ(get(wish_), "p#1");
  clock_.advance(seconds(799));
  EXPECT_EQ(get(wish_), "p#1");
  clock_.advance(seconds(1));
  EXPECT_EQ(get(wish_), "p#2");
  clock_.advance(seconds(799));
  EXPECT_EQ(get(wish_), "p#2");
}

TEST_F(TokenCacheTest, ATokenForAYearIsReplacedEveryDay) {
  TokenWish wish = wish_;
  wish.seconds = 365 * 24 * 3600;
  EXPECT_EQ(get(wish), "p#1");
  clock_.advance(hours(24) - seconds(1));
  EXPECT_EQ(get(wish), "p#1");
  clock_.advance(seconds(1));
  EXPECT_EQ(get(wish), "p#2");
}

TEST_F(TokenCacheTest, EveryPodAudienceAndLifeHasItsOwn) {
  EXPECT_EQ(get(wish_), "p#1");
  TokenWish audience = wish_;
  audience.audience = "vault";
  EXPECT_EQ(get(audience), "p#2");
  TokenWish life = wish_;
  life.seconds = 2000;
  EXPECT_EQ(get(life), "p#3");
  TokenWish reborn = wish_;
  reborn.pod_uid = "u2";
  EXPECT_EQ(get(reborn), "p#4");
  EXPECT_EQ(get(wish_), "p#1");
}

TEST_F(TokenCacheTest, WithoutANewOneTheOldOneServesAsLongAsItIsValid) {
  EXPECT_EQ(get(wish_), "p#1");
  broken_ = true;
  clock_.advance(seconds(999));
  EXPECT_EQ(get(wish_), "p#1");
  clock_.advance(seconds(1));
  EXPECT_EQ(get(wish_), "error: no keys");
  broken_ = false;
  EXPECT_EQ(get(wish_), "p#2");
}

TEST_F(TokenCacheTest, AClockSetBackDoesNotKeepATokenFromBeingRenewed) {
  EXPECT_EQ(get(wish_), "p#1");
  clock_.set(clock_.now() - hours(48));
  EXPECT_EQ(get(wish_), "p#2");
}

TEST_F(TokenCacheTest, WhatAPodHadIsForgottenWithIt) {
  EXPECT_EQ(get(wish_), "p#1");
  TokenWish other = wish_;
  other.pod_uid = "u2";
  EXPECT_EQ(get(other), "p#2");
  cache_.forget("u");
  EXPECT_EQ(cache_.size(), 1U);
  EXPECT_EQ(get(other), "p#2");
  EXPECT_EQ(get(wish_), "p#3");
}

}  // namespace
}  // namespace skiff::node
