#include "apiserver/upkeep/cold_storage.h"

#include "env/posix/heap.h"

namespace skiff::apiserver {
namespace {

constexpr std::size_t kPackedAtOnce = 500;
// Of every second.
constexpr Duration kShare = std::chrono::milliseconds(50);
// The heap is locked while it looks for what it can give back; so only where that must be much.
constexpr std::size_t kManyPacked = 20'000;

}  // namespace

void ColdStorage::tick(store::Store& store, const env::Clock& clock) {
  const Duration start = clock.elapsed();
  if (recent_.revision == 0 || start - recent_.at >= kCold) {
    old_ = recent_;
    recent_ = {.at = start, .revision = store.revision()};
  }
  std::size_t taken = kPackedAtOnce;
  while (taken >= kPackedAtOnce && clock.elapsed() - start < kShare) {
    taken = store.pack(old_.revision, kPackedAtOnce);
    taken_ += taken;
  }
  if (taken >= kPackedAtOnce || taken_ < kManyPacked) return;
  taken_ = 0;
  env::give_back_memory();
}

}  // namespace skiff::apiserver
