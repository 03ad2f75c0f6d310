// File descriptors that close themselves, and errors of the system as values.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace skiff::image {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// "what: reason", the reason taken from errno.
std::unexpected<Error> os_failure(std::string_view what);
Result<std::string> read_file(const std::string& path);
Result<void> write_all(int fd, std::string_view bytes, std::string_view name);
Result<void> make_folder(const std::string& path);
// Whole or not at all, also after a power cut.
Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace skiff::image
