// Read your writes: tells when a cache has taken in what a submit wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/client.h"
#include "control/cache.h"

namespace skiff::control {

class Barrier {
 public:
  // The cache of a resource by api::Resource::key(), or null where nobody looks at it.
  using Lookup = std::function<const Cache*(const std::string& resource)>;

  // `write` succeeded and the server answered `result`.
  void expect(const client::Write& write, const json::value& result, const Lookup& lookup);
  // True when everything expected has been seen. Forgets what has been.
  bool open(const Lookup& lookup);
  void clear();

  // Of a closed one that has just been asked whether it is open: it stays closed until the cache of
  // `resource` has reached `revision`. No resource: nobody can say until when.
  struct Mark {
    std::string resource = {};
    std::uint64_t revision = 0;
  };
  Mark waits_for() const;

 private:
  // A write whose answer carries no revision: deletes and bindings.
  struct Effect {
    std::string resource = {};
    Key key = {};
    std::string uid = {};
    bool removal = false;
    std::uint64_t newer_than = 0;
  };
  static bool seen(const Effect& effect, const Cache& cache);

  std::map<std::string, std::uint64_t> revisions_ = {};  // by resource: the newest one written
  std::vector<Effect> effects_ = {};
};

}  // namespace skiff::control
