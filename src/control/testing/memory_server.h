// A small API server in memory, for tests of what runs on a client::Client.
//
// It has what controllers lean on: revisions, uids, preconditions, transactions, watches, the
// status and binding sub-resources, graceful deletion of bound pods, and removal of what an owner
// leaves behind. It checks no schema and knows no user.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/client.h"
#include "control/cache.h"
#include "env/env.h"

namespace skiff::control::testing {

class MemoryServer : public client::Client {
 public:
  explicit MemoryServer(const env::Clock& clock, std::uint64_t seed = 1);

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override;
  Result<client::List> list(const api::Resource& resource, std::string_view ns,
                            const client::ListOptions& options) override;
  Result<json::value> write(const client::Write& write) override;
  void submit(std::vector<client::Write> writes, Done done) override;
  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) override;
  void when_safe(std::function<void()> fn) override { fn(); }

  // As a remote server: a submit stops at its first failure and keeps what came before.
  bool transactional = true;
  // As the embedded one: what was read can be had again (client/source.h).
  bool gives_sources = false;
  // Asked before every write; an error refuses it. Counts and refuses for tests.
  std::function<std::optional<Error>(const client::Write&)> refuse = {};

  std::uint64_t revision() const { return revision_; }
  std::uint64_t writes() const { return writes_; }  // that succeeded
  std::size_t read_again() const { return *read_again_; }
  // History before now is forgotten: watches that need it are told to list again.
  void forget_history() { oldest_ = revision_; }

 private:
  friend class MemoryWatch;
  struct Logged {
    std::uint64_t revision = 0;
    std::string resource = {};
    client::Event event = {};
  };
  struct Undo {
    std::string resource = {};
    Key key = {};
    Object before = {};
  };
  Result<json::value> apply(const client::Write& write);
  Result<json::value> create(const client::Write& write);
  Result<json::value> bind(const client::Write& write, const Object& pod);
  Result<json::value> change(const client::Write& write, const Object& before);
  Result<json::value> remove(const client::Write& write, const Object& before);
  json::value store(const std::string& resource, json::value object);
  void erase(const std::string& resource, const Object& object);
  void collect();
  void roll_back(std::size_t undo_size, std::size_t log_size, std::uint64_t revision);
  void notify();

  const env::Clock& clock_;
  Random random_;
  std::uint64_t revision_ = 0;
  std::uint64_t oldest_ = 0;
  std::uint64_t writes_ = 0;
  std::map<std::string, std::map<Key, Object>> tables_ = {};
  std::set<std::string, std::less<>> uids_ = {};
  bool collect_ = false;
  std::vector<Undo> undo_ = {};
  std::vector<Logged> log_ = {};
  std::map<std::uint64_t, std::function<void()>> ready_ = {};
  std::uint64_t next_watch_ = 0;
  std::shared_ptr<std::size_t> read_again_ = std::make_shared<std::size_t>(0);
};

}  // namespace skiff::control::testing
