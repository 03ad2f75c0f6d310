// The kind Event.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind event_kind();

// For the view that events.k8s.io has; both take the form that core keeps. `controller_field` is
// what the view calls reportingComponent.
std::vector<Cause> validate_event(const json::value& event, std::string_view controller_field);
json::array event_cells(const json::value& event, std::int64_t now_s);

}  // namespace skiff::api
