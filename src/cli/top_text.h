// Pure: what `skiff top` shows of metrics.k8s.io objects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

struct TopForm {
  std::string sort_by = {};  // cpu, memory; empty: by name
  bool containers = false;   // a line for each container
  bool with_namespace = false;
  bool with_header = true;
};

// Lists of PodMetrics, as `kubectl top pods` shows them.
std::string top_pods(const std::vector<Object>& pods, const TopForm& form);
// The same of the replicas of training jobs, with their GPUs and their network where that is known.
std::string top_replicas(const std::vector<Object>& pods, const TopForm& form);
// Lists of NodeMetrics beside the Nodes themselves: shares are of what is allocatable. A node that
// nobody measures is told as such.
std::string top_nodes(const std::vector<Object>& metrics, const std::vector<Object>& nodes,
                      const TopForm& form);

}  // namespace skiff::cli
