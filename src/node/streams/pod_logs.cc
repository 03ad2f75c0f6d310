#include "node/streams/pod_logs.h"

#include <fmt/format.h>

#include <charconv>

#include "api/meta.h"
#include "node/streams/pod_peer.h"

namespace skiff::node {
namespace {

const json::value* find_by_name(const json::value& pod, std::string_view part,
                                std::initializer_list<std::string_view> lists,
                                std::string_view name) {
  for (const std::string_view list : lists) {
    for (const json::value& entry : json::get_array(pod, {part, list})) {
      if (json::get_string(entry, {"name"}) == name) return &entry;
    }
  }
  return nullptr;
}

// skiff://UID.NAME.ATTEMPT
std::optional<int> attempt_of(std::string_view id) {
  const std::size_t dot = id.rfind('.');
  if (!id.starts_with("skiff://") || dot == std::string_view::npos) return std::nullopt;
  int attempt = 0;
  const auto [end, error] = std::from_chars(id.data() + dot + 1, id.data() + id.size(), attempt);
  if (error != std::errc{} || end != id.data() + id.size() || attempt < 0) return std::nullopt;
  return attempt;
}

}  // namespace

Result<int> log_attempt(const json::value& pod, std::string_view container, bool previous) {
  const auto name = api::name(pod);
  if (find_by_name(pod, "spec", {"containers", "initContainers", "ephemeralContainers"},
                   container) == nullptr) {
    return fail(Code::kBadRequest,
                fmt::format("container {} is not valid for pod {}", container, name));
  }
  const json::value* status = find_by_name(
      pod, "status", {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"},
      container);
  const json::value none = json::object();
  if (status == nullptr) status = &none;
  const auto last =
      attempt_of(json::get_string(*status, {"lastState", "terminated", "containerID"}));
  if (previous) {
    if (last) return *last;
    return fail(Code::kBadRequest, fmt::format("previous terminated container \"{}\" in pod \"{}\" "
                                               "not found",
                                               container, name));
  }
  const bool ran = json::find(*status, {"state", "running"}) != nullptr ||
                   json::find(*status, {"state", "terminated"}) != nullptr;
  if (ran) {
    const auto current = attempt_of(json::get_string(*status, {"containerID"}));
    if (current) return *current;
  }
  // Waiting to be started again: the last thing it said is what there is.
  if (last) return *last;
  if (json::find(*status, {"state", "waiting"}) == nullptr) {
    return fail(Code::kBadRequest,
                fmt::format("container \"{}\" in pod \"{}\" is not available", container, name));
  }
  return fail(
      Code::kBadRequest,
      fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}", container, name,
                  json::get_string(*status, {"state", "waiting", "reason"}, "ContainerCreating")));
}

PodLogs::PodLogs(Runtime& runtime, Running running)
    : runtime_(runtime), running_(std::move(running)) {}

Result<std::unique_ptr<http::Stream>> PodLogs::logs(const json::value& pod,
                                                    const apiserver::LogOptions& options) {
  SKIFF_ASSIGN(const int attempt, log_attempt(pod, options.container, options.previous));
  const std::string uid(api::uid(pod));
  LogRequest request;
  request.path = runtime_.log_path(uid, options.container, attempt);
  request.tail_lines = options.tail_lines;
  request.since = options.since;
  request.timestamps = options.timestamps;
  request.limit_bytes = options.limit_bytes;
  request.follow = options.follow;
  request.ended = [running = running_, uid, container = options.container, attempt] {
    return !running(uid, container, attempt);
  };
  return reader_.open(std::move(request));
}

Result<std::unique_ptr<apiserver::Peer>> PodLogs::exec(const json::value& pod,
                                                       const apiserver::ExecOptions& options) {
  return open_program(runtime_, api::uid(pod), options);
}

Result<std::unique_ptr<apiserver::Peer>> PodLogs::attach(const json::value& pod,
                                                         const apiserver::ExecOptions& options) {
  return open_container(runtime_, api::uid(pod), options);
}

std::unique_ptr<apiserver::Peer> PodLogs::dial(const json::value& pod, int port) {
  return open_port(runtime_, api::uid(pod), port);
}

}  // namespace skiff::node
