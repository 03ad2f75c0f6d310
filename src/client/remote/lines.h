// Lines out of pieces that arrive as they will: every byte is looked at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace skiff::client {

class LineBuffer {
 public:
  void add(std::string_view piece) {
    if (begin_ > 0) {
      text_.erase(0, begin_);
      seen_ -= begin_;
      begin_ = 0;
    }
    text_ += piece;
  }

  // The next whole line, without its end; valid until add().
  std::optional<std::string_view> next() {
    const std::size_t end = text_.find('\n', seen_);
    if (end == std::string::npos) {
      seen_ = text_.size();
      return {};
    }
    const std::string_view line(text_.data() + begin_, end - begin_);
    begin_ = seen_ = end + 1;
    return line;
  }

  // What has come of a line that has not ended yet.
  std::string_view rest() const { return std::string_view(text_).substr(begin_); }

 private:
  std::string text_;
  std::size_t begin_ = 0;  // of the line that is next
  std::size_t seen_ = 0;   // no line ends between begin_ and here
};

}  // namespace skiff::client
