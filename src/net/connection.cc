#include "net/connection.h"

#include <unistd.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <exception>

#include "net/http_text.h"
#include "net/keep_alive.h"
#include "net/socket_owner.h"

namespace skiff::net {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

namespace {

// What a client may send ahead of an answer that it has not read yet.
constexpr std::size_t kReadAheadBytes = 64 * 1024;
// After a refusal we read what the client is still sending, so that our answer reaches it and is
// not thrown away by a reset; this much and this long.
constexpr std::size_t kDrainBytes = 16 * 1024 * 1024;
constexpr std::chrono::milliseconds kDrainTime{2'000};
// Bodies up to this size go out in one piece with their head.
constexpr std::size_t kJoinBytes = 16 * 1024;

std::array<std::uint8_t, 16> bytes_of(const asio::ip::address& address) {
  std::array<std::uint8_t, 16> out{};
  if (address.is_v4()) {
    const auto raw = address.to_v4().to_bytes();
    std::memcpy(out.data(), raw.data(), raw.size());
  } else {
    const auto raw = address.to_v6().to_bytes();
    std::memcpy(out.data(), raw.data(), raw.size());
  }
  return out;
}

// A dual-stack listener sees IPv4 clients as ::ffff:a.b.c.d.
asio::ip::address unmapped(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address;
}

std::string_view text(boost::beast::string_view s) { return {s.data(), s.size()}; }

}  // namespace

bool Core::admit(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex);
  if (stopping || open.size() >= options.connections) return false;
  open.emplace(connection.get(), connection);
  return true;
}

void Core::forget(const Connection* connection) {
  std::shared_ptr<Connection> last;  // destroyed after the lock
  const std::lock_guard lock(mutex);
  const auto found = open.find(connection);
  if (found == open.end()) return;
  last = std::move(found->second);
  open.erase(found);
}

Connection::Connection(std::shared_ptr<Core> core, asio::ip::tcp::socket socket,
                       const Listen& listen)
    : core_(std::move(core)), socket_(std::move(socket)), trust_local_(listen.trust_local) {
  if (listen.tls) tls_.emplace(socket_, core_->tls->context);
}

template <class Action>
std::function<void()> Connection::from_anywhere(Action action) {
  return [weak = weak_from_this(), action] {
    const auto self = weak.lock();
    if (!self) return;
    // The queued call must not own the connection: it may never run if the server is stopping.
    asio::post(self->socket_.get_executor(), [weak, action] {
      const auto alive = weak.lock();
      if (alive && !alive->closed_) action(*alive);
    });
  };
}

void Connection::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    keep_alive(self->socket_.native_handle());
    self->identify_peer();
    if (self->tls_) return self->handshake();
    self->next_request();
  });
}

void Connection::stop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::identify_peer() {
  error_code error;
  const auto remote = socket_.remote_endpoint(error);
  if (error) return;
  const auto local = socket_.local_endpoint(error);
  if (error) return;
  const asio::ip::address remote_address = unmapped(remote.address());
  peer_.tls = tls_.has_value();
  peer_.loopback = remote_address.is_loopback();
  if (!trust_local_ || !peer_.loopback || peer_.tls) return;
  const SocketPair pair{.v6 = remote_address.is_v6(),
                        .remote = bytes_of(remote_address),
                        .local = bytes_of(unmapped(local.address())),
                        .remote_port = remote.port(),
                        .local_port = local.port()};
  peer_.same_user = core_->options.owners->is_trusted(pair);
}

void Connection::handshake() {
  expire_in(core_->options.request_time);
  tls_->async_handshake(asio::ssl::stream_base::server,
                        [self = shared_from_this()](const error_code& error) {
                          if (self->closed_) return;
                          if (error) return self->close();
                          identify(*self->core_->tls, self->tls_->native_handle(), self->peer_);
                          self->next_request();
                        });
}

void Connection::next_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(core_->options.header_bytes));
  parser_->body_limit(core_->options.body_bytes);
  head_seen_ = false;
  state_ = State::kReading;
  expire_in(input_.empty() ? core_->options.idle : core_->options.request_time);
  advance();
  if (ended_ && state_ == State::kReading) return close();
  arm_read();
}

void Connection::arm_read() {
  if (closed_ || reading_ || ended_) return;
  if (state_ == State::kTunnelling
          ? response_.tunnel->full()
          : state_ != State::kReading && input_.size() >= kReadAheadBytes) {
    return;
  }
  reading_ = true;
  auto done = [self = shared_from_this()](const error_code& error, std::size_t size) {
    self->on_read(error, size);
  };
  if (tls_) {
    tls_->async_read_some(asio::buffer(chunk_), std::move(done));
  } else {
    socket_.async_read_some(asio::buffer(chunk_), std::move(done));
  }
}

