// Packs what nobody has changed for a while (Store::pack), a little in every tick.
#pragma once

#include "base/time.h"
#include "env/env.h"
#include "store/store.h"

namespace skiff::apiserver {

class ColdStorage {
 public:
  // Between this and twice as long after its last change an object is packed.
  static constexpr std::chrono::seconds kCold = std::chrono::seconds(15);

  // From one thread. On a busy server some are left for the next time.
  void tick(store::Store& store, const env::Clock& clock);

 private:
  struct Mark {
    Duration at = {};
    store::Revision revision = 0;
  };
  Mark old_ = {};
  Mark recent_ = {};
  std::size_t taken_ = 0;  // since the heap was asked to give back what it does not need
};

}  // namespace skiff::apiserver
