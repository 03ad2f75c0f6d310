// The last revision that was confirmed, in a small file beside the database. A write-ahead log that
// is damaged or gone looks like one that ended earlier; only somebody else can tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace skiff::store {

class Mark {
 public:
  // Of the database at `database`; the mark is in the file of the same name with -mark. Without
  // the right to write there it does nothing, for it only guards.
  Mark(const std::string& database, std::string_view boot);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // What the database must have at least; 0 where nothing is known of this very file.
  Revision least() const;
  // After the commit has succeeded and before anybody is told. Not synced: a mark that a power cut
  // takes back asks for less than is there.
  void set(Revision last, Sync sync);

 private:
  struct Words {
    std::uint64_t magic = 0;
    std::uint64_t file = 0;    // its inode: a backup in its place is another file
    std::uint64_t boot = 0;    // a hash; lazy writes count only until the machine restarts
    std::uint64_t last = 0;    // written
    std::uint64_t synced = 0;  // of this, synced
    std::uint64_t sum = 0;
  };
  static std::uint64_t sum_of(const Words& words);

  const std::string database_;
  int fd_ = -1;
  Words words_;
  std::optional<Words> found_;
};

}  // namespace skiff::store
