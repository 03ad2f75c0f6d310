// The text of HTTP/1.1 answers: heads, chunks and the server's own refusals.
#pragma once

#include <string>
#include <string_view>

#include "base/http.h"
#include "base/result.h"

namespace skiff::net {

enum class Framing { kNone, kLength, kChunked, kUntilClose, kTunnel };

struct Head {
  Framing framing = Framing::kLength;
  bool close = false;
  std::string_view server_header = {};
};

// The status line and headers up to the empty line. Framing and connection headers of the response
// itself are replaced by ours; line ends inside a value cannot end the header.
std::string render_head(const http::Response& response, const Head& head);

void append_chunk(std::string& out, std::string_view data);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// A Kubernetes Status, so that kubectl shows the sentence and not only the number.
http::Response refusal(int status, std::string_view reason, std::string_view message);

}  // namespace skiff::net
