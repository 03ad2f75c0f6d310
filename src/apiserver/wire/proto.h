// The protobuf wire format: tags, varints and lengths, without any knowledge of messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skiff::apiserver::proto {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;      // kVarint, kFixed64, kFixed32
  std::string_view bytes = {};  // kBytes; points into what is read
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  // False where the bytes are no protobuf: cut off, a group, field number 0.
  bool next(Field& out);

 private:
  bool varint(std::uint64_t& out);
  bool fixed(std::size_t size, std::uint64_t& out);

  std::string_view rest_;
};

class Writer {
 public:
  void text(std::uint32_t number, std::string_view value);
  void flag(std::uint32_t number, bool value);
  void integer(std::uint32_t number, std::int64_t value);
  void real(std::uint32_t number, double value);
  void message(std::uint32_t number, const Writer& inner) { text(number, inner.out_); }

  const std::string& bytes() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void tag(std::uint32_t number, WireType type);
  void varint(std::uint64_t value);

  std::string out_;
};

}  // namespace skiff::apiserver::proto
