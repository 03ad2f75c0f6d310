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
  // kNothing: only changes are told. A cluster may have far more config maps than its pods read.
  enum class Keep { kObjects, kNothing };

  // `ready` is called from any thread when poll() may have something; it must only post.
  Mirror(client::Client& client, api::Resource resource, std::function<void()> ready,
         Keep keep = Keep::kObjects);
  // Where set: what is kept of an object, with its names, uid and resourceVersion. Events carry the
  // whole object, except a removal found by a list.
  using Extract = std::function<Object(const Object&)>;
  void keep_only(Extract extract) { extract_ = std::move(extract); }

  // What changed since the last call. Lists (again) where it must: at first, when history is gone,
  // after an error. A list's differences come as events, an object made anew under an old name as
  // a removal and an addition. Who keeps nothing knows no differences: see take_gap().
  Result<std::vector<client::Event>> poll();

  // Of one that keeps nothing: whether changes went by unseen since the last call.
  bool take_gap() { return std::exchange(gap_, false); }

  using Key = std::pair<std::string, std::string>;  // namespace, name
  const std::map<Key, Object>& objects() const { return objects_; }

 private:
  Result<std::vector<client::Event>> relist();
  Result<void> find_revision();
  void apply(const client::Event& event);

  client::Client& client_;
  const api::Resource resource_;
  const std::function<void()> ready_;
  const Keep keep_;
  Extract extract_ = [](const Object& object) { return object; };
  std::unique_ptr<client::Watch> watch_ = {};
  bool listed_ = false;
  bool gap_ = false;
  std::uint64_t revision_ = 0;
  std::map<Key, Object> objects_ = {};
};

std::vector<Object> values(const Mirror& mirror);

}  // namespace skiff::node
