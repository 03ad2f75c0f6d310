// metrics.k8s.io/v1beta1: what nodes and pods use now. Measured when asked for, never stored.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "schema/schema.h"

namespace skiff::api {

inline constexpr std::string_view kMetricsGroup = "metrics.k8s.io";

Kind node_metrics_kind();
Kind pod_metrics_kind();
// By the names that the kinds give them, for schema::Registry.
std::vector<std::pair<std::string, schema::Schema>> metrics_schemas();
// The ClusterRole that lets whoever may view, edit or administer also see what is used.
json::value metrics_reader_role();

}  // namespace skiff::api
