#include "cli/time_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "api/meta.h"
#include "cli/printer.h"

namespace skiff::cli {
namespace {

constexpr std::size_t kRestartsTold = 5;

// What happened in the same second stays in its order.
void put_in_order(std::vector<Milestone>& all) {
  for (auto it = all.begin(); it != all.end(); ++it) {
    const auto place = std::ranges::upper_bound(all.begin(), it, it->at, {}, &Milestone::at);
    std::rotate(place, it, std::next(it));
  }
}

std::optional<Time> time_at(const json::value& v, std::initializer_list<std::string_view> path) {
  return parse_time(json::get_string(v, path));
}

// When something was so for all pods, and for how many it is.
struct Reached {
  std::optional<Time> first = {}, last = {};
  std::size_t count = 0;

  void add(const std::optional<Time>& at) {
    if (!at) return;
    ++count;
    first = std::min(first.value_or(*at), *at);
    last = std::max(last.value_or(*at), *at);
  }
};

std::optional<Time> scheduled_at(const json::value& pod) {
  const json::object* condition = api::condition(pod, "PodScheduled");
  if (condition == nullptr || json::get_string(*condition, {"status"}) != "True") return {};
  return time_at(*condition, {"lastTransitionTime"});
}

// When the pod's own programs first ran.
std::optional<Time> started_at(const json::value& pod) {
  std::optional<Time> out;
  for (const json::value& status : json::get_array(pod, {"status", "containerStatuses"})) {
    for (const auto& at : {time_at(status, {"state", "running", "startedAt"}),
                           time_at(status, {"state", "terminated", "startedAt"}),
                           time_at(status, {"lastState", "terminated", "startedAt"})}) {
      if (at) out = std::min(out.value_or(*at), *at);
    }
  }
  return out;
}

struct Stages {
  std::optional<Time> created = {}, first_step = {}, ended = {};
  Reached placed = {}, started = {};
};

Stages stages_of(const json::value& job, const std::vector<Object>& pods) {
  Stages out{.created = time_at(job, {"metadata", "creationTimestamp"}),
             .first_step = time_at(job, {"status", "progress", "firstStepTime"}),
             .ended = time_at(job, {"status", "completionTime"})};
  for (const Object& pod : pods) {
    out.placed.add(scheduled_at(*pod));
    out.started.add(started_at(*pod));
  }
  if (!out.ended) {
    const json::object* failed = api::condition(job, "Failed");
    if (failed != nullptr && json::get_string(*failed, {"status"}) == "True") {
      out.ended = time_at(*failed, {"lastTransitionTime"});
    }
  }
  return out;
}

void add_reached(std::vector<Milestone>& out, const Reached& reached, std::size_t all,
                 std::string_view done) {
  if (!reached.last) return;
  out.push_back(
      {*reached.last, reached.count == all
                          ? fmt::format("all {} replica(s) {}", all, done)
                          : fmt::format("{} of {} replicas {}", reached.count, all, done)});
}

void add_images(std::vector<Milestone>& out, const std::vector<Object>& events) {
  Reached pulled;
  for (const Object& event : events) {
    // "Pulled" is also said of an image that was there.
    const std::string_view message = json::get_string(*event, {"message"});
    if (json::get_string(*event, {"reason"}) != "Pulled" || message.contains("already")) continue;
    pulled.add(time_at(*event, {"lastTimestamp"}));
  }
  if (pulled.last) out.push_back({*pulled.last, "images are fetched"});
}

void add_restarts(std::vector<Milestone>& out, const std::vector<Object>& events) {
  std::vector<Milestone> all;
  for (const Object& event : events) {
    if (!json::get_string(*event, {"reason"}).ends_with("Restarting")) continue;
    const auto at = time_at(*event, {"lastTimestamp"});
    const auto count = json::get_int(*event, {"count"}).value_or(1);
    if (!at) continue;
    all.push_back({*at, fmt::format("{}{}", json::get_string(*event, {"message"}),
                                    count > 1 ? fmt::format(" (x{}, the latest)", count) : "")});
  }
  put_in_order(all);
  const std::size_t skipped = all.size() > kRestartsTold ? all.size() - kRestartsTold : 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 1 && skipped > 0) {
      i += skipped - 1;
      out.push_back({all[i].at, fmt::format("({} more restarts)", skipped)});
      continue;
    }
    out.push_back(std::move(all[i]));
  }
}

