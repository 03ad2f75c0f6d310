#include "store/text.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace skiff::store {
namespace {

constexpr std::size_t kShelfBytes = 256 * 1024;
// A text that would take much of a shelf is as well off without.
constexpr std::size_t kLong = kShelfBytes / 8;

// From the system and back to it, past the heap: that keeps what is freed for itself.
std::shared_ptr<char> new_shelf() {
  void* room =
      mmap(nullptr, kShelfBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<char*>(room), [](char* shelf) { munmap(shelf, kShelfBytes); }};
}

struct Shelf {
  std::shared_ptr<char> room = {};
  std::size_t used = kShelfBytes;
};

}  // namespace

std::shared_ptr<const char> on_shelf(std::string_view bytes) {
  static thread_local Shelf shelf;
  if (bytes.size() > kLong) return by_itself(bytes);
  if (bytes.size() > kShelfBytes - shelf.used) shelf = {.room = new_shelf(), .used = 0};
  char* const place = shelf.room.get() + shelf.used;
  std::memcpy(place, bytes.data(), bytes.size());
  shelf.used += bytes.size();
  // One count for all of the shelf: it is given back when the last of its texts is let go.
  return {shelf.room, place};
}

std::shared_ptr<const char> by_itself(std::string_view bytes) {
  auto room = std::make_shared_for_overwrite<char[]>(bytes.size());
  std::memcpy(room.get(), bytes.data(), bytes.size());
  char* const place = room.get();
  return {std::move(room), place};
}

}  // namespace skiff::store
