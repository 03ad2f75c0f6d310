// What is allowed in a pod, but hardly meant: deprecated labels and volumes, doubled names,
// fractions of bytes. The sentences are those of Kubernetes, which kubectl shows as they are.
#pragma once

#include <string>
#include <vector>

#include "api/kind.h"

namespace skiff::api {

// `path` is where the pod or template stands: empty for a pod, "spec.template" in a Deployment.
std::vector<std::string> pod_warnings(const json::value& pod, const std::string& path);

// For an object with a template at `path` ("spec.template"): on create, and when its spec changes.
void warn_of_template(const json::value& object, const Admission& context, const std::string& path,
                      std::vector<std::string>& out);

// Of kinds that make pods after their own name from spec.template.
std::vector<std::string> workload_warnings(const json::value& object, const Admission& context);

}  // namespace skiff::api
