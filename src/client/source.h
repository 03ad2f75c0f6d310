// Where an object that was read can be had again, so that who follows many objects need not hold
// each of them parsed.
#pragma once

#include <memory>

#include "base/json.h"

namespace skiff::client {

class Source {
 public:
  virtual ~Source() = default;
  // The object as it was read, however often it has changed since.
  virtual Object value() const = 0;
};
using SourcePtr = std::shared_ptr<const Source>;

}  // namespace skiff::client
