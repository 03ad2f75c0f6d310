#include "apiserver/streams/exec.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/logs.h"
#include "apiserver/status.h"
#include "apiserver/streams/channels.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

Result<ExecOptions> read_options(const json::value& pod, const http::Url& url) {
  ExecOptions out{.in = url.flag("stdin"),
                  .out = url.flag("stdout"),
                  .err = url.flag("stderr"),
                  .tty = url.flag("tty")};
  for (const auto& [key, value] : url.query) {
    if (key == "command") out.command.push_back(value);
  }
  if (out.command.empty()) {
    return fail(Code::kBadRequest, "you must specify at least 1 command for the container");
  }
  if (!out.in && !out.out && !out.err) {
    return fail(Code::kBadRequest, "you must specify at least 1 of stdin, stdout, stderr");
  }
  if (out.tty && out.err) {
    return fail(Code::kBadRequest, "tty and stderr cannot both be true");
  }
  SKIFF_ASSIGN(out.container, choose_container(pod, url.param("container").value_or("")));
  return out;
}

Result<void> check_running(const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") {
    return fail(Code::kInternal,
                fmt::format("cannot exec into a container in a completed pod; current phase is {}",
                            phase));
  }
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) {
    return fail(Code::kBadRequest,
                fmt::format("pod {} does not have a host assigned", api::name(pod)));
  }
  return {};
}

}  // namespace

http::Response serve_exec(PodStreams* streams, const json::value& pod,
                          const http::Request& request, const http::Url& url) {
  const auto options = read_options(pod, url);
  if (!options) return error_response(options.error());
  if (auto running = check_running(pod); !running) return error_response(running.error());
  if (streams == nullptr) {
    return error_response({.code = Code::kServiceUnavailable,
                           .message = "no node agent runs in this process, so nothing can be "
                                      "run in pods"});
  }
  auto upgraded = upgrade(request, *options);
  if (!upgraded) return error_response(upgraded.error());
  auto terminal = streams->exec(pod, *options);
  if (!terminal) return error_response(terminal.error());
  http::Response response{.status = 101, .headers = std::move(upgraded->headers)};
  response.tunnel = std::make_unique<ExecTunnel>(std::move(*terminal),
                                                 std::move(upgraded->channels), *options);
  return response;
}

}  // namespace skiff::apiserver
