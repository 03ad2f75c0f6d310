#include "control/testing/memory_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"

namespace skiff::control::testing {
namespace {

void merge(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::object{};
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      target.get_object().erase(key);
    } else {
      merge(target.get_object()[key], value);
    }
  }
}

Error named(Code code, const client::Write& write, std::string_view name, std::string_view what) {
  return {.code = code,
          .message = fmt::format("{} \"{}\" {}", write.resource.key(), name, what),
          .group = write.resource.group,
          .resource = write.resource.plural,
          .name = std::string(name)};
}

// Fields that decide whether a change is a new generation: all but metadata and status.
bool same_intent(const json::value& a, const json::value& b) {
  const auto strip = [](json::value v) {
    v.as_object().erase("metadata");
    v.as_object().erase("status");
    return v;
  };
  return strip(a) == strip(b);
}

bool removed_at_once(const client::Write& write, const json::value& object) {
  if (!json::get_array(object, {"metadata", "finalizers"}).empty()) return false;
  if (write.resource.key() != "pods") return true;
  const std::string_view phase = json::get_string(object, {"status", "phase"});
  return json::get_int(write.body, {"gracePeriodSeconds"}) == 0 || phase == "Succeeded" ||
         phase == "Failed" || json::get_string(object, {"spec", "nodeName"}).empty();
}

Object copy_of(const Object& object) { return std::make_shared<const json::value>(*object); }

class MemorySource final : public client::Source {
 public:
  MemorySource(Object object, std::shared_ptr<std::size_t> count)
      : object_(std::move(object)), count_(std::move(count)) {}

  Object value() const override {
    ++*count_;
    return copy_of(object_);
  }

 private:
  const Object object_;
  const std::shared_ptr<std::size_t> count_;
};

}  // namespace

// Reads the server's log from its own position.
class MemoryWatch : public client::Watch {
 public:
  MemoryWatch(MemoryServer& server, std::string resource, std::uint64_t after,
              std::function<void()> ready)
      : server_(server), resource_(std::move(resource)), after_(after), id_(server.next_watch_++) {
    server_.ready_[id_] = std::move(ready);
    next_ = std::ranges::lower_bound(server_.log_, after + 1, {}, &MemoryServer::Logged::revision) -
            server_.log_.begin();
  }
  ~MemoryWatch() override { server_.ready_.erase(id_); }

  Result<std::vector<client::Event>> poll() override {
    if (after_ < server_.oldest_) return fail(Code::kExpired, "history is gone");
    std::vector<client::Event> out;
    for (; next_ < server_.log_.size(); ++next_) {
      if (server_.log_[next_].resource != resource_) continue;
      client::Event& event = out.emplace_back(server_.log_[next_].event);
      if (!server_.gives_sources) continue;
      event.source = std::make_shared<const MemorySource>(event.object, server_.read_again_);
      event.object = copy_of(event.object);
    }
    after_ = server_.revision_;
    return out;
  }

 private:
  MemoryServer& server_;
  const std::string resource_;
  std::uint64_t after_;
  std::size_t next_ = 0;
  const std::uint64_t id_;
};

MemoryServer::MemoryServer(const env::Clock& clock, std::uint64_t seed)
    : clock_(clock), random_(seed) {}

Result<json::value> MemoryServer::get(const api::Resource& resource, std::string_view ns,
                                      std::string_view name) {
  const auto& table = tables_[resource.key()];
  const auto it = table.find({.ns = std::string(ns), .name = std::string(name)});
  if (it == table.end()) {
    return fail(Code::kNotFound, fmt::format("{} \"{}\" not found", resource.plural, name));
  }
  return *it->second;
}

Result<client::List> MemoryServer::list(const api::Resource& resource, std::string_view ns,
                                        const client::ListOptions&) {
  client::List out{.revision = revision_};
  for (const auto& [key, object] : tables_[resource.key()]) {
    if (!ns.empty() && key.ns != ns) continue;
    out.items.push_back(gives_sources ? copy_of(object) : object);
    if (gives_sources) {
      out.sources.push_back(std::make_shared<const MemorySource>(object, read_again_));
    }
  }
  return out;
}

