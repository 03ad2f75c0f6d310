// Lists of resources with quantities, and what a pod asks for in all.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "base/quantity.h"

namespace skiff::apiserver {

using Amounts = std::map<std::string, Quantity, std::less<>>;

// What cannot be read as a quantity is left out: the schema has refused it before.
Amounts read_amounts(const json::object& list);
json::object write_amounts(const Amounts& amounts);
void add(Amounts& to, const Amounts& more);
void raise(Amounts& to, const Amounts& floor);  // the greater of the two for each name

enum class Side { kRequests, kLimits };

// Containers side by side; init containers one after another, each beside the restartable ones
// before it; what is said for the pod as a whole wins over the sum. With its overhead on request.
enum class Overhead { kWithout, kWith };
Amounts pod_amounts(const json::value& spec, Side side, Overhead overhead);

}  // namespace skiff::apiserver
