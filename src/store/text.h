// The text of an object, and where texts are kept.
//
// New texts stand side by side on shelves in the order in which they came. Some seconds later each
// is replaced, or packed and kept elsewhere, so that whole shelves are given back to the system. In
// the common heap what is freed would lie scattered between what stays, and nothing would shrink.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace skiff::store {

// Keeps its bytes alive, whatever becomes of the entry meanwhile.
class Text {
 public:
  Text() = default;
  Text(std::shared_ptr<const char> data, std::size_t size) : data_(std::move(data)), size_(size) {}

  std::string_view view() const { return {data_.get(), size_}; }
  std::string str() const { return std::string(view()); }
  bool operator==(const Text& other) const { return view() == other.view(); }
  bool operator==(std::string_view other) const { return view() == other; }

 private:
  std::shared_ptr<const char> data_ = {};
  std::size_t size_ = 0;
};

// A copy on the shelf of this thread.
std::shared_ptr<const char> on_shelf(std::string_view bytes);
// A copy by itself.
std::shared_ptr<const char> by_itself(std::string_view bytes);

}  // namespace skiff::store
