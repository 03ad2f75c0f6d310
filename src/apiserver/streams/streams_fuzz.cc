// What clients of exec, attach and port-forward send once a connection is theirs: SPDY, WebSocket,
// and SPDY inside of it. The first byte chooses; parts divided by 0xff arrive one after another.
#include "apiserver/streams/channels.h"
#include "apiserver/streams/forward.h"
#include "apiserver/streams/testing/clients.h"
#include "base/fuzz.h"

namespace {

using namespace skiff;
using namespace skiff::apiserver;
using testing::EchoPeer;

http::Request request(char choice) {
  if (choice == 's') {
    return {.method = "POST",
            .target = "/",
            .headers = {{"Upgrade", "SPDY/3.1"},
                        {"X-Stream-Protocol-Version", "v4.channel.k8s.io, portforward.k8s.io"}}};
  }
  return {.method = "GET",
          .target = "/",
          .headers = {{"Connection", "Upgrade"},
                      {"Upgrade", "websocket"},
                      {"Sec-WebSocket-Version", "13"},
                      {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                      {"Sec-WebSocket-Protocol",
                       choice == 't' ? "SPDY/3.1+portforward.k8s.io" : "v4.channel.k8s.io"}}};
}

void drive(http::Tunnel& tunnel, std::string_view text) {
  std::string out;
  bool more = tunnel.pull(out, [] {});
  while (more && !text.empty()) {
    tunnel.push(next_part(text));
    // One answer may follow another; what is said is never without end.
    for (int i = 0; more && i < 3; ++i) more = tunnel.pull(out, [] {});
  }
  SKIFF_CHECK(out.size() < 64 * 1024 * 1024, "an answer has its bounds");
}

}  // namespace

SKIFF_FUZZ(text) {
  if (text.empty()) return;
  const char choice = text.front();
  text.remove_prefix(1);
  const http::Request asked = request(choice);
  const ExecOptions options{.container = "c", .in = true, .out = true, .tty = true};
  if (auto exec =
          choice == 't' ? Result<Upgrade>(fail(Code::kBadRequest, "")) : upgrade(asked, options)) {
    ExecTunnel tunnel(std::make_unique<EchoPeer>(), std::move(exec->channels), options);
    drive(tunnel, text);
  }
  if (auto forward = forward_upgrade(asked, http::parse_url("/?ports=1,2").value())) {
    ForwardTunnel tunnel(std::move(forward->channels),
                         [](int) { return std::make_unique<EchoPeer>(); });
    drive(tunnel, text);
  }
}
