// Each connection is a pair of streams, for data and for what went wrong, with one requestID.
#include <algorithm>
#include <charconv>

#include "apiserver/streams/forward.h"
#include "apiserver/streams/spdy.h"

namespace skiff::apiserver {
namespace {

// More than there can be connections; a client that opens half a pair again and again is let go.
constexpr std::size_t kPairsMax = 512;

class SpdyForward final : public ForwardChannels {
 public:
  void take(std::string_view bytes, std::vector<Input>& input, std::string& out) override {
    std::vector<spdy::Frame> frames;
    const auto taken = reader_.take(bytes, frames);
    for (const spdy::Frame& frame : frames) take_frame(frame, input, out);
    if (!taken) input.push_back({.kind = Input::Kind::kGone});
  }

  std::string write(Id id, std::string_view bytes) override {
    return writer_.data(id, bytes, false);
  }

  std::string finish(Id id, std::string_view problem) override {
    const auto pair =
        std::ranges::find(pairs_, id, [](const auto& entry) { return entry.second.data; });
    if (pair == pairs_.end()) return {};
    std::string out = writer_.data(pair->second.error, problem, true) + writer_.data(id, "", true);
    pairs_.erase(pair);
    return out;
  }

 private:
  struct Pair {
    Id data = 0, error = 0;  // streams; 0: not opened yet
  };

  // A connection is known by the stream of its data.
  void take_frame(const spdy::Frame& frame, std::vector<Input>& input, std::string& out) {
    using Kind = spdy::Frame::Kind;
    if (frame.kind == Kind::kPing) out += writer_.pong(frame.id);
    if (frame.kind == Kind::kGoAway) input.push_back({.kind = Input::Kind::kGone});
    if (frame.kind == Kind::kOpen) return open(frame, input, out);
    if (frame.kind == Kind::kData && !frame.bytes.empty()) {
      input.push_back({.kind = Input::Kind::kBytes, .id = frame.id, .bytes = frame.bytes});
    }
    if (frame.kind == Kind::kReset) {
      input.push_back({.kind = Input::Kind::kReset, .id = frame.id});
    } else if (frame.last) {
      input.push_back({.kind = Input::Kind::kEnd, .id = frame.id});
    }
  }

  void open(const spdy::Frame& frame, std::vector<Input>& input, std::string& out) {
    const auto header = [&](const char* name) {
      const auto found = frame.headers.find(name);
      return found == frame.headers.end() ? std::string() : found->second;
    };
    out += writer_.reply(frame.id);
    const std::string request = header("requestid");
    if (pairs_.size() >= kPairsMax && !pairs_.contains(request)) {
      input.push_back({.kind = Input::Kind::kGone});
      return;
    }
    Pair& pair = pairs_[request];
    (header("streamtype") == "error" ? pair.error : pair.data) = frame.id;
    if (pair.data == 0 || pair.error == 0) return;
    const std::string text = header("port");
    int port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535) {
      out += finish(pair.data, "\"" + text + "\" is no port");
      return;
    }
    input.push_back({.kind = Input::Kind::kOpen, .id = pair.data, .port = port});
  }

  std::map<std::string, Pair> pairs_ = {};  // by requestID
  spdy::Reader reader_ = {};
  spdy::Writer writer_ = {};
};

}  // namespace

std::unique_ptr<ForwardChannels> forward_over_spdy() { return std::make_unique<SpdyForward>(); }

}  // namespace skiff::apiserver
