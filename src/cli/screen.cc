#include "cli/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

namespace skiff::cli {
namespace {

constexpr std::string_view kErase = "\r\033[K";

}  // namespace

void Screen::line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  fmt::print(file_, "{}{}\n{}", status_.empty() ? "" : kErase, text, status_);
  std::fflush(file_);
}

void Screen::status(std::string text) {
  const std::lock_guard lock(mutex_);
  if (!live_ || text == status_) return;
  fmt::print(file_, "{}{}", status_.empty() ? "" : kErase, text);
  std::fflush(file_);
  status_ = std::move(text);
}

std::size_t Screen::width() const {
  winsize size{};
  if (::ioctl(::fileno(file_), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace skiff::cli
