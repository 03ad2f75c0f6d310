// Which objects of a resource have changed since one last looked.
#pragma once

#include <string>
#include <vector>

#include "store/store.h"

namespace skiff::apiserver {

class ChangeFeed {
 public:
  ChangeFeed(const store::Store& store, std::string resource)
      : store_(store), resource_(std::move(resource)) {}

  struct Changes {
    std::vector<store::Key> keys = {};  // made, changed or removed; perhaps more than once
    // The first look, or history was lost: `keys` are all that exist, and any may have gone.
    bool anew = false;
  };
  Changes take();

 private:
  const store::Store& store_;
  const std::string resource_;
  store::Revision seen_ = 0;
};

}  // namespace skiff::apiserver
