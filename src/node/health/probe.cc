#include "node/health/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/http.h"
#include "base/strings.h"
#include "net/client.h"
#include "node/health/exec.h"
#include "node/health/grpc_probe.h"
#include "node/health/pod_dialer.h"

namespace skiff::node {
namespace {

using std::chrono::milliseconds;

constexpr int kRedirectsMax = 10;
constexpr std::string_view kVersion = "1.34";
constexpr char kNoHost[] = "the host of the probe has characters that no host has";

ProbeAnswer probe_failure(std::string text) {
  return {ProbeOutcome::kFailure, false, std::move(text)};
}
ProbeAnswer error(std::string text) { return {ProbeOutcome::kError, false, std::move(text)}; }

std::string join_host(const std::string& host, int port) {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

ProbeAnswer probe_exec(Runtime& runtime, const ProbeRequest& request, const std::stop_token& stop) {
  ExecSpec spec{.container = std::string(json::get_string(request.container, {"name"})),
                .argv = json::strings(json::get_array(request.handler, {"exec", "command"}))};
  const std::string shown = fmt::format("{}", fmt::join(spec.argv, " "));
  const ExecOutput done =
      exec_and_read(runtime, request.pod_uid, std::move(spec), request.timeout, stop);
  if (!done.exit_code && done.exit_code.error().code == Code::kTimeout) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(request.timeout).count();
    return probe_failure(
        fmt::format("command timed out: \"{}\" timed out after {}s", shown, whole));
  }
  if (!done.exit_code) return error(done.exit_code.error().message);
  if (*done.exit_code != 0) return probe_failure(done.output);
  return {ProbeOutcome::kSuccess, false, done.output};
}

// What is wrong with a connection of this socket; 0: nothing, ETIMEDOUT: it came too late.
int connect_problem(int fd, const sockaddr_storage& to, milliseconds timeout) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&wait, 1, static_cast<int>(timeout.count())) != 1) return ETIMEDOUT;
  int number = 0;
  socklen_t size = sizeof number;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size);
  return number;
}

ProbeAnswer probe_tcp(Runtime& runtime, const ProbeRequest& request) {
  const json::value* port = json::find(request.handler, {"tcpSocket", "port"});
  const auto number = probe_port(request.container, port == nullptr ? json::value() : *port);
  if (!number) return error(number.error().message);
  const std::string host(json::get_string(request.handler, {"tcpSocket", "host"}, request.pod_ip));
  if (!http::is_host(host)) return probe_failure(kNoHost);
  auto to = PodDialer::resolve(host, *number);
  if (!to) return probe_failure(fmt::format("dial tcp: {}", to.error().message));
  const auto fd = PodDialer(runtime, request.pod_uid, request.pod_ip).socket_for(*to);
  if (!fd) return error(fd.error().message);
  const int problem = connect_problem(*fd, *to, request.timeout);
  ::close(*fd);
  if (problem == 0) return {};
  const std::string shown = join_host(host, *number);
  if (problem == ETIMEDOUT) return probe_failure(fmt::format("dial tcp {}: i/o timeout", shown));
  return probe_failure(
      fmt::format("dial tcp {}: connect: {}", shown, lower(std::strerror(problem))));
}

struct Address {
  net::Endpoint endpoint = {};
  std::string target = {};
  std::string shown = {};  // all of it, as it is sent
};

Result<Address> parse_address(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return fail(Code::kInvalid, url + " is not a URL");
  const std::size_t path = std::min(url.find_first_of("/?", scheme + 3), url.size());
  SKIFF_ASSIGN(net::Endpoint endpoint, net::parse_endpoint(url.substr(0, path)));
  endpoint.insecure = true;
  std::string target = http::request_target(url.substr(path));
  std::string shown = url.substr(0, path) + target;
  return Address{std::move(endpoint), std::move(target), std::move(shown)};
}

http::Headers probe_headers(const ProbeRequest& request) {
  http::Headers headers;
  for (const json::value& h : json::get_array(request.handler, {"httpGet", "httpHeaders"})) {
    headers.emplace_back(json::get_string(h, {"name"}), json::get_string(h, {"value"}));
  }
  const auto given = [&](std::string_view name) {
    return std::any_of(headers.begin(), headers.end(), [&](const auto& header) {
      return ::strcasecmp(header.first.c_str(), std::string(name).c_str()) == 0;
    });
  };
  if (!given("User-Agent")) {
    headers.emplace_back("User-Agent", fmt::format("kube-{}/{}", request.purpose, kVersion));
  }
  if (!given("Accept")) headers.emplace_back("Accept", "*/*");
  headers.emplace_back("Connection", "close");
  return headers;
}

