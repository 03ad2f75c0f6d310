#include "apiserver/access/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/access/impersonation.h"
#include "apiserver/access/policy.h"
#include "apiserver/access/rules.h"
#include "apiserver/status.h"
#include "base/base64.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";
constexpr std::string_view kKubernetes = "kubernetes.io";
// Clocks of other machines may differ; what was deleted is honoured as much longer.
constexpr Duration kLeeway = 60s;
constexpr std::size_t kRemembered = 4096;
// What the projected volume of every pod asks for. Programs that read their token once and never
// again live longer than that, so theirs ends a year later; a claim says when it should have.
constexpr std::int64_t kProjectedSeconds = 3607;
constexpr std::int64_t kExtendedSeconds = 365 * 24 * 3600;

const api::Resource kAccounts{
    .version = "v1", .plural = "serviceaccounts", .kind = "ServiceAccount"};

std::int64_t seconds_of(Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::optional<Time> time_claim(const json::object& claims, std::string_view name) {
  const json::value* at = claims.if_contains(name);
  if (at == nullptr) return {};
  if (const auto* whole = at->if_int64()) return Time(std::chrono::seconds(*whole));
  if (const auto* whole = at->if_uint64()) {
    return *whole > 1ULL << 40 ? Time::max() : Time(std::chrono::seconds(*whole));
  }
  if (const auto* part = at->if_double(); part != nullptr && *part >= 0 && *part < 1e12) {
    return Time(std::chrono::seconds(static_cast<std::int64_t>(*part)));
  }
  return Time::min();  // no time at all: expired, if it is an end
}

std::vector<std::string> audience_claim(const json::object& claims) {
  const json::value* at = claims.if_contains("aud");
  if (at == nullptr) return {};
  if (at->is_string()) return {std::string(json::view(at->get_string()))};
  return at->is_array() ? json::strings(at->get_array()) : std::vector<std::string>();
}

// Of an object, which must not become a value on the way: the answer points into it.
std::string_view claim_text(const json::object& claims,
                            std::initializer_list<std::string_view> path) {
  const json::value* at = json::find(claims, path);
  return at != nullptr && at->is_string() ? json::view(at->get_string()) : std::string_view();
}

Identity identity_of(std::string_view ns, std::string_view name, std::string_view uid) {
  return {.user = service_account_user(ns, name),
          .groups = {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns),
                     "system:authenticated"},
          .uid = std::string(uid)};
}

json::object token_reference(const json::value& object) {
  return {{"name", json::string(api::name(object))}, {"uid", json::string(api::uid(object))}};
}

Result<void> check_times(const json::object& claims, Time now) {
  if (const auto end = time_claim(claims, "exp");
      end && *end != Time::max() && now > *end + kLeeway) {
    return fail(Code::kUnauthorized, "service account token has expired");
  }
  if (const auto start = time_claim(claims, "nbf"); start && now + kLeeway < *start) {
    return fail(Code::kUnauthorized, "service account token is not valid yet");
  }
  if (const auto made = time_claim(claims, "iat"); made && now + kLeeway < *made) {
    return fail(Code::kUnauthorized, "service account token is issued in the future");
  }
  return {};
}

}  // namespace

ServiceTokens::ServiceTokens(store::Store& store, const env::Clock& clock, std::uint64_t seed,
                             TokenOptions options)
    : store_(store), clock_(clock), options_(std::move(options)), random_(seed) {
  if (options_.audiences.empty()) options_.audiences = {options_.issuer};
}

