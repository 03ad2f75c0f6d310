// How the streams of one program share a connection: Kubernetes' channels over a WebSocket, or
// SPDY.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/pod_streams.h"
#include "base/http.h"

namespace skiff::apiserver {

class Channels {
 public:
  struct Input {
    enum class Kind { kBytes, kEnd, kResize, kGone };
    Kind kind = Kind::kBytes;
    std::string bytes = {};  // for the program, or the size of the window as JSON
  };

  virtual ~Channels() = default;
  // Takes what has arrived: what it means to `input`, what must be answered at once to `out`.
  virtual void take(std::string_view bytes, std::vector<Input>& input, std::string& out) = 0;
  // The client has opened every stream that it asked for.
  virtual bool ready() const = 0;
  virtual std::string write(Peer::Channel channel, std::string_view bytes) = 0;
  // The last words: how the program ended.
  virtual std::string finish(const json::object& status) = 0;
};

// Headers of the 101 and the channels that follow it.
struct Upgrade {
  http::Headers headers = {};
  std::unique_ptr<Channels> channels = {};
};
// What the request asks for. kBadRequest where it asks for nothing that is spoken here.
Result<Upgrade> upgrade(const http::Request& request, const ExecOptions& options);

// The two ways of it; nothing where the request asks for the other one.
Result<std::optional<Upgrade>> websocket_upgrade(const http::Request& request);
Result<std::optional<Upgrade>> spdy_upgrade(const http::Request& request,
                                            const ExecOptions& options);

// The Status that tells how a program ended.
json::object exit_status(const Result<int>& exit_code);

// Between a client and a program in a container.
class ExecTunnel final : public http::Tunnel {
 public:
  ExecTunnel(std::unique_ptr<Peer> terminal, std::unique_ptr<Channels> channels,
             const ExecOptions& options);

  void push(std::string_view bytes) override;
  bool full() const override;
  bool pull(std::string& out, std::function<void()> wake) override;

 private:
  void take(const Channels::Input& input);

  const std::unique_ptr<Peer> peer_;
  const std::unique_ptr<Channels> channels_;
  const bool reads_, shows_, shows_errors_;
  std::string waiting_ = {};  // to be sent
  bool over_ = false;         // no more is read or run
  std::function<void()> wake_ = {};
};

}  // namespace skiff::apiserver
