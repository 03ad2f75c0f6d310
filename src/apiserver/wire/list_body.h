// The body of a long list: written from the stored bytes, piece by piece, as fast as the client
// reads. The objects are never all in one buffer, and the client reads the first while the last are
// still to come.
#pragma once

#include <string>
#include <vector>

#include "base/http.h"
#include "store/store.h"

namespace skiff::apiserver {

class ListBody final : public http::Stream {
 public:
  // `head` ends where the first item begins.
  ListBody(std::string head, std::vector<store::EntryPtr> entries);

  bool pull(std::string& out, std::function<void()> wake) override;

 private:
  std::string head_;
  std::vector<store::EntryPtr> entries_;
  std::size_t next_ = 0;
};

}  // namespace skiff::apiserver
