#include "apiserver/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/meta.h"
#include "apiserver/status.h"
#include "apiserver/wire/list_options.h"

namespace skiff::apiserver {

namespace {

constexpr std::size_t kEventsPerPull = 256;
constexpr std::size_t kInitialBytesPerPull = 256 * 1024;
constexpr Duration kBookmarkEvery = std::chrono::minutes(1);
constexpr Duration kLastBookmark = std::chrono::seconds(2);  // before the end
constexpr Duration kDefaultTimeout = std::chrono::minutes(45);

}  // namespace

// What the subscription, the clock and the connection share. Only `signal` is called by others than
// the connection's thread.
struct WatchState {
  std::mutex lock;
  bool signaled = false;
  std::function<void()> wake;
  // When the clock should wake the stream next: a bookmark or the end.
  Duration due = {};

  void signal() {
    std::function<void()> call;
    {
      const std::lock_guard guard(lock);
      signaled = true;
      call = std::exchange(wake, nullptr);
    }
    if (call) call();
  }
};

namespace {

class WatchStream final : public http::Stream {
 public:
  WatchStream(store::Store& store, const env::Clock& clock, std::shared_ptr<WatchState> state,
              std::shared_ptr<const KindTable> kinds, const View& view, Selection selection)
      : store_(store),
        clock_(clock),
        state_(std::move(state)),
        kinds_(std::move(kinds)),
        view_(view),
        selection_(std::move(selection)),
        resource_(view.kind->storage_key()) {
    subscription_ = store_.subscribe(resource_, store::Horizon::kVisible,
                                     [state_copy = state_] { state_copy->signal(); });
  }

  void start_after(store::Revision revision) { at_ = revision; }
  // Tells the error as the first and last event.
  void start_with_error(const Error& error) { failed_ = error; }
  void start_with(store::Listing listing, bool marked_end) {
    at_ = listing.revision;
    initial_ = std::move(listing.entries);
    marked_end_ = marked_end;
  }
  void set_times(Duration end, bool bookmarks) {
    end_ = end;
    bookmarks_ = bookmarks;
    plan_bookmark(clock_.elapsed());
    schedule();
  }

  bool pull(std::string& out, std::function<void()> wake) override {
    while (true) {
      {
        const std::lock_guard guard(state_->lock);
        state_->signaled = false;
      }
      if (!fill(out)) return false;
      if (!out.empty()) return true;
      const std::lock_guard guard(state_->lock);
      // Something came between looking and waiting: look again, since nobody will wake us for it.
      if (state_->signaled) continue;
      state_->wake = std::move(wake);
      return true;
    }
  }

 private:
  bool fill(std::string& out) {
    if (failed_) {
      write_line(out, "ERROR", json::serialize(status_body(*failed_)));
      return false;
    }
    if (write_initial(out)) return true;
    auto events = store_.events(resource_, at_, store::Horizon::kVisible, kEventsPerPull);
    if (!events) {
      write_line(out, "ERROR", json::serialize(status_body(expired(at_, store_.revision()))));
      return false;
    }
    for (const store::Event& event : *events) write_event(out, event);
    const Duration now = clock_.elapsed();
    if (now >= end_) return false;
    if (bookmarks_ && now >= next_bookmark_) {
      write_bookmark(out, false);
      plan_bookmark(now);
    }
    schedule();
    return true;
  }

  // The state at the start, in pieces; true while there was something to say.
  bool write_initial(std::string& out) {
    while (initial_at_ < initial_.size() && out.size() < kInitialBytesPerPull) {
      const store::EntryPtr entry = std::move(initial_[initial_at_++]);
      const bool now = selection_.matches(*entry);
      remember(entry->key(), now);
      if (now) write_line(out, "ADDED", rendered(*entry));
    }
    if (initial_at_ == initial_.size() && marked_end_) {
      marked_end_ = false;
      write_bookmark(out, true);
    }
    return !out.empty();
  }

