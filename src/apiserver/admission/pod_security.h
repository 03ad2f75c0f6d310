// The pod security standards: what the levels baseline and restricted forbid in a pod spec. Pure.
#pragma once

#include <climits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver::pod_security {

enum class Level { kPrivileged, kBaseline, kRestricted };  // in order of strictness

inline constexpr int kLatest = INT_MAX;

struct Policy {
  Level level = Level::kPrivileged;
  int minor = kLatest;  // of policy version v1.x

  bool operator==(const Policy&) const = default;
  std::string text() const;  // restricted:latest, baseline:v1.30
};

struct Policies {
  Policy enforce = {};
  Policy audit = {};
  Policy warn = {};
};

// From a namespace's labels. What cannot be read is told in `causes`, and means the strictest level
// for enforce and none for the others.
Policies read_policies(const json::object& labels, std::vector<Cause>& causes);

struct Finding {
  std::string reason = {};  // host namespaces
  std::string detail = {};  // hostNetwork=true; may be empty
};

// Baseline findings first, each group by the name of its check. `metadata` is the pod's own.
std::vector<Finding> evaluate(const Policy& policy, const json::value& metadata,
                              const json::value& spec);
std::string reasons(const std::vector<Finding>& findings);  // for many pods at once
std::string details(const std::vector<Finding>& findings);  // for one

// How the checks see a pod.
struct Pod {
  const json::value& metadata;
  const json::value& spec;
  std::vector<const json::value*> containers = {};  // of all three lists, init containers first
};
// A check answers with no finding (empty reason) where it has nothing to say.
using CheckFunction = Finding (*)(const Pod& pod);
struct VersionedCheck {
  int minor = 0;  // from this version on, until the check's next one
  CheckFunction run = nullptr;
};
struct Check {
  std::string_view name = {};
  std::vector<VersionedCheck> versions = {};  // oldest first
  std::string_view replaces = {};             // the baseline check that it contains
};
const std::vector<Check>& baseline_checks();
const std::vector<Check>& restricted_checks();

// Words for findings.
using Names = std::vector<std::string>;
std::string name_of(const json::value* named_thing);
Names sorted(const std::set<std::string>& values);
// pod; container "a"; pod and containers "a", "b"
std::string setters(bool pod, const Names& containers);
std::string quoted(const Names& names);  // "a", "b"
// container "a"; containers "a", "b"
std::string named(std::string_view singular, const Names& names);
std::string_view plural(std::string_view one, std::string_view many, std::size_t count);

}  // namespace skiff::apiserver::pod_security
