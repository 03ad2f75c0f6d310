// How requests and in-process clients come to the write path, and back with an answer.
#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/apply/apply_body.h"
#include "apiserver/apply/managed.h"
#include "apiserver/request_body.h"
#include "apiserver/scale.h"
#include "apiserver/server.h"
#include "apiserver/status.h"
#include "apiserver/wire/body_check.h"
#include "apiserver/wire/delete_options.h"
#include "apiserver/wire/list_options.h"
#include "apiserver/wire/patch_body.h"
#include "base/guarded.h"
#include "base/strings.h"
#include "schema/prune.h"

namespace skiff::apiserver {
namespace {

// Each try reads anew; so many in a row would need a writer on the same object in every gap.
constexpr int kWriteAttempts = 16;
// So many writes take so long that somebody else's come in between each time, as where a quota
// counts both. Who sends them had better hear of it than have all of them redone for nothing.
constexpr std::size_t kManyWrites = 50;
constexpr int kAttemptsOfMany = 2;
constexpr std::size_t kManagerBytes = 128;

bool somebody_was_quicker(const Error& error) {
  return error.code == Code::kConflict || error.code == Code::kAlreadyExists ||
         error.code == Code::kNotFound;
}

// A refusal that tells the state of the store may not be heard before that state is on disk: it
// could still be lost.
http::Response refuse_write(const store::Store& store, const Error& error) {
  http::Response response = error_response(error);
  if (somebody_was_quicker(error) || error.code == Code::kForbidden ||
      error.code == Code::kInvalid) {
    hold_until_visible(store, store.revision(), response);
  }
  return response;
}

store::Sync sync_of(const ServedKind& kind) {
  return kind.kind.lazy ? store::Sync::kLazy : store::Sync::kSynced;
}

PatchType patch_of(client::Verb verb) {
  if (verb == client::Verb::kApply) return PatchType::kApply;
  return verb == client::Verb::kJsonPatch ? PatchType::kJson : PatchType::kMerge;
}

Verb server_verb(client::Verb verb) {
  switch (verb) {
    case client::Verb::kCreate:
      return Verb::kCreate;
    case client::Verb::kUpdate:
      return Verb::kUpdate;
    case client::Verb::kMergePatch:
    case client::Verb::kJsonPatch:
    case client::Verb::kApply:
      return Verb::kPatch;
    case client::Verb::kDelete:
      return Verb::kDelete;
  }
  return Verb::kNone;
}

// Takes the body out of the write: a copy of a large object costs as much as half of writing it.
Result<WriteRequest> from_client(const KindTable& kinds, client::Write& write) {
  const api::Resource& r = write.resource;
  const ServedKind* kind = kinds.find(r.group, r.version, r.plural);
  if (kind == nullptr || !allows(*kind, write.subresource, server_verb(write.verb))) {
    return fail(Code::kNotFound,
                fmt::format("{} of {} in {} is not served", verb_name(server_verb(write.verb)),
                            r.key(), r.api_version()));
  }
  WriteRequest request{.verb = server_verb(write.verb),
                       .kind = kind,
                       .ns = write.ns,
                       .name = write.name,
                       .subresource = write.subresource,
                       .body = std::move(write.body),
                       .patch = patch_of(write.verb),
                       .force = write.force,
                       .uid = write.uid,
                       .resource_version = write.resource_version,
                       .validation = FieldValidation::kIgnore,
                       .user = {.user = "system:skiff", .groups = {std::string(kMasters)}},
                       .manager = write.field_manager.empty() ? "skiff" : write.field_manager};
  if (request.verb == Verb::kDelete) {
    SKIFF_TRY(read_delete_options(request.body, http::Url(), request));
  }
  return request;
}

// What client-go calls itself: "kubectl/v1.34.4 (linux/amd64) ..." manages as kubectl.
std::string default_manager(const http::Request& request) {
  const std::string_view agent = http::header(request.headers, "User-Agent");
  const std::string_view name = agent.substr(0, agent.find('/'));
  return name.empty() ? "unknown" : std::string(name.substr(0, kManagerBytes));
}

// What the text gives twice: of a built-in kind both are read, of any other the last.
Result<void> read_doubled(const http::Request& request, const std::vector<std::string>& in_yaml,
                          WriteRequest& write) {
  if (write.body.is_null()) write.body.emplace_object();
  if (!in_yaml.empty()) {
    write.duplicated = {"yaml: unmarshal errors:\n  " + join(in_yaml, "\n  ")};
    return {};
  }
  if (!trim(request.body).starts_with('{')) return {};
  write.duplicated = schema::duplicate_fields(request.body);
  if (write.duplicated.empty() || write.kind->custom) return {};
  write.text = request.body;
  SKIFF_ASSIGN(write.body, json::parse_joining(json::with_replacements(request.body)));
  return {};
}

json::value answer_value(const ServedKind& kind, const Transaction& txn, const Outcome& outcome) {
  if (outcome.answer && api::kind(*outcome.answer) != kind.resource().kind) return *outcome.answer;
  const store::EntryPtr entry = outcome.answer ? nullptr : txn.result(outcome.key);
  json::value object = outcome.answer ? *outcome.answer : entry ? *entry->value() : json::value();
  if (kind.converts()) kind.from_storage(object);
  return object;
}

std::vector<Result<json::value>> nothing_written(std::size_t before, const Error& error) {
  Error others = error;
  others.message =
      "not written, because another write of the same transaction failed: " + error.message;
  std::vector<Result<json::value>> results(before, std::unexpected(std::move(others)));
  results.push_back(std::unexpected(error));
  return results;
}

}  // namespace

Result<WriteRequest> Server::read_write(const http::Request& request, const http::Url& url,
                                        const ServedKind& kind, const Route& route,
                                        const Identity& identity) {
  WriteRequest write{.verb = route.verb,
                     .kind = &kind,
                     .ns = route.ns,
                     .name = route.name,
                     .subresource = route.subresource,
                     .user = identity};
  const bool deletes = route.verb == Verb::kDelete || route.verb == Verb::kDeleteCollection;
  if (!deletes) SKIFF_TRY(read_options(request, url, write));
  if (write.manager.empty()) write.manager = default_manager(request);
  if (route.verb == Verb::kPatch) {
    SKIFF_ASSIGN(write.patch, patch_type(request, kind));
    SKIFF_TRY(read_patch_options(url, write));
    if (write.patch == PatchType::kApply) {
      SKIFF_TRY(read_apply_body(request, write));
      return write;
    }
    SKIFF_ASSIGN(write.body, parse_patch(request, write.patch));
    return write;
  }
  if (deletes) {
    SKIFF_ASSIGN(const json::value options,
                 parse_delete_options(request, writes_.gate().registry()));
    SKIFF_TRY(read_delete_options(options, url, write));
    return write;
  }
  std::vector<std::string> doubled;
  SKIFF_ASSIGN(write.body,
               parse_body(request, writes_.gate().registry(), kind.resource().kind, doubled));
  SKIFF_TRY(read_doubled(request, doubled, write));
  if (route.subresource.empty() || route.subresource == "status") {
    SKIFF_TRY(check_body(*kinds(), write, request.body));
  }
  return write;
}

http::Response Server::answer_write(const http::Request& request, const http::Url& url,
                                    const ServedKind& kind, const Route& route,
                                    const Identity& identity) {
  const auto write = read_write(request, url, kind, route, identity);
  if (!write) return error_response(write.error());
  const auto view = View::of(kind, request, url);
  if (!view) return error_response(view.error());
  return perform(*write, *view);
}

http::Response Server::perform(const WriteRequest& write, const View& view) {
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    Transaction txn(store_);
    auto outcome = writes_.run(txn, write);
    if (!outcome) {
      http::Response refusal = refuse_write(store_, outcome.error());
      // Of a body that cannot be read nobody knows what else is strange about it.
      if (outcome.error().code != Code::kBadRequest) add_warnings(txn.warnings, refusal);
      return refusal;
    }
    http::Response response = json_response(outcome->status, "");
    store::Revision revision = 0;
    if (!write.dry_run && txn.changes()) {
      const auto committed = commit(txn, sync_of(*write.kind));
      if (!committed && somebody_was_quicker(committed.error())) continue;
      if (!committed) return error_response(committed.error());
      revision = *committed;
    }
    if (outcome->answer) {
      const bool object = api::kind(*outcome->answer) == write.kind->resource().kind;
      response.body =
          object ? view.render(*outcome->answer, clock_.now()) : json::serialize(*outcome->answer);
    } else if (outcome->scale_of != nullptr) {
      const Object now = write.dry_run ? txn.get(outcome->key) : txn.result(outcome->key)->value();
      response.body = json::serialize(scale_or_null(*outcome->scale_of, *now));
      revision = std::max(revision, api::revision(*now));
    } else if (write.dry_run) {
      response.body = view.render(*txn.get(outcome->key), clock_.now());
    } else {
      const store::EntryPtr entry = txn.result(outcome->key);
      response.body = view.render(*entry, clock_.now());
      revision = std::max(revision, entry->revision());
    }
    add_warnings(txn.warnings, response);
    hold_until_visible(store_, revision, response);
    return response;
  }
  return refuse_write(store_, modified(write.kind->resource(), write.name));
}

