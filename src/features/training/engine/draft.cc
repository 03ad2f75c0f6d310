#include "features/training/engine/draft.h"

#include <algorithm>

#include "api/meta.h"
#include "features/training/engine/conditions.h"
#include "features/training/engine/notes.h"
#include "features/training/engine/plan.h"

namespace skiff::training {
namespace {

client::Write deletion(const api::Resource& resource, const json::value& object) {
  return {.verb = client::Verb::kDelete,
          .resource = resource,
          .ns = std::string(api::ns(object)),
          .name = std::string(api::name(object)),
          .body = json::object{},
          .uid = std::string(api::uid(object))};
}

client::Write creation(const api::Resource& resource, std::string_view ns, json::value object) {
  return {.verb = client::Verb::kCreate,
          .resource = resource,
          .ns = std::string(ns),
          .body = std::move(object)};
}

}  // namespace

void Draft::delete_pod(const json::value& pod) {
  if (api::deleting(pod)) return;
  deleted_pods.emplace_back(api::name(pod));
  plan.writes.push_back(deletion(pod_resource(), pod));
}

void Draft::delete_service(const json::value& service) {
  if (api::deleting(service)) return;
  deleted_services.emplace_back(api::name(service));
  plan.writes.push_back(deletion(service_resource(), service));
}

void Draft::create_pod(json::value pod) {
  created_pods.emplace_back(api::name(pod));
  plan.writes.push_back(creation(pod_resource(), job.ns, std::move(pod)));
}

void Draft::create_service(json::value service) {
  created_services.emplace_back(api::name(service));
  plan.writes.push_back(creation(service_resource(), job.ns, std::move(service)));
}

void Draft::note(bool warning, std::string_view word, std::string message) {
  plan.notes.push_back(
      {.warning = warning, .reason = condition_reason(job, word), .message = std::move(message)});
}

void Draft::look_again_after(Duration delay) {
  plan.requeue_after = std::min(plan.requeue_after.value_or(delay), delay);
}

control::Plan finish(Draft draft) {
  control::Plan& plan = draft.plan;
  const json::value* old = json::find(*draft.job.root, {"status"});
  json::make_object(draft.status, {"replicaStatuses"});
  if (old == nullptr || *old != json::value(draft.status)) plan.status = std::move(draft.status);
  // From an old view of the job pods may look missing that were done and cleaned up since.
  plan.only_if_unchanged = plan.only_if_unchanged || !draft.created_pods.empty();
  note_objects("SuccessfulDeletePod", "Deleted", "pod", draft.deleted_pods, plan.notes);
  note_objects("SuccessfulDeleteService", "Deleted", "service", draft.deleted_services, plan.notes);
  note_objects("SuccessfulCreatePod", "Created", "pod", draft.created_pods, plan.notes);
  note_objects("SuccessfulCreateService", "Created", "service", draft.created_services, plan.notes);
  // A plan that changes nothing has nothing new to tell; what it may say is what is wrong and stays
  // so, which the runtime records once.
  if (plan.empty()) plan.notes = std::move(draft.standing);
  return std::move(plan);
}

}  // namespace skiff::training
