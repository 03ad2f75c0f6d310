// A container's root that nobody may write to, while its volumes stay as they are.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "node/shim/files.h"

namespace skiff::node {

// The mounts that the root at `folder` is made of: taken before anything is mounted into it, and
// made read-only after, because places to mount at may have to be made in it.
class RootMounts {
 public:
  static Result<RootMounts> look(const std::string& folder);
  Result<void> make_read_only() const;

 private:
  std::vector<Fd> mounts_ = {};  // the root itself comes first
};

}  // namespace skiff::node
