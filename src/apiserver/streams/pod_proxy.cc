#include "apiserver/streams/pod_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/meta.h"
#include "apiserver/query_token.h"
#include "apiserver/status.h"
#include "base/http.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kHeadBytes = 64 * 1024;
constexpr int kDefaultPort = 80;

// Between two neighbours only, or what the client tells Skiff and nobody else: its address may have
// a token, too.
constexpr std::string_view kNotForPods[] = {"Connection",
                                            "Keep-Alive",
                                            "Upgrade",
                                            "Transfer-Encoding",
                                            "TE",
                                            "Trailer",
                                            "Expect",
                                            "Authorization",
                                            "Proxy-Connection",
                                            "Proxy-Authorization",
                                            "Cookie",
                                            "Host",
                                            "Content-Length",
                                            "Referer"};
// Between two neighbours only, or what a browser would keep for all of Skiff's address.
constexpr std::string_view kNotForClients[] = {"Connection",      "Keep-Alive",
                                               "Upgrade",         "X-Content-Type-Options",
                                               "Set-Cookie",      "NEL",
                                               "Clear-Site-Data", "Service-Worker-Allowed",
                                               "Report-To",       "Reporting-Endpoints",
                                               "Alt-Svc",         "Strict-Transport-Security"};

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

bool digit(char c) { return c >= '0' && c <= '9'; }

// Neither an end of a line nor anything else that is not to be seen.
// "HTTP/1.x NNN", with a reason or not.
bool status_line(std::string_view line) {
  return line.size() >= 12 && line.starts_with("HTTP/1.") && digit(line[7]) && line[8] == ' ' &&
         line[9] != '0' && std::ranges::all_of(line.substr(9, 3), digit) &&
         (line.size() == 12 || line[12] == ' ') && http::is_header_value(line);
}

auto malformed(std::string_view what) {
  return fail(Code::kServiceUnavailable,
              fmt::format("the pod's answer is not HTTP/1.1: {} is malformed", what));
}

// The path of Skiff in front, and the path and query that the pod is asked for.
struct ProxyPath {
  std::string_view place = {}, rest = {};
};
ProxyPath split_path(std::string_view target) {
  // The absolute form names a host first.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(std::min(target.find_first_of("/?", scheme.size()), target.size()));
  }
  // /api/v1/namespaces/NS/pods/NAME/proxy
  constexpr int kSegments = 7;
  const std::string_view path = target.substr(0, target.find('?'));
  std::size_t at = 0;
  for (int i = 0; i < kSegments && at < path.size(); ++i) {
    while (at < path.size() && path[at] == '/') ++at;
    at = std::min(path.find('/', at), path.size());
  }
  return {.place = target.substr(0, at), .rest = target.substr(at)};
}

std::string without_token(std::string_view target) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return std::string(target);
  std::string out(target.substr(0, mark));
  char joint = '?';
  for (const std::string_view pair : split(target.substr(mark + 1), '&')) {
    const auto read = http::parse_url(fmt::format("/?{}", pair));
    if (!read || read->param("token")) continue;
    out += joint + std::string(pair);
    joint = '&';
  }
  return out;
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
    const bool more = peer_->read(pieces, wake);
    for (const Peer::Piece& piece : pieces) {
      if (headed_) {
        out += piece.bytes;
      } else if (const auto taken = take_head(piece.bytes, out); !taken) {
        out += failure(taken.error().message);
        return false;
      }
    }
    // Half a head: a peer that gave something keeps no wake.
    if (more && out.empty() && !pieces.empty()) wake();
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

  // Once the head is whole, it is in `out` with what follows it.
  Result<void> take_head(std::string_view bytes, std::string& out) {
    head_ += bytes;
    std::size_t end = 0;
    while ((end = head_.find("\r\n\r\n", from_)) != std::string::npos) {
      SKIFF_ASSIGN(const ProxyHead head,
                   proxy_head(std::string_view(head_).substr(from_, end - from_)));
      from_ = end + 4;
      if (head.status == 101) {
        return fail(Code::kServiceUnavailable, "the pod went over to another protocol unasked");
      }
      if (head.status < 200) continue;  // news of an answer that is still to come
      out += head.text + head_.substr(from_);
      headed_ = true;
      return {};
    }
    // Whoever ends lines in another way never comes to an end of the head.
    const std::size_t line = head_.find('\n', from_);
    if (line != std::string::npos && (line == from_ || head_[line - 1] != '\r')) {
      return malformed("its first line");
    }
    if (head_.size() > kHeadBytes) {
      return fail(Code::kServiceUnavailable, "the pod's answer has a head of more than 64 KiB");
    }
    return {};
  }

  const std::unique_ptr<Peer> peer_;
  std::string head_ = {};  // of the answer, until it is whole
  std::size_t from_ = 0;   // where it begins: behind heads that only say that it will come
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

std::string proxy_target(const http::Request& request) {
  const std::string_view rest = split_path(request.target).rest;
  const std::string out(rest.starts_with('/') ? "" : "/");
  return out + (token_in_query(request) ? without_token(rest) : std::string(rest));
}

bool proxy_gaps(std::string_view target) { return split_path(target).place.contains("//"); }

Result<std::string> proxy_request(const http::Request& request, std::string_view target) {
  SKIFF_TRY(http::check_request(request.method, target, request.headers));
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

Result<ProxyHead> proxy_head(std::string_view head) {
  std::string_view rest = head;
  const auto next = [&] {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.size(), line.size() + 2));
    return line;
  };
  const std::string_view first = next();
  if (!status_line(first)) return malformed("its first line");
  ProxyHead out;
  (void)std::from_chars(first.data() + 9, first.data() + 12, out.status);
  out.text = fmt::format(
      "HTTP/1.1 {}\r\nContent-Security-Policy: sandbox\r\nX-Content-Type-Options: nosniff\r\n",
      first.substr(9));
  while (!rest.empty()) {
    const std::string_view line = next();
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !http::is_header_name(line.substr(0, colon)) ||
        !http::is_header_value(line)) {
      return malformed("a header");
    }
    const std::string_view name = line.substr(0, colon);
    if (named(kNotForClients, name)) continue;
    out.text += fmt::format("{}: {}\r\n", name, trim(line.substr(colon + 1)));
  }
  out.text += "Connection: close\r\n\r\n";
  return out;
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
  auto text = proxy_request(request, proxy_target(request));
  if (!text) return refuse(Code::kBadRequest, text.error().message);
  http::Response response{.status = 0};
  response.tunnel =
      std::make_unique<ProxyTunnel>(streams->dial(pod, port_of(pod, name)), std::move(*text));
  return response;
}

}  // namespace skiff::apiserver
