// Watches: the events of a resource as a stream of JSON lines.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "apiserver/reads.h"
#include "apiserver/selection.h"
#include "base/random.h"
#include "env/env.h"

namespace skiff::apiserver {

struct WatchState;

// All open watches. tick() gives them the time: bookmarks and time-outs happen there.
class Watches {
 public:
  Watches(store::Store& store, const env::Clock& clock) : store_(store), clock_(clock) {}

  // `kinds` keeps view.kind alive for as long as the stream lives.
  http::Response open(std::shared_ptr<const KindTable> kinds, const View& view, Selection selection,
                      const http::Url& url);
  // To be called about once a second, from any thread.
  void tick();
  std::size_t count() const;

 private:
  store::Store& store_;
  const env::Clock& clock_;
  mutable std::mutex lock_;
  std::vector<std::weak_ptr<WatchState>> open_;
};

}  // namespace skiff::apiserver