Result<std::unique_ptr<client::Watch>> MemoryServer::watch(const api::Resource& resource,
                                                           std::uint64_t after_revision,
                                                           std::function<void()> ready) {
  if (after_revision < oldest_) return fail(Code::kExpired, "history is gone");
  return std::make_unique<MemoryWatch>(*this, resource.key(), after_revision, std::move(ready));
}

Result<json::value> MemoryServer::write(const client::Write& write) {
  Result<json::value> answer = fail(Code::kInternal, "no answer");
  submit({write},
         [&](std::vector<Result<json::value>> answers) { answer = std::move(answers.back()); });
  return answer;
}

void MemoryServer::submit(std::vector<client::Write> writes, Done done) {
  undo_.clear();
  const std::size_t log_size = log_.size();
  const std::uint64_t revision = revision_;
  std::vector<Result<json::value>> answers;
  for (const client::Write& write : writes) {
    std::optional<Error> refused = refuse ? refuse(write) : std::nullopt;
    answers.push_back(refused ? std::unexpected(std::move(*refused)) : apply(write));
    if (answers.back()) continue;
    if (transactional) {
      roll_back(0, log_size, revision);
      // What came before did not happen, so there is nothing to tell about it.
      answers.erase(answers.begin(), answers.end() - 1);
    }
    break;
  }
  writes_ += std::ranges::count_if(answers, [](const auto& a) { return a.has_value(); });
  undo_.clear();
  collect();
  if (revision_ != revision) notify();
  done(std::move(answers));
}

void MemoryServer::roll_back(std::size_t undo_size, std::size_t log_size, std::uint64_t revision) {
  while (undo_.size() > undo_size) {
    Undo& last = undo_.back();
    auto& table = tables_[last.resource];
    const auto now = table.find(last.key);
    if (now != table.end()) uids_.erase(std::string(api::uid(*now->second)));
    if (last.before == nullptr) {
      table.erase(last.key);
    } else {
      uids_.emplace(api::uid(*last.before));
      table[last.key] = last.before;
    }
    undo_.pop_back();
  }
  log_.resize(log_size);
  revision_ = revision;
}

Result<json::value> MemoryServer::apply(const client::Write& write) {
  if (write.verb == client::Verb::kCreate && write.subresource.empty()) return create(write);
  const auto& table = tables_[write.resource.key()];
  const auto it = table.find({.ns = write.ns, .name = write.name});
  if (it == table.end()) {
    return std::unexpected(named(Code::kNotFound, write, write.name, "not found"));
  }
  const Object before = it->second;
  const bool other = !write.uid.empty() && write.uid != api::uid(*before);
  const bool moved =
      !write.resource_version.empty() && write.resource_version != api::resource_version(*before);
  if (other || moved) {
    return std::unexpected(named(Code::kConflict, write, write.name, "has been modified"));
  }
  if (write.verb == client::Verb::kDelete) return remove(write, before);
  if (write.subresource == "binding") return bind(write, before);
  return change(write, before);
}

Result<json::value> MemoryServer::create(const client::Write& write) {
  json::value object = write.body;
  json::object& meta = json::make_object(object, {"metadata"});
  if (write.resource.namespaced) meta["namespace"] = write.ns;
  if (!meta.contains("name")) {
    meta["name"] = fmt::format("{}{}", json::get_string(object, {"metadata", "generateName"}),
                               random_.suffix(5));
  }
  const Key key = key_of(object);
  if (tables_[write.resource.key()].contains(key)) {
    return std::unexpected(named(Code::kAlreadyExists, write, key.name, "already exists"));
  }
  meta["uid"] = random_.uuid();
  meta["creationTimestamp"] = rfc3339(clock_.now());
  meta["generation"] = 1;
  collect_ = collect_ || meta.contains("ownerReferences");
  // A new key may move its neighbours: nothing is asked of `meta` after this.
  object.as_object()["apiVersion"] = write.resource.api_version();
  object.as_object()["kind"] = write.resource.kind;
  return store(write.resource.key(), std::move(object));
}

Result<json::value> MemoryServer::bind(const client::Write& write, const Object& pod) {
  if (!json::get_string(*pod, {"spec", "nodeName"}).empty() || api::deleting(*pod)) {
    return std::unexpected(named(Code::kConflict, write, write.name, "cannot be bound"));
  }
  json::value object = *pod;
  json::set(object, {"spec", "nodeName"},
            json::string(json::get_string(write.body, {"target", "name"})));
  store(write.resource.key(), std::move(object));
  return json::object{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}};
}

