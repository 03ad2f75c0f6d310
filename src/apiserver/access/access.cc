#include "apiserver/access/access.h"

#include "api/meta.h"
#include "apiserver/access/bootstrap_policy.h"
#include "apiserver/access/escalation.h"
#include "apiserver/access/impersonation.h"
#include "apiserver/access/reviews.h"
#include "apiserver/status.h"

namespace skiff::apiserver {
namespace {

// Other than what names and uids are drawn from, though grown from the same seed.
constexpr std::uint64_t kTokenSeed = 0x746f6b656e73;

}  // namespace

Access::Access(store::Store& store, const env::Clock& clock, std::uint64_t seed,
               AccessOptions options, Writes& writes, Housekeeper::Kinds kinds,
               Housekeeper::Commit commit)
    : store_(store),
      clock_(clock),
      kinds_(std::move(kinds)),
      tokens_(store, clock, seed ^ kTokenSeed, std::move(options.tokens)),
      authenticator_(std::move(options.auth), tokens_),
      authorizer_(store),
      housekeeper_(store, writes, tokens_, std::move(options.authority), kinds_,
                   std::move(commit)) {
  writes.set_hooks(
      {.answer =
           [this, &writes](const WriteRequest& request) {
             return answer_question({.authorizer = authorizer_,
                                     .authenticator = authenticator_,
                                     .tokens = tokens_,
                                     .gate = writes.gate(),
                                     .clock = clock_},
                                    request);
           },
       .guard = [this](const WriteRequest& request, const json::value& object,
                       const json::value* old) { return guard(request, object, old); },
       .created =
           [this](Transaction& txn, const WriteRequest& request, const json::value& object) {
             if (request.kind->resource().key() == "namespaces") {
               housekeeper_.furnish(txn, std::string(api::name(object)));
             }
           }});
}

Result<Identity> Access::identify(const http::Request& request, const http::Url& url) const {
  auto identity = authenticator_.authenticate(request, url);
  if (!identity || !impersonates(request.headers)) return identity;
  return impersonate(*authorizer_.policy(), *identity, request.headers);
}

Result<void> Access::guard(const WriteRequest& request, const json::value& object,
                           const json::value* old) const {
  // The server's own writes, and the administrator's.
  if (request.user.member_of(kMasters)) return {};
  // An apply that makes a new object is a patch on the wire, and a create all the same.
  if (old == nullptr && request.verb != Verb::kCreate) {
    const api::Resource& resource = request.kind->resource();
    SKIFF_TRY(authorize(request.user, {.verb = "create",
                                       .group = resource.group,
                                       .resource = resource.plural,
                                       .ns = request.ns,
                                       .name = request.name}));
  }
  if (request.kind->resource().group != kRbacGroup) return {};
  return check_escalation(*authorizer_.policy(), request, object, old);
}

std::optional<http::Response> Access::serve_path(const http::Url& url) const {
  if (!tokens_.available()) return {};
  std::string_view path = url.path;
  if (path.ends_with('/')) path.remove_suffix(1);
  http::Response response = json_response(200, "");
  if (path == "/openid/v1/jwks") {
    response.headers[0].second = "application/jwk-set+json";
    response.body = json::serialize(tokens_.codec().key_set);
  } else if (path == "/.well-known/openid-configuration") {
    json::array algorithms;
    for (const std::string& name : tokens_.codec().algorithms) {
      algorithms.emplace_back(json::string(name));
    }
    response.body = json::serialize(
        json::object{{"issuer", json::string(tokens_.issuer())},
                     {"jwks_uri", json::string(tokens_.issuer() + "/openid/v1/jwks")},
                     {"response_types_supported", json::array{"id_token"}},
                     {"subject_types_supported", json::array{"public"}},
                     {"id_token_signing_alg_values_supported", std::move(algorithms)}});
  } else {
    return {};
  }
  response.headers[1].second = "public, max-age=3600";
  return response;
}

std::vector<client::Write> Access::bootstrap_writes() const {
  const auto table = kinds_();
  std::vector<client::Write> out;
  for (const json::value& expected : bootstrap_policy()) {
    const bool role = api::kind(expected) == "ClusterRole";
    const std::string plural = role ? "clusterroles" : "clusterrolebindings";
    const ServedKind* kind = table->by_key(plural + "." + std::string(kRbacGroup));
    if (kind == nullptr) continue;
    client::Write write{.resource = kind->resource(), .body = expected};
    const std::string name(api::name(expected));
    if (const store::EntryPtr entry =
            store_.get({.resource = kind->resource().key(), .name = name})) {
      write.body = reconciled(*entry->value(), expected);
      if (write.body.is_null()) continue;
      write.verb = client::Verb::kUpdate;
      write.name = name;
    }
    out.push_back(std::move(write));
  }
  return out;
}

}  // namespace skiff::apiserver
