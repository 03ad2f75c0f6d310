// Putting an object's revision into its bytes. The revision is known only under the store's lock,
// serialising is slow, so the bytes are made before with a mark where the revision belongs.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "store/store.h"

namespace skiff::store {

// An object that is written but for its metadata.resourceVersion.
class Draft {
 public:
  // Makes `metadata` where it is absent.
  explicit Draft(json::value value);

  // Puts the revision into bytes and value. Once only; cheap.
  void stamp(Revision revision);

  std::string take_bytes() { return std::move(bytes_); }
  Object value() const { return value_; }

 private:
  std::shared_ptr<json::value> value_;
  json::string* revision_ = nullptr;  // inside *value_
  std::string bytes_;
  std::size_t mark_at_ = 0;
  std::size_t mark_size_ = 0;
};

// The bytes of `entry` as they would be at another revision.
std::string bytes_at(const Entry& entry, Revision revision);

}  // namespace skiff::store
