// Endpoints and EndpointSlices: the addresses behind a Service, as its pods come, get ready and go.
#pragma once

#include "control/controller.h"

namespace skiff::workloads {

inline constexpr std::size_t kEndpointsPerSlice = 100;
inline constexpr std::size_t kEndpointsMost = 1000;  // of one Endpoints object

const api::Resource& service_resource();
const api::Resource& endpoints_resource();
const api::Resource& endpoint_slice_resource();

control::Plan plan_endpoints(const control::Observed& observed, Time now);
control::Controller endpoints_controller();

}  // namespace skiff::workloads
