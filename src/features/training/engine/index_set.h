// A set of replica indices and its short text form, "0-3,7".
//
// Kept in a job's status: a list of ten thousand numbers would be rewritten with every change, the
// ranges of a job that goes well are a handful of characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::training {

class IndexSet {
 public:
  // What cannot be read, or lies beyond limits::kReplicasPerJob, is left out.
  static IndexSet parse(std::string_view text);
  std::string text() const;

  bool contains(std::int64_t index) const;
  void insert(std::int64_t index);
  void erase(std::int64_t index);
  // Forgets every index at or past the bound.
  void truncate(std::int64_t bound);
  std::int64_t size() const { return size_; }

  bool operator==(const IndexSet& other) const { return text() == other.text(); }

 private:
  std::vector<bool> members_ = {};
  std::int64_t size_ = 0;
};

}  // namespace skiff::training
