// What all workload controllers ask of pods and write about them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/time.h"
#include "client/client.h"
#include "control/controller.h"

namespace skiff::workloads {

inline constexpr std::string_view kTemplateHashLabel = "pod-template-hash";

const api::Resource& pod_resource();
const api::Resource& replica_set_resource();
const api::Resource& deployment_resource();
const api::Resource& job_resource();

std::string_view phase(const json::value& pod);
bool ended(const json::value& pod);   // Succeeded or Failed
bool active(const json::value& pod);  // neither ended nor being deleted
bool ready(const json::value& pod);
// How long until the pod has been ready for `min_ready_s`; nothing where it is not ready. Zero or
// less: it is available.
std::optional<Duration> until_available(const json::value& pod, std::int64_t min_ready_s, Time now);

// A pod of `name` from a PodTemplateSpec, controlled by `owner`.
json::value pod_from(const json::value& pod_template, std::string name, const json::value& owner);
// Names for new children: the root's name, then five letters and digits as the server gives to
// generateName, from what the plan has seen: another observation or another time gives others. The
// plan knows the names and can tell them.
class NewNames {
 public:
  NewNames(const json::value& root, const std::vector<Object>& taken, Time now);
  std::string next(std::string_view prefix);  // "web-" gives web-x7k2p

 private:
  const json::value& root_;
  const Time now_;
  std::set<std::string, std::less<>> taken_ = {};
  std::uint64_t ordinal_ = 0;
};
// For a template and what else distinguishes it; the order of its keys does not matter.
std::string template_hash(const json::value& pod_template, std::int64_t collisions);

client::Write creation(const api::Resource& resource, const json::value& root, json::value body);
// Deletes what was observed and no successor of the same name.
client::Write removal(const api::Resource& resource, const json::value& object);
// Changes the object only if it is as it was observed.
client::Write patch(const api::Resource& resource, const json::value& object, json::value body);
// Replaces an observed object by `body`, only if it is as it was observed.
client::Write update(const api::Resource& resource, json::value body);
// Takes the controlling owner off an object that it no longer selects.
client::Write release(const api::Resource& resource, const json::value& object,
                      std::string_view owner_uid);

// {app: web} as words for control::Related.
std::vector<std::string> label_words(const json::object& labels);

std::int64_t int_at(const json::value& object, std::initializer_list<std::string_view> path,
                    std::int64_t fallback = 0);
// "25%" of `total` or a plain number.
std::int64_t scaled(const json::value* int_or_percent, std::int64_t total, bool round_up);
// Sets a count that Kubernetes leaves out of a status when it is 0.
void set_count(json::object& status, std::string_view key, std::int64_t count);

// Takes back the creations that were refused a moment ago: that one and all after it. The names of
// the pods among them.
std::vector<std::string> leave_out(control::Plan& plan, const control::Refusal& refusal);

void sooner(std::optional<Duration>& requeue, Duration wait);

}  // namespace skiff::workloads
