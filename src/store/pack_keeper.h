// Which dictionary packs the objects of which resource. Not thread-safe.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/entry.h"
#include "store/packing.h"

namespace skiff::store {

class PackKeeper {
 public:
  // States that make a dictionary worth having.
  static constexpr std::size_t kFirst = 32;

  // Packs states of one resource. True where there is a new dictionary since: what could not be
  // packed before may now.
  bool pack(const std::string& resource, const std::vector<EntryPtr>& entries);

 private:
  struct Kind {
    std::shared_ptr<const Dictionary> dictionary = {};
    std::deque<EntryPtr> samples = {};  // the last few, until there is a dictionary
    std::size_t seen = 0;
    // Since there is this dictionary.
    std::size_t plain_bytes = 0;
    std::size_t packed_bytes = 0;
    std::size_t renew_at = 0;  // not before so many have been seen
  };

  static bool wants_another(const Kind& kind);
  static void renew(Kind& kind, const std::vector<EntryPtr>& entries);

  std::map<std::string, Kind> kinds_;
};

}  // namespace skiff::store
