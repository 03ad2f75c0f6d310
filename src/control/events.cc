#include "control/events.h"

#include <fmt/format.h>

#include <utility>

#include "api/meta.h"
#include "base/limits.h"

namespace skiff::control {
namespace {

// A count that grows every millisecond is not worth a write each time.
constexpr Duration kRewriteAfter = std::chrono::seconds(5);
constexpr std::size_t kKnownMax = 20'000;

const api::Resource kEvents = {.version = "v1", .plural = "events", .kind = "Event"};

std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  // A separator, so that ("ab", "c") and ("a", "bc") differ.
  return (hash ^ 0xff) * 0x100000001b3;
}

}  // namespace

std::string event_name(const json::value& about, std::string_view component, const Note& note) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view part :
       {api::uid(about), component, std::string_view(note.warning ? "Warning" : "Normal"),
        std::string_view(note.reason), std::string_view(note.message)}) {
    hash = fnv1a(hash, part);
  }
  const std::string_view name = api::name(about).substr(0, limits::kNameBytes - 17);
  return fmt::format("{}.{:016x}", name, hash);
}

EventRecorder::EventRecorder(client::Client& client, const env::Clock& clock)
    : client_(client), clock_(clock) {}

void EventRecorder::record(const Object& about, std::string_view component, const Note& note) {
  // Kubernetes keeps events about cluster-scoped objects in "default".
  const std::string_view scope = api::ns(*about);
  const std::string ns(scope.empty() ? "default" : scope);
  const std::string name = event_name(*about, component, note);
  auto& known = state_->known;
  const auto it = known.find(ns + "/" + name);
  if (it == known.end()) {
    // Forgetting costs only a read later: an Event that exists is found by its name.
    if (known.size() >= kKnownMax) known.clear();
    known[ns + "/" + name] = {.count = 1, .written = clock_.elapsed()};
    create(ns, name, about, component, note);
    return;
  }
  ++it->second.count;
  if (clock_.elapsed() - it->second.written < kRewriteAfter) return;
  it->second.written = clock_.elapsed();
  raise(ns, name, it->second.count);
}

void EventRecorder::create(const std::string& ns, const std::string& name, const Object& about,
                           std::string_view component, const Note& note) {
  const std::string now = rfc3339(clock_.now());
  json::object involved{{"kind", json::string(api::kind(*about))},
                        {"namespace", json::string(api::ns(*about))},
                        {"name", json::string(api::name(*about))},
                        {"uid", json::string(api::uid(*about))},
                        {"apiVersion", json::string(api::api_version(*about))},
                        {"resourceVersion", json::string(api::resource_version(*about))}};
  client::Write write{.verb = client::Verb::kCreate, .resource = kEvents, .ns = ns};
  write.body = json::object{{"apiVersion", "v1"},
                            {"kind", "Event"},
                            {"metadata", {{"name", name}, {"namespace", ns}}},
                            {"involvedObject", std::move(involved)},
                            {"type", note.warning ? "Warning" : "Normal"},
                            {"reason", note.reason},
                            {"message", note.message},
                            {"source", {{"component", json::string(component)}}},
                            {"reportingComponent", json::string(component)},
                            {"reportingInstance", ""},
                            {"firstTimestamp", now},
                            {"lastTimestamp", now},
                            {"count", 1}};
  write.synced = false;
  client_.submit({std::move(write)}, [this, ns, name, weak = std::weak_ptr(state_)](
                                         const std::vector<Result<json::value>>& results) {
    const auto state = weak.lock();
    if (state == nullptr || results.empty() || results.back()) return;
    if (results.back().error().code != Code::kAlreadyExists) {
      state->known.erase(ns + "/" + name);
      return;
    }
    // Written by an earlier life of this process: go on counting where it stopped.
    const auto found = client_.get(kEvents, ns, name);
    if (!found) return;
    const std::int64_t count = json::get_int(*found, {"count"}).value_or(1) + 1;
    state->known[ns + "/" + name] = {.count = count, .written = clock_.elapsed()};
    raise(ns, name, count);
  });
}

void EventRecorder::raise(const std::string& ns, const std::string& name, std::int64_t count) {
  client::Write write{
      .verb = client::Verb::kMergePatch, .resource = kEvents, .ns = ns, .name = name};
  write.body = json::object{{"count", count}, {"lastTimestamp", rfc3339(clock_.now())}};
  write.synced = false;
  client_.submit({std::move(write)}, [ns, name, weak = std::weak_ptr(state_)](
                                         const std::vector<Result<json::value>>& results) {
    const auto state = weak.lock();
    // Events expire: the next note of this kind starts a new one.
    if (state != nullptr && !results.empty() && !results.back()) {
      state->known.erase(ns + "/" + name);
    }
  });
}

}  // namespace skiff::control
