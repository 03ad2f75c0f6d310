// A connected client socket, plain or TLS, with deadlines and a way to interrupt it. Internal to
// net/.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "net/client.h"
#include "net/openssl.h"

namespace skiff::net {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;
using ClientTls = Owned<SSL_CTX, SSL_CTX_free>;

Result<ClientTls> make_client_tls(const Endpoint& endpoint);

// An event that stays set once it has been set, and that poll() can wait for.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  void set();
  bool is_set() const { return set_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  std::atomic<bool> set_ = false;
};

// One thread may read while another writes.
class Wire {
 public:
  // `everything` interrupts all wires of a client; it is kept alive.
  static Result<std::unique_ptr<Wire>> connect(const Endpoint& endpoint, SSL_CTX* tls,
                                               const SocketMaker& sockets,
                                               std::shared_ptr<Interrupt> everything,
                                               Deadline deadline);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  Result<void> write(std::string_view data, Deadline deadline);
  // Waits for at least one byte; 0 is the end.
  Result<std::size_t> read(std::span<char> into, Deadline deadline);
  // Waits until there is something to read, the end included.
  Result<void> await(Deadline deadline);
  void interrupt() { interrupt_.set(); }
  // An error where it was interrupted, whether or not there would be something to wait for.
  Result<void> still_wanted() const;
  // Nothing has arrived that nobody asked for, the end included.
  bool quiet() const;
  // The address that it is connected to is one that only this machine answers.
  bool local_only() const { return local_only_; }

 private:
  Wire(int fd, std::string shown, bool local_only, std::shared_ptr<Interrupt> everything);
  Result<void> wait(short events, Deadline deadline);
  Result<void> finish_connect(Deadline deadline);
  Result<void> handshake(const Endpoint& endpoint, SSL_CTX* tls, Deadline deadline);
  std::unexpected<Error> broken(std::string_view what) const;

  const int fd_;
  const std::string shown_;  // host:port, for messages
  const bool local_only_;
  const std::shared_ptr<Interrupt> everything_;
  Interrupt interrupt_;
  std::mutex ssl_mutex_;  // OpenSSL serves one call at a time
  Owned<SSL, SSL_free> ssl_;
};

}  // namespace skiff::net
