// Cluster IPs and node ports of services: given out, held and taken back with the service itself.
//
// Each is held by an object of its own in the store (an IPAddress, as the real server keeps it), so
// that two services which want the same one conflict as two writers of one object do.
#pragma once

#include "apiserver/admission/admission.h"

namespace skiff::apiserver {

inline constexpr std::string_view kServiceRange = "10.96.0.0/16";
inline constexpr std::string_view kFirstServiceAddress = "10.96.0.1";  // of default/kubernetes

// Before validation: an update that leaves out what was given keeps it.
void keep_service_addresses(const AdmissionRequest& request);
// After validation: gives what is missing, takes what is asked for, lets go what is not used now.
Result<void> assign_service_addresses(const AdmissionRequest& request);
// What the services that a transaction removes have held, and their Endpoints.
void release_service_addresses(Transaction& txn);

}  // namespace skiff::apiserver
