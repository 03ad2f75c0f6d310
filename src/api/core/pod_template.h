// What holds for pod templates wherever they stand: in Deployments, Jobs, CronJobs.
#pragma once

#include <string_view>

#include "api/checks.h"

namespace skiff::api {

// The template under `key` of `owner`, made where absent, with the defaults of a pod.
void default_pod_template(json::object& owner, std::string_view key = "template");
// `path` is that of the template: "spec.template".
void check_pod_template(const json::value& pod_template, std::string_view path, Causes& out);
// For what runs for ever: only restartPolicy Always, and no deadline. `kind` is for the sentence.
void check_always_running(const json::value& pod_template, std::string_view path,
                          std::string_view kind, Causes& out);

}  // namespace skiff::api
