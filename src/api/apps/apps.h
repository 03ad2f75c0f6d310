// The kinds of group apps: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision.
#pragma once

#include <vector>

#include "api/checks.h"
#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> apps_kinds();

Kind deployment_kind();
Kind replica_set_kind();
Kind stateful_set_kind();
Kind daemon_set_kind();
Kind controller_revision_kind();

// spec.selector of a kind whose pods it owns: required, not empty, and fitting the template's
// labels. `what` is the word for the kind in the sentence about an empty one.
void check_owned_selector(const json::value& object, std::string_view what, Causes& out);
// Where the selector can be read: the template's labels against it, then the template itself.
void check_owned_template(const json::value& object, std::string_view kind,
                          std::string_view bad_selector, Causes& out);
// status.collisionCount may only grow.
void check_collisions(const json::value& object, const json::value& old, Causes& out);
// Each named count of status may not be above status.`bound`.
void check_bounded(const json::value& object, Path fields, std::string_view bound,
                   std::string_view sentence, Causes& out);
// spec.replicas and the like: an int32 that is shown even when it is 0.
void default_int(json::object& o, std::string_view key, std::int64_t value);
void default_text(json::object& o, std::string_view key, std::string_view value);

}  // namespace skiff::api
