#include "client/remote/remote_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "client/remote/discovery.h"
#include "client/remote/managers.h"
#include "client/remote/remote_watch.h"
#include "client/remote/requests.h"
#include "client/remote/status.h"

namespace skiff::client {

RemoteClient::RemoteClient(Access access, Post post, RemoteOptions options)
    : post_(post ? std::move(post) : Post([](std::function<void()> fn) { fn(); })),
      options_(std::move(options)),
      session_(std::make_shared<Session>(std::move(access),
                                         SessionOptions{.timeout = options_.timeout,
                                                        .user_agent = options_.user_agent,
                                                        .pace = options_.pace})),
      workers_(std::make_unique<Workers>(options_.workers)) {}

RemoteClient::~RemoteClient() {
  session_->shut_down();
  workers_.reset();
}

Result<http::Response> RemoteClient::raw(http::Request request) { return session_->send(request); }

Result<std::unique_ptr<net::StreamingResponse>> RemoteClient::raw_stream(http::Request request) {
  return session_->open(request);
}

Result<json::value> RemoteClient::call(http::Request request) {
  SKIFF_ASSIGN(const http::Response response, raw(std::move(request)));
  return body_of(response);
}

Result<json::value> RemoteClient::get(const api::Resource& resource, std::string_view ns,
                                      std::string_view name) {
  return call({.target = object_target(resource, ns, name)});
}

Result<json::value> RemoteClient::read_page(const api::Resource& resource, std::string_view ns,
                                            const ListOptions& options, std::string_view limit,
                                            std::string_view next) {
  return call({.target = list_target(resource, ns, options, limit, next)});
}

Result<List> RemoteClient::list(const api::Resource& resource, std::string_view ns,
                                const ListOptions& options) {
  auto paged = list_pages(resource, ns, options, std::to_string(options_.page_items));
  // The server has forgotten the state that the first page showed: one answer holds together.
  if (!paged && paged.error().code == Code::kExpired) return list_pages(resource, ns, options, {});
  return paged;
}

Result<List> RemoteClient::list_pages(const api::Resource& resource, std::string_view ns,
                                      const ListOptions& options, std::string_view limit) {
  List out;
  std::string next;
  do {
    SKIFF_ASSIGN(json::value page, read_page(resource, ns, options, limit, next));
    out.revision = api::revision(page);
    next = json::get_string(page, {"metadata", "continue"});
    json::value* items = page.is_object() ? page.as_object().if_contains("items") : nullptr;
    if (items == nullptr || !items->is_array()) continue;
    for (json::value& item : items->as_array()) {
      // Servers leave these out of the items of a list of built-in kinds.
      if (item.is_object()) {
        item.as_object().emplace("apiVersion", resource.api_version());
        item.as_object().emplace("kind", resource.kind);
      }
      out.items.push_back(std::make_shared<const json::value>(std::move(item)));
    }
  } while (!next.empty());
  return out;
}

namespace {

// Whether the object is the one that a write's preconditions name.
bool holds(const Write& write, const json::value& now) {
  return (write.uid.empty() || api::uid(now) == write.uid) &&
         (write.resource_version.empty() || api::resource_version(now) == write.resource_version);
}

}  // namespace

// A patch with a stale uid or a failed test is 422 to Kubernetes; to our callers a precondition
// that fails is a conflict, and only a look at the object tells it from an invalid patch.
bool RemoteClient::failed_precondition(const Write& write, const Result<json::value>& result) {
  const bool patch = write.verb == Verb::kMergePatch || write.verb == Verb::kJsonPatch;
  const bool conditional = !write.uid.empty() || !write.resource_version.empty();
  if (result || !patch || !conditional || result.error().code != Code::kInvalid) return false;
  const auto now = get(write.resource, write.ns, write.name);
  return now && !holds(write, *now);  // not known: the server's own answer stands
}

Result<json::value> RemoteClient::write(const Write& write) {
  auto result = call(write_request(write));
  if (failed_precondition(write, result)) result.error().code = Code::kConflict;
  return result;
}

// As write(), where only the metadata of the answer counts, which costs both sides less.
Result<json::value> RemoteClient::write_briefly(const Write& write) {
  if (changes_nothing(write)) {
    SKIFF_ASSIGN(json::value now, call(metadata_request(write)));
    if (!holds(write, now)) {
      return fail(Code::kConflict, fmt::format("{} \"{}\" is no longer as it was seen",
                                               write.resource.plural, write.name));
    }
    return now;
  }
  SKIFF_ASSIGN(const http::Response response, raw(brief_request(write)));
  const bool done = response.status >= 200 && response.status <= 299;
  auto result =
      done ? body_of({.status = response.status, .body = without_managers(response.body, kObject)})
           : body_of(response);
  if (failed_precondition(write, result)) result.error().code = Code::kConflict;
  return result;
}

void RemoteClient::submit(std::vector<Write> writes, Done done) {
  const bool patient = std::ranges::none_of(writes, &Write::synced);
  auto task = [this, writes = std::move(writes), done] {
    std::vector<Result<json::value>> results;
    for (const Write& one : writes) {
      results.push_back(write_briefly(one));
      if (!results.back()) break;
    }
    // std::function must be copyable, so what it carries is shared.
    post_([done, shared = std::make_shared<std::vector<Result<json::value>>>(std::move(results))] {
      done(std::move(*shared));
    });
  };
  if (patient ? workers_->add_patient(std::move(task)) : workers_->add(std::move(task))) return;
  post_([done] {
    done({fail(Code::kTooManyRequests, "too many writes are waiting for the API server")});
  });
}

Result<std::unique_ptr<Watch>> RemoteClient::watch(const api::Resource& resource,
                                                   std::uint64_t after_revision,
                                                   std::function<void()> ready) {
  return open_watch(session_, resource, after_revision,
                    {.events_max = options_.watch_events, .patience = options_.watch_patience},
                    std::move(ready));
}

void RemoteClient::when_safe(std::function<void()> fn) { post_(std::move(fn)); }

Result<std::vector<Discovered>> RemoteClient::discover_all() {
  std::vector<Discovered> out;
  const auto append = [&](std::vector<Discovered> more) {
    out.insert(out.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  };
  for (const std::string root : {"/api", "/apis"}) {
    SKIFF_ASSIGN(const json::value answer,
                 call({.target = root, .headers = {{"Accept", std::string(kDiscoveryAccept)}}}));
    if (is_aggregated(answer)) {
      append(kinds_of_aggregated(answer));
      continue;
    }
    for (const std::string& path : version_paths(answer)) {
      // A group behind a broken extension server must not hide all the others.
      if (const auto version = call({.target = path})) append(kinds_of_version(*version));
    }
  }
  return out;
}

Result<std::vector<api::Kind>> RemoteClient::discover() {
  SKIFF_ASSIGN(std::vector<Discovered> all, discover_all());
  std::vector<api::Kind> out;
  out.reserve(all.size());
  for (Discovered& one : all) out.push_back(std::move(one.kind));
  return out;
}

}  // namespace skiff::client
