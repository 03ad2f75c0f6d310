#include "net/server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <thread>

#include "base/check.h"
#include "net/connection.h"
#include "net/http_text.h"
#include "net/socket_owner.h"

namespace skiff::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

std::string shown(const Listen& listen) {
  const bool v6 = listen.address.contains(':');
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", listen.address, v6 ? "]" : "", listen.port);
}

std::unexpected<Error> cannot_listen(const Listen& listen, const error_code& error) {
  const std::string where = shown(listen);
  if (error == asio::error::address_in_use) {
    return fail(Code::kServiceUnavailable,
                fmt::format("{} is already in use: another Skiff or another program listens there. "
                            "Stop it (skiff down), or choose another address with {}",
                            where, listen.tls ? "--https" : "--http"));
  }
  if (error == boost::system::errc::address_not_available) {
    return fail(Code::kServiceUnavailable,
                fmt::format("cannot listen on {}: this machine has no such address. Choose one of "
                            "its own, such as 127.0.0.1",
                            where));
  }
  if (error == asio::error::access_denied) {
    return fail(Code::kForbidden, fmt::format("may not listen on {}: ports below 1024 are the "
                                              "administrator's. Choose a higher one",
                                              where));
  }
  return fail(Code::kServiceUnavailable,
              fmt::format("cannot listen on {}: {}", where, error.message()));
}

Result<void> open_acceptor(tcp::acceptor& acceptor, const Listen& listen) {
  error_code error;
  const auto address = asio::ip::make_address(listen.address, error);
  if (error) {
    return fail(Code::kInvalid, fmt::format("cannot listen on {}: \"{}\" is not an IP address",
                                            shown(listen), listen.address));
  }
  const tcp::endpoint endpoint(address, listen.port);
  if (listen.socket >= 0) {
    acceptor.assign(endpoint.protocol(), ::fcntl(listen.socket, F_DUPFD_CLOEXEC, 0), error);
  } else {
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  }
  if (error) return cannot_listen(listen, error);
  return {};
}

// One bound socket, accepting on its own strand.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(std::shared_ptr<Core> core, Listen listen)
      : core_(std::move(core)),
        listen_(std::move(listen)),
        acceptor_(asio::make_strand(core_->io)),
        pause_(acceptor_.get_executor()) {}

  Result<void> bind() {
    SKIFF_TRY(open_acceptor(acceptor_, listen_));
    error_code error;
    port_ = acceptor_.local_endpoint(error).port();
    return {};
  }

  void start() {
    asio::post(acceptor_.get_executor(), [self = shared_from_this()] { self->accept(); });
  }

  void stop() {
    asio::post(acceptor_.get_executor(), [self = shared_from_this()] {
      error_code ignored;
      self->stopped_ = true;
      self->acceptor_.close(ignored);
      self->pause_.cancel();
    });
  }

  std::uint16_t port() const { return port_; }

 private:
  void accept() {
    if (stopped_) return;
    acceptor_.async_accept(
        asio::any_io_executor(asio::make_strand(core_->io)),
        [self = shared_from_this()](const error_code& error, tcp::socket socket) {
          if (self->stopped_) return;
          // Out of file descriptors, most likely: some will be free again soon.
          if (error) return self->accept_later();
          self->admit(std::move(socket));
          self->accept();
        });
  }

  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([self = shared_from_this()](const error_code&) { self->accept(); });
  }

  void admit(tcp::socket socket) {
    auto connection = std::make_shared<Connection>(core_, std::move(socket), listen_);
    if (core_->admit(connection)) connection->start();
  }

  const std::shared_ptr<Core> core_;
  const Listen listen_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  bool stopped_ = false;
  std::uint16_t port_ = 0;
};

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, http::Handler handler)
      : core_(std::make_shared<Core>()),
        work_(core_->io.get_executor()),
        sweep_(asio::make_strand(core_->io)) {
    core_->options = std::move(options);
    core_->handler = std::move(handler);
  }

  Result<void> start() {
    const ServerOptions& options = core_->options;
    if (!options.certificate_pem.empty()) {
      SKIFF_ASSIGN(core_->tls, make_server_tls(options.certificate_pem, options.key_pem,
                                               options.client_ca_pem));
    }
    for (const Listen& listen : options.listeners) SKIFF_TRY(add(listen));
    sweep();
    for (int i = 0; i < std::max(1, options.threads); ++i) {
      threads_.emplace_back([core = core_.get()] { core->io.run(); });
    }
    return {};
  }

  ~Impl() {
    std::vector<std::shared_ptr<Connection>> open;
    {
      const std::lock_guard lock(core_->mutex);
      core_->stopping = true;
      for (const auto& [key, connection] : core_->open) open.push_back(connection);
    }
    for (const auto& connection : open) connection->stop();
    open.clear();
    for (const auto& listener : listeners_) listener->stop();
    asio::post(sweep_.get_executor(), [this] { sweep_.cancel(); });
    work_.reset();
    // Without threads (start failed) the stops above still have to run.
    if (threads_.empty()) core_->io.run();
    for (std::thread& thread : threads_) thread.join();
    listeners_.clear();
  }

  Result<void> add(Listen listen) {
    if (listen.tls && !core_->tls) {
      return fail(Code::kInvalid,
                  "cannot listen on " + shown(listen) + " with TLS: the server has no certificate");
    }
    auto listener = std::make_shared<Listener>(core_, std::move(listen));
    SKIFF_TRY(listener->bind());
    const std::lock_guard lock(mutex_);
    listeners_.push_back(listener);
    listener->start();
    return {};
  }

  std::uint16_t port(std::size_t listener) const {
    const std::lock_guard lock(mutex_);
    SKIFF_CHECK(listener < listeners_.size(), "there is no such listener");
    return listeners_[listener]->port();
  }

 private:
  // One timer for all connections: deadlines move with every request, and a timer each would cost
  // more than the request.
  void sweep() {
    const auto shortest = std::min(core_->options.idle, core_->options.request_time);
    sweep_.expires_after(std::clamp<std::chrono::milliseconds>(
        shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1'000)));
    sweep_.async_wait([this](const error_code& error) {
      if (error) return;
      std::vector<std::shared_ptr<Connection>> expired;
      {
        const std::lock_guard lock(core_->mutex);
        if (core_->stopping) return;
        const auto now = Connection::Clock::now();
        for (const auto& [key, connection] : core_->open) {
          if (connection->expired(now)) expired.push_back(connection);
        }
      }
      for (const auto& connection : expired) connection->stop();
      sweep();
    });
  }

  const std::shared_ptr<Core> core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer sweep_;
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;  // guards listeners_
  std::vector<std::shared_ptr<Listener>> listeners_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, http::Handler handler) {
  if (!options.owners) options.owners = std::make_shared<SocketOwners>();
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  SKIFF_TRY(impl->start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Result<int> open_listener(const Listen& listen) {
  asio::io_context io;
  tcp::acceptor acceptor(io);
  SKIFF_TRY(open_acceptor(acceptor, listen));
  error_code error;
  const int fd = acceptor.release(error);
  if (error) return cannot_listen(listen, error);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

std::uint16_t Server::port(std::size_t listener) const { return impl_->port(listener); }

Result<void> Server::add_listener(Listen listen) { return impl_->add(std::move(listen)); }

}  // namespace skiff::net
