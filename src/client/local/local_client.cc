#include "client/local/local_client.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/selection.h"
#include "apiserver/status.h"
#include "store/store.h"

namespace skiff::client {
namespace {

Result<const apiserver::ServedKind*> served(const apiserver::KindTable& kinds,
                                            const api::Resource& resource) {
  const apiserver::ServedKind* kind = kinds.find(resource.group, resource.version, resource.plural);
  if (kind != nullptr) return kind;
  return fail(Code::kNotFound,
              fmt::format("{} in {} is not served", resource.key(), resource.api_version()));
}

Object shown(const std::string& wanted, const store::Entry& entry) {
  Object stored = entry.value();
  if (api::api_version(*stored) == wanted) return stored;
  json::value object = *stored;
  object.as_object()["apiVersion"] = wanted;
  return std::make_shared<const json::value>(std::move(object));
}

// The store has the bytes anyway.
class LocalSource final : public Source {
 public:
  // `version` instead of the kind, whose table would be kept after it has been replaced.
  LocalSource(std::shared_ptr<const std::string> version, store::EntryPtr entry)
      : version_(std::move(version)), entry_(std::move(entry)) {}

  Object value() const override { return shown(*version_, *entry_); }

 private:
  const std::shared_ptr<const std::string> version_;
  const store::EntryPtr entry_;
};

EventType type_of(store::EventType type) {
  switch (type) {
    case store::EventType::kAdded:
      return EventType::kAdded;
    case store::EventType::kModified:
      return EventType::kModified;
    case store::EventType::kDeleted:
      return EventType::kDeleted;
  }
  return EventType::kModified;
}

// Whether others wrote in between each time it was tried. Of a write that is refused for what it
// says the error names the object; this one is about the transaction.
bool overtaken(const std::vector<Result<json::value>>& answers) {
  if (answers.empty() || answers.back()) return false;
  const Error& error = answers.back().error();
  return error.code == Code::kConflict && error.name.empty();
}

// Of thousands of objects the loop asks only which they are and at what revision. To free the rest
// would take it as long as a turn or two.
void shorten(std::vector<Result<json::value>>& answers) {
  for (Result<json::value>& answer : answers) {
    if (!answer || json::find(*answer, {"metadata"}) == nullptr) continue;
    json::object kept;
    for (const std::string_view field : {"name", "namespace", "uid", "resourceVersion"}) {
      if (const json::value* there = json::find(*answer, {"metadata", field})) {
        kept[field] = *there;
      }
    }
    *answer = json::object{{"metadata", std::move(kept)}};
  }
}

class LocalWatch final : public Watch {
 public:
  LocalWatch(store::Store& store, const api::Resource& resource, std::uint64_t after,
             std::function<void()> ready)
      : store_(store),
        resource_(resource.key()),
        version_(std::make_shared<const std::string>(resource.api_version())),
        at_(after),
        subscription_(store.subscribe(resource_, store::Horizon::kCommitted, std::move(ready))) {}

  Result<std::vector<Event>> poll() override {
    SKIFF_ASSIGN(const auto events,
                 store_.events(resource_, at_, store::Horizon::kCommitted, kEventsPerPoll));
    std::vector<Event> out;
    out.reserve(events.size());
    for (const store::Event& event : events) {
      at_ = event.entry->revision();
      out.push_back({.type = type_of(event.type),
                     .object = shown(*version_, *event.entry),
                     .source = std::make_shared<const LocalSource>(version_, event.entry)});
    }
    return out;
  }

 private:
  store::Store& store_;
  const std::string resource_;
  const std::shared_ptr<const std::string> version_;
  store::Revision at_;
  std::unique_ptr<store::Subscription> subscription_;
};

}  // namespace

LocalClient::LocalClient(apiserver::Server& server, Post post, Post elsewhere)
    : server_(server),
      store_(server.objects()),
      post_(std::move(post)),
      elsewhere_(std::move(elsewhere)) {}

Result<json::value> LocalClient::get(const api::Resource& resource, std::string_view ns,
                                     std::string_view name) {
  const auto kinds = server_.kinds();
  SKIFF_ASSIGN(const apiserver::ServedKind* kind, served(*kinds, resource));
  const store::EntryPtr entry =
      store_.get({.resource = resource.key(), .ns = std::string(ns), .name = std::string(name)});
  if (!entry) return std::unexpected(apiserver::not_found(resource, name));
  return *shown(kind->resource().api_version(), *entry);
}

Result<List> LocalClient::list(const api::Resource& resource, std::string_view ns,
                               const ListOptions& options) {
  const auto kinds = server_.kinds();
  SKIFF_ASSIGN(const apiserver::ServedKind* kind, served(*kinds, resource));
  SKIFF_ASSIGN(const auto selection, apiserver::Selection::parse(*kind, ns, options.label_selector,
                                                                 options.field_selector));
  const store::Listing listing = store_.list(resource.key(), ns);
  List out{.revision = listing.revision};
  out.items.reserve(listing.entries.size());
  out.sources.reserve(listing.entries.size());
  const auto version = std::make_shared<const std::string>(kind->resource().api_version());
  for (const store::EntryPtr& entry : listing.entries) {
    if (!selection.matches(*entry)) continue;
    out.items.push_back(shown(*version, *entry));
    out.sources.push_back(std::make_shared<const LocalSource>(version, entry));
  }
  return out;
}

Result<json::value> LocalClient::write(const Write& write) {
  return std::move(server_.transact({write}).back());
}

void LocalClient::submit(std::vector<Write> writes, Done done) {
  using Answers = std::vector<Result<json::value>>;
  if (!elsewhere_ || writes.size() <= kLongSubmit) {
    return done(writes.empty() ? Answers() : server_.transact(std::move(writes)));
  }
  std::string ns = writes.front().ns;
  if (crowded_->erase(ns) > 0) {
    Answers answers = server_.transact(std::move(writes));
    if (overtaken(answers)) crowded_->insert(std::move(ns));
    return done(std::move(answers));
  }
  elsewhere_([&server = server_, post = post_, crowded = crowded_, ns = std::move(ns),
              writes = std::move(writes), done = std::move(done)]() mutable {
    auto answers = std::make_shared<Answers>(server.transact(std::move(writes)));
    shorten(*answers);
    post([answers, crowded, ns = std::move(ns), done = std::move(done)] {
      if (overtaken(*answers)) crowded->insert(ns);
      done(std::move(*answers));
    });
  });
}

Result<std::unique_ptr<Watch>> LocalClient::watch(const api::Resource& resource,
                                                  std::uint64_t after_revision,
                                                  std::function<void()> ready) {
  const auto kinds = server_.kinds();
  SKIFF_ASSIGN(const apiserver::ServedKind* kind, served(*kinds, resource));
  return std::make_unique<LocalWatch>(store_, kind->resource(), after_revision, std::move(ready));
}

void LocalClient::when_safe(std::function<void()> fn) {
  // Everything read or written so far is at most the newest commit.
  store_.when_visible(store_.revision(),
                      [post = post_, fn = std::move(fn)]() mutable { post(std::move(fn)); });
}

}  // namespace skiff::client
