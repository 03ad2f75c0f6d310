// ClusterRoles that gather the rules of others by label. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apiserver/access/rules.h"
#include "base/json.h"

namespace skiff::apiserver {

// The rules of every role of `roles` that has an aggregationRule, where they are not already what
// it says: by name. Roles that gather roles that gather are followed to the end; a ring of them
// ends when nothing new comes.
std::map<std::string, std::vector<Rule>> gathered_rules(const std::vector<Object>& roles);

}  // namespace skiff::apiserver
