// The kind Pod, and what holds for pod specs wherever they stand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kind.h"

namespace skiff::api {

Kind pod_kind();

// As kube-apiserver fills them in, wherever the spec stands. Values of wrong types are left for the
// schema to refuse.
void default_pod_spec(json::object& spec);
// What is filled in only when the pod is made, not in its template: requests from limits, host
// ports, service links.
void default_pod_only(json::object& spec);

// Besides what the schema says. `path` is that of the spec: "spec", "spec.template.spec".
std::vector<Cause> validate_pod_spec(const json::value& spec, std::string_view path);
std::vector<Cause> validate_pod(const json::value& pod);
// metadata and spec; `path` is that of the template.
std::vector<Cause> validate_pod_template(const json::value& body, const std::string& path);
// Null where the change is allowed: images, deadlines, more tolerations, fewer gates.
std::vector<Cause> validate_pod_update(const json::value& spec, const json::value& old_spec);
// Parts that stand elsewhere, too.
std::vector<Cause> validate_resources(const json::value& resources, const std::string& path);
std::vector<Cause> validate_tolerations(const json::array& tolerations, const std::string& path);
std::vector<Cause> validate_node_selector(const json::value& selector, const std::string& path);

// BestEffort, Burstable or Guaranteed.
std::string_view qos_class(const json::value& spec);
// IfNotPresent for an image with a tag or digest, Always for `latest` and none.
std::string_view default_pull_policy(std::string_view image);

// kubectl's STATUS column: the phase, or what better explains it.
std::string pod_status_text(const json::value& pod);
json::array pod_cells(const json::value& pod, std::int64_t now_s);

}  // namespace skiff::api
