#include "apiserver/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "api/meta.h"
#include "apiserver/status.h"
#include "apiserver/upkeep/fit.h"
#include "apiserver/wire/list_body.h"
#include "apiserver/wire/list_options.h"

namespace skiff::apiserver {
namespace {

struct ListPlan {
  std::size_t limit = 0;  // 0: all
  std::optional<Continue> from = {};
  std::optional<store::Revision> exact = {};
  store::Revision not_older_than = 0;
};

Result<ListPlan> plan_list(const store::Store& store, const http::Url& url) {
  SKIFF_ASSIGN(const ListOptions options, read_list_options(url, false));
  ListPlan plan{.limit = options.limit};
  const std::string& version = options.resource_version;
  if (!options.token.empty()) {
    SKIFF_ASSIGN(plan.from, decode_continue(options.token));
    if (!version.empty() && version != "0") {
      return fail(Code::kBadRequest,
                  "specifying resource version is not allowed when using continue");
    }
    if (plan.from->revision > 0) plan.exact = static_cast<store::Revision>(plan.from->revision);
  } else if (!version.empty()) {
    const auto asked = parse_revision(version);
    if (!asked) {
      return fail(Code::kBadRequest,
                  fmt::format("invalid resource version: {}", asked.error().message));
    }
    SKIFF_TRY(check_reached(store, *asked));
    plan.not_older_than = *asked;
    if (options.match == "Exact") plan.exact = *asked;
    // Whatever is at hand, all of it: the real server answers this from its cache, which knows no
    // pages.
    if (*asked == 0) plan.limit = 0;
  }
  return plan;
}

// History no longer reaches back to the snapshot. A page can still go on, in the newest state.
http::Response too_old(const ListPlan& plan) {
  if (!plan.from) {
    return error_response({.code = Code::kExpired,
                           .message = "The resourceVersion for the provided list is too old."});
  }
  json::object body = status_body(
      {.code = Code::kExpired,
       .message =
           "The provided continue parameter is too old to display a consistent list result. You "
           "can start a new list without the continue parameter, or use the continue token in "
           "this response to retrieve the remainder of the results. Continuing with the provided "
           "token results in an inconsistent list - objects that were created, modified, or "
           "deleted between the time the first chunk was returned and now may show up in the "
           "list."});
  body["metadata"] = json::object{
      {"continue",
       encode_continue({.revision = -1, .ns = plan.from->ns, .name = plan.from->name})}};
  return json_response(410, json::serialize(body));
}

// What Go calls the type of an answer; it stands in a sentence about shapes.
std::string go_type_of_kind(const ServedKind& kind, std::string_view suffix) {
  if (kind.custom) return fmt::format("*unstructured.Unstructured{}", suffix);
  const std::string& group = kind.resource().group;
  const std::string_view package =
      group.empty() ? "core" : std::string_view(group).substr(0, group.find('.'));
  return fmt::format("*{}.{}{}", package, kind.resource().kind, suffix);
}

std::string list_head(const View& view, store::Revision revision, const std::string& token,
                      std::size_t remaining) {
  const api::Resource& resource = view.kind->resource();
  json::object metadata{{"resourceVersion", std::to_string(revision)}};
  // The real server always says it of custom objects, even where there is nothing to continue.
  if (view.kind->custom && view.wanted.shape == Shape::kObject) metadata["continue"] = "";
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
    case Shape::kPartialMetadataList:
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

// Long lists of objects that go out as they are stored are written while they are read.
constexpr std::size_t kLongList = 200;

http::Response show_list(const View& view, std::string head, std::vector<store::EntryPtr> entries,
                         Time now) {
  const auto as_stored = [&](const store::EntryPtr& entry) { return view.as_stored(*entry); };
  if (view.plain && entries.size() >= kLongList && std::ranges::all_of(entries, as_stored)) {
    http::Response response = json_response(200, "");
    response.stream = std::make_unique<ListBody>(std::move(head), std::move(entries));
    return response;
  }
  std::string body = std::move(head);
  bool first = true;
  for (const store::EntryPtr& entry : entries) {
    if (!std::exchange(first, false)) body += ',';
    if (view.wanted.shape == Shape::kTable) {
      const Object object = entry->value();
      json::value room;
      body += json::serialize(table_row(*view.kind, view.converted(*object, room), view.rows,
                                        view.wanted.version, now));
    } else {
      body += view.render(*entry, now);
    }
  }
  return json_response(200, body + "]}");
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
  View view{.kind = &kind, .plain = !pretty(request, url)};
  SKIFF_ASSIGN(view.wanted, negotiate(http::header(request.headers, "Accept"), !is_question(kind)));
  if (view.wanted.encoding != Encoding::kJson) view.plain = false;
  if (const auto include = url.param("includeObject")) {
    if (*include == "None") view.rows = RowObject::kNone;
    if (*include == "Object") view.rows = RowObject::kObject;
  }
  return view;
}

bool View::as_stored(const store::Entry& entry) const {
  if (wanted.shape != Shape::kObject) return false;
  if (!kind->custom) return !kind->converts();
  if (entry.revision() < kind->defined_at) return false;
  const std::string version = kind->resource().api_version();
  // Most objects tell their version first, so that nothing need be parsed.
  if (entry.starts_with(fmt::format(R"({{"apiVersion":"{}")", version))) return true;
  return api::api_version(*entry.value()) == version;
}

const json::value& View::converted(const json::value& stored, json::value& room) const {
  const std::string version = kind->resource().api_version();
  const bool older = kind->custom && api::revision(stored) < kind->defined_at;
  if (!older && api::api_version(stored) == version) return stored;
  room = stored;
  kind->from_storage(room);
  if (older && kind->schema) fit_custom(*kind->schema, room);
  return room;
}

std::string View::render(const json::value& stored, Time now) const {
  json::value room;
  switch (wanted.shape) {
    case Shape::kObject:
      return json::serialize(converted(stored, room));
    case Shape::kPartialMetadata:
    case Shape::kPartialMetadataList:
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
  return as_stored(entry) ? entry.text().str() : render(*entry.value(), now);
}

Result<store::Revision> parse_revision(std::string_view text) {
  store::Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return fail(Code::kBadRequest, fmt::format("resourceVersion: Invalid value: \"{}\": {}", text,
                                               not_a_number("ParseUint", text)));
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
  // Both are sorted by key: one walk along the two, which copies no key.
  std::vector<store::EntryPtr> entries;
  entries.reserve(now.entries.size() + before.size());
  auto changed = before.begin();
  const auto take_changed = [&] {
    if (changed->second) entries.push_back(std::move(changed->second));
    ++changed;
  };
  for (store::EntryPtr& entry : now.entries) {
    while (changed != before.end() && changed->first < entry->key()) take_changed();
    if (changed != before.end() && changed->first == entry->key()) {
      take_changed();
    } else {
      entries.push_back(std::move(entry));
    }
  }
  while (changed != before.end()) take_changed();
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
  if (view.wanted.shape == Shape::kPartialMetadataList) {
    return error_response(
        {.code = Code::kNotAcceptable,
         .message = fmt::format("you requested PartialObjectMetadataList, but the requested object "
                                "is not a list ({})",
                                go_type_of_kind(*view.kind, ""))});
  }
  if (const auto version = url.param("resourceVersion"); version && !version->empty()) {
    const auto asked = parse_revision(*version);
    if (!asked) return unclassified_response(asked.error().message);
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
                            const http::Url& url, Time now, store::Revision oldest) {
  const auto plan = plan_list(store, url);
  if (!plan) return error_response(plan.error());
  if (view.wanted.shape == Shape::kPartialMetadata) {
    return error_response(
        {.code = Code::kNotAcceptable,
         .message = fmt::format(
             "you requested PartialObjectMetadata, but the requested object is a list ({})",
             go_type_of_kind(*view.kind, "List"))});
  }
  const std::string resource = view.kind->storage_key();
  store::Listing listing;
  if (plan->exact) {
    if (*plan->exact < oldest) return too_old(*plan);
    auto entries = snapshot_at(store, resource, selection.ns(), *plan->exact);
    if (!entries && entries.error().code == Code::kExpired) return too_old(*plan);
    if (!entries) return error_response(entries.error());
    listing = {.revision = *plan->exact, .entries = std::move(*entries)};
  } else {
    listing = list_visible(store, resource, selection.ns(), plan->not_older_than);
  }
  std::vector<store::EntryPtr> chosen;
  std::string token;
  std::size_t index = 0, remaining = 0;
  for (store::EntryPtr& entry : listing.entries) {
    ++index;
    const store::Key& key = entry->key();
    if (plan->from && std::tie(key.ns, key.name) <= std::tie(plan->from->ns, plan->from->name)) {
      continue;
    }
    if (!selection.matches(*entry)) continue;
    if (plan->limit > 0 && chosen.size() == plan->limit) {
      const store::Key& last = chosen.back()->key();
      token = encode_continue({.revision = static_cast<std::int64_t>(listing.revision),
                               .ns = last.ns,
                               .name = last.name});
      // With a selector nobody has counted the rest.
      if (selection.everything()) remaining = listing.entries.size() - index + 1;
      break;
    }
    chosen.push_back(std::move(entry));
  }
  http::Response response =
      show_list(view, list_head(view, listing.revision, token, remaining), std::move(chosen), now);
  hold_until_visible(store, listing.revision, response);
  return response;
}

}  // namespace skiff::apiserver
