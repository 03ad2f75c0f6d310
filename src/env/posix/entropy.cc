#include "env/posix/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace skiff::env::posix {

std::uint64_t Entropy::seed() {
  std::uint64_t seed = 0;
  ssize_t got = -1;
  // A signal may interrupt the wait for the kernel's pool right after boot.
  do got = getrandom(&seed, sizeof seed, 0);
  while (got < 0 && errno == EINTR);
  SKIFF_CHECK(got == sizeof seed, "the kernel gives eight random bytes or none");
  return seed;
}

}  // namespace skiff::env::posix
