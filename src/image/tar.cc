#include "image/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

namespace skiff::image {
namespace {

constexpr std::int64_t kBlock = 512;
// Names and records; a whole archive in one of them is an attack.
constexpr std::int64_t kHeaderMax = 1024 * 1024;

// The fields of a header: where they are and how long.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12},
    kTime{136, 12}, kSum{148, 8}, kLink{157, 100}, kMagic{257, 8}, kPrefix{345, 155};
constexpr std::size_t kType = 156;

std::unexpected<Error> broken(std::string_view what) {
  return fail(Code::kInvalid, fmt::format("the tar archive is broken: {}", what));
}

std::string_view text(const char* block, Field field) {
  const std::string_view whole(block + field.at, field.size);
  return whole.substr(0, whole.find('\0'));
}

// Octal, or GNU's two's complement for what octal cannot hold.
std::optional<std::int64_t> tar_number(const char* block, Field field) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + field.at);
  if ((bytes[0] & 0x80) != 0) {
    std::uint64_t value = (bytes[0] & 0x40) != 0 ? ~std::uint64_t{0} : 0;
    value = (value << 7) | (bytes[0] & 0x7f);
    for (std::size_t i = 1; i < field.size; ++i) value = (value << 8) | bytes[i];
    return static_cast<std::int64_t>(value);
  }
  std::string_view digits = text(block, field);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.empty()) return 0;
  std::int64_t value = 0;
  const auto end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value, 8);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return value;
}

std::int64_t checksum(const char* block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kSum.at && i < kSum.at + kSum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

Result<TarType> type_of(char flag) {
  switch (flag) {
    case '0':
    case '\0':
    case '7':
      return TarType::kFile;
    case '1':
      return TarType::kHardLink;
    case '2':
      return TarType::kSymLink;
    case '3':
      return TarType::kCharDevice;
    case '4':
      return TarType::kBlockDevice;
    case '5':
      return TarType::kFolder;
    case '6':
      return TarType::kFifo;
    default:
      return broken(fmt::format("entries of type '{}' are not supported", flag));
  }
}

char flag_of(TarType type) { return "0123456"[static_cast<int>(type)]; }

std::optional<std::int64_t> decimal(std::string_view digits) {
  // Times may have a fraction, which no file needs.
  digits = digits.substr(0, digits.find('.'));
  std::int64_t value = 0;
  const auto end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return value;
}

Result<TarEntry> parse_header(const char* block) {
  const auto mode = tar_number(block, kMode), uid = tar_number(block, kUid),
             gid = tar_number(block, kGid), size = tar_number(block, kSize),
             time = tar_number(block, kTime);
  if (!mode || !uid || !gid || !size || !time || *size < 0) return broken("a number is none");
  TarEntry out{.path = std::string(text(block, kName)),
               .link = std::string(text(block, kLink)),
               .mode = static_cast<std::uint32_t>(*mode) & 07777,
               .uid = static_cast<std::uint32_t>(*uid),
               .gid = static_cast<std::uint32_t>(*gid),
               .size = *size,
               .mtime = *time};
  // GNU's magic ("ustar  ") puts other things where the prefix is.
  if (std::memcmp(block + kMagic.at, "ustar\0", 6) == 0) {
    if (const auto prefix = text(block, kPrefix); !prefix.empty()) {
      out.path = fmt::format("{}/{}", prefix, out.path);
    }
  }
  SKIFF_ASSIGN(out.type, type_of(block[kType]));
  if (out.type == TarType::kFile && out.path.ends_with('/')) out.type = TarType::kFolder;
  return out;
}

// True: the records changed the size of the contents.
bool apply_pax(TarEntry& entry, const std::map<std::string, std::string, std::less<>>& pax) {
  constexpr std::string_view kXattr = "SCHILY.xattr.";
  bool sized = false;
  for (const auto& [key, value] : pax) {
    if (key == "path") entry.path = value;
    if (key == "linkpath") entry.link = value;
    if (key.starts_with(kXattr)) entry.xattrs[key.substr(kXattr.size())] = value;
    const auto n = decimal(value);
    if (!n) continue;
    if (key == "uid") entry.uid = static_cast<std::uint32_t>(*n);
    if (key == "gid") entry.gid = static_cast<std::uint32_t>(*n);
    if (key == "mtime") entry.mtime = *n;
    if (key == "size" && *n >= 0) {
      entry.size = *n;
      sized = true;
    }
  }
  return sized;
}

}  // namespace

