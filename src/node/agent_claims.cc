// What the agent does about volumes that were made for claims: the folder of one that nobody wants
// any more goes, and then the object may go.
#include <fmt/format.h>

#include <filesystem>

#include "api/core/claims.h"
#include "api/meta.h"
#include "node/agent_impl.h"

namespace skiff::node {
namespace {

api::Resource persistent_volumes() {
  return {.group = "",
          .version = "v1",
          .plural = "persistentvolumes",
          .kind = "PersistentVolume",
          .namespaced = false};
}
api::Resource claims_resource() {
  return {.group = "",
          .version = "v1",
          .plural = "persistentvolumeclaims",
          .kind = "PersistentVolumeClaim"};
}

json::array other_finalizers(const json::value& volume) {
  json::array out;
  for (const json::value& entry : json::get_array(volume, {"metadata", "finalizers"})) {
    const bool ours = entry.is_string() && json::view(entry.get_string()) == api::kFolderFinalizer;
    if (!ours) out.push_back(entry);
  }
  return out;
}

}  // namespace

Afterlife afterlife(const json::value& volume, const std::string& volumes_folder) {
  const bool held =
      other_finalizers(volume).size() != json::get_array(volume, {"metadata", "finalizers"}).size();
  if (!held || !claim_folder(volume, volumes_folder)) return Afterlife::kNone;
  const std::string_view phase = json::get_string(volume, {"status", "phase"});
  const bool keeps =
      json::get_string(volume, {"spec", "persistentVolumeReclaimPolicy"}) != "Delete";
  if (api::deleting(volume) && phase != "Bound") {
    return keeps ? Afterlife::kLetGo : Afterlife::kRemove;
  }
  return phase == "Released" && !keeps ? Afterlife::kRemove : Afterlife::kNone;
}

void Agent::Impl::reclaim_volumes() {
  for (const auto& [key, volume] : volumes_mirror_.objects()) reclaim(volume);
}

void Agent::Impl::reclaim(const Object& volume) {
  const Afterlife next = afterlife(*volume, options_.volumes_folder);
  if (next == Afterlife::kNone || reclaiming_.contains(api::uid(*volume))) return;
  // Data is at stake: not what was once seen of the claim counts, but what is.
  const auto claim =
      client_.get(claims_resource(), json::get_string(*volume, {"spec", "claimRef", "namespace"}),
                  json::get_string(*volume, {"spec", "claimRef", "name"}));
  if (!claim && claim.error().code != Code::kNotFound) return;
  if (claim && api::uid(*claim) == json::get_string(*volume, {"spec", "claimRef", "uid"})) return;
  if (next == Afterlife::kLetGo) return let_go(volume);
  reclaiming_.emplace(api::uid(*volume));
  // Not by a worker: a large folder takes minutes, and pods would wait.
  sweepers_.run([this, volume,
                 folder = *claim_folder(*volume, options_.volumes_folder)](const std::stop_token&) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    post([volume, why = error ? error.message() : std::string()](Impl& agent) {
      agent.reclaiming_.erase(std::string(api::uid(*volume)));
      // As it is now: what it was when the work began may be of the past, and its news were passed
      // over meanwhile. Where even this is late, there will be news again.
      const auto now = agent.volumes_mirror_.objects().find({"", std::string(api::name(*volume))});
      const bool there = now != agent.volumes_mirror_.objects().end() &&
                         api::uid(*now->second) == api::uid(*volume);
      if (why.empty()) return there ? agent.let_go(now->second) : void();
      agent.log(fmt::format("cannot remove the folder of volume {}: {}", api::name(*volume), why));
    });
  });
}

// One step: first the object is deleted, then what held it is taken off. A step that is lost is
// made again, because the volume is looked at again.
void Agent::Impl::let_go(const Object& volume) {
  client::Write write;
  write.resource = persistent_volumes();
  write.name = api::name(*volume);
  write.uid = api::uid(*volume);
  if (api::deleting(*volume)) {
    write.verb = client::Verb::kMergePatch;
    write.body = json::object{{"metadata", {{"finalizers", other_finalizers(*volume)}}}};
    write.resource_version = api::resource_version(*volume);
  } else {
    write.verb = client::Verb::kDelete;
    write.body = json::object();
  }
  const Result<json::value> done = client_.write(write);
  const bool superseded =
      !done && (done.error().code == Code::kConflict || done.error().code == Code::kNotFound);
  if (!done && !superseded) {
    log(fmt::format("cannot let volume {} go: {}", write.name, done.error().message));
  }
}

}  // namespace skiff::node
