#include "net/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/ip.h"
#include "net/keep_alive.h"

namespace skiff::net {
namespace {

std::string errno_text(int code) {
  std::array<char, 128> buffer{};
  return ::strerror_r(code, buffer.data(), buffer.size());
}

bool is_address(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL, and a library must not let a vanished
// server kill the process.
int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(fd_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(fd_of(bio), into, static_cast<std::size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* socket_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "skiff socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

std::unexpected<Error> cannot_connect(const std::string& shown, int code) {
  std::string message = fmt::format("cannot connect to {}: {}", shown, errno_text(code));
  if (code == ECONNREFUSED) message += "; is Skiff running? start it with: skiff up -d";
  return fail(Code::kServiceUnavailable, std::move(message));
}

bool local_address(const sockaddr& address) {
  IpAddress ip;
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ip.bytes[10] = ip.bytes[11] = 0xff;
    std::memcpy(&ip.bytes[12], &v4.sin_addr, 4);
  } else if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(ip.bytes.data(), &v6.sin6_addr, ip.bytes.size());
  } else {
    return true;
  }
  return is_local_only(ip);
}

Result<int> own_socket(const sockaddr_storage& to, const std::string& shown) {
  const int fd = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_connect(shown, errno);
  return fd;
}

}  // namespace

Interrupt::Interrupt() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Interrupt::~Interrupt() {
  if (fd_ >= 0) ::close(fd_);
}

void Interrupt::set() {
  set_ = true;
  const std::uint64_t one = 1;
  // A full counter is set already, so the result does not matter.
  [[maybe_unused]] const ssize_t ignored = ::write(fd_, &one, sizeof one);
}

Result<ClientTls> make_client_tls(const Endpoint& endpoint) {
  ClientTls context(SSL_CTX_new(TLS_client_method()));
  SKIFF_CHECK(context, "OpenSSL makes no context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A record is read with one call, not its head and then the rest.
  SSL_CTX_set_read_ahead(context.get(), 1);
  // HTTP says itself where a body ends, so an end without a TLS farewell hides nothing.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  static constexpr unsigned char kProtocols[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context.get(), kProtocols, sizeof kProtocols - 1);
  SSL_CTX_set_verify(context.get(), endpoint.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (endpoint.insecure) {
    // Nobody asks for authorities.
  } else if (endpoint.ca_pem.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else {
    SKIFF_ASSIGN(const auto authorities, read_certificates(endpoint.ca_pem));
    for (const auto& authority : authorities) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
    }
  }
  if (endpoint.certificate_pem.empty()) return context;
  SKIFF_ASSIGN(const auto chain, read_certificates(endpoint.certificate_pem));
  SKIFF_ASSIGN(const auto key, read_key(endpoint.key_pem));
  SSL_CTX_use_certificate(context.get(), chain.front().get());
  for (std::size_t i = 1; i < chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(context.get(), chain[i].get());
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    ERR_clear_error();
    return fail(Code::kInvalid, "the client key does not belong to the client certificate");
  }
  return context;
}

Wire::Wire(int fd, std::string shown, bool local_only, std::shared_ptr<Interrupt> everything)
    : fd_(fd),
      shown_(std::move(shown)),
      local_only_(local_only),
      everything_(std::move(everything)) {}

Wire::~Wire() {
  if (ssl_) {
    SSL_shutdown(ssl_.get());  // a farewell if it can be sent at once; nobody waits for the answer
    ERR_clear_error();
  }
  ::close(fd_);
}

Result<std::unique_ptr<Wire>> Wire::connect(const Endpoint& endpoint, SSL_CTX* tls,
                                            const SocketMaker& sockets,
                                            std::shared_ptr<Interrupt> everything,
                                            Deadline deadline) {
  const std::string shown = fmt::format("{}:{}", endpoint.host, endpoint.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int looked =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (looked != 0) {
    return fail(Code::kServiceUnavailable, fmt::format("cannot find the address of {}: {}",
                                                       endpoint.host, ::gai_strerror(looked)));
  }
  const Owned<addrinfo, ::freeaddrinfo> addresses(found);
  Result<void> last = fail(Code::kServiceUnavailable, shown + " has no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    // The name is asked for once: the address that is judged is the one that is connected to.
    const bool local = local_address(*at->ai_addr);
    if (local && endpoint.remote_only) {
      last = fail(Code::kForbidden, shown + " leads to an address of this machine's own");
      continue;
    }
    sockaddr_storage to{};
    std::memcpy(&to, at->ai_addr, at->ai_addrlen);
    SKIFF_ASSIGN(const int fd, sockets ? sockets(to) : own_socket(to, shown));
    std::unique_ptr<Wire> wire(new Wire(fd, shown, local, everything));
    const int on = 1;
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    keep_alive(fd);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
        errno != EINPROGRESS) {
      last = cannot_connect(shown, errno);
      continue;
    }
    last = wire->finish_connect(deadline);
    if (!last) continue;
    if (tls != nullptr) SKIFF_TRY(wire->handshake(endpoint, tls, deadline));
    return wire;
  }
  return std::unexpected(last.error());
}

Result<void> Wire::finish_connect(Deadline deadline) {
  SKIFF_TRY(wait(POLLOUT, deadline));
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return cannot_connect(shown_, code);
  return {};
}

Result<void> Wire::handshake(const Endpoint& endpoint, SSL_CTX* tls, Deadline deadline) {
  ssl_.reset(SSL_new(tls));
  BIO* bio = socket_bio(fd_);
  SSL_set_bio(ssl_.get(), bio, bio);
  const std::string& name = endpoint.server_name.empty() ? endpoint.host : endpoint.server_name;
  if (is_address(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), name.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl_.get(), name.c_str());
    SSL_set1_host(ssl_.get(), name.c_str());
  }
  while (true) {
    ERR_clear_error();
    const int result = SSL_connect(ssl_.get());
    if (result == 1) return {};
    const int why = SSL_get_error(ssl_.get(), result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
      SKIFF_TRY(wait(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline));
      continue;
    }
    const long verified = SSL_get_verify_result(ssl_.get());
    if (verified != X509_V_OK && !endpoint.insecure) {
      ERR_clear_error();
      return fail(Code::kServiceUnavailable,
                  fmt::format("the certificate of {} cannot be trusted: {}", shown_,
                              X509_verify_cert_error_string(verified)));
    }
    return fail(Code::kServiceUnavailable,
                fmt::format("no TLS with {}: {}", shown_, openssl_complaint()));
  }
}

Result<void> Wire::still_wanted() const {
  if (!interrupt_.is_set() && !everything_->is_set()) return {};
  return fail(Code::kServiceUnavailable, "the call to " + shown_ + " was cancelled");
}

Result<void> Wire::wait(short events, Deadline deadline) {
  while (true) {
    std::array<pollfd, 3> fds{pollfd{fd_, events, 0}, pollfd{interrupt_.fd(), POLLIN, 0},
                              pollfd{everything_->fd(), POLLIN, 0}};
    int timeout_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          *deadline - std::chrono::steady_clock::now());
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
    }
    const int ready = ::poll(fds.data(), fds.size(), timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    SKIFF_TRY(still_wanted());
    if (ready == 0 && deadline && std::chrono::steady_clock::now() >= *deadline) {
      return fail(Code::kTimeout, shown_ + " did not answer in time");
    }
    if (fds[0].revents != 0) return {};
  }
}

std::unexpected<Error> Wire::broken(std::string_view what) const {
  const int code = errno;
  std::string reason = ERR_peek_error() != 0 ? openssl_complaint()
                       : code != 0           ? errno_text(code)
                                             : "it hung up";
  return fail(Code::kServiceUnavailable, fmt::format("cannot {} {}: {}", what, shown_, reason));
}

Result<void> Wire::write(std::string_view data, Deadline deadline) {
  while (!data.empty()) {
    SKIFF_TRY(still_wanted());
    short wanted = POLLOUT;
    errno = 0;
    ssize_t sent = 0;
    if (ssl_) {
      const std::lock_guard lock(ssl_mutex_);
      ERR_clear_error();
      sent = SSL_write(ssl_.get(), data.data(), static_cast<int>(std::min(data.size(), 1UL << 20)));
      const int why = sent > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), static_cast<int>(sent));
      if (why == SSL_ERROR_WANT_READ) wanted = POLLIN;
      if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        return broken("write to");
      }
    } else {
      sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return broken("write to");
    }
    if (sent > 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
    } else {
      SKIFF_TRY(wait(wanted, deadline));
    }
  }
  return {};
}

