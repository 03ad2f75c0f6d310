// The real server looks at the metadata of an updated object several times, and lists what it finds
// each time; its sentence says it once.
#include <algorithm>

#include "apiserver/status.h"
#include "apiserver/writes.h"

namespace skiff::apiserver {
namespace {

// Kinds of which an update is also judged as if it were new.
constexpr std::string_view kJudgedAnew[] = {"pods",
                                            "configmaps",
                                            "secrets",
                                            "serviceaccounts",
                                            "persistentvolumes",
                                            "persistentvolumeclaims",
                                            "endpoints",
                                            "endpointslices.discovery.k8s.io",
                                            "ingressclasses.networking.k8s.io",
                                            "volumeattachments.storage.k8s.io",
                                            "csinodes.storage.k8s.io"};

// What is asked of an update besides what is asked of every object.
bool asked_of_updates(const Cause& cause) {
  return cause.field.starts_with("metadata.labels") ||
         cause.field.starts_with("metadata.annotations") ||
         cause.field.starts_with("metadata.ownerReferences");
}

std::vector<Cause> each_once(const std::vector<Cause>& causes) {
  std::vector<Cause> out;
  for (const Cause& cause : causes) {
    if (std::ranges::find(out, cause) == out.end()) out.push_back(cause);
  }
  return out;
}

}  // namespace

Error invalid_update(const WriteRequest& request, const std::vector<Cause>& metadata,
                     const std::vector<Cause>& changes, const std::vector<Cause>& own) {
  const std::vector<Cause> of_object = each_once(metadata);
  std::vector<Cause> of_update = each_once(changes);
  std::ranges::copy_if(of_object, std::back_inserter(of_update), asked_of_updates);
  std::vector<Cause> all;
  const auto add = [&](const std::vector<Cause>& causes) {
    all.insert(all.end(), causes.begin(), causes.end());
  };
  add(of_object);
  add(of_update);
  add(of_update);  // by the kind's own rules
  const std::string key = request.kind->resource().key();
  if (std::ranges::count(kJudgedAnew, key) > 0) add(of_object);
  add(own);
  Error error = invalid_object(*request.kind, request.name, each_once(all));
  error.causes = std::move(all);
  return error;
}

}  // namespace skiff::apiserver