http::Response Server::answer_delete_collection(const http::Request& request, const http::Url& url,
                                                const ServedKind& kind, const Route& route,
                                                const Identity& identity) {
  const auto write = read_write(request, url, kind, route, identity);
  if (!write) return error_response(write.error());
  if (const auto options = read_list_options(url, false); !options) {
    return error_response(options.error());
  }
  const auto selection = Selection::parse(kind, route.ns, url.param("labelSelector").value_or(""),
                                          url.param("fieldSelector").value_or(""));
  if (!selection) return error_response(selection.error());
  const auto view = View::of(kind, request, url);
  if (!view) return error_response(view.error());
  const store::Listing listing = store_.list(kind.storage_key(), route.ns);
  std::string items;
  store::Revision last = listing.revision;
  for (const store::EntryPtr& entry : listing.entries) {
    if (!selection->matches(*entry)) continue;
    WriteRequest one = *write;
    one.verb = Verb::kDelete;
    one.ns = entry->key().ns;
    one.name = entry->key().name;
    const http::Response response = perform(one, *view);
    // Gone already is what was asked for.
    if (response.status != 200 && response.status != 404) {
      return {.status = response.status,
              .headers = response.headers,
              .body = response.body,
              .after_revision = response.after_revision};
    }
    last = std::max(last, response.after_revision);
    if (!items.empty()) items += ',';
    items += View{.kind = &kind}.render(*entry, clock_.now());
  }
  http::Response response = json_response(
      200,
      fmt::format(R"({{"kind":"{}List","apiVersion":"{}","metadata":{{{}"resourceVersion":"{}"}},)"
                  R"("items":[{}]}})",
                  kind.resource().kind, kind.resource().api_version(),
                  kind.custom ? R"("continue":"",)" : "", last, items));
  hold_until_visible(store_, last, response);
  return response;
}