// False: the archive ends here.
Result<bool> TarReader::read_block(char* block) {
  std::size_t have = 0;
  while (have < kBlock) {
    SKIFF_ASSIGN(const std::size_t n, source_.read(block + have, kBlock - have));
    if (n == 0) break;
    have += n;
  }
  if (have == 0) return false;
  if (have < kBlock) return broken("it ends within a header");
  return true;
}

Result<void> TarReader::skip_rest() {
  std::vector<char> waste(64 * 1024);
  std::int64_t rest = left_ + padding_;
  left_ = padding_ = 0;
  while (rest > 0) {
    const auto want = static_cast<std::size_t>(
        std::min<std::int64_t>(rest, static_cast<std::int64_t>(waste.size())));
    SKIFF_ASSIGN(const std::size_t n, source_.read(waste.data(), want));
    if (n == 0) return broken("it ends within a file");
    rest -= static_cast<std::int64_t>(n);
  }
  return {};
}

Result<std::size_t> TarReader::read(char* out, std::size_t size) {
  const auto want =
      static_cast<std::size_t>(std::min<std::int64_t>(left_, static_cast<std::int64_t>(size)));
  if (want == 0) return std::size_t{0};
  SKIFF_ASSIGN(const std::size_t n, source_.read(out, want));
  if (n == 0) return broken("it ends within a file");
  left_ -= static_cast<std::int64_t>(n);
  return n;
}

Result<std::string> TarReader::contents(std::int64_t size) {
  if (size > kHeaderMax) return broken("a header is too long");
  std::string out(static_cast<std::size_t>(size), '\0');
  for (std::size_t have = 0; have < out.size();) {
    SKIFF_ASSIGN(const std::size_t n, read(out.data() + have, out.size() - have));
    have += n;
  }
  SKIFF_TRY(skip_rest());
  return out;
}

