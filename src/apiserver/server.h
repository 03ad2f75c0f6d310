// The Kubernetes API on the embedded store: one function from requests to answers, safe to call
// from any number of threads, and the same checks for code in this process.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/access/access.h"
#include "apiserver/admission/quota_keeper.h"
#include "apiserver/kinds.h"
#include "apiserver/openapi.h"
#include "apiserver/pod_streams.h"
#include "apiserver/reads.h"
#include "apiserver/upkeep/cold_storage.h"
#include "apiserver/upkeep/compaction.h"
#include "apiserver/upkeep/garbage.h"
#include "apiserver/upkeep/local_services.h"
#include "apiserver/usage_source.h"
#include "apiserver/watch.h"
#include "apiserver/wire/audit_ids.h"
#include "apiserver/writes.h"
#include "base/http.h"
#include "client/client.h"
#include "env/env.h"
#include "schema/registry.h"
#include "store/store.h"

namespace skiff::apiserver {

// A path of another part of the product, behind the same authentication and authorization.
struct ExtraRoute {
  std::string method = {};  // empty: every method
  // A whole path, or the start of one that ends before a slash. The longest prefix wins; "/" is
  // only the root itself.
  std::string prefix = {};
  http::Handler handler = {};
  bool open = false;  // also for callers without credentials: static files
  // What the caller must be allowed to do; absent: this method on this path, as a non-resource URL.
  std::function<Action(const http::Request& request, const http::Url& url)> needs = {};
};

struct ServerOptions {
  std::string version = "v1.34.0+skiff";
  AuthOptions auth = {};
  TokenOptions tokens = {};
  std::string authority = {};  // the certificate that pods are to trust, as PEM
  PodStreams* pod_streams = nullptr;
  UsageSource usage = {};  // absent: nobody measures
  std::vector<ExtraRoute> routes = {};
  // What others count, as Prometheus reads it; absent: nothing.
  std::function<std::string()> metrics = {};
  int api_port = 7443;  // what Service default/kubernetes points to
};

class Server {
 public:
  Server(store::Store& store, const std::vector<api::Kind>& kinds, const schema::Registry& registry,
         const env::Clock& clock, std::uint64_t seed, ServerOptions options);

  // Namespaces and services that must always exist. Does nothing where they do, but for the port
  // of Service default/kubernetes, which follows the options.
  Result<void> bootstrap();

  http::Response handle(const http::Request& request);

  // Writes as one store transaction: each is admitted against the state that the ones before it
  // leave; all or none. One result per write that was tried, the failing one last; the others then
  // carry an error too, since nothing was written.
  std::vector<Result<json::value>> transact(std::vector<client::Write> writes);

  // One pass of the garbage collector; true if it changed something. Call until false whenever the
  // store changes (store::Store::subscribe_all) and at least once a minute for events that expire.
  bool collect_garbage();
  // About once a second: ends watches whose time is over, sends bookmarks, and now and then gives
  // up old revisions.
  void tick();

  // Before handle() is first called.
  void set_pod_streams(PodStreams* streams) { options_.pod_streams = streams; }
  void set_usage(UsageSource usage) { options_.usage = std::move(usage); }
  void set_metrics(std::function<std::string()> text) { options_.metrics = std::move(text); }
  void add_route(ExtraRoute route) { options_.routes.push_back(std::move(route)); }

  std::shared_ptr<const KindTable> kinds() const;
  store::Store& objects() { return store_; }
  // Work that was done since the start. Tests count it: a change costs its own size.
  std::uint64_t definitions_read() const { return writes_.definitions().reads(); }
  std::uint64_t documents_written() const { return open_api_.written(); }
  Access& access() { return access_; }

 private:
  http::Response dispatch(const http::Request& request, const http::Url& url);
  http::Response answer_resource(const http::Request& request, const http::Url& url,
                                 const Route& route, const Identity& identity);
  http::Response answer_talk(const http::Request& request, const http::Url& url,
                             const ServedKind& kind, const Route& route);
  http::Response answer_kind(const http::Request& request, const http::Url& url, const Route& route,
                             const Identity& identity,
                             const std::shared_ptr<const KindTable>& table, const ServedKind& kind);
  http::Response answer_path(const http::Request& request, const http::Url& url);
  http::Response answer_write(const http::Request& request, const http::Url& url,
                              const ServedKind& kind, const Route& route, const Identity& identity);
  http::Response answer_delete_collection(const http::Request& request, const http::Url& url,
                                          const ServedKind& kind, const Route& route,
                                          const Identity& identity);
  Result<WriteRequest> read_write(const http::Request& request, const http::Url& url,
                                  const ServedKind& kind, const Route& route,
                                  const Identity& identity);
  // Runs the write until nobody comes between reading and committing.
  http::Response perform(const WriteRequest& write, const View& view);
  Result<void> authorize(const http::Request& request, const http::Url& url,
                         const Identity& identity, const ExtraRoute* extra,
                         const Route& route) const;
  const ExtraRoute* extra_route(const http::Request& request, const http::Url& url) const;

  http::Response health(const http::Url& url) const;
  http::Response metrics() const;
  http::Response version() const;
  void count(const http::Request& request, const Route& route, int status);

  Result<store::Revision> commit(Transaction& txn, store::Sync sync);
  void load_kinds();

  store::Store& store_;
  const KindTable built_in_;
  const env::Clock& clock_;
  ServerOptions options_;
  Writes writes_;
  OpenApi open_api_;
  AuditIds audit_ids_;
  Watches watches_;
  Collector collector_;
  Access access_;
  QuotaKeeper quotas_;
  LocalServices services_;
  Compaction compaction_;
  ColdStorage cold_storage_;

  std::mutex load_lock_;
  mutable std::mutex kinds_lock_;  // never held for longer than a pointer takes
  std::shared_ptr<const KindTable> kinds_;
  mutable std::mutex counts_lock_;
  std::map<std::pair<std::string, int>, std::uint64_t> counts_;  // (verb, code)
};

}  // namespace skiff::apiserver
