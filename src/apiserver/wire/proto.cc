#include "apiserver/wire/proto.h"

#include <bit>

namespace skiff::apiserver::proto {

bool Reader::varint(std::uint64_t& out) {
  out = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    out |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Reader::fixed(std::size_t size, std::uint64_t& out) {
  if (rest_.size() < size) return false;
  out = 0;
  for (std::size_t i = 0; i < size; ++i) {
    out |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(size);
  return true;
}

bool Reader::next(Field& out) {
  std::uint64_t tag = 0;
  if (!varint(tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return false;
  out.number = static_cast<std::uint32_t>(tag >> 3);
  out.type = static_cast<WireType>(tag & 7);
  out.bytes = {};
  switch (out.type) {
    case WireType::kVarint:
      return varint(out.value);
    case WireType::kFixed64:
      return fixed(8, out.value);
    case WireType::kFixed32:
      return fixed(4, out.value);
    case WireType::kBytes:
      if (!varint(out.value) || out.value > rest_.size()) return false;
      out.bytes = rest_.substr(0, out.value);
      rest_.remove_prefix(out.value);
      return true;
  }
  return false;
}

void Writer::varint(std::uint64_t value) {
  while (value >= 0x80) {
    out_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out_ += static_cast<char>(value);
}

void Writer::tag(std::uint32_t number, WireType type) {
  varint(std::uint64_t{number} << 3 | static_cast<std::uint64_t>(type));
}

void Writer::text(std::uint32_t number, std::string_view value) {
  tag(number, WireType::kBytes);
  varint(value.size());
  out_ += value;
}

void Writer::flag(std::uint32_t number, bool value) {
  tag(number, WireType::kVarint);
  varint(value ? 1 : 0);
}

void Writer::integer(std::uint32_t number, std::int64_t value) {
  tag(number, WireType::kVarint);
  varint(static_cast<std::uint64_t>(value));
}

void Writer::real(std::uint32_t number, double value) {
  tag(number, WireType::kFixed64);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 0; i < 8; ++i) out_ += static_cast<char>(bits >> (8 * i) & 0xff);
}

}  // namespace skiff::apiserver::proto
