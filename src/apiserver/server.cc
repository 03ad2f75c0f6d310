#include "apiserver/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/admission/service_addresses.h"
#include "apiserver/discovery.h"
#include "apiserver/logs.h"
#include "apiserver/request_body.h"
#include "apiserver/scale.h"
#include "apiserver/status.h"
#include "apiserver/streams/log_socket.h"
#include "apiserver/streams/pod_proxy.h"
#include "apiserver/streams/talk.h"
#include "apiserver/usage.h"
#include "apiserver/wire/refuse.h"

namespace skiff::apiserver {
namespace {

bool mutates(Verb verb) {
  return verb == Verb::kCreate || verb == Verb::kUpdate || verb == Verb::kPatch ||
         verb == Verb::kDelete;
}

bool prefix_matches(std::string_view path, std::string_view prefix) {
  if (path == prefix) return true;
  return prefix != "/" && path.starts_with(prefix) &&
         (prefix.ends_with('/') || path[prefix.size()] == '/');
}

// Impersonation that makes no sense is told in plain text, as the real server does.
http::Response refuse_identity(const http::Request& request, const Error& error) {
  if (error.code != Code::kInternal) return error_response(error);
  return text_response(500, fmt::format("Internal Server Error: {}: {}\n",
                                        in_quotes(request.target), error.message));
}

}  // namespace

Server::Server(store::Store& store, const std::vector<api::Kind>& kinds,
               const schema::Registry& registry, const env::Clock& clock, std::uint64_t seed,
               ServerOptions options)
    : store_(store),
      built_in_(kinds),
      clock_(clock),
      options_(std::move(options)),
      writes_(registry, clock, seed),
      open_api_(writes_.gate()),
      audit_ids_(seed),
      watches_(store, clock),
      collector_(
          store, clock, writes_, [this] { return this->kinds(); },
          [this](Transaction& txn, store::Sync sync) -> Result<void> {
            SKIFF_TRY(commit(txn, sync));
            return {};
          }),
      access_(
          store, clock, seed,
          {.auth = options_.auth, .tokens = options_.tokens, .authority = options_.authority},
          writes_, [this] { return this->kinds(); },
          [this](Transaction& txn, store::Sync sync) -> Result<void> {
            SKIFF_TRY(commit(txn, sync));
            return {};
          }),
      quotas_(
          store, clock,
          [this](const std::string& resource) {
            const auto table = this->kinds();
            const ServedKind* kind = table->by_key(resource);
            return kind != nullptr && kind->resource().namespaced;
          },
          [this](Transaction& txn, store::Sync sync) -> Result<void> {
            SKIFF_TRY(commit(txn, sync));
            return {};
          }),
      services_(
          store, writes_, [this] { return this->kinds(); },
          [this](Transaction& txn, store::Sync sync) -> Result<void> {
            SKIFF_TRY(commit(txn, sync));
            return {};
          }) {
  load_kinds();
}

std::shared_ptr<const KindTable> Server::kinds() const {
  const std::lock_guard guard(kinds_lock_);
  return kinds_;
}

void Server::load_kinds() {
  // One load after another, so that of two changes the later state is the one that stays. Requests
  // do not wait for it: they go on with the table before.
  const std::lock_guard loading(load_lock_);
  auto table = std::make_shared<const KindTable>(built_in_.with(writes_.definitions().all(store_)));
  const std::lock_guard guard(kinds_lock_);
  kinds_.swap(table);
}

Result<store::Revision> Server::commit(Transaction& txn, store::Sync sync) {
  release_service_addresses(txn);
  SKIFF_ASSIGN(const store::Revision revision, txn.commit(sync));
  if (txn.touched(kCrdKey)) load_kinds();
  return revision;
}

bool Server::collect_garbage() {
  const bool collected = collector_.pass();
  const bool kept = access_.pass();
  const bool told = services_.pass();
  return quotas_.pass() || collected || kept || told;
}

http::Response Server::handle(const http::Request& request) {
  const auto url = http::parse_url(request.target);
  if (!url) {
    return error_response({.code = Code::kBadRequest, .message = "the path cannot be understood"});
  }
  http::Response response = dispatch(request, *url);
  encode_answer(request, *url, response);
  audit_ids_.stamp(request, response);
  if (const std::string cookie = access_.sign_in_cookie(request, *url); !cookie.empty()) {
    response.headers.emplace_back("Set-Cookie", cookie);
  }
  return response;
}

http::Response Server::dispatch(const http::Request& request, const http::Url& url) {
  const auto identity = access_.identify(request, url);
  if (!identity) return refuse_identity(request, identity.error());
  const ExtraRoute* extra = extra_route(request, url);
  const auto route = extra != nullptr ? Route() : parse_route(url, request.method);
  if (auto allowed = authorize(request, url, *identity, extra, route.value_or(Route())); !allowed) {
    count(request, route.value_or(Route()), http_code(allowed.error().code));
    // About a path there is nothing to tell, which is not the same as not telling it.
    return allowed.error().resource.empty()
               ? routing_response(allowed.error().code, allowed.error().message)
               : error_response(allowed.error());
  }
  std::string_view path = request.target;
  path = path.substr(0, path.find('?'));
  const bool gaps =
      url.gaps && (!route || route->subresource != "proxy" || proxy_gaps(request.target));
  http::Response response = extra != nullptr    ? extra->handler(request)
                            : !route            ? text_response(404, "404 page not found\n")
                            : gaps              ? refuse_gaps(*kinds(), path, *route)
                            : route->resource() ? answer_resource(request, url, *route, *identity)
                                                : answer_path(request, url);
  count(request, route.value_or(Route()), response.status);
  return response;
}

Result<void> Server::authorize(const http::Request& request, const http::Url& url,
                               const Identity& identity, const ExtraRoute* extra,
                               const Route& route) const {
  if (extra != nullptr && extra->open) return {};
  return access_.authorize(identity, extra != nullptr && extra->needs
                                         ? extra->needs(request, url)
                                         : action_of(route, url, request.method));
}

const ExtraRoute* Server::extra_route(const http::Request& request, const http::Url& url) const {
  const ExtraRoute* best = nullptr;
  for (const ExtraRoute& route : options_.routes) {
    if (!route.method.empty() && route.method != request.method) continue;
    if (!prefix_matches(url.path, route.prefix)) continue;
    if (best == nullptr || route.prefix.size() > best->prefix.size()) best = &route;
  }
  return best;
}

http::Response Server::answer_path(const http::Request& request, const http::Url& url) {
  const auto table = kinds();
  const std::string& first = url.segments.empty() ? url.path : url.segments[0];
  const bool below_a_resource =
      url.segments.size() > (first == "apis" ? 3 : 2) && (first == "api" || first == "apis");
  if (first == "healthz" || first == "livez" || first == "readyz") return health(url);
  if (below_a_resource || (request.method != "GET" && request.method != "HEAD")) {
    return routing_response(Code::kMethodNotAllowed, method_not_allowed().message);
  }
  if (first == "version" && url.segments.size() == 1) return version();
  if (first == "version") {
    return routing_response(Code::kNotFound, "the server could not find the requested resource");
  }
  if (first == "metrics" && url.segments.size() == 1) return metrics();
  std::optional<http::Response> answer = access_.serve_path(url);
  if (answer) return std::move(*answer);
  if (first == "openapi") {
    answer = open_api_.serve(table, request, url);
  } else {
    answer = discover(*table, request, url);
  }
  return answer ? std::move(*answer) : text_response(404, "404 page not found\n");
}

http::Response Server::answer_resource(const http::Request& request, const http::Url& url,
                                       const Route& route, const Identity& identity) {
  const auto table = kinds();
  const ServedKind* kind = table->find(route.group, route.version, route.plural);
  if (auto refused = refuse_route(*table, kind, route, request)) return std::move(*refused);
  http::Response response = answer_kind(request, url, route, identity, table, *kind);
  if (!kind->kind.deprecation.empty()) warn_first(kind->kind.deprecation, response);
  return response;
}

http::Response Server::answer_talk(const http::Request& request, const http::Url& url,
                                   const ServedKind& kind, const Route& route) {
  const bool proxy = route.subresource == "proxy";
  const auto named = proxy ? parse_proxy_name(route.name) : ProxyName{.pod = route.name};
  if (!named) return error_response(named.error());
  const store::EntryPtr pod =
      store_.get({.resource = kind.storage_key(), .ns = route.ns, .name = named->pod});
  if (!pod) return error_response(not_found(kind.resource(), named->pod));
  if (proxy) return serve_proxy(options_.pod_streams, *pod->value(), *named, request);
  return serve_talk(route.subresource, options_.pod_streams, *pod->value(), request, url);
}

http::Response Server::answer_kind(const http::Request& request, const http::Url& url,
                                   const Route& route, const Identity& identity,
                                   const std::shared_ptr<const KindTable>& table,
                                   const ServedKind& served) {
  const ServedKind* kind = &served;
  if (is_usage(*kind)) {
    return serve_usage(store_, options_.usage, *kind, route, request, url, clock_.now());
  }
  if (is_talk(route.subresource) || route.subresource == "proxy") {
    return answer_talk(request, url, *kind, route);
  }
  if (mutates(route.verb)) return answer_write(request, url, *kind, route, identity);
  if (route.verb == Verb::kDeleteCollection) {
    return answer_delete_collection(request, url, *kind, route, identity);
  }
  const auto view = View::of(*kind, request, url);
  if (!view) return error_response(view.error());
  if (route.name.contains('%')) {
    return error_response({.code = Code::kBadRequest,
                           .message = fmt::format(
                               "Name parameter invalid: \"{}\": may not contain '%'", route.name)});
  }
  const store::Key key{.resource = kind->storage_key(), .ns = route.ns, .name = route.name};
  if (route.subresource == "log") {
    const store::EntryPtr pod = store_.get(key);
    if (!pod) {
      http::Response response = error_response(not_found(kind->resource(), route.name));
      hold_until_visible(store_, store_.revision(), response);
      return response;
    }
    http::Response response = serve_logs(options_.pod_streams, *pod->value(), url, clock_.now());
    hold_until_visible(store_, pod->revision(), response);
    return log_over_socket(request, std::move(response));
  }
  if (route.subresource == "scale") return get_scale(store_, *kind, key);
  if (route.verb == Verb::kGet) return get_object(store_, *view, key, url, clock_.now());
  std::string fields = url.param("fieldSelector").value_or("");
  if (!route.name.empty()) {  // a watch of one object
    if (fields.empty()) fields = "metadata.name=" + route.name;
    if (fields != "metadata.name=" + route.name) {
      return error_response(
          {.code = Code::kBadRequest,
           .message = "fieldSelector metadata.name doesn't match requested name"});
    }
  }
  auto selection =
      Selection::parse(*kind, route.ns, url.param("labelSelector").value_or(""), fields);
  if (!selection) return error_response(selection.error());
  if (route.verb == Verb::kWatch) return watches_.open(table, *view, std::move(*selection), url);
  return list_objects(store_, *view, *selection, url, clock_.now(), compaction_.oldest());
}

}  // namespace skiff::apiserver
