#include "cli/follow.h"

#include <fmt/format.h>

#include <chrono>

#include "api/meta.h"
#include "cli/printer.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFollowPoll = 100ms;

const json::value* first_status(const json::value& pod) {
  const json::array& statuses = json::get_array(pod, {"status", "containerStatuses"});
  return statuses.empty() ? nullptr : &statuses.front();
}

}  // namespace

bool pod_ended(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

std::string_view last_drawn(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t back = line.rfind('\r');
  return back == line.npos ? line : line.substr(back + 1);
}

std::string replica_name(const json::value& pod) {
  const std::string_view role = api::label(pod, "training.kubeflow.org/replica-type");
  if (role.empty()) return std::string(api::name(pod));
  return fmt::format("{}-{}", role, api::label(pod, "training.kubeflow.org/replica-index"));
}

std::string log_target(std::string_view ns, std::string_view pod, const FollowOptions& options,
                       bool previous) {
  std::string out =
      fmt::format("/api/v1/namespaces/{}/pods/{}/log?follow={}", ns, pod, options.follow);
  if (!options.container.empty()) out += "&container=" + http::escape(options.container);
  if (options.timestamps) out += "&timestamps=true";
  if (options.tail_lines >= 0) out += fmt::format("&tailLines={}", options.tail_lines);
  if (previous) out += "&previous=true";
  return out;
}

Follower::Follower(Connection& server, FollowOptions options)
    : server_(server), options_(std::move(options)) {}

Follower::~Follower() {
  stop();
  join();
}

void Follower::add(const std::vector<Object>& pods) {
  for (const Object& pod : pods) {
    if (!followed_.emplace(api::uid(*pod)).second) continue;
    threads_.emplace_back([this, pod, number = threads_.size()] { follow_pod(pod, number); });
  }
}

void Follower::join() { threads_.clear(); }

void Follower::print(const std::string& prefix, std::string_view line) {
  if (options_.print) return options_.print(fmt::format("{} {}", prefix, line));
  const std::lock_guard lock(output_);
  fmt::print("{} {}\n", prefix, line);
  std::fflush(stdout);
}

void Follower::follow_pod(const Object& pod, std::size_t number) {
  const std::string prefix =
      paint(fmt::format("[{}]", replica_name(*pod)), stream_colour(number), options_.colour);
  Progress progress;
  while (!stopped_ && follow_attempt(*pod, prefix, progress)) {
    if (!options_.follow) return;
    std::this_thread::sleep_for(kFollowPoll);
  }
}

bool Follower::follow_attempt(const json::value& followed, const std::string& prefix,
                              Progress& progress) {
  static const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
  const auto pod = server_.client().get(kPods, api::ns(followed), api::name(followed));
  // A server that is being restarted comes back; a pod that is gone does not.
  if (!pod) return pod.error().code == Code::kServiceUnavailable;
  if (api::uid(*pod) != api::uid(followed)) return false;
  const json::value* status = first_status(*pod);
  const std::int64_t now =
      status == nullptr ? 0 : json::get_int(*status, {"restartCount"}).value_or(0);
  const bool started =
      status != nullptr && (json::find(*status, {"state", "running"}) != nullptr ||
                            json::find(*status, {"state", "terminated"}) != nullptr);
  if (started && now > progress.attempt) {
    if (progress.attempt >= 0) {
      const std::string mark = fmt::format("--- restarted ({}) ---", now);
      print(prefix, paint(mark, Colour::kYellow, options_.colour));
    }
    progress = {.attempt = now, .printed = 0, .whole = false};
  }
  if (!started || progress.whole) return !pod_ended(*pod);
  print_lines(*pod, prefix, progress);
  return true;
}

void Follower::print_lines(const json::value& pod, const std::string& prefix, Progress& progress) {
  const std::string target = log_target(api::ns(pod), api::name(pod), options_);
  const std::string replica = replica_name(pod);
  std::size_t n = 0;
  const auto done = server_.lines({.target = target}, [&](std::string_view line) {
    if (++n <= progress.printed) return true;
    progress.printed = n;
    // The time before a line is not part of what the program drew.
    const std::size_t text = options_.timestamps ? line.find(' ') + 1 : 0;
    if (options_.hear) options_.hear(replica, line.substr(text));
    print(prefix, printable(std::string(line.substr(0, text)) +
                            std::string(last_drawn(line.substr(text)))));
    return !stopped_.load();
  });
  progress.whole = done.has_value();
  if (!done && !options_.follow) print(prefix, printable(done.error().message));
}

}  // namespace skiff::cli