Result<void> ServiceTokens::bind(const TokenWish& wish, json::object& kubernetes) const {
  if (!wish.bound) return {};
  const TokenWish::Bound& bound = *wish.bound;
  const bool core = bound.api_version.empty() || !bound.api_version.contains('/');
  const bool known = bound.kind == "Pod" || bound.kind == "Secret" || bound.kind == "Node";
  if (!core || !known) {
    const std::size_t slash = bound.api_version.find('/');
    const std::string group = core ? "" : bound.api_version.substr(0, slash);
    const std::string version = core ? bound.api_version : bound.api_version.substr(slash + 1);
    return fail(Code::kBadRequest, fmt::format("cannot bind token to object of type {}/{}, Kind={}",
                                               group, version, bound.kind));
  }
  const std::string plural = lower(bound.kind) + "s";
  const std::string ns = bound.kind == "Node" ? "" : wish.ns;
  const store::EntryPtr entry = store_.get({.resource = plural, .ns = ns, .name = bound.name});
  if (!entry) return std::unexpected(not_found({.version = "v1", .plural = plural}, bound.name));
  const Object object = entry->value();
  if (bound.kind == "Pod" &&
      json::get_string(*object, {"spec", "serviceAccountName"}, "default") != wish.account) {
    return fail(Code::kBadRequest,
                fmt::format("cannot bind token for serviceaccount {} to pod running with "
                            "different serviceaccount name.",
                            in_quotes(wish.account)));
  }
  if (!bound.uid.empty() && bound.uid != api::uid(*object)) {
    return std::unexpected(conflict(
        {.plural = bound.kind}, bound.name,
        fmt::format("the UID in the bound object reference ({}) does not match the UID in record. "
                    "The object might have been deleted and then recreated",
                    bound.uid)));
  }
  kubernetes[lower(bound.kind)] = token_reference(*object);
  const std::string_view node = json::get_string(*object, {"spec", "nodeName"});
  if (bound.kind == "Pod" && !node.empty()) {
    const store::EntryPtr machine = store_.get({.resource = "nodes", .name = std::string(node)});
    kubernetes["node"] =
        machine ? token_reference(*machine->value()) : json::object{{"name", json::string(node)}};
  }
  return {};
}

Result<MintedToken> ServiceTokens::mint(const TokenWish& wish) {
  const store::EntryPtr account =
      store_.get({.resource = "serviceaccounts", .ns = wish.ns, .name = wish.account});
  if (!account) return std::unexpected(not_found(kAccounts, wish.account));
  if (!available()) {
    return fail(Code::kServiceUnavailable, "this server has no key to sign tokens with");
  }
  const std::string uid(api::uid(*account->value()));
  if (!wish.account_uid.empty() && wish.account_uid != uid) {
    return std::unexpected(
        conflict({.group = "authentication.k8s.io", .plural = "TokenRequest"}, wish.account,
                 fmt::format("the UID in the token request ({}) does not match the UID of the "
                             "service account ({})",
                             wish.account_uid, uid)));
  }
  json::object kubernetes{{"namespace", json::string(wish.ns)},
                          {"serviceaccount", token_reference(*account->value())}};
  SKIFF_TRY(bind(wish, kubernetes));
  const Time now = clock_.now();
  MintedToken out{.account_uid = uid,
                  .expires = now + std::chrono::seconds(wish.seconds),
                  .audiences = wish.audiences.empty() ? options_.audiences : wish.audiences};
  Time end = out.expires;
  const bool for_us = std::ranges::all_of(out.audiences, [&](const std::string& audience) {
    return std::ranges::find(options_.audiences, audience) != options_.audiences.end();
  });
  if (for_us && wish.seconds == kProjectedSeconds && kubernetes.contains("pod")) {
    end = now + std::chrono::seconds(kExtendedSeconds);
    kubernetes["warnafter"] = seconds_of(out.expires);
  }
  std::string id;
  {
    const std::lock_guard guard(lock_);
    id = random_.uuid();
  }
  const json::object claims{{"aud", words(out.audiences)},
                            {"exp", seconds_of(end)},
                            {"iat", seconds_of(now)},
                            {"iss", json::string(options_.issuer)},
                            {"jti", json::string(id)},
                            {kKubernetes, std::move(kubernetes)},
                            {"nbf", seconds_of(now)},
                            {"sub", json::string(service_account_user(wish.ns, wish.account))}};
  SKIFF_ASSIGN(out.token, options_.codec.sign(claims));
  return out;
}