std::vector<Result<json::value>> Server::transact(std::vector<client::Write> writes) {
  const int attempts = writes.size() > kManyWrites ? kAttemptsOfMany : kWriteAttempts;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const auto table = kinds();
    Transaction txn(store_);
    std::vector<Outcome> outcomes;
    std::vector<const ServedKind*> of;
    store::Sync sync = store::Sync::kLazy;
    for (client::Write& write : writes) {
      auto request = from_client(*table, write);
      if (!request) return nothing_written(outcomes.size(), request.error());
      // A client in this process has no connection that would answer for an exception.
      auto outcome = guarded([&] { return writes_.run(txn, *request); });
      write.body = std::move(request->body);  // for another attempt
      if (!outcome) return nothing_written(outcomes.size(), outcome.error());
      if (write.synced && !request->kind->kind.lazy) sync = store::Sync::kSynced;
      outcomes.push_back(std::move(*outcome));
      of.push_back(request->kind);
    }
    const auto committed = commit(txn, sync);
    if (!committed && somebody_was_quicker(committed.error())) continue;
    if (!committed) return nothing_written(writes.size() - 1, committed.error());
    std::vector<Result<json::value>> results;
    results.reserve(outcomes.size());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      results.emplace_back(answer_value(*of[i], txn, outcomes[i]));
    }
    return results;
  }
  return nothing_written(writes.size() - 1,
                         {.code = Code::kConflict,
                          .message = "the objects changed each time this transaction was tried"});
}

}  // namespace skiff::apiserver
