#include "apiserver/streams/talk.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "apiserver/logs.h"
#include "apiserver/status.h"
#include "apiserver/streams/channels.h"
#include "apiserver/streams/forward.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

Result<ExecOptions> read_exec_options(const json::value& pod, const http::Url& url, bool exec) {
  ExecOptions out{.in = url.flag("stdin"),
                  .out = url.flag("stdout"),
                  .err = url.flag("stderr"),
                  .tty = url.flag("tty")};
  for (const auto& [key, value] : url.query) {
    if (key == "command") out.command.push_back(value);
  }
  if (exec && out.command.empty()) {
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

Result<void> check_running(std::string_view subresource, const json::value& pod) {
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (subresource == "exec" && (phase == "Succeeded" || phase == "Failed")) {
    return fail(
        Code::kInternal,
        fmt::format("cannot exec into a container in a completed pod; current phase is {}", phase));
  }
  if (subresource == "portforward" && phase != "Running") {
    return fail(
        Code::kBadRequest,
        fmt::format("unable to forward port because pod is not running. Current status={}", phase));
  }
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) {
    return fail(Code::kBadRequest,
                fmt::format("pod {} does not have a host assigned", api::name(pod)));
  }
  return {};
}

Result<http::Response> open_program(bool exec, PodStreams& streams, const json::value& pod,
                                    const http::Request& request, const http::Url& url) {
  SKIFF_ASSIGN(const ExecOptions options, read_exec_options(pod, url, exec));
  SKIFF_ASSIGN(Upgrade upgraded, upgrade(request, options));
  SKIFF_ASSIGN(auto peer, exec ? streams.exec(pod, options) : streams.attach(pod, options));
  http::Response response{.status = 101, .headers = std::move(upgraded.headers)};
  response.tunnel =
      std::make_unique<ExecTunnel>(std::move(peer), std::move(upgraded.channels), options);
  return response;
}

Result<http::Response> open_ports(PodStreams& streams, const json::value& pod,
                                  const http::Request& request, const http::Url& url) {
  SKIFF_ASSIGN(ForwardUpgrade upgraded, forward_upgrade(request, url));
  http::Response response{.status = 101, .headers = std::move(upgraded.headers)};
  response.tunnel = std::make_unique<ForwardTunnel>(
      std::move(upgraded.channels), [&streams, pod](int port) { return streams.dial(pod, port); });
  return response;
}

Result<http::Response> talk(std::string_view subresource, PodStreams* streams,
                            const json::value& pod, const http::Request& request,
                            const http::Url& url) {
  SKIFF_TRY(check_running(subresource, pod));
  if (streams == nullptr) {
    return fail(Code::kServiceUnavailable,
                "no node agent runs in this process, so nobody can talk to pods");
  }
  if (subresource == "portforward") return open_ports(*streams, pod, request, url);
  return open_program(subresource == "exec", *streams, pod, request, url);
}

}  // namespace

bool is_talk(std::string_view subresource) {
  return subresource == "exec" || subresource == "attach" || subresource == "portforward";
}

http::Response serve_talk(std::string_view subresource, PodStreams* streams, const json::value& pod,
                          const http::Request& request, const http::Url& url) {
  auto response = talk(subresource, streams, pod, request, url);
  return response ? std::move(*response) : error_response(response.error());
}

}  // namespace skiff::apiserver
