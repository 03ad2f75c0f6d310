// An HTTP/1.1 server: sockets, TLS, time-outs and limits. What a request means is the handler's
// business. Every answer leaves only after the gate has let it pass.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/limits.h"
#include "base/result.h"

namespace skiff::net {

struct Listen {
  std::string address = "127.0.0.1";  // a number, not a name: what we bind must not depend on DNS
  std::uint16_t port = 0;             // 0: the kernel chooses; ask Server::port
  bool tls = false;
  // Ask the kernel who holds the other end of a plain loopback connection (http::Peer::same_user):
  // once, when it is made.
  bool trust_local = false;
  // A socket that is bound and listens already, in another network namespace perhaps; it is copied.
  int socket = -1;
};

class SocketOwners;

// A socket for Listen::socket; the caller closes it.
Result<int> open_listener(const Listen& listen);

struct ServerOptions {
  std::vector<Listen> listeners = {};
  std::string certificate_pem = {};  // with its chain; needed where a listener has tls
  std::string key_pem = {};
  // Client certificates are optional. One that these authorities did not sign is as none at all, so
  // that the handler can answer 401 with a sentence instead of the client seeing a TLS alert.
  std::string client_ca_pem = {};
  int threads = 2;
  // Calls `ready` once, from any thread, when the revision may be heard of outside; or `refused`
  // instead, whose error is then the answer.
  using Gate = std::function<void(std::uint64_t revision, std::function<void()> ready,
                                  std::function<void(const Error&)> refused)>;
  Gate gate = {};
  std::string server_header = {};
  // Who is asked for owners of connections; nothing: made by the server.
  std::shared_ptr<SocketOwners> owners = {};

  std::size_t header_bytes = limits::kHttpHeaderBytes;
  std::size_t body_bytes = limits::kRequestBodyBytes;
  std::size_t connections = limits::kHttpConnections;
  std::chrono::milliseconds idle = limits::kHttpIdle;
  // From the first byte of a request to the last of its head, and again to the last of its body.
  std::chrono::milliseconds request_time = limits::kHttpRequest;
  // A reader of a stream that takes nothing of what is ready for it for so long is hung up on.
  std::chrono::milliseconds stalled = std::chrono::seconds(60);
};

// The handler is called on the server's threads, several at a time, and should not block.
class Server {
 public:
  static Result<std::unique_ptr<Server>> start(ServerOptions options, http::Handler handler);
  // Ends every connection, open streams too, and returns when no handler runs any more.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // In the order in which they were given or added.
  std::uint16_t port(std::size_t listener) const;
  Result<void> add_listener(Listen listen);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skiff::net
