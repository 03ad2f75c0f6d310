// Claims and volumes: the class a claim gets, what holds them while they are used, and growth.
#include <algorithm>

#include "api/meta.h"
#include "apiserver/admission/amounts.h"
#include "apiserver/admission/rules.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kStorageClasses = "storageclasses.storage.k8s.io";
constexpr std::string_view kOldClassAnnotation = "volume.beta.kubernetes.io/storage-class";

bool is_default(const json::value& storage_class) {
  return api::annotation(storage_class, "storageclass.kubernetes.io/is-default-class") == "true" ||
         api::annotation(storage_class, "storageclass.beta.kubernetes.io/is-default-class") ==
             "true";
}

std::string storage_class_of(const json::value& claim) {
  const std::string_view old = api::annotation(claim, kOldClassAnnotation);
  return std::string(old.empty() ? json::get_string(claim, {"spec", "storageClassName"}) : old);
}

Quantity storage_of(const json::value& claim) {
  const Amounts all = read_amounts(json::get_object(claim, {"spec", "resources", "requests"}));
  const auto at = all.find("storage");
  return at == all.end() ? Quantity() : at->second;
}

void add_storage_finalizer(json::value& object, std::string_view finalizer) {
  json::value& list = json::make_object(object, {"metadata"})["finalizers"];
  if (!list.is_array()) list.emplace_array();
  const json::value word = json::string(finalizer);
  if (std::ranges::count(list.get_array(), word) == 0) list.get_array().push_back(word);
}

}  // namespace

void choose_storage_class(const AdmissionRequest& request) {
  if (!request.plain(kClaims) || !request.creates()) return;
  const json::value* given = json::find(request.object, {"spec", "storageClassName"});
  const bool chosen = given != nullptr && !given->is_null();  // "" is a choice: none
  if (chosen || !api::annotation(request.object, kOldClassAnnotation).empty()) return;
  Object best;
  for (const Object& candidate : request.txn.list(kStorageClasses, "")) {
    if (!is_default(*candidate)) continue;
    // The newest; they come in order of their names.
    if (best == nullptr || api::created_at(*candidate) > api::created_at(*best)) best = candidate;
  }
  if (best == nullptr) return;
  json::set(request.object, {"spec", "storageClassName"}, json::string(api::name(*best)));
}

void protect_storage(const AdmissionRequest& request) {
  if (!request.creates()) return;
  if (request.plain(kClaims)) add_storage_finalizer(request.object, "kubernetes.io/pvc-protection");
  if (request.plain("persistentvolumes")) {
    add_storage_finalizer(request.object, "kubernetes.io/pv-protection");
  }
}

Result<void> check_claim_resize(const AdmissionRequest& request) {
  if (!request.plain(kClaims) || request.creates()) return {};
  if (storage_of(request.object) <= storage_of(*request.old)) return {};
  if (json::get_string(*request.old, {"status", "phase"}) != "Bound") {
    return std::unexpected(refused(request, "Only bound persistent volume claims can be expanded"));
  }
  const std::string name = storage_class_of(request.object);
  const Object chosen =
      name.empty() || name != storage_class_of(*request.old)
          ? nullptr
          : request.txn.get({.resource = std::string(kStorageClasses), .name = name});
  if (chosen != nullptr && json::get_bool(*chosen, {"allowVolumeExpansion"}).value_or(false)) {
    return {};
  }
  return std::unexpected(
      refused(request,
              "only dynamically provisioned pvc can be resized and the storageclass that "
              "provisions the pvc must support resize"));
}

}  // namespace skiff::apiserver
