// Get and list: current objects, pages of one snapshot, tables and metadata.
#pragma once

#include <string>

#include "apiserver/kinds.h"
#include "apiserver/negotiate.h"
#include "apiserver/selection.h"
#include "apiserver/table.h"
#include "base/http.h"
#include "env/env.h"
#include "store/store.h"

namespace skiff::apiserver {

// How one answer shows objects: the version and shape the client asked for.
struct View {
  const ServedKind* kind = nullptr;
  Wanted wanted = {};
  RowObject rows = RowObject::kMetadata;
  bool plain = false;  // compact JSON: stored bytes need no second encoding

  static Result<View> of(const ServedKind& kind, const http::Request& request,
                         const http::Url& url);
  // The stored bytes can be sent as they are. Decided for each entry: a definition may have named
  // another version for storage when it was written.
  bool as_stored(const store::Entry& entry) const;
  // The object in the version of this endpoint: itself, or a copy that is put into `room`.
  const json::value& converted(const json::value& stored, json::value& room) const;
  // One object alone, in this view.
  std::string render(const store::Entry& entry, Time now) const;
  std::string render(const json::value& stored, Time now) const;
};

http::Response get_object(const store::Store& store, const View& view, const store::Key& key,
                          const http::Url& url, Time now);
// Exact revisions before `oldest` are no longer told.
http::Response list_objects(const store::Store& store, const View& view, const Selection& selection,
                            const http::Url& url, Time now, store::Revision oldest = 0);

// The objects of a resource as they were at `revision`, from the present and the history of events;
// kExpired where history does not reach back so far.
Result<std::vector<store::EntryPtr>> snapshot_at(const store::Store& store,
                                                 std::string_view resource, std::string_view ns,
                                                 store::Revision revision);

// The objects of a resource for somebody outside: as of the newest visible revision, so that a disk
// that refuses writes does not keep what is already known from being read. As of the newest commit
// only where `not_older_than` demands it; the answer must then be held.
store::Listing list_visible(const store::Store& store, std::string_view resource,
                            std::string_view ns, store::Revision not_older_than);

Result<store::Revision> parse_revision(std::string_view text);
// kTimeout ("Too large resource version") where the store has not come so far.
Result<void> check_reached(const store::Store& store, store::Revision revision);
Error expired(store::Revision asked, store::Revision oldest_hint);
// Holds the answer until what it tells is on disk.
void hold_until_visible(const store::Store& store, store::Revision revision,
                        http::Response& response);

}  // namespace skiff::apiserver
