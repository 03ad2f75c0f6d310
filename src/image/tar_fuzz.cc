// Layers as anybody may write them: tar, packed or not. The reader ends, and gives no entry more
// than its size.
#include "base/fuzz.h"
#include "image/source.h"
#include "image/tar.h"

SKIFF_FUZZ(text) {
  using namespace skiff::image;
  const auto raw = string_source(std::string(text));
  const auto plain = decompressed(*raw);
  if (!plain) return;
  TarReader reader(**plain);
  // What unpacks to more than this is interesting to a disk, not to the reader.
  std::int64_t budget = 1 << 20;
  while (budget > 0) {
    const auto entry = reader.next();
    if (!entry || !*entry) return;
    SKIFF_CHECK((*entry)->size >= 0, "sizes are sizes");
    std::int64_t seen = 0;
    char piece[4096];
    while (budget > 0) {
      const auto n = reader.read(piece, sizeof piece);
      if (!n) return;
      if (*n == 0) break;
      seen += static_cast<std::int64_t>(*n);
      budget -= static_cast<std::int64_t>(*n);
    }
    SKIFF_CHECK(seen <= (*entry)->size, "an entry has no more than its size");
    budget -= 512;
  }
}
