#include "apiserver/reads.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "api/meta.h"
#include "apiserver/status.h"
#include "base/base64.h"

namespace skiff::apiserver {
namespace {

// Where a list goes on: after which key, in which snapshot.
struct Continue {
  store::Revision revision = 0;
  std::string ns = {};
  std::string name = {};
};

std::string encode(const Continue& token) {
  return base64::encode(json::serialize(json::object{
      {"v", "skiff/v1"}, {"rv", token.revision}, {"ns", token.ns}, {"name", token.name}}));
}

Result<Continue> decode_continue(std::string_view text) {
  const auto bytes = base64::decode(text);
  const auto parsed = bytes ? json::parse(*bytes) : Result<json::value>(json::value());
  if (!parsed || json::get_string(*parsed, {"v"}) != "skiff/v1" ||
      !json::get_int(*parsed, {"rv"})) {
    return fail(Code::kBadRequest, "continue key is not valid: encoded by another server");
  }
  return Continue{.revision = static_cast<store::Revision>(*json::get_int(*parsed, {"rv"})),
                  .ns = std::string(json::get_string(*parsed, {"ns"})),
                  .name = std::string(json::get_string(*parsed, {"name"}))};
}

struct ListPlan {
  std::size_t limit = 0;  // 0: all
  std::optional<Continue> from = {};
  std::optional<store::Revision> exact = {};
  store::Revision not_older_than = 0;
};

Result<ListPlan> plan_list(const store::Store& store, const http::Url& url) {
  ListPlan plan;
  if (const auto text = url.param("limit"); text && !text->empty()) {
    const auto [end, error] =
        std::from_chars(text->data(), text->data() + text->size(), plan.limit);
    if (error != std::errc{} || end != text->data() + text->size()) {
      return fail(Code::kBadRequest, fmt::format("limit \"{}\" is not a number", *text));
    }
  }
  const std::string version = url.param("resourceVersion").value_or("");
  const std::string match = url.param("resourceVersionMatch").value_or("");
  const std::string token = url.param("continue").value_or("");
  if (url.flag("sendInitialEvents")) {
    return fail(Code::kBadRequest, "sendInitialEvents is forbidden for list");
  }
  if (!match.empty() && match != "Exact" && match != "NotOlderThan") {
    return fail(
        Code::kBadRequest,
        fmt::format("resourceVersionMatch \"{}\" is neither Exact nor NotOlderThan", match));
  }
  if (!match.empty() && (version.empty() || !token.empty())) {
    return fail(Code::kBadRequest,
                token.empty()
                    ? "resourceVersionMatch is forbidden unless resourceVersion is provided"
                    : "resourceVersionMatch is forbidden when continue is provided");
  }
  if (!token.empty()) {
    if (!version.empty() && version != "0") {
      return fail(Code::kBadRequest,
                  "specifying resource version is not allowed when using continue");
    }
    SKIFF_ASSIGN(plan.from, decode_continue(token));
    plan.exact = plan.from->revision;
  } else if (!version.empty()) {
    SKIFF_ASSIGN(const store::Revision asked, parse_revision(version));
    SKIFF_TRY(check_reached(store, asked));
    plan.not_older_than = asked;
    if (match == "Exact") {
      if (asked == 0) {
        return fail(Code::kBadRequest,
                    "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
      }
      plan.exact = asked;
    }
  }
  return plan;
}

std::string list_head(const View& view, store::Revision revision, const std::string& token,
                      std::size_t remaining) {
  const api::Resource& resource = view.kind->resource();
  json::object metadata{{"resourceVersion", std::to_string(revision)}};
  if (!token.empty()) {
    metadata["continue"] = token;
    if (remaining > 0) metadata["remainingItemCount"] = remaining;
  }
  json::object head;
  switch (view.wanted.shape) {
    case Shape::kObject:
      head = {{"kind", resource.kind + "List"}, {"apiVersion", resource.api_version()}};
      break;
    case Shape::kTable:
      head = {{"kind", "Table"}, {"apiVersion", "meta.k8s.io/" + view.wanted.version}};
      break;
    case Shape::kPartialMetadata:
      head = {{"kind", "PartialObjectMetadataList"},
              {"apiVersion", "meta.k8s.io/" + view.wanted.version}};
      break;
  }
  head["metadata"] = std::move(metadata);
  if (view.wanted.shape == Shape::kTable) head["columnDefinitions"] = table_columns(*view.kind);
  std::string text = json::serialize(head);
  text.pop_back();
  return text + (view.wanted.shape == Shape::kTable ? ",\"rows\":[" : ",\"items\":[");
}

// What has changed since `revision`, as it was then; null where it was absent. kExpired where
// history does not reach back so far.
Result<store::EntryPtr> entry_at(const store::Store& store, const store::Key& key,
                                 store::Revision revision) {
  while (true) {
    SKIFF_ASSIGN(const auto events,
                 store.events(key.resource, revision, store::Horizon::kCommitted, 1024));
    if (events.empty()) return nullptr;
    for (const store::Event& event : events) {
      if (event.entry->key() == key) return event.previous;
    }
    revision = events.back().entry->revision();
  }
}

}  // namespace

Result<View> View::of(const ServedKind& kind, const http::Request& request, const http::Url& url) {
  const std::string_view accept = http::header(request.headers, "Accept");
  if (!accepts_json(accept)) {
    return fail(Code::kNotAcceptable,
                "only the following media types are accepted: application/json");
  }
  View view{.kind = &kind, .wanted = wanted_shape(accept)};
  if (const auto include = url.param("includeObject")) {
    if (*include == "None") view.rows = RowObject::kNone;
    if (*include == "Object") view.rows = RowObject::kObject;
  }
  return view;
}

bool View::as_stored(const store::Entry& entry) const {
  if (wanted.shape != Shape::kObject) return false;
  if (!kind->custom) return !kind->converts();
  const std::string version = kind->resource().api_version();
  // Most objects tell their version first, so that nothing need be parsed.
  if (entry.bytes().starts_with(fmt::format(R"({{"apiVersion":"{}")", version))) return true;
  return api::api_version(*entry.value()) == version;
}

const json::value& View::converted(const json::value& stored, json::value& room) const {
  const std::string version = kind->resource().api_version();
  if (api::api_version(stored) == version) return stored;
  room = stored;
  kind->from_storage(room);
  return room;
}

std::string View::render(const json::value& stored, Time now) const {
  json::value room;
  switch (wanted.shape) {
    case Shape::kObject:
      return json::serialize(converted(stored, room));
    case Shape::kPartialMetadata:
      return json::serialize(partial_metadata(stored, wanted.version));
    case Shape::kTable:
      break;
  }
  const json::value& object = converted(stored, room);
  return json::serialize(
      json::object{{"kind", "Table"},
                   {"apiVersion", "meta.k8s.io/" + wanted.version},
                   {"metadata", {{"resourceVersion", json::string(api::resource_version(object))}}},
                   {"columnDefinitions", table_columns(*kind)},
                   {"rows", json::array{table_row(*kind, object, rows, wanted.version, now)}}});
}

std::string View::render(const store::Entry& entry, Time now) const {
  return as_stored(entry) ? entry.bytes() : render(*entry.value(), now);
}

Result<store::Revision> parse_revision(std::string_view text) {
  store::Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return fail(Code::kBadRequest, fmt::format("resourceVersion: Invalid value: \"{}\"", text));
  }
  return revision;
}

Result<void> check_reached(const store::Store& store, store::Revision revision) {
  const store::Revision now = store.revision();
  if (revision <= now) return {};
  return std::unexpected(Error{
      .code = Code::kTimeout,
      .message = fmt::format("Timeout: Too large resource version: {}, current: {}", revision, now),
      .causes = {{.reason = "ResourceVersionTooLarge", .message = "Too large resource version"}},
      .retry_after_s = 1});
}

Error expired(store::Revision asked, store::Revision now) {
  return {.code = Code::kExpired,
          .message = fmt::format("too old resource version: {} ({})", asked, now)};
}

void hold_until_visible(const store::Store& store, store::Revision revision,
                        http::Response& response) {
  if (revision > store.visible()) response.after_revision = revision;
}

Result<std::vector<store::EntryPtr>> snapshot_at(const store::Store& store,
                                                 std::string_view resource, std::string_view ns,
                                                 store::Revision revision) {
  store::Listing now = store.list(resource, ns);
  if (now.revision == revision) return std::move(now.entries);
  if (now.revision < revision) return std::unexpected(check_reached(store, revision).error());
  // The first event of an object after the revision tells what it was at the revision.
  std::map<store::Key, store::EntryPtr> before;
  store::Revision at = revision;
  while (true) {
    auto events = store.events(resource, at, store::Horizon::kCommitted, 1024);
    if (!events) return std::unexpected(expired(revision, now.revision));
    bool beyond = events->empty();
    for (const store::Event& event : *events) {
      at = event.entry->revision();
      if (at > now.revision) {
        beyond = true;
        break;
      }
      if (!ns.empty() && event.entry->key().ns != ns) continue;
      before.try_emplace(event.entry->key(), event.previous);
    }
    if (beyond) break;
  }
  if (before.empty()) return std::move(now.entries);
  std::map<store::Key, store::EntryPtr> state;
  for (store::EntryPtr& entry : now.entries) {
    const store::Key key = entry->key();
    state.emplace(key, std::move(entry));
  }
  for (auto& [key, entry] : before) {
    if (entry) {
      state[key] = entry;
    } else {
      state.erase(key);
    }
  }
  std::vector<store::EntryPtr> entries;
  entries.reserve(state.size());
  for (auto& [key, entry] : state) entries.push_back(std::move(entry));
  return entries;
}

store::Listing list_visible(const store::Store& store, std::string_view resource,
                            std::string_view ns, store::Revision not_older_than) {
  const store::Revision visible = store.visible();
  if (not_older_than <= visible) {
    // Where history is too short for that, the newest state is told when it is on disk.
    if (auto entries = snapshot_at(store, resource, ns, visible)) {
      return {.revision = visible, .entries = std::move(*entries)};
    }
  }
  return store.list(resource, ns);
}

http::Response get_object(const store::Store& store, const View& view, const store::Key& key,
                          const http::Url& url, Time now) {
  if (const auto version = url.param("resourceVersion"); version && !version->empty()) {
    const auto asked = parse_revision(*version);
    if (!asked) return error_response(asked.error());
    if (auto reached = check_reached(store, *asked); !reached) {
      return error_response(reached.error());
    }
  }
  const store::Revision visible = store.visible();
  store::EntryPtr entry = store.get(key);
  // A change that the disk takes in a moment is waited for; but not for a disk that is full.
  const bool stuck = entry && entry->revision() > visible && !store.stats().refusing.empty();
  if (!entry || stuck) {
    // Its change or removal may still be lost: until that is on disk the object is as it was.
    auto was = entry_at(store, key, visible);
    if (!was) {
      http::Response response = error_response(not_found(view.kind->resource(), key.name));
      hold_until_visible(store, store.revision(), response);
      return response;
    }
    entry = std::move(*was);
  }
  if (!entry) return error_response(not_found(view.kind->resource(), key.name));
  http::Response response = json_response(200, view.render(*entry, now));
  hold_until_visible(store, entry->revision(), response);
  return response;
}

http::Response list_objects(const store::Store& store, const View& view, const Selection& selection,
                            const http::Url& url, Time now) {
  const auto plan = plan_list(store, url);
  if (!plan) return error_response(plan.error());
  const std::string resource = view.kind->storage_key();
  store::Listing listing;
  if (plan->exact) {
    auto entries = snapshot_at(store, resource, selection.ns(), *plan->exact);
    if (!entries) return error_response(entries.error());
    listing = {.revision = *plan->exact, .entries = std::move(*entries)};
  } else {
    listing = list_visible(store, resource, selection.ns(), plan->not_older_than);
  }
  std::string items, token;
  std::size_t taken = 0, index = 0, remaining = 0;
  const store::Key* last = nullptr;
  for (const store::EntryPtr& entry : listing.entries) {
    ++index;
    const store::Key& key = entry->key();
    if (plan->from && std::tie(key.ns, key.name) <= std::tie(plan->from->ns, plan->from->name)) {
      continue;
    }
    if (!selection.matches(*entry)) continue;
    if (plan->limit > 0 && taken == plan->limit) {
      token = encode({.revision = listing.revision, .ns = last->ns, .name = last->name});
      // With a selector nobody has counted the rest.
      if (selection.everything()) remaining = listing.entries.size() - index + 1;
      break;
    }
    if (taken++ > 0) items += ',';
    last = &key;
    if (view.wanted.shape == Shape::kTable) {
      const Object object = entry->value();
      json::value room;
      items += json::serialize(table_row(*view.kind, view.converted(*object, room), view.rows,
                                         view.wanted.version, now));
    } else {
      items += view.render(*entry, now);
    }
  }
  http::Response response =
      json_response(200, list_head(view, listing.revision, token, remaining) + items + "]}");
  hold_until_visible(store, listing.revision, response);
  return response;
}

}  // namespace skiff::apiserver
