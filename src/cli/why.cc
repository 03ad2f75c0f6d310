#include "cli/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/why_advice.h"

namespace skiff::cli {
namespace {

// Pods of a large job may each fail in a way of their own; the first few tell enough.
constexpr int kReasonsShown = 5;

std::string age_of(const std::optional<Time>& since, Time now) {
  return since ? age(now - *since) : "some time";
}

std::string text(std::string_view s) { return std::string(s); }

// What a container that does not run is waiting for or ended with; empty when it runs well.
std::string container_reason(const json::value& pod, const json::value& status) {
  const std::string_view container = json::get_string(status, {"name"});
  const std::string_view waiting = json::get_string(status, {"state", "waiting", "reason"});
  const std::string_view message = json::get_string(status, {"state", "waiting", "message"});
  if (!waiting.empty() && waiting != "ContainerCreating" && waiting != "PodInitializing") {
    std::string out =
        fmt::format("Container {} of pod {} waits: {}", container, api::name(pod), waiting);
    if (!message.empty()) out += fmt::format(" ({})", message);
    if (waiting == "CrashLoopBackOff") {
      const auto code = json::get_int(status, {"lastState", "terminated", "exitCode"});
      if (code) {
        out += fmt::format(". It ended with exit code {} {} time(s); see: skiff logs {} -n {}",
                           *code, json::get_int(status, {"restartCount"}).value_or(0),
                           api::name(pod), api::ns(pod));
      }
    }
    return out;
  }
  const auto code = json::get_int(status, {"state", "terminated", "exitCode"});
  if (!code || *code == 0) return {};
  const std::string_view reason = json::get_string(status, {"state", "terminated", "reason"});
  if (reason == "OOMKilled") {
    return fmt::format(
        "Container {} of pod {} used more memory than its limit and was killed. Raise "
        "resources.limits.memory, or make the batch smaller",
        container, api::name(pod));
  }
  // A program that never began has no log; one that began may have left last words.
  const std::string_view last = json::get_string(status, {"state", "terminated", "message"});
  if (reason == "StartError") {
    return fmt::format("Container {} of pod {} could not be started: {}", container, api::name(pod),
                       last);
  }
  const std::string words = last.empty() ? std::string() : fmt::format(" ({})", trim(last));
  return fmt::format("Container {} of pod {} ended with exit code {}{}{}; see: skiff logs {} -n {}",
                     container, api::name(pod), *code,
                     *code > 128 ? fmt::format(" (signal {})", *code - 128) : "", words,
                     api::name(pod), api::ns(pod));
}

std::vector<std::string> pod_reasons(const json::value& pod, Time now) {
  std::vector<std::string> out;
  const std::string_view phase = json::get_string(pod, {"status", "phase"}, "Pending");
  if (api::deleting(pod)) {
    out.push_back(fmt::format("Pod {} is being deleted; its containers have until {} to end",
                              api::name(pod),
                              json::get_string(pod, {"metadata", "deletionTimestamp"})));
    return out;
  }
  const json::object* scheduled = api::condition(pod, "PodScheduled");
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) {
    const json::value* message = scheduled == nullptr ? nullptr : scheduled->if_contains("message");
    if (message != nullptr && message->is_string()) {
      out.push_back(fmt::format("Pod {} waits for a node since {}: {}", api::name(pod),
                                age_of(api::created_at(pod), now),
                                json::view(message->get_string())));
    } else {
      out.push_back(fmt::format("Pod {} waits for the scheduler to look at it", api::name(pod)));
    }
    return out;
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::value& status : json::get_array(pod, {"status", list})) {
      std::string reason = container_reason(pod, status);
      if (!reason.empty()) out.push_back(std::move(reason));
    }
  }
  const std::string_view message = json::get_string(pod, {"status", "message"});
  if (!message.empty()) out.push_back(fmt::format("Pod {}: {}", api::name(pod), message));
  if (out.empty() && phase == "Pending") {
    out.push_back(fmt::format("Pod {} is being started on node {}", api::name(pod),
                              json::get_string(pod, {"spec", "nodeName"})));
  }
  return out;
}

std::string last_warning(const std::vector<Object>& events) {
  for (auto it = events.rbegin(); it != events.rend(); ++it) {
    if (json::get_string(**it, {"type"}) == "Warning") {
      return fmt::format("Latest warning: {}: {}", json::get_string(**it, {"reason"}),
                         json::get_string(**it, {"message"}));
    }
  }
  return {};
}

