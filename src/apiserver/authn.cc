#include "apiserver/authn.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apiserver/access/tokens.h"
#include "apiserver/query_token.h"
#include "base/base64.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kCookie = "skiff_token";
constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";

std::string_view cookie(const http::Request& request) {
  for (std::string_view pair : split(http::header(request.headers, "Cookie"), ';')) {
    pair = trim(pair);
    if (pair.starts_with(kCookie) && pair.substr(kCookie.size()).starts_with("=")) {
      return pair.substr(kCookie.size() + 1);
    }
  }
  return {};
}

// The host of "host:port", "[::1]:port" or either without a port.
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool by_scheme(std::string_view header, std::string_view scheme) {
  return header.size() > scheme.size() &&
         equal_ignoring_case(header.substr(0, scheme.size()), scheme);
}

bool local_name(std::string_view host) {
  if (equal_ignoring_case(host, "localhost") || host == "[::1]") return true;
  const auto parts = split(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::ranges::all_of(parts, [](std::string_view part) {
           return !part.empty() && part.size() <= 3 &&
                  std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
         });
}

}  // namespace

bool Identity::member_of(std::string_view group) const {
  return std::ranges::find(groups, group) != groups.end();
}

bool token_in_query(const http::Request& request) {
  const std::string_view header = http::header(request.headers, "Authorization");
  return request.peer.common_name.empty() && !by_scheme(header, kBearer) &&
         !by_scheme(header, kBasic);
}

bool cross_site(const http::Request& request) {
  // Two ports of one machine are the same *site* to a browser, and the content origin is where user
  // script runs: only same-origin will do.
  const std::string_view site = http::header(request.headers, "Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  const std::string_view origin = http::header(request.headers, "Origin");
  if (origin.empty()) return false;
  const std::size_t at = origin.find("://");
  return at == std::string_view::npos ||
         !equal_ignoring_case(origin.substr(at + 3), http::header(request.headers, "Host"));
}

bool Authenticator::right_token(std::string_view token) const {
  return !options_.admin_token.empty() && equal_secrets(token, options_.admin_token);
}

Identity Authenticator::administrator() const {
  return {.user = options_.admin_user, .groups = {std::string(kMasters), "system:authenticated"}};
}

Result<Identity> Authenticator::authenticate(const http::Request& request,
                                             const http::Url& url) const {
  if (!request.peer.common_name.empty()) {
    Identity identity{.user = request.peer.common_name, .groups = request.peer.organizations};
    identity.groups.emplace_back("system:authenticated");
    return identity;
  }
  const std::string_view header = http::header(request.headers, "Authorization");
  std::optional<std::string> token;
  if (by_scheme(header, kBearer)) {
    token = std::string(trim(header.substr(kBearer.size())));
  } else if (by_scheme(header, kBasic)) {
    const auto pair = base64::decode(trim(header.substr(kBasic.size())));
    const std::size_t colon = pair ? pair->find(':') : std::string::npos;
    token = colon == std::string::npos ? "" : pair->substr(colon + 1);
  } else if (auto given = url.param("token")) {
    token = std::move(given);
  }
  if (token) {
    auto known = bearer(*token, {});
    if (!known) return fail(Code::kUnauthorized, "Unauthorized");
    return std::move(known->identity);
  }
  if (const std::string_view given = cookie(request); right_token(given) && !cross_site(request)) {
    return administrator();
  }
  if (options_.local_trust && request.peer.loopback && request.peer.same_user &&
      local_name(host_of(http::header(request.headers, "Host"))) && !cross_site(request)) {
    return administrator();
  }
  return Identity{.user = "system:anonymous", .groups = {"system:unauthenticated"}};
}

Result<TokenBearer> Authenticator::bearer(std::string_view token,
                                          std::vector<std::string> audiences) const {
  if (!right_token(token)) return tokens_.check(token, std::move(audiences));
  // The administrator's token is for this server, whatever it is called.
  TokenBearer out{.identity = administrator()};
  for (const std::string& mine : tokens_.audiences()) {
    if (audiences.empty() || std::ranges::find(audiences, mine) != audiences.end()) {
      out.audiences.push_back(mine);
    }
  }
  if (out.audiences.empty()) return fail(Code::kUnauthorized, "invalid bearer token");
  return out;
}

std::string Authenticator::sign_in_cookie(const http::Request& request,
                                          const http::Url& url) const {
  const auto given = url.param("token");
  if (!given || !right_token(*given)) return {};
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict{}", kCookie, *given,
                     request.peer.tls ? "; Secure" : "");
}

}  // namespace skiff::apiserver
