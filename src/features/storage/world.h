// What the storage controller sees: claims, volumes, classes, nodes, and pods that use claims.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "base/json.h"

namespace skiff::storage {

const api::Resource& claim_resource();
const api::Resource& volume_resource();
const api::Resource& class_resource();
const api::Resource& node_resource();
const api::Resource& pod_resource();

using Name = std::pair<std::string, std::string>;  // namespace, name
using Objects = std::map<Name, Object>;

struct World {
  Objects claims = {};
  Objects volumes = {};
  Objects classes = {};
  Objects nodes = {};
  Objects pods = {};  // only those with claims
  // Who refers to a claim, there or not.
  std::map<Name, std::map<Name, Object>> users = {};
  // Volumes that name a claim, there or not, and by class those that name none: so that a claim
  // does not go through all that others have.
  std::map<Name, Objects> reserved = {};
  std::map<std::string, Objects, std::less<>> free = {};

  Object claim(std::string_view ns, std::string_view name) const;
  Object volume(std::string_view name) const;
  Object storage_class(std::string_view name) const;
  Object node(std::string_view name) const;
};

class Books {
 public:
  // In the order of `which`.
  static std::vector<api::Resource> watched();
  void changed(std::size_t which, const Object& before, const Object& after);
  const World& world() const { return world_; }

 private:
  void pod_changed(const Object& before, const Object& after);
  void volume_changed(const Object& before, const Object& after);

  World world_ = {};
};

}  // namespace skiff::storage