void Connection::on_read(const error_code& error, std::size_t size) {
  reading_ = false;
  if (closed_) return;
  if (error) return on_end();
  if (state_ == State::kTunnelling) {
    give({chunk_.data(), size});
  } else if (state_ == State::kLingering) {
    drained_bytes_ += size;
    if (drained_bytes_ > kDrainBytes) return close();
  } else {
    const bool first = state_ == State::kReading && !parser_->got_some() && input_.empty();
    if (first) expire_in(core_->options.request_time);
    input_.append(chunk_.data(), size);
    advance();
  }
  arm_read();
}

// A client may end its side after the last request and still wait for the answer; a stream or a
// tunnel it can only end this way, also before the head of the answer is written.
void Connection::on_end() {
  ended_ = true;
  if (state_ != State::kAnswering || source() != nullptr) return close();
}

void Connection::advance() {
  while (state_ == State::kReading && !closed_) {
    // Some clients send an empty line after a body.
    if (!parser_->got_some()) {
      input_.erase(0, std::min(input_.find_first_not_of("\r\n"), input_.size()));
    }
    if (input_.empty()) return;
    error_code error;
    const std::size_t used = parser_->put(asio::buffer(input_), error);
    input_.erase(0, used);
    if (error && error != beast_http::error::need_more) return on_parse_error(error);
    if (parser_->is_header_done() && !head_seen_ && !on_head()) return;
    if (parser_->is_done()) return handle();
    if (used == 0) return;
  }
}

// False: the body is not to be read now.
bool Connection::on_head() {
  head_seen_ = true;
  const auto& head = parser_->get();
  const auto hosts = head.count(beast_http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() >= 11)) {
    refuse(400, reason(Code::kBadRequest),
           hosts > 1 ? "the request names two hosts" : "the request names no host");
    return false;
  }
  if (head.find(beast_http::field::transfer_encoding) != head.end() && !parser_->chunked()) {
    refuse(501, "BadRequest", "the only transfer encoding that is understood is chunked");
    return false;
  }
  if (parser_->is_done()) return true;
  expire_in(core_->options.request_time);
  const bool asks = boost::beast::iequals(head[beast_http::field::expect], "100-continue");
  if (!asks || !input_.empty()) return true;
  state_ = State::kContinuing;
  output_ = "HTTP/1.1 100 Continue\r\n\r\n";
  write({asio::buffer(output_), {}}, &Connection::resume_body);
  return false;
}

void Connection::resume_body() {
  state_ = State::kReading;
  advance();
  arm_read();
}

void Connection::on_parse_error(const error_code& error) {
  if (error == beast_http::error::body_limit) {
    return refuse(413, reason(Code::kTooLarge),
                  "the request body is larger than the limit of " +
                      std::to_string(core_->options.body_bytes) + " bytes");
  }
  if (error == beast_http::error::header_limit) {
    return refuse(431, reason(Code::kBadRequest),
                  "the request's headers are larger than the limit of " +
                      std::to_string(core_->options.header_bytes) + " bytes");
  }
  if (error == beast_http::error::bad_version) {
    return refuse(505, reason(Code::kBadRequest), "only HTTP/1.0 and HTTP/1.1 are spoken here");
  }
  refuse(400, reason(Code::kBadRequest), "this is not an HTTP/1.1 request: " + error.message());
}

void Connection::refuse(int status, std::string_view why, std::string_view message) {
  state_ = State::kAnswering;
  keep_alive_ = false;
  head_only_ = false;
  chunked_ = true;
  never_expire();
  respond(refusal(status, why, message));
}

void Connection::handle() {
  state_ = State::kAnswering;
  never_expire();
  auto message = parser_->release();
  keep_alive_ = message.keep_alive();
  chunked_ = message.version() >= 11;
  head_only_ = message.method() == beast_http::verb::head;
  http::Request request{.method = std::string(text(message.method_string())),
                        .target = std::string(text(message.target())),
                        .body = std::move(message.body()),
                        .peer = peer_};
  for (const auto& field : message) {
    request.headers.emplace_back(text(field.name_string()), text(field.value()));
  }
  http::Response response;
  try {
    response = core_->handler(request);
  } catch (const std::exception& exception) {
    response = refusal(500, reason(Code::kInternal),
                       std::string("the server failed on this request: ") + exception.what());
  }
  respond(std::move(response));
}

