#include "client/remote/credentials.h"

#include <gtest/gtest.h>

#include <fstream>

#include "net/pki.h"

namespace skiff::client {
namespace {

using namespace std::chrono_literals;

std::string authorization(const Result<std::shared_ptr<const Auth>>& auth) {
  return auth ? std::string(http::header((*auth)->headers, "Authorization")) : auth.error().message;
}

// A plug-in that counts how often it runs.
struct Plugin {
  int runs = 0;
  Time now = {};
  std::optional<Duration> lasts = {};
  bool broken = false;

  Credentials credentials(Access access = {}) {
    access.exec = ExecPlugin{.command = "c"};
    return Credentials(
        std::move(access),
        [this](const ExecPlugin&) -> Result<Credential> {
          if (broken) return fail(Code::kUnauthorized, "broken");
          Credential out{.token = "t" + std::to_string(++runs), .key_pem = "k"};
          if (lasts) out.expires = now + *lasts;
          return out;
        },
        [this] { return now; });
  }
};

TEST(Credentials, APluginRunsOnceUntilItsCredentialExpires) {
  Plugin plugin{.lasts = 10min};
  Credentials credentials = plugin.credentials();
  EXPECT_EQ(authorization(credentials.current()), "Bearer t1");
  plugin.now += 10min;
  EXPECT_EQ(authorization(credentials.current()), "Bearer t1");
  plugin.now += 1s;
  EXPECT_EQ(authorization(credentials.current()), "Bearer t2");
  EXPECT_EQ((*credentials.current())->key_pem, "k");
}

TEST(Credentials, WhatHasNotChangedIsTheSameObject) {
  Plugin plugin;
  Credentials credentials = plugin.credentials();
  const auto first = *credentials.current();
  EXPECT_EQ(*credentials.current(), first);
  EXPECT_TRUE(credentials.refresh(first->serial));
  EXPECT_NE(*credentials.current(), first);
}

TEST(Credentials, ARefusedCredentialIsRenewedOnceForAll) {
  Plugin plugin;
  Credentials credentials = plugin.credentials();
  const Auth first = **credentials.current();
  EXPECT_TRUE(credentials.refresh(first.serial));
  // Another request that was refused with the old one finds that there is a new one.
  EXPECT_TRUE(credentials.refresh(first.serial));
  EXPECT_EQ(plugin.runs, 2);
  EXPECT_EQ(authorization(credentials.current()), "Bearer t2");
}

TEST(Credentials, APluginThatBreaksIsToldAndTriedAgain) {
  Plugin plugin{.broken = true};
  Credentials credentials = plugin.credentials();
  EXPECT_EQ(authorization(credentials.current()), "broken");
  plugin.broken = false;
  const auto auth = credentials.current();
  EXPECT_EQ(authorization(auth), "Bearer t1");
  plugin.broken = true;
  EXPECT_FALSE(credentials.refresh((*auth)->serial));
}

TEST(Credentials, WhatTheUserSaysItselfWinsOverThePlugin) {
  Plugin plugin;
  EXPECT_EQ(authorization(plugin.credentials({.token = "own"}).current()), "Bearer own");
  EXPECT_EQ(authorization(plugin.credentials({.user = "u", .password = "p"}).current()),
            "Basic dTpw");
  EXPECT_EQ(plugin.runs, 0);
}

TEST(Credentials, AFixedTokenCannotBeRenewed) {
  Credentials credentials({.token = "fixed"});
  EXPECT_FALSE(credentials.refresh((*credentials.current())->serial));
}

TEST(Credentials, ATokenFileIsReadAgainAndMissedForAWhile) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("skiff-token-" + net::random_token(6));
  Credentials credentials({.token = "not this", .token_file = file});
  EXPECT_FALSE(credentials.current());
  std::ofstream(file) << "one\n";
  const auto first = credentials.current();
  EXPECT_EQ(authorization(first), "Bearer one");
  EXPECT_FALSE(credentials.refresh((*first)->serial));
  std::ofstream(file) << "two\n";
  EXPECT_TRUE(credentials.refresh((*first)->serial));
  EXPECT_EQ(authorization(credentials.current()), "Bearer two");
  std::filesystem::remove(file);
  EXPECT_EQ(authorization(credentials.current()), "Bearer two");
}

}  // namespace
}  // namespace skiff::client
