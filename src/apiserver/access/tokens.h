// Tokens of service accounts: made here, and checked here whenever they are used.
//
// Signing and signatures are the codec's (net/jwt.h); this file knows what the claims mean: until
// when, for whom, and that the account and whatever the token is bound to still exist.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/authn.h"
#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "env/env.h"
#include "store/store.h"

namespace skiff::apiserver {

struct TokenCodec {
  std::function<Result<std::string>(const json::object& claims)> sign = {};
  // The claims of a token that one of our keys has signed; anything else is an error.
  std::function<Result<json::object>(std::string_view token)> verify = {};
  json::object key_set = {};  // public, as /openid/v1/jwks shows it
  std::vector<std::string> algorithms = {};
};

struct TokenOptions {
  TokenCodec codec = {};  // without: no service account has a token
  std::string issuer = "https://kubernetes.default.svc.cluster.local";
  std::vector<std::string> audiences = {};  // who we are; empty: the issuer
};

// What a token is to be. `bound`: it ends when this Pod, Secret or Node goes.
struct TokenWish {
  std::string ns = {};
  std::string account = {};
  std::string account_uid = {};             // empty: whichever has the name
  std::vector<std::string> audiences = {};  // empty: this API server
  std::int64_t seconds = 3600;
  struct Bound {
    std::string api_version = {};
    std::string kind = {};
    std::string name = {};
    std::string uid = {};  // empty: whichever has the name
  };
  std::optional<Bound> bound = {};
};

struct MintedToken {
  std::string token = {};
  std::string account_uid = {};
  Time expires = {};
  std::vector<std::string> audiences = {};
};

struct TokenBearer {
  Identity identity = {};
  std::vector<std::string> audiences = {};  // of those asked for
};

class ServiceTokens {
 public:
  ServiceTokens(store::Store& store, const env::Clock& clock, std::uint64_t seed,
                TokenOptions options);

  bool available() const { return static_cast<bool>(options_.codec.sign); }
  const std::string& issuer() const { return options_.issuer; }
  const TokenCodec& codec() const { return options_.codec; }
  const std::vector<std::string>& audiences() const { return options_.audiences; }

  // For the TokenRequest API and, in this process, for the node's projected volumes.
  Result<MintedToken> mint(const TokenWish& wish);
  // What a Secret of type kubernetes.io/service-account-token carries: valid while it does.
  Result<std::string> mint_for_secret(const json::value& account, const std::string& secret) const;

  // Who carries this token. `wanted` audiences, or this API server where empty. The error says why
  // not; it is for TokenReview and logs, never for the carrier.
  Result<TokenBearer> check(std::string_view token, std::vector<std::string> wanted = {}) const;

 private:
  Result<std::shared_ptr<const json::object>> claims_of(std::string_view token) const;
  Result<Identity> check_bound(const json::object& claims) const;
  Result<Identity> check_secret(const json::object& claims, std::string_view token) const;
  Result<void> still_there(const store::Key& key, std::string_view uid,
                           std::string_view what) const;
  Result<void> bind(const TokenWish& wish, json::object& kubernetes) const;

  store::Store& store_;
  const env::Clock& clock_;
  TokenOptions options_;
  mutable std::mutex lock_;
  Random random_;
  // Signatures that were right stay right: only what a token says is checked each time.
  mutable std::unordered_map<std::string, std::shared_ptr<const json::object>> verified_;
};

}  // namespace skiff::apiserver