// Lines of "LENGTH KEY=VALUE\n", where the value may hold anything.
Result<void> TarReader::take_pax(std::string_view records) {
  pax_.clear();  // a second header takes the place of the first
  while (!records.empty()) {
    const std::size_t space = records.find(' ');
    if (space == std::string_view::npos) return broken("a pax record has no length");
    const auto length = decimal(records.substr(0, space));
    if (!length || *length < static_cast<std::int64_t>(space) + 3 ||
        *length > static_cast<std::int64_t>(records.size())) {
      return broken("the length of a pax record is wrong");
    }
    const auto size = static_cast<std::size_t>(*length);
    const std::string_view pair = records.substr(space + 1, size - space - 2);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return broken("a pax record has no value");
    pax_[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    records.remove_prefix(size);
  }
  return {};
}

Result<std::optional<TarEntry>> TarReader::next() {
  while (true) {
    SKIFF_TRY(skip_rest());
    char block[kBlock];
    SKIFF_ASSIGN(const bool more, read_block(block));
    if (!more) return std::nullopt;
    if (std::all_of(block, block + kBlock, [](char c) { return c == 0; })) return std::nullopt;
    if (tar_number(block, kSum) != checksum(block)) return broken("the sum of a header is wrong");
    const char flag = block[kType];
    const auto size = tar_number(block, kSize);
    if (!size || *size < 0) return broken("a size is none");
    left_ = *size;
    padding_ = (kBlock - *size % kBlock) % kBlock;
    if (flag == 'L' || flag == 'K') {
      SKIFF_ASSIGN(std::string name, contents(*size));
      name.resize(std::min(name.size(), name.find('\0')));
      (flag == 'L' ? path_ : link_) = std::move(name);
      continue;
    }
    if (flag == 'x') {
      SKIFF_ASSIGN(const std::string records, contents(*size));
      SKIFF_TRY(take_pax(records));
      continue;
    }
    if (flag == 'g') continue;  // about the archive as a whole: nothing of it is about files
    SKIFF_ASSIGN(TarEntry entry, parse_header(block));
    if (path_) entry.path = *std::exchange(path_, std::nullopt);
    if (link_) entry.link = *std::exchange(link_, std::nullopt);
    if (apply_pax(entry, std::exchange(pax_, {}))) {
      left_ = entry.size;
      padding_ = (kBlock - left_ % kBlock) % kBlock;
    }
    // Only files have contents; some writers give links the size of what they point to.
    if (entry.type != TarType::kFile) left_ = padding_ = entry.size = 0;
    return entry;
  }
}

Result<void> TarWriter::pad(std::int64_t size) {
  const std::string zeros(static_cast<std::size_t>((kBlock - size % kBlock) % kBlock), '\0');
  return zeros.empty() ? Result<void>() : sink_(zeros);
}

Result<void> TarWriter::header(const TarEntry& entry) {
  std::map<std::string, std::string> pax;
  if (entry.path.size() > kName.size) pax["path"] = entry.path;
  if (entry.link.size() > kLink.size) pax["linkpath"] = entry.link;
  constexpr std::int64_t kOctalMax = 0100000000000;
  if (entry.size >= kOctalMax) pax["size"] = std::to_string(entry.size);
  for (const auto& [name, value] : entry.xattrs) pax["SCHILY.xattr." + name] = value;
  const auto emit = [&](std::string_view path, char flag, std::int64_t size,
                        std::string_view link) {
    std::string block(kBlock, '\0');
    const auto put = [&](Field field, std::string_view value) {
      value.copy(block.data() + field.at, field.size);
    };
    put(kName, path.substr(0, kName.size));
    put(kMode, fmt::format("{:07o}", entry.mode & 07777));
    put(kUid, fmt::format("{:07o}", entry.uid & 07777777));
    put(kGid, fmt::format("{:07o}", entry.gid & 07777777));
    put(kSize, fmt::format("{:011o}", size < kOctalMax ? size : 0));
    put(kTime, fmt::format("{:011o}", std::max<std::int64_t>(0, entry.mtime)));
    block[kType] = flag;
    put(kLink, link.substr(0, kLink.size));
    put(kMagic, std::string_view("ustar\00000", 8));
    put(kSum, fmt::format("{:06o}", checksum(block.data())) + std::string("\0 ", 2));
    return sink_(block);
  };
  if (!pax.empty()) {
    std::string records;
    for (const auto& [key, value] : pax) {
      // The length counts its own digits.
      const std::size_t rest = key.size() + value.size() + 3;
      std::size_t length = rest + 1;
      while (std::to_string(length).size() + rest != length) ++length;
      records += fmt::format("{} {}={}\n", length, key, value);
    }
    SKIFF_TRY(emit("pax", 'x', static_cast<std::int64_t>(records.size()), ""));
    SKIFF_TRY(sink_(records));
    SKIFF_TRY(pad(static_cast<std::int64_t>(records.size())));
  }
  return emit(entry.path, flag_of(entry.type), entry.size, entry.link);
}

Result<void> TarWriter::add(const TarEntry& entry, std::string_view contents) {
  TarEntry whole = entry;
  whole.size = static_cast<std::int64_t>(contents.size());
  SKIFF_TRY(header(whole));
  if (!contents.empty()) SKIFF_TRY(sink_(contents));
  return pad(whole.size);
}

Result<void> TarWriter::add_from(const TarEntry& entry, Source& source) {
  SKIFF_TRY(header(entry));
  std::vector<char> piece(128 * 1024);
  for (std::int64_t left = entry.size; left > 0;) {
    const auto want = static_cast<std::size_t>(
        std::min<std::int64_t>(left, static_cast<std::int64_t>(piece.size())));
    SKIFF_ASSIGN(const std::size_t n, source.read(piece.data(), want));
    if (n == 0) return fail(Code::kInternal, "a file became shorter while it was saved");
    SKIFF_TRY(sink_({piece.data(), n}));
    left -= static_cast<std::int64_t>(n);
  }
  return pad(entry.size);
}

Result<void> TarWriter::finish() { return sink_(std::string(2 * kBlock, '\0')); }

}  // namespace skiff::image
