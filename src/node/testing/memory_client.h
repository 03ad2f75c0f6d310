// For tests of the agent only.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "api/meta.h"
#include "client/client.h"
#include "schema/merge_patch.h"

namespace skiff::node {

// The smallest API server that keeps the promises of client.h: revisions, preconditions, watches,
// graceful deletion of pods.
class MemoryClient final : public client::Client {
 public:
  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key(resource, ns, name));
    if (found == objects_.end()) return fail(Code::kNotFound, std::string(name) + " not found");
    return *found->second;
  }

  Result<client::List> list(const api::Resource& resource, std::string_view,
                            const client::ListOptions&) override {
    const std::lock_guard lock(mutex_);
    client::List out{.revision = revision_};
    for (const auto& [k, object] : objects_) {
      if (k.starts_with(resource.key() + "|")) out.items.push_back(object);
    }
    return out;
  }

  Result<json::value> write(const client::Write& w) override {
    if (before_write_) before_write_(w);
    Result<json::value> out = json::value();
    {
      const std::lock_guard lock(mutex_);
      out = write_locked(w);
    }
    tell_all();
    return out;
  }

  // Somebody else who is a little quicker. Set before the agent starts.
  void before_write(std::function<void(const client::Write&)> fn) { before_write_ = std::move(fn); }

  void submit(std::vector<client::Write> writes, Done done) override {
    std::vector<Result<json::value>> results;
    for (const client::Write& w : writes) {
      results.push_back(write(w));
      if (!results.back()) break;
    }
    done(std::move(results));
  }

  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource, std::uint64_t after,
                                               std::function<void()> ready) override {
    const std::lock_guard lock(mutex_);
    if (after < forgotten_) return fail(Code::kExpired, "too old");
    watchers_[++last_watcher_] = std::move(ready);
    return std::make_unique<MemoryWatch>(*this, resource.key(), after, last_watcher_);
  }

  void when_safe(std::function<void()> fn) override {
    {
      const std::lock_guard lock(mutex_);
      if (hold_safe_) return held_.push_back(std::move(fn));
    }
    fn();
  }

  void hold_safe(bool hold) {
    std::vector<std::function<void()>> held;
    {
      const std::lock_guard lock(mutex_);
      hold_safe_ = hold;
      if (!hold) held.swap(held_);
    }
    for (const auto& fn : held) fn();
  }

  // Every watch must list again.
  void forget_history() {
    {
      const std::lock_guard lock(mutex_);
      forgotten_ = revision_ + 1;
      ++revision_;
      log_.clear();
    }
    tell_all();
  }

 private:
  struct Change {
    std::string resource = {};
    std::uint64_t revision = 0;
    client::Event event = {};
  };

  class MemoryWatch final : public client::Watch {
   public:
    MemoryWatch(MemoryClient& owner, std::string resource, std::uint64_t after, int number)
        : owner_(owner), resource_(std::move(resource)), number_(number), after_(after) {}
    ~MemoryWatch() override {
      const std::lock_guard telling(owner_.telling_);
      const std::lock_guard lock(owner_.mutex_);
      owner_.watchers_.erase(number_);
    }
    Result<std::vector<client::Event>> poll() override {
      const std::lock_guard lock(owner_.mutex_);
      if (after_ < owner_.forgotten_) return fail(Code::kExpired, "too old");
      std::vector<client::Event> out;
      for (const Change& change : owner_.log_) {
        if (change.revision <= after_) continue;
        after_ = change.revision;
        if (change.resource == resource_) out.push_back(change.event);
      }
      return out;
    }

   private:
    MemoryClient& owner_;
    const std::string resource_;
    const int number_;
    std::uint64_t after_;
  };

  static std::string key(const api::Resource& r, std::string_view ns, std::string_view name) {
    return r.key() + "|" + std::string(ns) + "|" + std::string(name);
  }

  void tell_all() {
    // Held through the calls: the end of a watch waits for one that is under way.
    const std::lock_guard telling(telling_);
    std::map<int, std::function<void()>> watchers;
    {
      const std::lock_guard lock(mutex_);
      watchers = watchers_;
    }
    for (const auto& [number, ready] : watchers) ready();
  }

  Object keep(const client::Write& w, const std::string& k, json::value object,
              client::EventType type) {
    json::make_object(object, {"metadata"})["resourceVersion"] = std::to_string(++revision_);
    Object shared = std::make_shared<const json::value>(std::move(object));
    if (type == client::EventType::kDeleted) {
      objects_.erase(k);
    } else {
      objects_[k] = shared;
    }
    log_.push_back({w.resource.key(), revision_, {type, shared}});
    return shared;
  }

  Result<json::value> write_locked(const client::Write& w) {
    const std::string name(w.name.empty() ? api::name(w.body) : std::string_view(w.name));
    const std::string k = key(w.resource, w.ns, name);
    const auto found = objects_.find(k);
    if (w.verb == client::Verb::kCreate) {
      if (found != objects_.end()) return fail(Code::kAlreadyExists, name + " already exists");
      json::value object = w.body;
      json::object& metadata = json::make_object(object, {"metadata"});
      if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(revision_ + 1);
      return *keep(w, k, std::move(object), client::EventType::kAdded);
    }
    if (found == objects_.end()) return fail(Code::kNotFound, name + " not found");
    json::value object = *found->second;
    if (!w.uid.empty() && w.uid != api::uid(object)) return fail(Code::kConflict, "uid differs");
    if (w.verb == client::Verb::kDelete) {
      const auto grace = json::get_int(w.body, {"gracePeriodSeconds"}).value_or(30);
      const bool pod = w.resource.plural == "pods";
      if (!pod || grace == 0) return *keep(w, k, std::move(object), client::EventType::kDeleted);
      json::object& metadata = json::make_object(object, {"metadata"});
      metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      metadata["deletionGracePeriodSeconds"] = grace;
      return *keep(w, k, std::move(object), client::EventType::kModified);
    }
    schema::apply_merge_patch(object, w.body);
    return *keep(w, k, std::move(object), client::EventType::kModified);
  }

  std::mutex telling_;  // taken before mutex_
  std::function<void(const client::Write&)> before_write_ = {};
  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_ = {};
  std::vector<Change> log_ = {};
  std::map<int, std::function<void()>> watchers_ = {};
  int last_watcher_ = 0;
  std::vector<std::function<void()>> held_ = {};
  bool hold_safe_ = false;
  std::uint64_t revision_ = 1;
  std::uint64_t forgotten_ = 0;
};

}  // namespace skiff::node