// As the clients of Kubernetes word it, which is what readers of events know.
std::string http_failure(const Address& to, const Error& why) {
  const std::string& url = to.shown;
  if (why.code == Code::kTimeout) {
    return fmt::format(
        "Get \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        url);
  }
  if (why.message.contains("Connection refused")) {
    return fmt::format("Get \"{}\": dial tcp {}: connect: connection refused", url,
                       join_host(to.endpoint.host, to.endpoint.port));
  }
  return fmt::format("Get \"{}\": {}", url, why.message);
}

ProbeAnswer judge_status(int status, const std::string& body) {
  if (status < 200 || status >= 400) {
    return probe_failure(fmt::format("HTTP probe failed with statuscode: {}", status));
  }
  if (status < 300) return {};
  return {ProbeOutcome::kSuccess, true, "Probe terminated redirects, Response body: " + body};
}

// Nothing where no host can be called so.
std::optional<std::string> first_url(const ProbeRequest& request, int port) {
  const bool tls = json::get_string(request.handler, {"httpGet", "scheme"}) == "HTTPS";
  const std::string host(json::get_string(request.handler, {"httpGet", "host"}, request.pod_ip));
  const std::string path(json::get_string(request.handler, {"httpGet", "path"}));
  if (!http::is_host(host)) return {};
  return fmt::format("{}://{}{}", tls ? "https" : "http", join_host(host, port),
                     http::request_target(path));
}

ProbeAnswer probe_http(Runtime& runtime, const ProbeRequest& request, const std::stop_token& stop) {
  const json::value* port = json::find(request.handler, {"httpGet", "port"});
  const auto number = probe_port(request.container, port == nullptr ? json::value() : *port);
  if (!number) return error(number.error().message);
  auto url = first_url(request, *number);
  if (!url) return probe_failure(kNoHost);
  const PodDialer dialer(runtime, request.pod_uid, request.pod_ip);
  // One connection for one probe: the next must see whether a new one can be made.
  net::Client client([&](sockaddr_storage& to) { return dialer.socket_for(to); });
  const std::stop_callback hang_up(stop, [&] { client.shut_down(); });
  const auto deadline = std::chrono::steady_clock::now() + request.timeout;
  for (int hops = 0;; ++hops) {
    const auto to = parse_address(*url);
    if (!to) return error(to.error().message);
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    const auto answer =
        client.open(to->endpoint, {.target = to->target, .headers = probe_headers(request)},
                    std::max(left, milliseconds(1)));
    if (!answer) return probe_failure(http_failure(*to, answer.error()));
    const int status = (*answer)->status();
    const std::string location(http::header((*answer)->headers(), "Location"));
    const auto next = status >= 300 && status < 400 && status != 304 && !location.empty()
                          ? redirect_target(*url, location)
                          : std::nullopt;
    if (next && hops + 1 >= kRedirectsMax) {
      return probe_failure(fmt::format("Get \"{}\": stopped after 10 redirects", *next));
    }
    if (next) {
      url = next;
      continue;
    }
    std::string body;
    if (status >= 300 && status < 400) {
      if (auto piece = (*answer)->read(std::max(left, milliseconds(1))); piece && *piece) {
        body = (*piece)->substr(0, kExecOutputBytes);
      }
    }
    return request.any_status ? ProbeAnswer{} : judge_status(status, body);
  }
}

std::string_view authority(std::string_view url) {
  const std::size_t begin = url.find("://") + 3;
  return url.substr(begin, std::min(url.find_first_of("/?", begin), url.size()) - begin);
}

std::string_view host_name(std::string_view authority) {
  const std::size_t bracket = authority.find(']');
  const std::size_t colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
  return authority.substr(0, colon);
}

}  // namespace

Result<int> probe_port(const json::value& container, const json::value& port) {
  std::int64_t number = -1;
  if (port.is_string()) {
    const std::string_view name = json::get_string(port, {});
    for (const json::value& p : json::get_array(container, {"ports"})) {
      if (json::get_string(p, {"name"}) == name) {
        number = json::get_int(p, {"containerPort"}).value_or(-1);
      }
    }
    if (number < 0) {
      char* end = nullptr;
      const std::string text(name);
      number = std::strtol(text.c_str(), &end, 10);
      if (text.empty() || *end != '\0') {
        return fail(Code::kInvalid,
                    fmt::format("strconv.Atoi: parsing \"{}\": invalid syntax", name));
      }
    }
  } else {
    number = json::get_int(port, {}).value_or(-1);
  }
  if (number > 0 && number < 65536) return static_cast<int>(number);
  return fail(Code::kInvalid, fmt::format("invalid port number: {}", number));
}

std::optional<std::string> redirect_target(const std::string& url, std::string_view location) {
  if (location.contains("://")) {
    if (host_name(authority(location)) != host_name(authority(url))) return std::nullopt;
    return std::string(location);
  }
  const std::size_t scheme = url.find("://");
  if (location.starts_with("//")) {
    return redirect_target(url, url.substr(0, scheme + 1) + std::string(location));
  }
  const std::size_t path = std::min(url.find_first_of("/?", scheme + 3), url.size());
  if (location.starts_with('/')) return url.substr(0, path) + std::string(location);
  const std::string whole = url.substr(0, std::min(url.find('?', path), url.size()));
  const std::size_t folder = whole.rfind('/');
  const std::string base =
      folder < path || folder == whole.npos ? whole + "/" : whole.substr(0, folder + 1);
  return base + std::string(location);
}

ProbeAnswer run_probe(Runtime& runtime, const ProbeRequest& request, const std::stop_token& stop) {
  if (json::find(request.handler, {"exec"}) != nullptr) return probe_exec(runtime, request, stop);
  if (json::find(request.handler, {"httpGet"}) != nullptr)
    return probe_http(runtime, request, stop);
  if (json::find(request.handler, {"tcpSocket"}) != nullptr) return probe_tcp(runtime, request);
  if (json::find(request.handler, {"grpc"}) != nullptr) return probe_grpc(runtime, request, stop);
  return error("the probe names no handler");
}

}  // namespace skiff::node
