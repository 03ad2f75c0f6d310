// Who may, all of it: who is calling, whom they act as, what they may do, and the kinds, paths and
// duties that follow. The server asks here for every request of every feature.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/access/authorizer.h"
#include "apiserver/access/housekeeper.h"
#include "apiserver/access/tokens.h"
#include "apiserver/authn.h"
#include "apiserver/writes.h"
#include "base/http.h"
#include "client/client.h"

namespace skiff::apiserver {

struct AccessOptions {
  AuthOptions auth = {};
  TokenOptions tokens = {};
  // PEM text: what clients in pods check this server's certificate with.
  std::string authority = {};
};

class Access {
 public:
  Access(store::Store& store, const env::Clock& clock, std::uint64_t seed, AccessOptions options,
         Writes& writes, Housekeeper::Kinds kinds, Housekeeper::Commit commit);

  // Who this request counts as, after impersonation. kUnauthorized, kForbidden, or kInternal where
  // its headers make no sense together.
  Result<Identity> identify(const http::Request& request, const http::Url& url) const;
  Result<void> authorize(const Identity& who, const Action& action) const {
    return authorizer_.authorize(who, action);
  }
  std::string sign_in_cookie(const http::Request& request, const http::Url& url) const {
    return authenticator_.sign_in_cookie(request, url);
  }

  // /.well-known/openid-configuration and /openid/v1/jwks.
  std::optional<http::Response> serve_path(const http::Url& url) const;
  // The roles and bindings that are missing or incomplete, as writes.
  std::vector<client::Write> bootstrap_writes() const;
  bool pass() { return housekeeper_.pass(); }

  // In this process, for whoever gives pods their tokens.
  ServiceTokens& tokens() { return tokens_; }

 private:
  // What Writes asks before it admits an object.
  Result<void> guard(const WriteRequest& request, const json::value& object,
                     const json::value* old) const;

  store::Store& store_;
  const env::Clock& clock_;
  Housekeeper::Kinds kinds_;
  ServiceTokens tokens_;
  Authenticator authenticator_;
  Authorizer authorizer_;
  Housekeeper housekeeper_;
};

}  // namespace skiff::apiserver
