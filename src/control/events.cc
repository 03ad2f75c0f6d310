#include "control/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/meta.h"
#include "base/limits.h"

namespace skiff::control {
namespace {

// A count that grows every millisecond is not worth a write each time.
constexpr Duration kRewriteAfter = std::chrono::seconds(5);
constexpr std::size_t kKnownMax = 20'000;
constexpr std::size_t kWrittenAtOnce = 50;
constexpr Duration kWritingTime = std::chrono::milliseconds(5);
constexpr std::size_t kInFlightMax = 100;
constexpr std::size_t kRecordedMax = 20'000;

const api::Resource kEvents = {.version = "v1", .plural = "events", .kind = "Event"};

std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  // A separator, so that ("ab", "c") and ("a", "bc") differ.
  return (hash ^ 0xff) * 0x100000001b3;
}

// What is said about which object by whom.
std::uint64_t event_hash(const json::value& about, std::string_view component, const Note& note) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view part :
       {api::uid(about), component, std::string_view(note.warning ? "Warning" : "Normal"),
        std::string_view(note.reason), std::string_view(note.message)}) {
    hash = fnv1a(hash, part);
  }
  return hash;
}

std::string name_with(std::string_view about, std::uint64_t hash) {
  return fmt::format("{}.{:016x}", about.substr(0, limits::kNameBytes - 17), hash);
}

std::string reference_to(const json::value& about) {
  return json::serialize(
      json::object{{"kind", json::string(api::kind(about))},
                   {"namespace", json::string(api::ns(about))},
                   {"name", json::string(api::name(about))},
                   {"uid", json::string(api::uid(about))},
                   {"apiVersion", json::string(api::api_version(about))},
                   {"resourceVersion", json::string(api::resource_version(about))}});
}

}  // namespace

std::string event_name(const json::value& about, std::string_view component, const Note& note) {
  return name_with(api::name(about), event_hash(about, component, note));
}

EventRecorder::EventRecorder(client::Client& client, const env::Clock& clock)
    : client_(client), clock_(clock) {}

void EventRecorder::record(const Object& about, std::string_view component, const Note& note,
                           std::optional<Time> at) {
  if (recorded_.size() >= kRecordedMax) {
    // What is wrong is told before what is well.
    const auto normal = std::ranges::find_if(
        recorded_, [](const Recorded& waiting) { return !waiting.note.warning; });
    if (!note.warning || normal == recorded_.end()) return;
    recorded_.erase(normal);
  }
  const std::uint64_t hash = event_hash(*about, component, note);
  // Kubernetes keeps events about cluster-scoped objects in "default".
  const std::string_view scope = api::ns(*about);
  recorded_.push_back({.hash = hash,
                       .about = reference_to(*about),
                       .ns = std::string(scope.empty() ? "default" : scope),
                       .name = name_with(api::name(*about), hash),
                       .component = std::string(component),
                       .note = note,
                       .at = at.value_or(clock_.now())});
}

bool EventRecorder::write_some() {
  std::size_t written = 0;
  const Duration started = clock_.elapsed();
  const auto in_time = [&] { return clock_.elapsed() - started < kWritingTime; };
  const auto may_write = [&] { return !recorded_.empty() && state_->in_flight < kInFlightMax; };
  for (; written < kWrittenAtOnce && may_write() && in_time(); ++written) {
    const Recorded next = std::move(recorded_.front());
    recorded_.pop_front();
    write(next);
  }
  return may_write();
}

void EventRecorder::write(const Recorded& recorded) {
  auto& known = state_->known;
  const auto it = known.find(recorded.hash);
  if (it == known.end()) {
    // Forgetting costs only a read later: an Event that exists is found by its name.
    if (known.size() >= kKnownMax) known.clear();
    known[recorded.hash] = {.count = 1, .written = clock_.elapsed()};
    create(recorded);
    return;
  }
  ++it->second.count;
  if (clock_.elapsed() - it->second.written < kRewriteAfter) return;
  it->second.written = clock_.elapsed();
  raise(recorded, it->second.count);
}

void EventRecorder::submit(
    client::Write write,
    std::function<void(State& state, const Result<json::value>& answer)> done) {
  write.synced = false;
  ++state_->in_flight;
  client_.submit({std::move(write)}, [done = std::move(done), weak = std::weak_ptr(state_)](
                                         const std::vector<Result<json::value>>& results) {
    const auto state = weak.lock();
    if (state == nullptr) return;
    --state->in_flight;
    if (!results.empty()) done(*state, results.back());
  });
}

void EventRecorder::create(const Recorded& recorded) {
  const std::string now = rfc3339(recorded.at);
  const Note& note = recorded.note;
  client::Write write{.verb = client::Verb::kCreate, .resource = kEvents, .ns = recorded.ns};
  write.body = json::object{{"apiVersion", "v1"},
                            {"kind", "Event"},
                            {"metadata", {{"name", recorded.name}, {"namespace", recorded.ns}}},
                            {"involvedObject", *json::parse(recorded.about)},
                            {"type", note.warning ? "Warning" : "Normal"},
                            {"reason", note.reason},
                            {"message", note.message},
                            {"source", {{"component", recorded.component}}},
                            {"reportingComponent", recorded.component},
                            {"reportingInstance", ""},
                            {"firstTimestamp", now},
                            {"lastTimestamp", now},
                            {"count", 1}};
  submit(std::move(write), [this, recorded](State& state, const Result<json::value>& answer) {
    if (answer) return;
    if (answer.error().code != Code::kAlreadyExists) {
      state.known.erase(recorded.hash);
      return;
    }
    // Written by an earlier life of this process: go on counting where it stopped.
    const auto found = client_.get(kEvents, recorded.ns, recorded.name);
    if (!found) return;
    const std::int64_t count = json::get_int(*found, {"count"}).value_or(1) + 1;
    state.known[recorded.hash] = {.count = count, .written = clock_.elapsed()};
    raise(recorded, count);
  });
}

void EventRecorder::raise(const Recorded& recorded, std::int64_t count) {
  client::Write write{.verb = client::Verb::kMergePatch,
                      .resource = kEvents,
                      .ns = recorded.ns,
                      .name = recorded.name};
  write.body = json::object{{"count", count}, {"lastTimestamp", rfc3339(recorded.at)}};
  submit(std::move(write), [hash = recorded.hash](State& state, const Result<json::value>& answer) {
    // Events expire: the next note of this kind starts a new one.
    if (!answer) state.known.erase(hash);
  });
}

}  // namespace skiff::control
