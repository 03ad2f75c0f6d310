// ControllerRevisions: the templates that a set has had, numbered, and how many are kept.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller.h"

namespace skiff::workloads {

const api::Resource& revision_resource();
// Whether pods of an older revision are replaced by the set itself: spec.updateStrategy.
bool rolls(const json::value& set);

class Revisions {
 public:
  // `owned`: the revisions of the root. Where none of them has the root's template, one is made;
  // where an older one has it, that becomes the newest. Each bears its hash as a label.
  Revisions(const json::value& root, const std::vector<Object>& owned, control::Plan& plan,
            std::string_view hash_label = "controller.kubernetes.io/hash");

  const std::string& update() const { return update_; }  // of the template as it is now
  const std::string& update_hash() const { return update_hash_; }
  std::int64_t collisions() const { return collisions_; }
  // The one of that name, or the update revision where it is not known.
  const std::string& known_or_update(const std::string& name) const;
  // A PodTemplateSpec as that revision has it.
  json::value pod_template(std::string_view name) const;
  // Drops the oldest beyond spec.revisionHistoryLimit, none of the `live` ones.
  void truncate(const std::set<std::string, std::less<>>& live, control::Plan& plan) const;

 private:
  void create(const json::value& root, std::int64_t number, json::value data, control::Plan& plan);

  const json::value& root_;
  const std::string_view hash_label_;
  std::vector<Object> sorted_ = {};  // oldest first
  std::string update_ = {};
  std::string update_hash_ = {};
  std::int64_t collisions_ = 0;
};

}  // namespace skiff::workloads
