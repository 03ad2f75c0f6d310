// What objects cost in the currency of ResourceQuotas. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/amounts.h"
#include "base/time.h"

namespace skiff::apiserver::quota {

// What one object of the resource (by its key: "pods", "jobs.batch") uses. A pod that has ended
// counts as an object only, and so does one whose time to stop is long over.
Amounts usage(std::string_view resource, const json::value& object, Time now);

// Those names of a quota that objects of this resource can use.
std::vector<std::string> names_for(std::string_view resource, const Amounts& hard);
// The resources whose objects use the name; empty where no object does.
std::vector<std::string> resources_for(std::string_view name);

// Every scope of the quota holds for the object.
bool in_scope(const json::value& quota, std::string_view resource, const json::value& object);

// What the containers of a pod must say because the quota counts it: "must specify ..."; or empty.
std::string missing(const std::vector<std::string>& names, const json::value& pod);

}  // namespace skiff::apiserver::quota
