// SHA-256 of what comes in pieces: layers of images are too large to hold.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace skiff::net {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  // Lower-case hex of everything so far; nothing may be added after it.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skiff::net
