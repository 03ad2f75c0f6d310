// The PersistentVolumeClaims of a StatefulSet's pods: their names, and whom they go with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller.h"

namespace skiff::workloads {

const api::Resource& claim_resource();
// How a StatefulSet finds claims that bear its name.
control::Related claims_of_sets();

class SetClaims {
 public:
  SetClaims(const json::value& set, const std::vector<Object>& seen);

  // Makes what the pod of that ordinal lacks. Says why the pod must wait, if it must: a claim is on
  // its way out, or about to go with a predecessor of the pod that was scaled away.
  std::optional<std::string> provide(std::int64_t ordinal, control::Plan& plan) const;
  // Brings owners of the claims in line with persistentVolumeClaimRetentionPolicy. True if that
  // takes a write.
  bool retain(const json::value& pod, std::int64_t ordinal, bool scaled_down,
              control::Plan& plan) const;
  // Adds the volumes of the claims to a pod, in the place of those of the same name.
  void mount(json::value& pod, std::int64_t ordinal) const;

 private:
  std::optional<std::string> unusable(const json::value& claim, std::string_view pod) const;
  json::value make(const json::value& claim_template, const std::string& name) const;
  std::string name_of(const json::value& claim_template, std::int64_t ordinal) const;
  bool deletes(std::string_view when) const;
  std::optional<json::array> new_owners(const json::value& claim, const json::value& pod,
                                        bool scaled_down, control::Plan& plan) const;

  const json::value& set_;
  const json::array& templates_;
  std::map<std::string, Object, std::less<>> seen_ = {};
};

}  // namespace skiff::workloads
