// The APIServices that say of each group and version that this server answers for it. They come
// and go with the kinds that are served; what users have made themselves is left alone.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/access/change_feed.h"
#include "apiserver/kinds.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {

inline constexpr std::string_view kApiServicesKey = "apiservices.apiregistration.k8s.io";

struct LocalServicesPlan {
  std::vector<json::value> create = {};
  std::vector<std::string> remove = {};  // names
};
// Reads only those of the existing services that no kind asks for.
LocalServicesPlan plan_local_services(const KindTable& kinds,
                                      const std::vector<store::EntryPtr>& existing);

class LocalServices {
 public:
  using Kinds = std::function<std::shared_ptr<const KindTable>()>;
  using Commit = std::function<Result<void>(Transaction&, store::Sync)>;
  LocalServices(store::Store& store, Writes& writes, Kinds kinds, Commit commit);

  // True if it changed anything.
  bool pass();

 private:
  store::Store& store_;
  Writes& writes_;
  Kinds kinds_;
  Commit commit_;
  std::mutex lock_;
  ChangeFeed changes_;
  std::shared_ptr<const KindTable> seen_;  // the kinds that the services already tell of
};

}  // namespace skiff::apiserver
