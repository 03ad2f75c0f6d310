// A blocking HTTP/1.1 client for the CLI and for client/remote: TLS, connections kept and used
// again, answers whole or as a stream.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/http.h"
#include "base/result.h"

namespace skiff::net {

struct Endpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  bool tls = false;
  std::string ca_pem = {};  // empty: the system's authorities
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::string server_name = {};  // what the certificate must be for; empty: the host
  bool insecure = false;         // any certificate will do
  // Never connects to an address that only this machine answers (is_local_only), whatever the
  // host's name leads to: for hosts that somebody else has named.
  bool remote_only = false;
};

// Makes the socket that is to connect to this address, and may change the address. Sockets that
// must not block are made so by the client.
using SocketMaker = std::function<Result<int>(sockaddr_storage& to)>;

// "https://host:6443", "http://[::1]:80"; a path is refused.
Result<Endpoint> parse_endpoint(std::string_view url);

// An answer whose body arrives as it is made: a watch, a log. Destroying it hangs up.
class StreamingResponse {
 public:
  virtual ~StreamingResponse() = default;
  virtual int status() const = 0;
  virtual const http::Headers& headers() const = 0;
  // Whether the server that answered is at an address that only this machine answers.
  virtual bool local_only() const = 0;
  // Blocks for the next bytes; nothing once the body has ended. Without a time-out it waits as long
  // as the connection lives.
  virtual Result<std::optional<std::string>> read(
      std::optional<std::chrono::milliseconds> timeout = {}) = 0;
  // After an answer of 101 the connection is the caller's: read() gives what the server sends, and
  // one other thread may write. Blocks while the server does not take it.
  virtual Result<void> write(std::string_view bytes) = 0;
  // From any thread, more than once: a read that waits, and every later one, fails.
  virtual void cancel() = 0;
};

// A server with all that requests to it have in common, made by Client::route() for whoever asks
// the same one again and again. Immutable, shared by threads and by siblings of the client.
struct Route;

// Any number of threads may use one client.
class Client {
 public:
  // Nothing given: sockets of this process' own network.
  explicit Client(SocketMaker sockets = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Another client with connections of its own, and the certificates that this one has read.
  std::shared_ptr<Client> sibling() const;

  // `headers` go with every request that does not have them itself.
  Result<std::shared_ptr<const Route>> route(Endpoint endpoint, http::Headers headers = {});

  // The whole answer, whatever its status. A request that a kept connection lost unanswered is sent
  // once more, if repeating it is harmless by its method.
  Result<http::Response> send(const Endpoint& endpoint, const http::Request& request,
                              std::chrono::milliseconds timeout = std::chrono::seconds(30));
  Result<http::Response> send(const std::shared_ptr<const Route>& route,
                              const http::Request& request, std::chrono::milliseconds timeout);
  // Returns once the head of the answer is there. `timeout` bounds this, not the stream after it.
  Result<std::unique_ptr<StreamingResponse>> open(
      const Endpoint& endpoint, const http::Request& request,
      std::chrono::milliseconds timeout = std::chrono::seconds(30));
  Result<std::unique_ptr<StreamingResponse>> open(const std::shared_ptr<const Route>& route,
                                                  const http::Request& request,
                                                  std::chrono::milliseconds timeout);

  // From any thread: whatever this client waits for, streams too, and every later call fails.
  void shut_down();

 private:
  class Pool;
  class Contexts;
  Client(SocketMaker sockets, std::shared_ptr<Contexts> contexts);

  const SocketMaker sockets_;
  const std::shared_ptr<Pool> pool_;
  const std::shared_ptr<Contexts> contexts_;
};

}  // namespace skiff::net