Result<std::string> ServiceTokens::mint_for_secret(const json::value& account,
                                                   const std::string& secret) const {
  if (!available()) {
    return fail(Code::kServiceUnavailable, "this server has no key to sign tokens with");
  }
  const std::string prefix = "kubernetes.io/serviceaccount/";
  return options_.codec.sign(
      {{"iss", json::string(kLegacyIssuer)},
       {prefix + "namespace", json::string(api::ns(account))},
       {prefix + "secret.name", json::string(secret)},
       {prefix + "service-account.name", json::string(api::name(account))},
       {prefix + "service-account.uid", json::string(api::uid(account))},
       {"sub", json::string(service_account_user(api::ns(account), api::name(account)))}});
}

Result<std::shared_ptr<const json::object>> ServiceTokens::claims_of(std::string_view token) const {
  const std::string key(token);
  {
    const std::lock_guard guard(lock_);
    if (const auto found = verified_.find(key); found != verified_.end()) return found->second;
  }
  SKIFF_ASSIGN(json::object claims, options_.codec.verify(token));
  auto kept = std::make_shared<const json::object>(std::move(claims));
  const std::lock_guard guard(lock_);
  if (verified_.size() >= kRemembered) verified_.clear();
  verified_[key] = kept;
  return kept;
}

Result<TokenBearer> ServiceTokens::check(std::string_view token,
                                         std::vector<std::string> wanted) const {
  if (!available()) return fail(Code::kUnauthorized, "invalid bearer token");
  auto read = claims_of(token);
  // Of what has not even the form of a token, or comes from elsewhere, there is no more to say.
  if (!read && std::ranges::count(token, '.') != 2) {
    return fail(Code::kUnauthorized, "invalid bearer token");
  }
  SKIFF_ASSIGN(const auto claims, std::move(read));
  const std::string_view issuer = claim_text(*claims, {"iss"});
  if (issuer != options_.issuer && issuer != kLegacyIssuer) {
    return fail(Code::kUnauthorized, "invalid bearer token");
  }
  if (wanted.empty()) wanted = options_.audiences;
  std::vector<std::string> given = audience_claim(*claims);
  if (issuer == kLegacyIssuer && given.empty()) given = options_.audiences;
  TokenBearer out;
  for (const std::string& audience : given) {
    if (std::ranges::find(wanted, audience) != wanted.end()) out.audiences.push_back(audience);
  }
  if (out.audiences.empty()) {
    return fail(Code::kUnauthorized,
                fmt::format("token audiences {} is invalid for the target audiences {}",
                            in_quotes(given), in_quotes(wanted)));
  }
  if (issuer == kLegacyIssuer) {
    SKIFF_ASSIGN(out.identity, check_secret(*claims, token));
  } else {
    // Ours always end: one without an end was not made here.
    if (!claims->contains("exp")) {
      return fail(Code::kUnauthorized, "service account token has no expiry");
    }
    SKIFF_TRY(check_times(*claims, clock_.now()));
    SKIFF_ASSIGN(out.identity, check_bound(*claims));
  }
  return out;
}

Result<void> ServiceTokens::still_there(const store::Key& key, std::string_view uid,
                                        std::string_view what) const {
  const store::EntryPtr entry = store_.get(key);
  if (!entry) return fail(Code::kUnauthorized, "service account token has been invalidated");
  const Object object = entry->value();
  if (api::uid(*object) != uid) {
    return fail(Code::kUnauthorized,
                fmt::format("{} UID ({}) does not match service account {} ref claim ({})", what,
                            api::uid(*object), lower(what), uid));
  }
  const auto deleted = api::time_at(*object, {"metadata", "deletionTimestamp"});
  if (deleted && *deleted + kLeeway < clock_.now()) {
    return fail(Code::kUnauthorized, "service account token has been invalidated");
  }
  return {};
}

