#include "store/entry.h"

#include <fmt/format.h>

#include <mutex>

#include "base/check.h"
#include "store/packing.h"

namespace skiff::store {
namespace {

// Less than this is hardly less when packed.
constexpr std::size_t kWorthPacking = 200;

// One bit instead of a mutex's forty bytes, of which there would be one in every object.
class BitLock {
 public:
  explicit BitLock(std::atomic_flag& bit) : bit_(bit) {
    while (bit_.test_and_set(std::memory_order_acquire)) {
      bit_.wait(true, std::memory_order_relaxed);
    }
  }
  ~BitLock() {
    bit_.clear(std::memory_order_release);
    bit_.notify_one();
  }
  BitLock(const BitLock&) = delete;
  BitLock& operator=(const BitLock&) = delete;

 private:
  std::atomic_flag& bit_;
};

}  // namespace

Entry::Entry(Key key, Revision revision, std::string_view bytes)
    : key_(std::move(key)),
      revision_(revision),
      size_(static_cast<std::uint32_t>(bytes.size())),
      stored_{.data = on_shelf(bytes), .size = size_} {
  SKIFF_CHECK(bytes.size() <= UINT32_MAX, "an object has less than four gigabytes");
}

Entry::~Entry() = default;

Entry::Stored Entry::stored() const {
  const BitLock lock(moving_);
  return stored_;
}

Text Entry::text() const {
  Stored stored = this->stored();
  if (stored.dictionary == nullptr) return {std::move(stored.data), size_};
  auto room = std::make_shared_for_overwrite<char[]>(size_);
  stored.dictionary->unpack({stored.data.get(), stored.size}, room.get(), size_);
  char* const begin = room.get();
  return {std::shared_ptr<const char>(std::move(room), begin), size_};
}

bool Entry::starts_with(std::string_view head) const {
  const Stored stored = this->stored();
  if (stored.same_head && head.size() <= stored.dictionary->head().size()) {
    return stored.dictionary->head().starts_with(head);
  }
  return text().view().starts_with(head);
}

bool Entry::packed() const {
  const BitLock lock(moving_);
  return stored_.dictionary != nullptr;
}

std::size_t Entry::pack(Packer* packer) const {
  const Stored before = stored();
  if (before.dictionary != nullptr) return before.size;
  const std::string_view plain(before.data.get(), size_);
  Stored after{.size = size_};
  if (packer != nullptr && size_ >= kWorthPacking) {
    const std::string_view packed = packer->pack(plain);
    if (packed.size() <= size_ / 2) {
      after = {.data = by_itself(packed),
               .dictionary = packer->dictionary(),
               .size = static_cast<std::uint32_t>(packed.size()),
               .same_head = plain.starts_with(packer->dictionary()->head())};
    }
  }
  if (after.data == nullptr) after.data = by_itself(plain);
  const std::size_t left = after.size;
  {
    const BitLock lock(moving_);
    stored_ = std::move(after);
  }
  forget_value();
  return left;
}

// Where nobody holds it: the pointer alone keeps a little alive too.
void Entry::forget_value() const {
  const BitLock lock(parsing_);
  if (value_.expired()) value_.reset();
}

Object Entry::value() const {
  // Whoever comes second sleeps until the first has parsed: a large object parsed twice costs more.
  const BitLock lock(parsing_);
  Object value = value_.lock();
  if (value == nullptr) {
    Result<json::value> parsed = json::parse(text().view());
    SKIFF_CHECK(parsed.has_value(),
                fmt::format("{} {}/{} at revision {} is not JSON: {}", key_.resource, key_.ns,
                            key_.name, revision_, parsed ? "" : parsed.error().message));
    value = std::make_shared<const json::value>(std::move(*parsed));
    value_ = value;
  }
  return value;
}

}  // namespace skiff::store
