#include "node/progress/progress_scan.h"

#include "base/limits.h"

namespace skiff::node {
namespace {

// A line of the log: the text of one entry and what stands before it.
constexpr std::size_t kRestBytes = limits::kLogLineBytes + 256;

// Calls `line` for each whole line; what follows the last newline stays in `rest`.
template <class Line>
void each_line(std::string_view bytes, std::string& rest, bool& cut, Line line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      rest.append(bytes);
      // Nobody writes such lines; what there is of it is of no use.
      if (rest.size() > kRestBytes) rest.clear(), cut = true;
      return;
    }
    rest.append(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    if (!cut) line(std::string_view(rest));
    cut = false;
    rest.clear();
  }
}

}  // namespace

void ProgressScan::text(std::string_view text, Time at) {
  while (!text.empty()) {
    const std::size_t end = text.find('\r');
    if (const auto parsed = parse_progress(text.substr(0, end))) tracker_.take(*parsed, at);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

void ProgressScan::log_line(std::string_view line) {
  const std::size_t stream = line.find(' ');
  const std::size_t tag = stream == line.npos ? line.npos : line.find(' ', stream + 1);
  if (tag == line.npos || tag + 3 > line.size() || line[tag + 2] != ' ') return;
  const auto at = parse_time(line.substr(0, stream));
  if (!at) return;
  std::string& piece = line.substr(stream + 1, tag - stream - 1) == "stderr" ? err_ : out_;
  piece.append(line.substr(tag + 3));
  const bool whole = line[tag + 1] == 'F';
  // A bar is told as it grows; the piece behind its last carriage return is not finished.
  const std::size_t ready = whole ? piece.size() : piece.rfind('\r') + 1;
  if (!own_file_) text(std::string_view(piece).substr(0, ready), *at);
  piece.erase(0, ready);
  if (piece.size() > kRestBytes) piece.clear();
}

void ProgressScan::log_bytes(std::string_view bytes) {
  each_line(bytes, log_rest_, cut_, [this](std::string_view line) { log_line(line); });
}

void ProgressScan::file_bytes(std::string_view bytes, Time at) {
  each_line(bytes, file_rest_, file_cut_, [this, at](std::string_view line) {
    const auto parsed = parse_progress(line);
    if (!parsed) return;
    if (!own_file_) tracker_ = {};
    own_file_ = true;
    tracker_.take(*parsed, at);
  });
}

}  // namespace skiff::node