Result<json::value> MemoryServer::change(const client::Write& write, const Object& before) {
  if (write.verb == client::Verb::kJsonPatch || write.verb == client::Verb::kApply) {
    return fail(Code::kUnsupportedMediaType, "this server has no JSON patch and no apply");
  }
  json::value object = *before;
  if (write.verb == client::Verb::kMergePatch) {
    merge(object, write.body);
  } else {
    object = write.body;
  }
  if (write.subresource == "status") {
    const json::value* status = json::find(object, {"status"});
    json::value kept = *before;
    json::set(kept, {"status"}, status == nullptr ? json::value(json::object{}) : *status);
    object = std::move(kept);
  } else if (!same_intent(object, *before)) {
    json::set(object, {"metadata", "generation"},
              json::get_int(*before, {"metadata", "generation"}).value_or(0) + 1);
  }
  json::set(object, {"metadata", "uid"}, json::string(api::uid(*before)));
  json::set(object, {"metadata", "resourceVersion"}, json::string(api::resource_version(*before)));
  if (object == *before) return object;
  if (api::deleting(object) && json::get_array(object, {"metadata", "finalizers"}).empty() &&
      write.resource.key() != "pods") {
    erase(write.resource.key(), before);
    return object;
  }
  return store(write.resource.key(), std::move(object));
}

Result<json::value> MemoryServer::remove(const client::Write& write, const Object& before) {
  if (removed_at_once(write, *before)) {
    erase(write.resource.key(), before);
    return json::object{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}};
  }
  if (api::deleting(*before)) return *before;
  json::value object = *before;
  json::set(object, {"metadata", "deletionTimestamp"},
            json::string(rfc3339(clock_.now() + std::chrono::seconds(30))));
  return store(write.resource.key(), std::move(object));
}

json::value MemoryServer::store(const std::string& resource, json::value object) {
  json::set(object, {"metadata", "resourceVersion"}, json::string(std::to_string(++revision_)));
  const Key key = key_of(object);
  Object& slot = tables_[resource][key];
  undo_.push_back({.resource = resource, .key = key, .before = slot});
  const auto type = slot == nullptr ? client::EventType::kAdded : client::EventType::kModified;
  uids_.emplace(api::uid(object));
  slot = std::make_shared<const json::value>(std::move(object));
  log_.push_back({.revision = revision_, .resource = resource, .event = {type, slot}});
  return *slot;
}

void MemoryServer::erase(const std::string& resource, const Object& object) {
  json::value last = *object;
  json::set(last, {"metadata", "resourceVersion"}, json::string(std::to_string(++revision_)));
  const Key key = key_of(last);
  undo_.push_back({.resource = resource, .key = key, .before = object});
  tables_[resource].erase(key);
  uids_.erase(std::string(api::uid(last)));
  collect_ = true;
  log_.push_back({.revision = revision_,
                  .resource = resource,
                  .event = {client::EventType::kDeleted,
                            std::make_shared<const json::value>(std::move(last))}});
}

void MemoryServer::collect() {
  // Each round may remove owners of others.
  while (std::exchange(collect_, false)) {
    std::vector<std::pair<std::string, Object>> orphans;
    for (const auto& [resource, table] : tables_) {
      for (const auto& [key, object] : table) {
        const json::array& owners = json::get_array(*object, {"metadata", "ownerReferences"});
        const bool alive = std::ranges::any_of(owners, [&](const json::value& owner) {
          return uids_.contains(json::get_string(owner, {"uid"}));
        });
        if (!owners.empty() && !alive && !api::deleting(*object)) {
          orphans.emplace_back(resource, object);
        }
      }
    }
    for (const auto& [resource, object] : orphans) {
      const client::Write removal{.verb = client::Verb::kDelete,
                                  .resource = {.plural = resource},
                                  .ns = std::string(api::ns(*object)),
                                  .name = std::string(api::name(*object))};
      (void)remove(removal, object);
    }
    undo_.clear();
  }
}

void MemoryServer::notify() {
  // A callback may open or close watches, so the list is taken first.
  std::vector<std::function<void()>> callbacks;
  for (const auto& [id, ready] : ready_) callbacks.push_back(ready);
  for (const auto& callback : callbacks) {
    if (callback) callback();
  }
}

}  // namespace skiff::control::testing
