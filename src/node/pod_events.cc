#include "node/pod_events.h"

#include <fmt/format.h>

#include "api/meta.h"

namespace skiff::node {
namespace {

api::Resource events_resource() {
  return {.group = "", .version = "v1", .plural = "events", .kind = "Event"};
}

// FNV-1a: names must be the same after a restart, which std::hash does not promise.
std::uint64_t hash(std::string_view text, std::uint64_t h) {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return (h ^ 0xff) * 1099511628211ULL;
}

}  // namespace

std::string pod_event_name(const json::value& pod, const PodNote& note) {
  std::uint64_t h = hash(api::uid(pod), 14695981039346656037ULL);
  for (const std::string* text : {&note.reason, &note.message, &note.container}) h = hash(*text, h);
  // The pod's name may be as long as a name may be; the event's may not be longer.
  return fmt::format("{}.{:016x}", api::name(pod).substr(0, 236), h);
}

json::value pod_event(const json::value& pod, const PodNote& note, std::string_view name,
                      std::string_view node_name, Time now) {
  // Mostly a pod, sometimes what it belongs to.
  const bool other = !api::kind(pod).empty() && api::kind(pod) != "Pod";
  const std::string_view version = "v1", kind = "Pod";
  json::object about{{"apiVersion", json::string(other ? api::api_version(pod) : version)},
                     {"kind", json::string(other ? api::kind(pod) : kind)},
                     {"namespace", json::string(api::ns(pod))},
                     {"name", json::string(api::name(pod))},
                     {"uid", json::string(api::uid(pod))}};
  if (!note.container.empty()) {
    about["fieldPath"] = fmt::format("spec.containers{{{}}}", note.container);
  }
  return json::object{
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", json::string(name)}, {"namespace", json::string(api::ns(pod))}}},
      {"involvedObject", std::move(about)},
      {"reason", note.reason},
      {"message", note.message},
      {"type", note.warning ? "Warning" : "Normal"},
      {"count", 1},
      {"firstTimestamp", rfc3339(now)},
      {"lastTimestamp", rfc3339(now)},
      {"source", {{"component", "skiff-node"}, {"host", json::string(node_name)}}},
      {"reportingComponent", "skiff-node"},
      {"reportingInstance", json::string(node_name)}};
}

PodEvents::PodEvents(client::Client& client, std::string node_name)
    : client_(client), node_name_(std::move(node_name)) {}

void PodEvents::record(const json::value& pod, const PodNote& note, Time now) {
  const std::string name = pod_event_name(pod, note);
  const std::string ns(api::ns(pod));
  client::Write write;
  write.resource = events_resource();
  write.ns = ns;
  write.synced = false;
  Known& known = known_[ns + "/" + name];
  known.pod_uid = api::uid(pod);
  if (known.count == 0) {
    write.body = pod_event(pod, note, name, node_name_, now);
    const auto made = client_.write(write);
    if (made) known.count = 1;
    if (made || made.error().code != Code::kAlreadyExists) return;
    // Left by the Skiff before this one.
    const auto old = client_.get(write.resource, ns, name);
    if (!old) return;
    known.count = json::get_int(*old, {"count"}).value_or(1);
  }
  write.verb = client::Verb::kMergePatch;
  write.name = name;
  write.body = json::object{{"count", ++known.count}, {"lastTimestamp", rfc3339(now)}};
  // Events are removed when they are old: the next one of this kind is then a first one.
  if (!client_.write(write)) known.count = 0;
}

void PodEvents::forget(std::string_view pod_uid) {
  std::erase_if(known_, [&](const auto& entry) { return entry.second.pod_uid == pod_uid; });
}

}  // namespace skiff::node
