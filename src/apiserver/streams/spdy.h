// As much of SPDY/3.1 as Kubernetes' streams use: a server's side of frames. Old kubectl speaks it
// for exec and attach, every kubectl for port-forward. No flow control: neither side enforces it.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::apiserver::spdy {

using Headers = std::map<std::string, std::string, std::less<>>;  // names in lower case

struct Frame {
  enum class Kind { kOpen, kData, kReset, kPing, kGoAway };
  Kind kind = Kind::kData;
  std::uint32_t id = 0;    // of the stream, or of the ping
  Headers headers = {};    // kOpen
  std::string bytes = {};  // kData
  bool last = false;       // the client sends no more on this stream
};

class Reader {
 public:
  Reader();
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Takes what has arrived and adds whole frames to `out`; those that do not matter are left out.
  // An error is why the connection cannot go on.
  std::expected<void, std::string> take(std::string_view bytes, std::vector<Frame>& out);

 private:
  std::expected<void, std::string> control(std::uint16_t type, std::uint8_t flags,
                                           std::string_view body, std::vector<Frame>& out);
  std::expected<Headers, std::string> read_headers(std::string_view block);

  struct Inflater;
  const std::unique_ptr<Inflater> inflater_;
  std::string bytes_ = {};
};

class Writer {
 public:
  Writer();
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  std::string reply(std::uint32_t stream);  // the answer to kOpen
  std::string data(std::uint32_t stream, std::string_view bytes, bool last);
  std::string pong(std::uint32_t id);

 private:
  struct Deflater;
  const std::unique_ptr<Deflater> deflater_;
};

// What both sides know beforehand of headers (the SPDY/3 draft, section 2.6.10.1).
const std::string& dictionary();

}  // namespace skiff::apiserver::spdy