void Connection::respond(http::Response response) {
  response_ = std::move(response);
  const auto& gate = core_->options.gate;
  if (response_.after_revision == 0 || !gate) return send_answer();
  gate(response_.after_revision, from_anywhere([](Connection& self) { self.send_answer(); }),
       [weak = weak_from_this()](const Error& error) {
         const auto self = weak.lock();
         if (!self) return;
         self->from_anywhere([error](Connection& alive) {
           alive.respond(refusal(http_code(error.code), reason(error.code), error.message));
         })();
       });
}

void Connection::give(std::string_view bytes) {
  try {
    response_.tunnel->push(bytes);
  } catch (const std::exception&) {
    close();  // out of memory or threads: this client's loss alone
  }
}

void Connection::begin_tunnel() {
  state_ = State::kTunnelling;
  chunked_ = false;
  keep_alive_ = false;
  if (!input_.empty()) give(std::exchange(input_, {}));
  if (closed_) return;
  pull();
  arm_read();
}

void Connection::send_answer() {
  // Status 0: the tunnel says everything, from the first word of the answer on.
  if (response_.tunnel && response_.status == 0) return begin_tunnel();
  if (response_.tunnel) {
    output_ = render_head(
        response_, {.framing = Framing::kTunnel, .server_header = core_->options.server_header});
    return write({asio::buffer(output_), {}}, &Connection::begin_tunnel);
  }
  const bool bodiless = response_.status == 204 || response_.status == 304;
  Framing framing = bodiless ? Framing::kNone : Framing::kLength;
  if (response_.stream) framing = chunked_ ? Framing::kChunked : Framing::kUntilClose;
  if (framing == Framing::kUntilClose) keep_alive_ = false;
  if (ended_ && input_.empty()) keep_alive_ = false;
  output_ = render_head(
      response_,
      {.framing = framing, .close = !keep_alive_, .server_header = core_->options.server_header});
  if (head_only_ || bodiless) {
    response_.stream.reset();
    response_.body.clear();
  }
  if (response_.stream) return write({asio::buffer(output_), {}}, &Connection::pull);
  if (response_.body.size() <= kJoinBytes) {
    output_ += response_.body;
    response_.body.clear();
  }
  expire_in(core_->options.idle);
  write({asio::buffer(output_), asio::buffer(response_.body)}, &Connection::finish);
}

void Connection::pull() {
  // A stream may stay silent for as long as it and its reader live.
  never_expire();
  piece_.clear();
  waiting_ = false;
  const std::uint64_t number = ++pull_number_;
  bool more = false;
  try {
    more =
        source()->pull(piece_, from_anywhere([number](Connection& self) { self.woken(number); }));
  } catch (const std::exception&) {
    return close();  // the missing last chunk tells the client that the body is not whole
  }
  if (more && piece_.empty()) {
    waiting_ = true;
    arm_read();  // a tunnel may have been full
    return;
  }
  if (more && state_ == State::kTunnelling) arm_read();
  output_.clear();
  if (chunked_) {
    append_chunk(output_, piece_);
    if (!more) output_ += kLastChunk;
  } else {
    output_ = piece_;
  }
  if (!more) {
    response_.stream.reset();
    if (response_.tunnel) state_ = State::kAnswering;
    response_.tunnel.reset();
  }
  write({asio::buffer(output_), {}}, more ? &Connection::pull : &Connection::finish);
}

void Connection::woken(std::uint64_t pull_number) {
  if (waiting_ && pull_number == pull_number_) pull();
}

void Connection::finish() {
  response_ = {};
  if (keep_alive_) return next_request();
  linger();
}

void Connection::linger() {
  if (ended_) return close();
  state_ = State::kLingering;
  input_.clear();
  expire_in(kDrainTime);
  error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) return close();
  arm_read();
}

void Connection::write(const Buffers& buffers, Step next) {
  // Every piece that the client takes gives it new time.
  auto progress = [this](const error_code& error, std::size_t) -> std::size_t {
    if (error) return 0;
    if (state_ == State::kAnswering || state_ == State::kTunnelling) {
      expire_in(source() != nullptr ? core_->options.stalled : core_->options.idle);
    }
    return 64 * 1024;
  };
  auto done = [self = shared_from_this(), next](const error_code& error, std::size_t) {
    if (self->closed_) return;
    if (error) return self->close();
    (self.get()->*next)();
  };
  if (tls_) {
    asio::async_write(*tls_, buffers, progress, std::move(done));
  } else {
    asio::async_write(socket_, buffers, progress, std::move(done));
  }
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  waiting_ = false;
  response_.stream.reset();
  response_.tunnel.reset();
  error_code ignored;
  socket_.close(ignored);
  core_->forget(this);
}

void Connection::expire_in(std::chrono::milliseconds time) {
  deadline_ = (Clock::now() + time).time_since_epoch().count();
}

}  // namespace skiff::net