void add_condition_milestones(std::vector<Milestone>& out, const json::value& job) {
  for (const json::value& condition : json::get_array(job, {"status", "conditions"})) {
    const std::string_view type = json::get_string(condition, {"type"});
    const bool holds = json::get_string(condition, {"status"}) == "True";
    const auto at = time_at(condition, {"lastTransitionTime"});
    if (!at) continue;
    if (type == "Suspended") out.push_back({*at, holds ? "suspended" : "resumed"});
    if (holds && type == "Succeeded") out.push_back({*at, "succeeded"});
    if (holds && type == "Failed") {
      out.push_back({*at, fmt::format("failed: {}", json::get_string(condition, {"message"}))});
    }
  }
}

}  // namespace

std::vector<Milestone> time_line(const json::value& job, const std::vector<Object>& pods,
                                 const std::vector<Object>& events) {
  const Stages stages = stages_of(job, pods);
  std::vector<Milestone> out;
  if (stages.created) out.push_back({*stages.created, "created"});
  add_reached(out, stages.placed, pods.size(), "have a place");
  add_images(out, events);
  add_reached(out, stages.started, pods.size(), "run or ran");
  if (stages.first_step) {
    out.push_back(
        {*stages.first_step,
         fmt::format("first step ({})",
                     json::get_string(job, {"status", "progress", "replica"}, "a replica"))});
  }
  add_restarts(out, events);
  add_condition_milestones(out, job);
  put_in_order(out);
  return out;
}

std::vector<Span> time_spent(const json::value& job, const std::vector<Object>& pods, Time now) {
  const Stages stages = stages_of(job, pods);
  std::vector<Span> out;
  if (!stages.created) return out;
  const Time end = stages.ended.value_or(now);
  // A stage that not all have reached is still going on.
  const bool placed = stages.placed.count == pods.size() && !pods.empty();
  const bool started = placed && stages.started.count == pods.size();
  const std::optional<Time> ends[] = {placed ? stages.placed.last : std::nullopt,
                                      started ? stages.started.last : std::nullopt,
                                      stages.first_step, std::nullopt};
  const std::string_view names[] = {"waiting for a place", "images, volumes and start of programs",
                                    "programs until their first step", "training"};
  Time at = *stages.created;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    // A later stage that was reached says that this one is over, too.
    std::optional<Time> until;
    for (std::size_t j = i; j < std::size(ends) && !until; ++j) until = ends[j];
    if (i + 1 == std::size(names)) until.reset();
    const Time to = std::clamp(until.value_or(end), at, std::max(at, end));
    out.push_back({.what = std::string(names[i]),
                   .took = to - at,
                   .open = !until && !stages.ended.has_value()});
    at = to;
    if (!until) break;
  }
  return out;
}

std::string time_line_text(const json::value& job, const std::vector<Object>& pods,
                           const std::vector<Object>& events, Time now) {
  const std::vector<Milestone> line = time_line(job, pods, events);
  if (line.empty()) return {};
  std::vector<std::vector<std::string>> rows = {{"  TIME", "AFTER", "WHAT"}};
  for (const Milestone& one : line) {
    rows.push_back({"  " + rfc3339(one.at), age(one.at - line.front().at), one.what});
  }
  std::string out = "Time line:\n" + columns(rows);
  rows.clear();
  for (const Span& span : time_spent(job, pods, now)) {
    rows.push_back({"  " + span.what, age(span.took) + (span.open ? " so far" : "")});
  }
  return rows.empty() ? out : out + "Where the time went:\n" + columns(rows);
}

}  // namespace skiff::cli