Result<Identity> ServiceTokens::check_bound(const json::object& claims) const {
  const json::value* private_claims = claims.if_contains(kKubernetes);
  if (private_claims == nullptr || !private_claims->is_object()) {
    return fail(Code::kUnauthorized, "kubernetes.io claim is missing");
  }
  const json::object& mine = private_claims->get_object();
  const std::string ns(claim_text(mine, {"namespace"}));
  const std::string name(claim_text(mine, {"serviceaccount", "name"}));
  const std::string_view uid = claim_text(mine, {"serviceaccount", "uid"});
  if (claim_text(claims, {"sub"}) != service_account_user(ns, name)) {
    return fail(Code::kUnauthorized, "sub claim is invalid");
  }
  const store::EntryPtr account =
      store_.get({.resource = "serviceaccounts", .ns = ns, .name = name});
  if (!account) {
    return fail(Code::kUnauthorized, fmt::format("serviceaccounts {} not found", in_quotes(name)));
  }
  const Object object = account->value();
  if (api::uid(*object) != uid) {
    return fail(
        Code::kUnauthorized,
        fmt::format("service account UID ({}) does not match claim ({})", api::uid(*object), uid));
  }
  const auto deleted = api::time_at(*object, {"metadata", "deletionTimestamp"});
  if (deleted && *deleted + kLeeway < clock_.now()) {
    return fail(Code::kUnauthorized,
                fmt::format("service account {}/{} has been deleted", ns, name));
  }
  Identity out = identity_of(ns, name, uid);
  const std::string_view pod = claim_text(mine, {"pod", "name"}),
                         node = claim_text(mine, {"node", "name"});
  if (const std::string_view secret = claim_text(mine, {"secret", "name"}); !secret.empty()) {
    SKIFF_TRY(still_there({.resource = "secrets", .ns = ns, .name = std::string(secret)},
                          claim_text(mine, {"secret", "uid"}), "secret"));
  }
  if (!pod.empty()) {
    SKIFF_TRY(still_there({.resource = "pods", .ns = ns, .name = std::string(pod)},
                          claim_text(mine, {"pod", "uid"}), "pod"));
    out.extra["authentication.kubernetes.io/pod-name"] = {std::string(pod)};
    out.extra["authentication.kubernetes.io/pod-uid"] = {
        std::string(claim_text(mine, {"pod", "uid"}))};
  } else if (!node.empty()) {
    SKIFF_TRY(still_there({.resource = "nodes", .name = std::string(node)},
                          claim_text(mine, {"node", "uid"}), "node"));
  }
  if (const std::string_view id = claim_text(claims, {"jti"}); !id.empty()) {
    out.extra["authentication.kubernetes.io/credential-id"] = {fmt::format("JTI={}", id)};
  }
  if (!node.empty()) {
    out.extra["authentication.kubernetes.io/node-name"] = {std::string(node)};
    if (const std::string_view node_uid = claim_text(mine, {"node", "uid"}); !node_uid.empty()) {
      out.extra["authentication.kubernetes.io/node-uid"] = {std::string(node_uid)};
    }
  }
  return out;
}

Result<Identity> ServiceTokens::check_secret(const json::object& claims,
                                             std::string_view token) const {
  const auto claim = [&](std::string_view name) {
    return std::string(claim_text(claims, {fmt::format("kubernetes.io/serviceaccount/{}", name)}));
  };
  const std::string ns = claim("namespace"), name = claim("service-account.name");
  const std::string secret_name = claim("secret.name"), uid = claim("service-account.uid");
  if (ns.empty() || name.empty() || secret_name.empty() || uid.empty() ||
      claim_text(claims, {"sub"}) != service_account_user(ns, name)) {
    return fail(Code::kUnauthorized, "sub claim is invalid");
  }
  const store::EntryPtr secret = store_.get({.resource = "secrets", .ns = ns, .name = secret_name});
  if (!secret || api::deleting(*secret->value())) {
    return fail(Code::kUnauthorized, "Token has been invalidated");
  }
  const auto kept = base64::decode(json::get_string(*secret->value(), {"data", "token"}));
  if (!kept || !equal_secrets(*kept, token)) {
    return fail(Code::kUnauthorized, "Token does not match server's copy");
  }
  const store::EntryPtr account =
      store_.get({.resource = "serviceaccounts", .ns = ns, .name = name});
  if (!account || api::deleting(*account->value())) {
    return fail(Code::kUnauthorized,
                fmt::format("ServiceAccount {}/{} has been deleted", ns, name));
  }
  if (api::uid(*account->value()) != uid) {
    return fail(Code::kUnauthorized,
                fmt::format("ServiceAccount UID ({}) does not match claim ({})",
                            api::uid(*account->value()), uid));
  }
  return identity_of(ns, name, uid);
}

}  // namespace skiff::apiserver
