// Kubernetes' channels over a WebSocket: the first byte of each message names the stream
// (v4.channel.k8s.io, and v5, which can also close one).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/pod_streams.h"
#include "apiserver/streams/websocket.h"
#include "base/http.h"

namespace skiff::apiserver {

// The best protocol that the client offers; empty where none is known here.
std::string choose_protocol(const std::vector<std::string>& offered);

// The Status that tells how a program ended: on the error channel, last.
json::object exit_status(const Result<int>& exit_code);

// Between a client and a program in a container.
class ExecTunnel final : public http::Tunnel {
 public:
  ExecTunnel(std::unique_ptr<Terminal> terminal, const ExecOptions& options);

  void push(std::string_view bytes) override;
  bool full() const override;
  bool pull(std::string& out, std::function<void()> wake) override;

 private:
  void take(const ws::Message& message);
  void take_channel(std::string_view payload);
  void send(char channel, std::string_view bytes);

  const std::unique_ptr<Terminal> terminal_;
  const bool reads_, shows_errors_;
  ws::Reader reader_;
  std::string waiting_ = {};  // frames to be sent
  bool over_ = false;         // no more is read or run
  std::function<void()> wake_ = {};
};

}  // namespace skiff::apiserver
