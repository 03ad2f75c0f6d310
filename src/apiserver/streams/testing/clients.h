// For tests only: bytes as clients of pods' streams send them, and a peer that plays a program.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "apiserver/pod_streams.h"
#include "apiserver/streams/spdy.h"
#include "base/websocket.h"

namespace skiff::apiserver::testing {

inline std::string masked(ws::Op op, std::string_view payload) {
  return ws::client_frame(op, payload, 0x12345678);
}

// A client's SYN_STREAM frames: one compressor for the whole connection.
class SpdyClient {
 public:
  SpdyClient() {
    deflateInit(&z_, Z_DEFAULT_COMPRESSION);
    deflateSetDictionary(&z_, reinterpret_cast<const Bytef*>(spdy::dictionary().data()),
                         static_cast<uInt>(spdy::dictionary().size()));
  }
  ~SpdyClient() { deflateEnd(&z_); }

  std::string open(std::uint32_t stream, const spdy::Headers& headers) {
    std::string plain;
    put(plain, static_cast<std::uint32_t>(headers.size()));
    for (const auto& [name, value] : headers) {
      put(plain, static_cast<std::uint32_t>(name.size()));
      plain += name;
      put(plain, static_cast<std::uint32_t>(value.size()));
      plain += value;
    }
    std::string packed(100'000 + plain.size(), '\0');
    z_.next_in = reinterpret_cast<Bytef*>(plain.data());
    z_.avail_in = static_cast<uInt>(plain.size());
    z_.next_out = reinterpret_cast<Bytef*>(packed.data());
    z_.avail_out = static_cast<uInt>(packed.size());
    deflate(&z_, Z_SYNC_FLUSH);
    packed.resize(packed.size() - z_.avail_out);
    std::string body;
    put(body, stream);
    put(body, 0);
    body += std::string(2, '\0') + packed;
    std::string out;
    put(out, 0x80030001);
    put(out, static_cast<std::uint32_t>(body.size()));
    return out + body;
  }
  static void put(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  }

 private:
  z_stream z_ = {};
};

// Says in capitals what it hears; ends with `end` at the end of its input, or at once.
class EchoPeer final : public Peer {
 public:
  explicit EchoPeer(Result<int> end = 0, bool at_once = false)
      : end_(std::move(end)), over_(at_once) {}

  void write(std::string_view bytes) override {
    for (const char c : bytes) said_ += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    if (wake_) std::exchange(wake_, nullptr)();
  }
  std::size_t backlog() const override { return 0; }
  void end_input() override { over_ = true; }
  void resize(int columns, int rows) override {
    said_ += std::to_string(columns) + "x" + std::to_string(rows);
  }
  bool read(std::vector<Piece>& out, std::function<void()> wake) override {
    if (!said_.empty()) {
      out.push_back({.bytes = std::exchange(said_, {})});
      return true;
    }
    wake_ = std::move(wake);
    return !over_;
  }
  Result<int> exit_code() override { return end_; }

 private:
  const Result<int> end_;
  bool over_;
  std::string said_ = {};
  std::function<void()> wake_ = {};
};

}  // namespace skiff::apiserver::testing
