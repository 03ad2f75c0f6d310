// Which rights of some rules no other rules cover, found without multiplying the rules out. Pure.
#pragma once

#include <vector>

#include "apiserver/access/rules.h"
#include "base/result.h"

namespace skiff::apiserver {

// Single rights: one verb and one resource (and at most one name), or one verb and one URL each.
struct Shortfall {
  std::vector<Rule> rights = {};  // as many as a sentence has room for
  bool more = false;              // there are others
};

// The rights of `wanted` that no rule of `held` covers. A rule of 250 groups, resources and verbs
// has 15.6 million of them, so words that the same held rules match are looked at as one. Fails
// where even that would take too long (limits::kRuleSteps).
Result<Shortfall> missing(const std::vector<const Rule*>& held, const std::vector<Rule>& wanted);
std::vector<const Rule*> pointers(const std::vector<Rule>& rules);

}  // namespace skiff::apiserver
