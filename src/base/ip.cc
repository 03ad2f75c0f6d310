#include "base/ip.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace skiff {
namespace {

constexpr int kMappedBits = 96;  // before an IPv4 address in an IPv6 one

std::optional<int> parse_ip_number(std::string_view text, int base, int most) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || n > most ||
      text.front() == '-') {
    return std::nullopt;
  }
  return n;
}

bool parse_v4(std::string_view text, std::uint8_t* out) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return false;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto n = parse_ip_number(parts[i], 10, 255);
    if (!n) return false;
    out[i] = static_cast<std::uint8_t>(*n);
  }
  return true;
}

// Groups of up to four hexadecimal digits; the last may be an IPv4 address, which is two groups.
bool parse_groups(std::string_view text, std::vector<std::uint8_t>& out) {
  if (text.empty()) return true;
  const auto parts = split(text, ':');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 == parts.size() && parts[i].find('.') != std::string_view::npos) {
      std::uint8_t v4[4];
      if (!parse_v4(parts[i], v4)) return false;
      out.insert(out.end(), v4, v4 + 4);
      continue;
    }
    const auto n = parse_ip_number(parts[i], 16, 0xFFFF);
    if (!n || parts[i].size() > 4) return false;
    out.push_back(static_cast<std::uint8_t>(*n >> 8));
    out.push_back(static_cast<std::uint8_t>(*n & 0xFF));
  }
  return true;
}

std::optional<IpAddress> parse_v6(std::string_view text) {
  std::vector<std::uint8_t> head, tail;
  const std::size_t gap = text.find("::");
  if (gap == text.npos) {
    if (!parse_groups(text, head) || head.size() != 16) return std::nullopt;
  } else {
    const std::string_view left = text.substr(0, gap), right = text.substr(gap + 2);
    if (left.find('.') != left.npos) return std::nullopt;
    if (!parse_groups(left, head) || !parse_groups(right, tail)) return std::nullopt;
    if (head.size() + tail.size() > 14) return std::nullopt;
  }
  IpAddress out;
  std::ranges::copy(head, out.bytes.begin());
  std::ranges::copy_backward(tail, out.bytes.end());
  return out;
}

}  // namespace

bool IpAddress::v4() const {
  return std::ranges::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) &&
         bytes[10] == 0xFF && bytes[11] == 0xFF;
}

std::string IpAddress::text() const {
  if (v4()) return fmt::format("{}.{}.{}.{}", bytes[12], bytes[13], bytes[14], bytes[15]);
  std::array<int, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) groups[i] = bytes[2 * i] << 8 | bytes[2 * i + 1];
  // The longest run of zeros, of at least two groups, becomes "::".
  std::size_t best = 8, longest = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > longest) {
      best = i;
      longest = end - i;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += longest - 1;
      continue;
    }
    if (!out.empty() && !out.ends_with(':')) out += ':';
    out += fmt::format("{:x}", groups[i]);
  }
  return out;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (text.find(':') != text.npos) return parse_v6(text);
  IpAddress out;
  out.bytes[10] = out.bytes[11] = 0xFF;
  if (!parse_v4(text, out.bytes.data() + 12)) return std::nullopt;
  return out;
}

bool is_local_only(const IpAddress& ip) {
  const auto& b = ip.bytes;
  const bool zeros = std::all_of(b.begin(), b.begin() + 12, [](std::uint8_t x) { return x == 0; });
  // 64:ff9b::/96 is IPv4 behind a translator; ::a.b.c.d was IPv4 once, and holds :: and ::1.
  static constexpr std::array<std::uint8_t, 12> kTranslated = {0, 0x64, 0xff, 0x9b};
  if (ip.v4() || std::equal(kTranslated.begin(), kTranslated.end(), b.begin())) {
    return b[12] == 0 || b[12] == 127 || (b[12] == 169 && b[13] == 254);
  }
  return zeros || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

bool is_strict_ip(std::string_view text) {
  if (!parse_ip(text)) return false;
  const std::size_t colon = text.rfind(':');
  const std::string_view v4 = colon == text.npos ? text : text.substr(colon + 1);
  if (v4.find('.') == v4.npos) return true;
  return std::ranges::none_of(
      split(v4, '.'), [](std::string_view part) { return part.size() > 1 && part.front() == '0'; });
}

IpAddress IpBlock::network() const {
  IpAddress out = address;
  const int kept = prefix + (v4 ? kMappedBits : 0);
  for (int bit = kept; bit < 128; ++bit) {
    out.bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<std::uint8_t>(~(0x80 >> (bit % 8)));
  }
  return out;
}

bool IpBlock::contains(const IpAddress& ip) const {
  if (ip.v4() != v4) return false;
  return IpBlock{.address = ip, .prefix = prefix, .v4 = v4}.network() == network();
}

std::string IpBlock::text() const { return fmt::format("{}/{}", network().text(), prefix); }

std::optional<IpBlock> parse_cidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const auto address = parse_ip(text.substr(0, slash));
  const bool v4 = text.substr(0, slash).find(':') == text.npos;
  const auto prefix = parse_ip_number(text.substr(slash + 1), 10, v4 ? 32 : 128);
  if (!address || !prefix) return std::nullopt;
  return IpBlock{.address = *address, .prefix = *prefix, .v4 = v4};
}

}  // namespace skiff
