// Lines that scroll, and below them one line that stays: what is going on. From any thread.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace skiff::cli {

class Screen {
 public:
  // `live`: the file is a terminal, and the last line can be drawn over.
  Screen(std::FILE* file, bool live) : file_(file), live_(live) {}
  ~Screen() { status({}); }

  void line(std::string_view text);
  // Replaces the line at the bottom; empty: takes it away. Nothing where it is no terminal.
  void status(std::string text);
  std::size_t width() const;  // of the terminal; 80 where that is not known

 private:
  std::FILE* const file_;
  const bool live_;
  std::mutex mutex_;
  std::string status_ = {};
};

}  // namespace skiff::cli
