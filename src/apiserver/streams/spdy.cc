#include "apiserver/streams/spdy.h"

#include <zlib.h>

#include <algorithm>

#include "base/strings.h"

namespace skiff::apiserver::spdy {
namespace {

constexpr std::uint16_t kVersion = 3;
constexpr std::uint16_t kSynStream = 1, kSynReply = 2, kRstStream = 3, kPing = 6, kGoAway = 7;
constexpr std::uint8_t kFin = 1;
// kubectl sends pieces of 32 KiB and headers of a hundred bytes.
constexpr std::size_t kFrameBytes = 1024 * 1024;
constexpr std::size_t kHeaderBytes = 4 * 1024;

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < size; ++i) {
    out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return out;
}

void put(std::string& out, std::uint32_t value, std::size_t size) {
  for (std::size_t i = size; i-- > 0;) out += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string control_frame(std::uint16_t type, std::string_view body) {
  std::string out;
  put(out, 0x80000000U | std::uint32_t{kVersion} << 16 | type, 4);
  put(out, static_cast<std::uint32_t>(body.size()), 4);  // no flags
  return out += body;
}

const Bytef* zlib_bytes(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

}  // namespace

// Each goes into the dictionary with its length before it.
constexpr std::string_view kWords =
    "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,"
    "accept-language,accept-ranges,age,allow,authorization,cache-control,"
    "connection,content-base,content-encoding,content-language,content-length,"
    "content-location,content-md5,content-range,content-type,date,etag,expect,"
    "expires,from,host,if-match,if-modified-since,if-none-match,if-range,if-"
    "unmodified-since,last-modified,location,max-forwards,pragma,proxy-"
    "authenticate,proxy-authorization,range,referer,retry-after,server,te,"
    "trailer,transfer-encoding,upgrade,user-agent,vary,via,warning,www-"
    "authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-"
    "cookie,keep-alive,origin";

const std::string& dictionary() {
  static const std::string text = [] {
    std::string out;
    for (const std::string_view word : split(kWords, ',')) {
      put(out, static_cast<std::uint32_t>(word.size()), 4);
      out += word;
    }
    return out +
           "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504"
           "505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
           "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
           "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, "
           "Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
           "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivate"
           "max-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
  }();
  return text;
}

// One stream of compressed headers for the whole connection.
struct Reader::Inflater {
  z_stream z = {};
  Inflater() { inflateInit(&z); }
  ~Inflater() { inflateEnd(&z); }
};

struct Writer::Deflater {
  z_stream z = {};
  Deflater() {
    deflateInit(&z, Z_BEST_SPEED);
    deflateSetDictionary(&z, zlib_bytes(dictionary()), static_cast<uInt>(dictionary().size()));
  }
  ~Deflater() { deflateEnd(&z); }
};

Reader::Reader() : inflater_(std::make_unique<Inflater>()) {}
Reader::~Reader() = default;
Writer::Writer() : deflater_(std::make_unique<Deflater>()) {}
Writer::~Writer() = default;

std::expected<Headers, std::string> Reader::read_headers(std::string_view block) {
  z_stream& z = inflater_->z;
  z.next_in = const_cast<Bytef*>(zlib_bytes(block));
  z.avail_in = static_cast<uInt>(block.size());
  std::string text(kHeaderBytes, '\0');
  z.next_out = reinterpret_cast<Bytef*>(text.data());
  z.avail_out = static_cast<uInt>(text.size());
  int result = inflate(&z, Z_SYNC_FLUSH);
  if (result == Z_NEED_DICT) {
    inflateSetDictionary(&z, zlib_bytes(dictionary()), static_cast<uInt>(dictionary().size()));
    result = inflate(&z, Z_SYNC_FLUSH);
  }
  // Headers that fill the room may go on beyond it: a few bytes can unpack to many.
  if ((result != Z_OK && result != Z_BUF_ERROR) || z.avail_in > 0 || z.avail_out == 0) {
    return std::unexpected("headers cannot be unpacked, or are too long");
  }
  text.resize(text.size() - z.avail_out);
  const auto broken = [] { return std::unexpected(std::string("headers are cut off")); };
  if (text.size() < 4) return broken();
  const std::uint32_t count = number(text, 0, 4);
  std::size_t at = 4;
  const auto word = [&](std::string& out) {
    if (text.size() - at < 4) return false;
    const std::uint32_t size = number(text, at, 4);
    at += 4;
    if (text.size() - at < size) return false;
    out = text.substr(at, size);
    at += size;
    return true;
  };
  Headers out;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string name, value;
    if (!word(name) || !word(value)) return broken();
    out[lower(name)] = value;
  }
  return out;
}

std::expected<void, std::string> Reader::control(std::uint16_t type, std::uint8_t flags,
                                                 std::string_view body, std::vector<Frame>& out) {
  const std::size_t wanted = type == kSynStream   ? 10
                             : type == kRstStream ? 8
                             : type == kPing      ? 4
                                                  : 0;
  if (body.size() < wanted) return std::unexpected("a frame is cut off");
  if (type == kSynStream) {
    auto headers = read_headers(body.substr(10));
    if (!headers) return std::unexpected(headers.error());
    out.push_back({.kind = Frame::Kind::kOpen,
                   .id = number(body, 0, 4) & 0x7fffffffU,
                   .headers = std::move(*headers),
                   .last = (flags & kFin) != 0});
  } else if (type == kRstStream) {
    out.push_back({.kind = Frame::Kind::kReset, .id = number(body, 0, 4) & 0x7fffffffU});
  } else if (type == kPing) {
    out.push_back({.kind = Frame::Kind::kPing, .id = number(body, 0, 4)});
  } else if (type == kGoAway) {
    out.push_back({.kind = Frame::Kind::kGoAway});
  }
  // Settings, windows and later headers do not matter here.
  return {};
}

std::expected<void, std::string> Reader::take(std::string_view bytes, std::vector<Frame>& out) {
  bytes_ += bytes;
  std::size_t at = 0;
  std::expected<void, std::string> result = {};
  while (result && bytes_.size() - at >= 8) {
    const std::string_view head = std::string_view(bytes_).substr(at, 8);
    const std::uint32_t first = number(head, 0, 4);
    const auto flags = static_cast<std::uint8_t>(head[4]);
    const std::size_t size = number(head, 5, 3);
    if (size > kFrameBytes) {
      result = std::unexpected("a frame is too long");
      break;
    }
    if (bytes_.size() - at - 8 < size) break;
    const std::string_view body = std::string_view(bytes_).substr(at + 8, size);
    at += 8 + size;
    if ((first & 0x80000000U) == 0) {
      out.push_back({.kind = Frame::Kind::kData,
                     .id = first,
                     .bytes = std::string(body),
                     .last = (flags & kFin) != 0});
    } else if ((first >> 16 & 0x7fff) != kVersion) {
      result = std::unexpected("another version of SPDY");
    } else {
      result = control(static_cast<std::uint16_t>(first & 0xffff), flags, body, out);
    }
  }
  bytes_.erase(0, at);
  return result;
}

std::string Writer::reply(std::uint32_t stream) {
  // No headers: their number alone.
  const std::string none(4, '\0');
  z_stream& z = deflater_->z;
  z.next_in = const_cast<Bytef*>(zlib_bytes(none));
  z.avail_in = 4;
  std::string packed(256, '\0');
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_SYNC_FLUSH);
  packed.resize(packed.size() - z.avail_out);
  std::string body;
  put(body, stream, 4);
  return control_frame(kSynReply, body + packed);
}

std::string Writer::data(std::uint32_t stream, std::string_view bytes, bool last) {
  std::string out;
  put(out, stream, 4);
  put(out,
      std::uint32_t{last ? kFin : std::uint8_t{0}} << 24 | static_cast<std::uint32_t>(bytes.size()),
      4);
  return out += bytes;
}

std::string Writer::pong(std::uint32_t id) {
  std::string body;
  put(body, id, 4);
  return control_frame(kPing, body);
}

}  // namespace skiff::apiserver::spdy
