#include "net/client.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <list>
#include <map>
#include <mutex>

#include "base/http.h"
#include "base/strings.h"
#include "net/pki.h"
#include "net/wire.h"

namespace skiff::net {

namespace beast_http = boost::beast::http;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

struct Route {
  Endpoint endpoint;
  http::Headers headers;
  std::string identity;  // the same for all routes that may share a connection
  SSL_CTX* tls = nullptr;
};

namespace {

constexpr std::size_t kKeptWires = 32;
// Shorter than servers keep an idle connection (ours 120 s, Kubernetes' 90 s or more), so that we
// rarely write into one that is just being closed.
constexpr std::chrono::seconds kKeptTime{60};
// More than any list that fits in memory twice; a server that never stops must not fill it.
constexpr std::size_t kWholeBodyBytes = std::size_t{1} << 30;

std::string identity_of(const Endpoint& e) {
  std::string all = fmt::format("{}\n{}\n{}{}{}\n{}\n", e.host, e.port, e.tls, e.insecure,
                                e.remote_only, e.server_name);
  if (e.tls) all += e.ca_pem + "\n" + e.certificate_pem + "\n" + e.key_pem;
  return all;
}

bool repeatable(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

Result<std::string> render(const Route& route, const http::Request& request) {
  SKIFF_TRY(http::check_request(request.method, request.target, request.headers));
  std::string out = request.method + " " + request.target + " HTTP/1.1\r\n";
  const auto missing = [&](std::string_view name) {
    return http::header(request.headers, name).empty();
  };
  if (missing("Host")) {
    const Endpoint& to = route.endpoint;
    const bool v6 = to.host.contains(':');
    append_header(out, "Host",
                  fmt::format("{}{}{}:{}", v6 ? "[" : "", to.host, v6 ? "]" : "", to.port));
  }
  if (missing("User-Agent") && http::header(route.headers, "User-Agent").empty()) {
    append_header(out, "User-Agent", "skiff");
  }
  for (const auto& [name, value] : route.headers) {
    if (missing(name)) append_header(out, name, value);
  }
  for (const auto& [name, value] : request.headers) append_header(out, name, value);
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" ||
      request.method == "PATCH") {
    append_header(out, "Content-Length", std::to_string(request.body.size()));
  }
  out += "\r\n";
  return out += request.body;
}

}  // namespace

// By endpoint. The authorities of a machine take half a megabyte, so clients that ask the same
// server share them.
class Client::Contexts {
 public:
  Result<SSL_CTX*> get(const std::string& key, const Endpoint& endpoint) {
    if (!endpoint.tls) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(key);
    if (found != contexts_.end()) return found->second.get();
    SKIFF_ASSIGN(auto context, make_client_tls(endpoint));
    return contexts_.emplace(key, std::move(context)).first->second.get();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, ClientTls> contexts_;
};

// Connections that wait for their next request, by endpoint.
class Client::Pool {
 public:
  const std::shared_ptr<Interrupt> everything = std::make_shared<Interrupt>();

  std::unique_ptr<Wire> take(const Route& route) {
    const std::lock_guard lock(mutex_);
    const auto oldest = SteadyClock::now() - kKeptTime;
    std::erase_if(kept_, [&](const Kept& kept) { return kept.since < oldest; });
    for (auto at = kept_.begin(); at != kept_.end();) {
      if (at->route.get() != &route && at->route->identity != route.identity) {
        ++at;
        continue;
      }
      std::unique_ptr<Wire> wire = std::move(at->wire);
      at = kept_.erase(at);
      if (wire->quiet()) return wire;
    }
    return nullptr;
  }

  void keep(std::shared_ptr<const Route> route, std::unique_ptr<Wire> wire) {
    const std::lock_guard lock(mutex_);
    kept_.push_front({std::move(route), std::move(wire), SteadyClock::now()});
    if (kept_.size() > kKeptWires) kept_.pop_back();
  }

 private:
  struct Kept {
    std::shared_ptr<const Route> route;
    std::unique_ptr<Wire> wire;
    SteadyClock::time_point since;
  };
  std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
};

namespace {

using Keep = std::function<void(std::unique_ptr<Wire>)>;

// One request and its answer on a wire.
class Exchange : public StreamingResponse {
 public:
  Exchange(std::unique_ptr<Wire> wire, Keep keep)
      : wire_(std::move(wire)), keep_(std::move(keep)), local_only_(wire_->local_only()) {
    parser_.header_limit(1024 * 1024);
    parser_.body_limit(boost::none);
  }

