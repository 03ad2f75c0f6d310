// HTTP requests and answers as values. Whoever answers a request never sees a socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skiff::http {

// Who the listener says is calling. Filled by net/, judged by apiserver/ (one place decides).
struct Peer {
  bool tls = false;
  bool same_user = false;  // loopback, and the kernel says the socket belongs to our own user
  bool loopback = false;
  std::string common_name = {};  // of a verified client certificate
  std::vector<std::string> organizations = {};
};

using Headers = std::vector<std::pair<std::string, std::string>>;
// First header of that name, compared without case; empty where absent.
std::string_view header(const Headers& headers, std::string_view name);

struct Request {
  std::string method = "GET";
  std::string target = "/";  // as received: path?query
  Headers headers = {};
  std::string body = {};
  Peer peer = {};
};

// A percent-decoded path and query.
struct Url {
  std::string path = {};
  std::vector<std::string> segments = {};  // decoded one by one: %2F stays inside its segment
  bool gaps = false;                       // two slashes stood together
  std::vector<std::pair<std::string, std::string>> query = {};

  std::optional<std::string> param(std::string_view name) const;
  bool flag(std::string_view name) const;  // present and "", "1" or "true"
};
// Nothing where the escapes are broken or a segment is "." or "..".
std::optional<Url> parse_url(std::string_view target);
std::string escape(std::string_view text);  // percent-encoding of everything but unreserved

// A body that arrives in pieces. The connection pulls: it asks for the next piece only after it
// has sent the one before, so a slow reader costs no memory.
class Stream {
 public:
  virtual ~Stream() = default;
  // Appends what is ready to `out` and returns true; false means the body ends after `out`.
  // Never blocks. When nothing is ready, `out` stays empty and `wake` is called later, once, from
  // any thread; then the connection asks again.
  virtual bool pull(std::string& out, std::function<void()> wake) = 0;
};

// Both directions of a connection that has left HTTP (status 101). Pulled like a stream; when its
// body ends, so does the connection. Destroyed when the client goes.
class Tunnel : public Stream {
 public:
  // What has arrived. Never blocks.
  virtual void push(std::string_view bytes) = 0;
  // True where so much waits to be taken that no more is to be read; after the next wake or pull it
  // is asked again.
  virtual bool full() const = 0;
};

// A watch's revision must be on disk before anybody outside hears of it.
struct Response {
  int status = 200;
  Headers headers = {};
  std::string body = {};
  std::unique_ptr<Stream> stream = {};  // used instead of `body` where set
  std::unique_ptr<Tunnel> tunnel = {};  // with status 101: what the connection becomes
  // The answer is held until the store says this revision is visible (store::Store::visible).
  std::uint64_t after_revision = 0;
};

using Handler = std::function<Response(const Request&)>;

// What a request may be made of. Whoever writes one asks here first: a line break in any part of it
// would begin a second request, of the attacker's own.
bool is_request_target(std::string_view target);  // no spaces, no control characters
bool is_header_name(std::string_view name);
bool is_header_value(std::string_view value);
bool is_host(std::string_view host);  // a name or an address, without port and brackets
// The error names the part that cannot be sent.
Result<void> check_request(std::string_view method, std::string_view target,
                           const Headers& headers);

// The path and query that a user has written, as Go's net/url and so kubelet sends them: what may
// not stand there is percent-encoded, and a fragment is left out. Always a request target.
std::string request_target(std::string_view path);

std::string_view status_text(int status);

}  // namespace skiff::http