  void write_event(std::string& out, const store::Event& event) {
    at_ = event.entry->revision();
    if (!selection_.in_namespace(event.entry->key())) return;
    const bool before = matched_before(event);
    if (event.type == store::EventType::kDeleted) {
      known_.erase(event.entry->key());
      if (before) write_line(out, "DELETED", rendered(*event.entry));
      return;
    }
    const bool now = selection_.matches(*event.entry);
    remember(event.entry->key(), now);
    if (now) write_line(out, before ? "MODIFIED" : "ADDED", rendered(*event.entry));
    if (!now && before) {
      // It no longer matches: gone, as far as this watcher knows, at the new revision.
      json::value last = *event.previous->value();
      json::set(last, {"metadata", "resourceVersion"}, json::string(std::to_string(at_)));
      write_line(out, "DELETED", rendered_value(last));
    }
  }

  // Whether the watcher knows the object. What was found out once is remembered, so that the state
  // before each event need not be parsed again.
  bool matched_before(const store::Event& event) {
    if (selection_.everything()) return event.previous != nullptr;
    const auto found = known_.find(event.entry->key());
    if (found != known_.end()) return found->second;
    return event.previous != nullptr && selection_.matches(*event.previous);
  }
  void remember(const store::Key& key, bool matches) {
    if (!selection_.everything()) known_[key] = matches;
  }

  std::string rendered(const store::Entry& entry) {
    return view_.as_stored(entry) ? entry.text().str() : rendered_value(*entry.value());
  }

  std::string rendered_value(const json::value& stored) {
    if (view_.wanted.shape != Shape::kTable) return view_.render(stored, clock_.now());
    json::object table = table_head(api::resource_version(stored));
    json::value room;
    table["rows"] = json::array{table_row(*view_.kind, view_.converted(stored, room), view_.rows,
                                          view_.wanted.version, clock_.now())};
    return json::serialize(table);
  }

  // Columns travel with the first table only.
  json::object table_head(std::string_view version) {
    json::object table{{"kind", "Table"},
                       {"apiVersion", "meta.k8s.io/" + view_.wanted.version},
                       {"metadata", {{"resourceVersion", json::string(version)}}},
                       {"columnDefinitions", nullptr}};
    if (!columns_sent_) table["columnDefinitions"] = table_columns(*view_.kind);
    columns_sent_ = true;
    return table;
  }

  void write_bookmark(std::string& out, bool initial_end) {
    const std::string version = std::to_string(at_);
    json::object metadata{{"resourceVersion", version}};
    if (initial_end) {
      metadata["annotations"] = json::object{{"k8s.io/initial-events-end", "true"}};
    }
    json::object object;
    if (view_.wanted.shape == Shape::kTable) {
      object = table_head(version);
      object["rows"] = json::array();
      if (initial_end) object["metadata"] = std::move(metadata);
    } else if (view_.wanted.metadata_only()) {
      object = {{"kind", "PartialObjectMetadata"},
                {"apiVersion", "meta.k8s.io/" + view_.wanted.version},
                {"metadata", std::move(metadata)}};
    } else {
      object = {{"kind", view_.kind->resource().kind},
                {"apiVersion", view_.kind->resource().api_version()},
                {"metadata", std::move(metadata)}};
    }
    write_line(out, "BOOKMARK", json::serialize(object));
  }

  static void write_line(std::string& out, std::string_view type, const std::string& object) {
    out += "{\"type\":\"";
    out += type;
    out += "\",\"object\":";
    out += object;
    out += "}\n";
  }

  // Once a minute, and a last time shortly before the end; not where that is already past.
  void plan_bookmark(Duration now) {
    next_bookmark_ = now + kBookmarkEvery;
    if (end_ - kLastBookmark >= next_bookmark_) return;
    next_bookmark_ = end_ - kLastBookmark > now ? end_ - kLastBookmark : Duration::max();
  }

