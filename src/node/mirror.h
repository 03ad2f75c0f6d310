// The objects of one resource, kept equal to the server's by list and watch. Belongs to one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"

namespace skiff::node {

class Mirror {
 public:
  // `ready` is called from any thread when poll() may have something; it must only post.
  Mirror(client::Client& client, api::Resource resource, std::function<void()> ready);

  // What changed since the last call. Lists (again) where it must: at first, when history is gone,
  // after an error. A list's differences come as events, an object made anew under an old name as
  // a removal and an addition.
  Result<std::vector<client::Event>> poll();

  using Key = std::pair<std::string, std::string>;  // namespace, name
  const std::map<Key, Object>& objects() const { return objects_; }

 private:
  Result<std::vector<client::Event>> relist();
  void apply(const client::Event& event);

  client::Client& client_;
  const api::Resource resource_;
  const std::function<void()> ready_;
  std::unique_ptr<client::Watch> watch_ = {};
  bool listed_ = false;
  std::uint64_t revision_ = 0;
  std::map<Key, Object> objects_ = {};
};

std::vector<Object> values(const Mirror& mirror);

}  // namespace skiff::node
