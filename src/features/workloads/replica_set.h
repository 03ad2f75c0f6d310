// ReplicaSets and, their elder, ReplicationControllers: as many pods of one template as asked for.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

control::Plan plan_replica_set(const control::Observed& observed, Time now);
control::Controller replica_set_controller();
const api::Resource& replication_controller_resource();
control::Controller replication_controller();

// True where `a` should be deleted rather than `b`: what does least good goes first.
struct Kinship {
  const json::value* pod = nullptr;
  std::size_t neighbours = 0;  // active pods of the same set on the same node
};
bool goes_first(const Kinship& a, const Kinship& b);

}  // namespace skiff::workloads
