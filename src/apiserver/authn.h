// Who is calling. What they may do is for access/authorizer.h to say.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/result.h"

namespace skiff::apiserver {

inline constexpr std::string_view kMasters = "system:masters";

struct Identity {
  std::string user = {};
  std::vector<std::string> groups = {};
  std::string uid = {};
  std::map<std::string, std::vector<std::string>> extra = {};

  bool anonymous() const { return user == "system:anonymous"; }
  bool member_of(std::string_view group) const;
};

struct AuthOptions {
  std::string admin_token = {};  // empty: no token is accepted
  std::string admin_user = "skiff:admin";
  // A loopback connection of our own OS user is that user's administrator without a token.
  bool local_trust = true;
};

class ServiceTokens;
struct TokenBearer;

class Authenticator {
 public:
  // `tokens` knows service accounts.
  Authenticator(AuthOptions options, const ServiceTokens& tokens)
      : options_(std::move(options)), tokens_(tokens) {}
  // kUnauthorized where credentials were given and are wrong; anonymous where none were given.
  Result<Identity> authenticate(const http::Request& request, const http::Url& url) const;
  // Whose token this is, for those audiences (none: this API server). The error says why nobody's.
  Result<TokenBearer> bearer(std::string_view token, std::vector<std::string> audiences) const;
  // The cookie that signs a browser in, where ?token= is right; else empty.
  std::string sign_in_cookie(const http::Request& request, const http::Url& url) const;

 private:
  bool right_token(std::string_view token) const;
  Identity administrator() const;

  AuthOptions options_;
  const ServiceTokens& tokens_;
};

// Whether a browser sent this because of a page that is not ours. Requests that carry no sign of a
// browser are not cross-site.
bool cross_site(const http::Request& request);

}  // namespace skiff::apiserver
