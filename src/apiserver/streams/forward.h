// pods/NAME/portforward: many connections to ports of a pod over one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/pod_streams.h"
#include "base/http.h"

namespace skiff::apiserver {

// How they share it: SPDY, SPDY inside of a WebSocket, or channels of a WebSocket.
class ForwardChannels {
 public:
  using Id = std::uint32_t;
  struct Input {
    enum class Kind { kOpen, kBytes, kEnd, kReset, kGone };
    Kind kind = Kind::kBytes;
    Id id = 0;
    int port = 0;  // kOpen
    std::string bytes = {};
  };

  virtual ~ForwardChannels() = default;
  // Takes what has arrived: what it means to `input`, what must be answered at once to `out`.
  virtual void take(std::string_view bytes, std::vector<Input>& input, std::string& out) = 0;
  virtual std::string write(Id id, std::string_view bytes) = 0;
  // The pod's side has ended; an empty `problem` says that all went well.
  virtual std::string finish(Id id, std::string_view problem) = 0;
  // True where nothing more can come: the whole connection ends.
  virtual bool over() const { return false; }
};

struct ForwardUpgrade {
  http::Headers headers = {};
  std::unique_ptr<ForwardChannels> channels = {};
};
// kBadRequest where the request asks for nothing that is spoken here.
Result<ForwardUpgrade> forward_upgrade(const http::Request& request, const http::Url& url);
std::unique_ptr<ForwardChannels> forward_over_spdy();

class ForwardTunnel final : public http::Tunnel {
 public:
  using Dial = std::function<std::unique_ptr<Peer>(int port)>;

  ForwardTunnel(std::unique_ptr<ForwardChannels> channels, Dial dial);

  void push(std::string_view bytes) override;
  bool full() const override;
  bool pull(std::string& out, std::function<void()> wake) override;

 private:
  void take(const ForwardChannels::Input& input);

  const std::unique_ptr<ForwardChannels> channels_;
  const Dial dial_;
  std::map<ForwardChannels::Id, std::unique_ptr<Peer>> peers_ = {};
  std::string waiting_ = {};  // to be sent
  bool gone_ = false;
  std::function<void()> wake_ = {};
};

}  // namespace skiff::apiserver