  Result<void> start(const std::string& text, bool head_only, Deadline deadline) {
    parser_.skip(head_only);
    // A server may refuse a long body before it has read it all: its answer says more than our
    // broken write.
    const auto written = wire_->write(text, deadline);
    if (!written && written.error().code == Code::kTimeout) return written;
    // No answer is there yet: a read would only find that out.
    if (written) SKIFF_TRY(wire_->await(deadline));
    while (!parser_.is_header_done()) {
      const auto more = feed(deadline);
      if (!more) return written ? more : written;
    }
    status_ = static_cast<int>(parser_.get().result_int());
    for (const auto& field : parser_.get()) {
      const auto name = field.name_string();
      headers_.emplace_back(std::string(name.data(), name.size()),
                            std::string(field.value().data(), field.value().size()));
    }
    return {};
  }

  bool silent() const { return !parser_.got_some(); }

  int status() const override { return status_; }
  const http::Headers& headers() const override { return headers_; }
  bool local_only() const override { return local_only_; }
  void cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (wire_) wire_->interrupt();
  }

  Result<std::optional<std::string>> read(
      std::optional<std::chrono::milliseconds> timeout) override {
    // Here too: what has come already is given without a look at the wire.
    if (wire_) SKIFF_TRY(wire_->still_wanted());
    Deadline deadline;
    if (timeout) deadline = SteadyClock::now() + *timeout;
    return read_until(deadline);
  }

  Result<void> write(std::string_view bytes) override {
    if (!tunnel()) return fail(Code::kBadRequest, "the server has not given the connection away");
    return wire_->write(bytes, {});
  }

  Result<std::optional<std::string>> read_until(Deadline deadline) {
    if (tunnel()) return read_tunnel(deadline);
    while (parser_.get().body().empty()) {
      if (parser_.is_done()) {
        release();
        return std::nullopt;
      }
      SKIFF_TRY(feed(deadline));
    }
    std::string out = std::move(parser_.get().body());
    parser_.get().body().clear();
    return out;
  }

 private:
  bool tunnel() const { return status_ == 101; }

  // What came behind the head, then whatever comes.
  Result<std::optional<std::string>> read_tunnel(Deadline deadline) {
    if (!input_.empty()) return std::exchange(input_, {});
    std::string chunk(16 * 1024, '\0');
    SKIFF_ASSIGN(const std::size_t size, wire_->read(chunk, deadline));
    if (size == 0) return std::nullopt;
    chunk.resize(size);
    return chunk;
  }

  // Parses what is there, or reads once more.
  Result<void> feed(Deadline deadline) {
    error_code error;
    if (!input_.empty()) {
      const std::size_t used = parser_.put(boost::asio::buffer(input_), error);
      input_.erase(0, used);
      if (error && error != beast_http::error::need_more) return malformed(error);
      if (used > 0) return {};
    }
    std::array<char, 16 * 1024> chunk;
    SKIFF_ASSIGN(const std::size_t size, wire_->read(chunk, deadline));
    if (size > 0) {
      input_.append(chunk.data(), size);
      return {};
    }
    ended_ = true;
    if (!parser_.got_some()) {
      return fail(Code::kServiceUnavailable, "the server hung up without an answer");
    }
    parser_.put_eof(error);
    if (error) return fail(Code::kServiceUnavailable, "the server hung up within its answer");
    return {};
  }

  static std::unexpected<Error> malformed(const error_code& error) {
    return fail(Code::kServiceUnavailable,
                "the server's answer is not HTTP/1.1: " + error.message());
  }

  void release() {
    const std::lock_guard lock(mutex_);
    const bool reusable =
        wire_ && !ended_ && !cancelled_ && input_.empty() && parser_.get().keep_alive();
    if (reusable) keep_(std::move(wire_));
    wire_.reset();
  }

