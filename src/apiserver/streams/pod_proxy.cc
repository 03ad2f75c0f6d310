#include "apiserver/streams/pod_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "apiserver/status.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kHeadBytes = 64 * 1024;
constexpr int kDefaultPort = 80;

// Between two neighbours only, or what the client tells Skiff and nobody else.
constexpr std::string_view kNotForPods[] = {
    "Connection", "Keep-Alive", "Upgrade",       "Transfer-Encoding", "TE",
    "Trailer",    "Expect",     "Authorization", "Proxy-Connection",  "Proxy-Authorization",
    "Cookie",     "Host",       "Content-Length"};
constexpr std::string_view kNotForClients[] = {"Connection",      "Keep-Alive",
                                               "Set-Cookie",      "Service-Worker-Allowed",
                                               "Clear-Site-Data", "Strict-Transport-Security"};

template <std::size_t kSize>
bool named(const std::string_view (&list)[kSize], std::string_view name) {
  return std::ranges::any_of(list,
                             [&](std::string_view one) { return equal_ignoring_case(one, name); });
}

int port_of(const json::value& pod, const ProxyName& name) {
  if (name.port) return *name.port;
  for (const json::value& container : json::get_array(pod, {"spec", "containers"})) {
    const json::array& ports = json::get_array(container, {"ports"});
    if (ports.empty()) continue;
    return static_cast<int>(json::get_int(ports.front(), {"containerPort"}).value_or(kDefaultPort));
  }
  return kDefaultPort;
}

// Gives the pod its request and the client the answer, whatever it is, to its end.
class ProxyTunnel final : public http::Tunnel {
 public:
  ProxyTunnel(std::unique_ptr<Peer> peer, std::string_view request) : peer_(std::move(peer)) {
    peer_->write(request);
  }

  // The request was whole before this began; what comes after it is not waited for.
  void push(std::string_view /*bytes*/) override {}
  bool full() const override { return false; }

  bool pull(std::string& out, std::function<void()> wake) override {
    std::vector<Peer::Piece> pieces;
    const bool more = peer_->read(pieces, std::move(wake));
    for (const Peer::Piece& piece : pieces) {
      (headed_ ? out : head_) += piece.bytes;
      if (headed_) continue;
      if (const std::size_t end = head_.find("\r\n\r\n"); end != std::string::npos) {
        out += proxy_head(std::string_view(head_).substr(0, end + 2)) + head_.substr(end + 4);
        headed_ = true;
      } else if (head_.size() > kHeadBytes) {
        out += failure("the pod's answer has a head of more than 64 KiB");
        return false;
      }
    }
    if (more || headed_) return more;
    const Result<int> end = peer_->exit_code();
    out += failure(end ? "the pod hung up without an answer" : end.error().message);
    return false;
  }

 private:
  static std::string failure(const std::string& why) {
    const http::Response response = error_response(
        {.code = Code::kServiceUnavailable, .message = "error trying to reach service: " + why});
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        response.status, http::status_text(response.status), response.body.size(), response.body);
  }

  const std::unique_ptr<Peer> peer_;
  std::string head_ = {};  // of the answer, until it is whole
  bool headed_ = false;
};

}  // namespace

Result<ProxyName> parse_proxy_name(std::string_view name) {
  const auto refuse = [&] {
    return fail(Code::kBadRequest, fmt::format("invalid pod request \"{}\"", name));
  };
  const std::vector<std::string_view> parts = split(name, ':');
  if (parts.size() > 3) return refuse();
  ProxyName out;
  if (parts.size() == 3) out.scheme = parts[0];
  if (!out.scheme.empty() && out.scheme != "http" && out.scheme != "https") return refuse();
  out.pod = parts[parts.size() == 3 ? 1 : 0];
  const std::string_view port = parts.size() == 1 ? std::string_view() : parts.back();
  if (out.pod.empty()) return refuse();
  if (port.empty()) return out;
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535) {
    return refuse();
  }
  out.port = number;
  return out;
}

std::string proxy_target(std::string_view target) {
  // /api/v1/namespaces/NS/pods/NAME/proxy
  constexpr int kSegments = 7;
  const std::string_view path = target.substr(0, target.find('?'));
  std::size_t at = 0;
  for (int i = 0; i < kSegments && at < path.size(); ++i) {
    while (at < path.size() && path[at] == '/') ++at;
    at = std::min(path.find('/', at), path.size());
  }
  const std::string rest(target.substr(at));
  return rest.starts_with('/') ? rest : "/" + rest;
}

std::string proxy_request(const http::Request& request, std::string_view target) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
                                request.method, target, http::header(request.headers, "Host"));
  for (const auto& [name, value] : request.headers) {
    if (!named(kNotForPods, name)) out += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  return out + "\r\n" + request.body;
}

std::string proxy_head(std::string_view head) {
  std::string out;
  for (std::string_view rest = head; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.size(), line.size() + 2));
    if (line.empty()) continue;
    const bool first = out.empty();
    if (!first && named(kNotForClients, trim(line.substr(0, line.find(':'))))) continue;
    out += std::string(line) + "\r\n";
    if (first) out += "Content-Security-Policy: sandbox\r\nX-Content-Type-Options: nosniff\r\n";
  }
  return out + "Connection: close\r\n\r\n";
}

http::Response serve_proxy(PodStreams* streams, const json::value& pod, const ProxyName& name,
                           const http::Request& request) {
  const auto refuse = [](Code code, std::string why) {
    return error_response({.code = code, .message = std::move(why)});
  };
  if (name.scheme == "https") {
    return refuse(Code::kBadRequest, "pods are asked in plain HTTP here: leave out \"https:\"");
  }
  if (streams == nullptr) {
    return refuse(Code::kServiceUnavailable,
                  "no node agent runs in this process, so nobody can talk to pods");
  }
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) {
    return refuse(Code::kBadRequest,
                  fmt::format("pod {} does not have a host assigned", api::name(pod)));
  }
  http::Response response{.status = 0};
  response.tunnel = std::make_unique<ProxyTunnel>(
      streams->dial(pod, port_of(pod, name)), proxy_request(request, proxy_target(request.target)));
  return response;
}

}  // namespace skiff::apiserver