  void schedule() {
    const std::lock_guard guard(state_->lock);
    state_->due = bookmarks_ ? std::min(end_, next_bookmark_) : end_;
  }

  store::Store& store_;
  const env::Clock& clock_;
  const std::shared_ptr<WatchState> state_;
  const std::shared_ptr<const KindTable> kinds_;
  const View view_;
  const Selection selection_;
  const std::string resource_;
  store::Revision at_ = 0;
  std::vector<store::EntryPtr> initial_;
  std::size_t initial_at_ = 0;
  bool marked_end_ = false;
  std::optional<Error> failed_;
  std::map<store::Key, bool> known_;  // of a watch with a selector: what matched when last seen
  bool columns_sent_ = false;
  bool bookmarks_ = false;
  Duration end_ = {};
  Duration next_bookmark_ = {};
  // Last: destroyed first, so that nothing is called on a half-destroyed stream.
  std::unique_ptr<store::Subscription> subscription_;
};

Duration timeout_of(const ListOptions& options) {
  const std::int64_t seconds = options.timeout_s.value_or(0);
  if (seconds == 0) return kDefaultTimeout;
  // A day is longer than any client asks; more would overflow the sum with the clock.
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, 86'400));
}

}  // namespace

http::Response Watches::open(std::shared_ptr<const KindTable> kinds, const View& view,
                             Selection selection, const http::Url& url) {
  const auto options = read_list_options(url, true);
  if (!options) return error_response(options.error());
  if (view.wanted.encoding == Encoding::kYaml) {
    return error_response({.code = Code::kNotAcceptable,
                           .message = "only the following media types are accepted: "
                                      "application/json;stream=watch"});
  }
  const std::string& version = options->resource_version;
  const auto asked = version.empty() ? Result<store::Revision>(0) : parse_revision(version);
  if (!asked) return unclassified_response(asked.error().message);
  const bool initial = options->initial_events.value_or(false);
  if (initial) {
    if (auto reached = check_reached(store_, *asked); !reached) {
      return error_response(reached.error());
    }
  }
  const std::string resource = view.kind->storage_key();
  const bool only_changes = *asked > 0 && !initial;
  const bool from_now = !initial && *asked == 0;
  auto state = std::make_shared<WatchState>();
  const std::string ns = selection.ns();
  auto stream = std::make_unique<WatchStream>(store_, clock_, state, std::move(kinds), view,
                                              std::move(selection));
  http::Response response = json_response(200, "");
  if (only_changes) {
    stream->start_after(*asked);
    if (!store_.events(resource, *asked, store::Horizon::kVisible, 1)) {
      stream->start_with_error(expired(*asked, store_.revision()));
    }
  } else {
    store::Listing listing = list_visible(store_, resource, ns, *asked);
    if (from_now) listing.entries.clear();
    hold_until_visible(store_, listing.revision, response);
    // Whoever takes bookmarks is told where the beginning ends.
    stream->start_with(std::move(listing), initial && options->bookmarks);
  }
  stream->set_times(clock_.elapsed() + timeout_of(*options), options->bookmarks);
  response.stream = std::move(stream);
  const std::lock_guard guard(lock_);
  std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
  open_.push_back(state);
  return response;
}

void Watches::tick() {
  const Duration now = clock_.elapsed();
  std::vector<std::shared_ptr<WatchState>> due;
  {
    const std::lock_guard guard(lock_);
    std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
    for (const auto& weak : open_) {
      if (auto state = weak.lock()) due.push_back(std::move(state));
    }
  }
  for (const auto& state : due) {
    {
      const std::lock_guard guard(state->lock);
      if (state->due > now) continue;
    }
    state->signal();
  }
}

std::size_t Watches::count() const {
  const std::lock_guard guard(lock_);
  return static_cast<std::size_t>(
      std::ranges::count_if(open_, [](const auto& weak) { return !weak.expired(); }));
}

}  // namespace skiff::apiserver
