#include <fmt/format.h>

#include "base/check.h"
#include "store/store.h"

namespace skiff::store {

Entry::Entry(Key key, Revision revision, std::string bytes)
    : key_(std::move(key)), revision_(revision), bytes_(std::move(bytes)) {}

Object Entry::value() const {
  // Whoever comes second sleeps until the first has parsed: a large object parsed twice costs more.
  while (parsing_.test_and_set(std::memory_order_acquire)) {
    parsing_.wait(true, std::memory_order_relaxed);
  }
  Object value = value_.lock();
  if (value == nullptr) {
    Result<json::value> parsed = json::parse(bytes_);
    SKIFF_CHECK(parsed.has_value(),
                fmt::format("{} {}/{} at revision {} is not JSON: {}", key_.resource, key_.ns,
                            key_.name, revision_, parsed ? "" : parsed.error().message));
    value = std::make_shared<const json::value>(std::move(*parsed));
    value_ = value;
  }
  parsing_.clear(std::memory_order_release);
  parsing_.notify_one();
  return value;
}

}  // namespace skiff::store
