// Each stream is a stream of SPDY, named by its header streamType. The client opens them all.
#include <algorithm>
#include <map>

#include "apiserver/streams/channels.h"
#include "apiserver/streams/spdy.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kProtocol = "v4.channel.k8s.io";

// More than there are kinds of streams.
constexpr std::size_t kStreamsMax = 8;

class SpdyChannels final : public Channels {
 public:
  explicit SpdyChannels(const ExecOptions& options) {
    wanted_.emplace_back("error");
    if (options.in) wanted_.emplace_back("stdin");
    if (options.out) wanted_.emplace_back("stdout");
    if (options.err && !options.tty) wanted_.emplace_back("stderr");
    if (options.tty) wanted_.emplace_back("resize");
  }

  void take(std::string_view bytes, std::vector<Input>& input, std::string& out) override {
    std::vector<spdy::Frame> frames;
    const auto taken = reader_.take(bytes, frames);
    for (const spdy::Frame& frame : frames) take_frame(frame, input, out);
    if (!taken) input.push_back({.kind = Input::Kind::kGone});
  }

  bool ready() const override {
    return std::ranges::all_of(wanted_,
                               [&](const std::string& name) { return streams_.contains(name); });
  }

  std::string write(Peer::Channel channel, std::string_view bytes) override {
    return writer_.data(stream(channel == Peer::Channel::kErr ? "stderr" : "stdout"), bytes, false);
  }

  std::string finish(const json::object& status) override {
    std::string out = writer_.data(stream("error"), json::serialize(status), true);
    for (const char* name : {"stdout", "stderr"}) {
      if (streams_.contains(name)) out += writer_.data(stream(name), "", true);
    }
    return out;
  }

 private:
  std::uint32_t stream(std::string_view name) const { return streams_.find(name)->second; }

  void take_frame(const spdy::Frame& frame, std::vector<Input>& input, std::string& out) {
    using Kind = spdy::Frame::Kind;
    if (frame.kind == Kind::kPing) out += writer_.pong(frame.id);
    if (frame.kind == Kind::kGoAway) input.push_back({.kind = Input::Kind::kGone});
    if (frame.kind == Kind::kOpen) {
      out += writer_.reply(frame.id);
      const auto name = frame.headers.find("streamtype");
      const bool room = streams_.size() < kStreamsMax;
      if (name != frame.headers.end() && room) streams_.emplace(name->second, frame.id);
      return;
    }
    const auto named = std::ranges::find(streams_, frame.id,
                                         &std::map<std::string, std::uint32_t>::value_type::second);
    if (named == streams_.end()) return;
    const bool in = named->first == "stdin";
    if (frame.kind == Kind::kData && !frame.bytes.empty()) {
      if (in) input.push_back({Input::Kind::kBytes, frame.bytes});
      if (named->first == "resize") input.push_back({Input::Kind::kResize, frame.bytes});
    }
    if (in && (frame.last || frame.kind == Kind::kReset)) {
      input.push_back({.kind = Input::Kind::kEnd});
    }
  }

  std::vector<std::string> wanted_ = {};
  std::map<std::string, std::uint32_t, std::less<>> streams_ = {};
  spdy::Reader reader_ = {};
  spdy::Writer writer_ = {};
};

}  // namespace

Result<std::optional<Upgrade>> spdy_upgrade(const http::Request& request,
                                            const ExecOptions& options) {
  if (!equal_ignoring_case(http::header(request.headers, "Upgrade"), "SPDY/3.1")) {
    return std::nullopt;
  }
  bool spoken = false;
  for (const auto& [name, value] : request.headers) {
    if (!equal_ignoring_case(name, "X-Stream-Protocol-Version")) continue;
    for (const std::string_view one : split(value, ',')) spoken = spoken || trim(one) == kProtocol;
  }
  if (!spoken) {
    return fail(Code::kForbidden, "the streams spoken here over SPDY are v4.channel.k8s.io");
  }
  return Upgrade{
      .headers = {{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", std::string(kProtocol)}},
      .channels = std::make_unique<SpdyChannels>(options)};
}

}  // namespace skiff::apiserver