// The newest condition that is True tells the state of a job.
std::string_view job_state(const json::value& job) {
  std::string_view state;
  for (const json::value& c : json::get_array(job, {"status", "conditions"})) {
    if (json::get_string(c, {"status"}) == "True") state = json::get_string(c, {"type"});
  }
  return state;
}

std::string condition_message(const json::value& object, std::string_view type) {
  const json::object* c = api::condition(object, type);
  const json::value* message = c == nullptr ? nullptr : c->if_contains("message");
  return message != nullptr && message->is_string() ? text(json::view(message->get_string())) : "";
}

// Pods of one gang wait for the same thing: it is said once, with how many others it holds up.
std::vector<std::string> reasons_of(const std::vector<Object>& pods, Time now) {
  struct Seen {
    std::string reason;
    std::string why;  // the reason without its pod
    int others = 0;
  };
  std::vector<Seen> seen;
  for (const Object& pod : pods) {
    for (std::string& reason : pod_reasons(*pod, now)) {
      const std::size_t colon = reason.find(": ");
      std::string why = colon == std::string::npos ? reason : reason.substr(colon);
      const auto found = std::ranges::find(seen, why, &Seen::why);
      if (found != seen.end()) {
        ++found->others;
      } else {
        seen.push_back({.reason = std::move(reason), .why = std::move(why)});
      }
    }
  }
  std::vector<std::string> out;
  for (Seen& one : seen | std::views::take(kReasonsShown)) {
    out.push_back(std::move(one.reason));
    if (one.others == 0) continue;
    out.push_back(
        fmt::format("({} more pod{} for the same reason)", one.others, one.others == 1 ? "" : "s"));
  }
  return out;
}

std::vector<std::string> explain_job(const Situation& s, Time now) {
  const json::value& job = *s.object;
  const std::string title = fmt::format("{} {}", api::kind(job), api::name(job));
  std::vector<std::string> out;
  const std::string_view state = job_state(job);
  if (state == "Succeeded" || state == "Failed") {
    out.push_back(fmt::format("{} has {}: {}", title, state == "Failed" ? "failed" : "succeeded",
                              condition_message(job, state)));
  } else if (state == "Suspended") {
    out.push_back(
        fmt::format("{} is suspended (spec.runPolicy.suspend); set it to false to go on", title));
    return out;
  } else {
    std::map<std::string, int> phases;
    for (const Object& pod : s.pods)
      ++phases[text(json::get_string(*pod, {"status", "phase"}, "Pending"))];
    std::string counts;
    for (const auto& [phase, count] : phases) {
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, phase);
    }
    if (s.pods.empty()) {
      out.push_back(
          fmt::format("{} has no pods yet ({} old)", title, age_of(api::created_at(job), now)));
    } else {
      out.push_back(fmt::format("{} is {}: pods {}", title,
                                state.empty() ? "starting" : fmt::format("{}", state), counts));
    }
    for (std::string& remark : job_remarks(job, now)) out.push_back(std::move(remark));
  }
  for (std::string& reason : reasons_of(s.pods, now)) out.push_back(std::move(reason));
  return out;
}

}  // namespace

std::vector<std::string> explain(const Situation& situation, Time now) {
  const json::value& object = *situation.object;
  std::vector<std::string> out;
  if (api::kind(object) == "Pod") {
    out = pod_reasons(object, now);
    if (out.empty()) {
      out.push_back(fmt::format("Pod {} is {}; nothing stands in its way", api::name(object),
                                json::get_string(object, {"status", "phase"}, "Pending")));
    }
  } else {
    out = explain_job(situation, now);
  }
  std::string warning = last_warning(situation.events);
  if (!warning.empty()) out.push_back(std::move(warning));
  std::vector<std::string> remedies;
  for (const std::string& reason : out) {
    std::string remedy = advice(reason);
    const bool known = std::ranges::find(remedies, remedy) != remedies.end();
    if (!remedy.empty() && !known) remedies.push_back(std::move(remedy));
  }
  for (const std::string& remedy : remedies) out.push_back("What to do: " + remedy);
  return out;
}

}  // namespace skiff::cli
