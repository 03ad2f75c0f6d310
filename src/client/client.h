// What controllers, the node agent and the CLI see of an API server: in process (client/local) or
// over HTTPS (client/remote), they cannot tell which.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/result.h"
#include "client/source.h"

namespace skiff::client {

// kApply is server-side apply: the body is what the field manager wants, and creates where absent.
enum class Verb { kCreate, kUpdate, kMergePatch, kJsonPatch, kApply, kDelete };

// One write, as data.
struct Write {
  Verb verb = Verb::kCreate;
  api::Resource resource = {};
  std::string ns = {};
  std::string name = {};         // empty on create: the body has it, or generateName
  std::string subresource = {};  // status, binding, ...
  json::value body = {};         // object, patch, or DeleteOptions without preconditions
  // Preconditions. A write whose precondition fails is kConflict and changes nothing.
  std::string uid = {};
  std::string resource_version = {};
  // Of kApply: who owns the fields of the body, and whether to take those that others own. A field
  // that another manager owns is kConflict without it.
  std::string field_manager = {};
  bool force = false;
  // False for what may be lost by a power cut (never by kill -9): heartbeats, passing pod states.
  bool synced = true;
};

struct ListOptions {
  std::string label_selector = {};
  std::string field_selector = {};
};

struct List {
  std::uint64_t revision = 0;
  std::vector<Object> items = {};
  std::vector<SourcePtr> sources = {};  // one for each item, or none at all: see Event
};

enum class EventType { kAdded, kModified, kDeleted };

struct Event {
  EventType type = EventType::kAdded;
  Object object = {};
  SourcePtr source = {};  // null: who wants to look at it later has to hold it
};

// A watch in process gives no more at a time, and who has taken in so many leaves the rest for
// later: many resources with much to tell do not make a turn of the loop long.
inline constexpr std::size_t kEventsPerPoll = 16;

// A stream of changes. Pulled, never pushed, so that whoever owns the loop decides when.
class Watch {
 public:
  virtual ~Watch() = default;
  // What has arrived, oldest first; empty: nothing yet. kExpired: list again. Any other error: the
  // stream broke, watch again from the last revision seen.
  virtual Result<std::vector<Event>> poll() = 0;
};

class Client {
 public:
  virtual ~Client() = default;

  // These block (remote) or answer at once (local).
  virtual Result<json::value> get(const api::Resource& resource, std::string_view ns,
                                  std::string_view name) = 0;
  virtual Result<List> list(const api::Resource& resource, std::string_view ns,
                            const ListOptions& options) = 0;
  // The object as it is after the write; for a delete the object or a Status.
  virtual Result<json::value> write(const Write& write) = 0;

  // Writes in order, without blocking the caller. A local client makes them one transaction: all or
  // none. A remote client stops at the first failure. `done` gets one result for each write that
  // was tried (the failing one last); it may be called before submit returns, and always on the
  // thread that runs the loop.
  using Done = std::function<void(std::vector<Result<json::value>>)>;
  virtual void submit(std::vector<Write> writes, Done done) = 0;

  // Changes of a resource in all namespaces after a revision. `ready` is called, from any thread,
  // when poll() may have something; it must only note or post that. Never after the Watch is gone:
  // its end waits for a call that is under way.
  virtual Result<std::unique_ptr<Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) = 0;

  // Calls `fn` on the loop thread when everything this client has read or written so far is safe on
  // disk: whoever starts a program because of it waits for this. Remote servers are always safe.
  virtual void when_safe(std::function<void()> fn) = 0;
};

}  // namespace skiff::client
