#include "apiserver/admission/admission.h"

#include "api/core/pod.h"
#include "api/meta.h"
#include "apiserver/admission/rules.h"
#include "apiserver/admission/service_addresses.h"
#include "apiserver/status.h"

namespace skiff::apiserver {

bool AdmissionRequest::is(std::string_view resource_key) const {
  return request.kind->resource().key() == resource_key;
}

bool AdmissionRequest::plain(std::string_view resource_key) const {
  return request.subresource.empty() && is(resource_key);
}

Error refused(const AdmissionRequest& request, std::string_view why) {
  return forbidden(request.request.kind->resource(), api::name(request.object), why);
}

Error refused_unnamed(const AdmissionRequest& request, std::string_view why) {
  const json::value& body = request.request.body;
  std::string_view name = api::name(request.object);
  if (request.creates() && api::name(body).empty()) {
    name = json::get_string(body, {"metadata", "generateName"}, name);
  }
  return forbidden(request.request.kind->resource(), name, why);
}

Result<void> admit(const AdmissionRequest& request, Warnings&) {
  SKIFF_TRY(set_container_limits(request));
  SKIFF_TRY(use_service_account(request));
  SKIFF_TRY(resolve_priority(request));
  tolerate_lost_nodes(request);
  choose_storage_class(request);
  protect_storage(request);
  keep_service_addresses(request);
  SKIFF_TRY(apply_runtime_class(request));
  if (request.plain("pods") && request.creates()) {
    // Limits that came from a LimitRange count.
    if (const json::value* spec = json::find(request.object, {"spec"})) {
      const json::string quality(api::qos_class(*spec));
      json::set(request.object, {"status", "qosClass"}, quality);
    }
  }
  return {};
}

Result<void> approve(const AdmissionRequest& request, Warnings& warnings) {
  SKIFF_TRY(check_limits(request));
  SKIFF_TRY(check_pod_security(request, warnings));
  SKIFF_TRY(check_priority_class(request));
  SKIFF_TRY(check_claim_resize(request));
  SKIFF_TRY(charge_quotas(request));
  return assign_service_addresses(request);
}

}  // namespace skiff::apiserver
