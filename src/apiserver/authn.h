// Who is calling, and what they may do. One place decides, for every path of the product.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/routes.h"
#include "base/http.h"
#include "base/result.h"

namespace skiff::apiserver {

inline constexpr std::string_view kMasters = "system:masters";

struct Identity {
  std::string user = {};
  std::vector<std::string> groups = {};

  bool anonymous() const { return user == "system:anonymous"; }
  bool member_of(std::string_view group) const;
};

struct AuthOptions {
  std::string admin_token = {};  // empty: no token is accepted
  std::string admin_user = "skiff:admin";
  // A loopback connection of our own OS user is that user's administrator without a token.
  bool local_trust = true;
};

class Authenticator {
 public:
  explicit Authenticator(AuthOptions options) : options_(std::move(options)) {}
  // kUnauthorized where credentials were given and are wrong; anonymous where none were given.
  Result<Identity> authenticate(const http::Request& request, const http::Url& url) const;
  // The cookie that signs a browser in, where ?token= is right; else empty.
  std::string sign_in_cookie(const http::Request& request, const http::Url& url) const;

 private:
  bool right_token(std::string_view token) const;
  Identity administrator() const;

  AuthOptions options_;
};

// Whether a browser sent this because of a page that is not ours. Requests that carry no sign of a
// browser are not cross-site.
bool cross_site(const http::Request& request);

// What a request would do, in the words of RBAC.
struct Attributes {
  std::string path = {};
  std::string method = {};
  Route route = {};  // route.resource() false: only the path counts
};

Result<void> authorize(const Identity& identity, const Attributes& attributes);

}  // namespace skiff::apiserver