  std::mutex mutex_;  // guards the end of wire_ against cancel()
  std::unique_ptr<Wire> wire_;
  const Keep keep_;
  const bool local_only_;
  beast_http::response_parser<beast_http::string_body> parser_;
  std::string input_;
  bool ended_ = false;
  bool cancelled_ = false;
  int status_ = 0;
  http::Headers headers_;
};

}  // namespace

Client::Client(SocketMaker sockets) : Client(std::move(sockets), std::make_shared<Contexts>()) {}
Client::Client(SocketMaker sockets, std::shared_ptr<Contexts> contexts)
    : sockets_(std::move(sockets)),
      pool_(std::make_shared<Pool>()),
      contexts_(std::move(contexts)) {}
Client::~Client() = default;

std::shared_ptr<Client> Client::sibling() const {
  return std::shared_ptr<Client>(new Client(sockets_, contexts_));
}

void Client::shut_down() { pool_->everything->set(); }

Result<std::shared_ptr<const Route>> Client::route(Endpoint endpoint, http::Headers headers) {
  if (!http::is_host(endpoint.host)) {
    return fail(Code::kInvalid, fmt::format("\"{}\" is not a host", http::escape(endpoint.host)));
  }
  SKIFF_TRY(http::check_request("GET", "/", headers));
  std::string identity = identity_of(endpoint);
  SKIFF_ASSIGN(SSL_CTX* const tls, contexts_->get(identity, endpoint));
  return std::make_shared<const Route>(Route{.endpoint = std::move(endpoint),
                                             .headers = std::move(headers),
                                             .identity = std::move(identity),
                                             .tls = tls});
}

Result<std::unique_ptr<StreamingResponse>> Client::open(const Endpoint& endpoint,
                                                        const http::Request& request,
                                                        std::chrono::milliseconds timeout) {
  SKIFF_ASSIGN(const auto way, route(endpoint));
  return open(way, request, timeout);
}

Result<std::unique_ptr<StreamingResponse>> Client::open(const std::shared_ptr<const Route>& route,
                                                        const http::Request& request,
                                                        std::chrono::milliseconds timeout) {
  const Deadline deadline = SteadyClock::now() + timeout;
  SKIFF_ASSIGN(const std::string text, render(*route, request));
  while (true) {
    std::unique_ptr<Wire> wire = pool_->take(*route);
    const bool kept = wire != nullptr;
    if (!kept) {
      SKIFF_ASSIGN(
          wire, Wire::connect(route->endpoint, route->tls, sockets_, pool_->everything, deadline));
    }
    auto exchange = std::make_unique<Exchange>(
        std::move(wire),
        [pool = pool_, route](std::unique_ptr<Wire> idle) { pool->keep(route, std::move(idle)); });
    const auto started = exchange->start(text, request.method == "HEAD", deadline);
    if (started) return exchange;
    const bool again = kept && exchange->silent() && repeatable(request.method) &&
                       started.error().code != Code::kTimeout;
    if (!again) return std::unexpected(started.error());
  }
}

Result<http::Response> Client::send(const Endpoint& endpoint, const http::Request& request,
                                    std::chrono::milliseconds timeout) {
  SKIFF_ASSIGN(const auto way, route(endpoint));
  return send(way, request, timeout);
}

Result<http::Response> Client::send(const std::shared_ptr<const Route>& route,
                                    const http::Request& request,
                                    std::chrono::milliseconds timeout) {
  const Deadline deadline = SteadyClock::now() + timeout;
  SKIFF_ASSIGN(const auto stream, open(route, request, timeout));
  http::Response response{.status = stream->status(), .headers = stream->headers()};
  auto& exchange = static_cast<Exchange&>(*stream);
  while (true) {
    SKIFF_ASSIGN(const auto piece, exchange.read_until(deadline));
    if (!piece) return response;
    response.body += *piece;
    if (response.body.size() > kWholeBodyBytes) {
      return fail(Code::kTooLarge, "the server's answer is too large to hold");
    }
  }
}

Result<Endpoint> parse_endpoint(std::string_view url) {
  Endpoint out;
  const auto bad = [&](std::string_view why) {
    return fail(Code::kInvalid, fmt::format("\"{}\" is not the address of a server: {}", url, why));
  };
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    out.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad("it must begin with https:// or http://");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.contains('/')) return bad("a path after the host is not supported");
  if (rest.contains('@')) return bad("a user name before the host is not supported");
  out.port = out.tls ? 443 : 80;
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) return bad("the bracket is not closed");
  const std::size_t colon = rest.find(':', bracket);
  std::string_view host = rest.substr(0, colon);
  if (bracket != 0) host = host.substr(1, bracket - 1);
  if (host.empty()) return bad("the host is missing");
  if (!http::is_host(host)) return bad("the host has characters that no host has");
  out.host = host;
  if (colon == std::string_view::npos) return out;
  const std::string_view digits = rest.substr(colon + 1);
  const auto end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, out.port);
  if (read.ec != std::errc{} || read.ptr != end) return bad("the port is not a number");
  return out;
}

}  // namespace skiff::net
