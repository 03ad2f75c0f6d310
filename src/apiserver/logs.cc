#include "apiserver/logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "apiserver/status.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

std::vector<std::string> container_names(const json::value& pod, std::string_view list) {
  std::vector<std::string> names;
  for (const json::value& container : json::get_array(pod, {"spec", list})) {
    names.emplace_back(json::get_string(container, {"name"}));
  }
  return names;
}

const json::value* container_status(const json::value& pod, std::string_view name) {
  for (std::string_view list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const json::value& status : json::get_array(pod, {"status", list})) {
      if (json::get_string(status, {"name"}) == name) return &status;
    }
  }
  return nullptr;
}

Result<void> check_started(const json::value& pod, const LogOptions& options) {
  static const json::value kNothing;
  const json::value* found = container_status(pod, options.container);
  const json::value& status = found == nullptr ? kNothing : *found;
  const bool ran_before = json::find(status, {"lastState", "terminated"}) != nullptr;
  if (options.previous) {
    if (ran_before) return {};
    return fail(Code::kBadRequest,
                fmt::format("previous terminated container \"{}\" in pod \"{}\" not found",
                            options.container, api::name(pod)));
  }
  if (ran_before || json::find(status, {"state", "running"}) != nullptr ||
      json::find(status, {"state", "terminated"}) != nullptr) {
    return {};
  }
  const std::string_view reason =
      json::get_string(status, {"state", "waiting", "reason"}, "ContainerCreating");
  const std::string_view message = json::get_string(status, {"state", "waiting", "message"});
  return fail(Code::kBadRequest,
              fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}{}{}",
                          options.container, api::name(pod), reason, message.empty() ? "" : ": ",
                          reason == "ContainerCreating" ? "" : message));
}

Result<std::optional<std::int64_t>> read_count(const http::Url& url, std::string_view name) {
  const auto text = url.param(name);
  if (!text || text->empty()) return std::nullopt;
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
  if (error != std::errc{} || end != text->data() + text->size() || n < 0) {
    return std::unexpected(Error{
        .code = Code::kInvalid,
        .message = fmt::format("PodLogOptions \"\" is invalid: {}: Invalid value: \"{}\": must be "
                               "a number greater than or equal to 0",
                               name, *text)});
  }
  return n;
}

Result<LogOptions> read_log_options(const http::Url& url, Time now) {
  LogOptions options{.follow = url.flag("follow"),
                     .previous = url.flag("previous"),
                     .timestamps = url.flag("timestamps")};
  SKIFF_ASSIGN(options.tail_lines, read_count(url, "tailLines"));
  SKIFF_ASSIGN(options.limit_bytes, read_count(url, "limitBytes"));
  SKIFF_ASSIGN(const auto seconds, read_count(url, "sinceSeconds"));
  const auto time = url.param("sinceTime");
  if (seconds && time) {
    return fail(Code::kInvalid,
                "PodLogOptions \"\" is invalid: at most one of sinceTime or sinceSeconds may be "
                "specified");
  }
  if (seconds) options.since = now - std::chrono::seconds(std::min<std::int64_t>(*seconds, 1e9));
  if (time) {
    options.since = parse_time(*time);
    if (!options.since) {
      return fail(Code::kBadRequest,
                  fmt::format("sinceTime \"{}\" is not an RFC 3339 time", *time));
    }
  }
  return options;
}

}  // namespace

Result<std::string> choose_container(const json::value& pod, const std::string& asked) {
  const auto main = container_names(pod, "containers");
  const auto init = container_names(pod, "initContainers");
  if (!asked.empty()) {
    for (const auto& names : {main, init, container_names(pod, "ephemeralContainers")}) {
      if (std::ranges::count(names, asked) > 0) return asked;
    }
    return fail(Code::kBadRequest,
                fmt::format("container {} is not valid for pod {}", asked, api::name(pod)));
  }
  if (main.size() == 1) return main[0];
  std::string message = fmt::format(
      "a container name must be specified for pod {}, choose one of: "
      "[{}]",
      api::name(pod), join(main, " "));
  if (!init.empty()) {
    message += fmt::format(" or one of the init containers: [{}]", join(init, " "));
  }
  return fail(Code::kBadRequest, std::move(message));
}

http::Response serve_logs(PodStreams* streams, const json::value& pod, const http::Url& url,
                          Time now) {
  auto options = read_log_options(url, now);
  if (!options) return error_response(options.error());
  auto container = choose_container(pod, url.param("container").value_or(""));
  if (!container) return error_response(container.error());
  options->container = std::move(*container);
  // A pod that no node has yet says nothing, and that is no error.
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) return {.status = 204};
  if (auto started = check_started(pod, *options); !started) {
    return error_response(started.error());
  }
  if (streams == nullptr) {
    return error_response({.code = Code::kServiceUnavailable,
                           .message = "no node agent runs in this process, so there are no logs"});
  }
  auto stream = streams->logs(pod, *options);
  if (!stream) return error_response(stream.error());
  http::Response response = text_response(200, "");
  response.stream = std::move(*stream);
  return response;
}

}  // namespace skiff::apiserver