Result<std::size_t> Wire::read(std::span<char> into, Deadline deadline) {
  while (true) {
    SKIFF_TRY(still_wanted());
    short wanted = POLLIN;
    errno = 0;
    if (ssl_) {
      const std::lock_guard lock(ssl_mutex_);
      ERR_clear_error();
      const int got = SSL_read(ssl_.get(), into.data(), static_cast<int>(into.size()));
      if (got > 0) return static_cast<std::size_t>(got);
      const int why = SSL_get_error(ssl_.get(), got);
      if (why == SSL_ERROR_ZERO_RETURN) return 0;
      if (why == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return broken("read from");
    } else {
      const ssize_t got = ::recv(fd_, into.data(), into.size(), 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EAGAIN && errno != EINTR) return broken("read from");
    }
    SKIFF_TRY(wait(wanted, deadline));
  }
}

Result<void> Wire::await(Deadline deadline) {
  if (ssl_ && SSL_has_pending(ssl_.get()) != 0) return {};
  return wait(POLLIN, deadline);
}

bool Wire::quiet() const {
  if (ssl_ && SSL_has_pending(ssl_.get()) != 0) return false;
  pollfd fd{fd_, POLLIN, 0};
  return ::poll(&fd, 1, 0) == 0;
}

}  // namespace skiff::net
