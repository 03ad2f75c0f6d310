// The machine's GPUs: who has them, and what the node says of them.
#include <unistd.h>

#include <algorithm>

#include "api/meta.h"
#include "node/agent_impl.h"
#include "node/remote_shell.h"
#include "node/service_links.h"
#include "node/shim/files.h"
#include "node/shim/user.h"

namespace skiff::node {
namespace {

// Who programs run as where nobody says otherwise: the user who started us, whatever his namespace
// calls him.
int own_uid() {
  const UserMap map = own_user_map();
  return map.single ? map.outside : static_cast<int>(::geteuid());
}

constexpr const char* kKept = "gpus.json";  // in the pod's folder, gone with its sandbox
constexpr std::string_view kPresent = "nvidia.com/gpu.present";

// Init containers end before the next begins, but for sidecars, which stay.
bool ends_before_others(const json::value& pod, std::string_view name) {
  const json::array& all = json::get_array(pod, {"spec", "initContainers"});
  return std::ranges::any_of(all, [&](const json::value& one) {
    return json::get_string(one, {"name"}) == name &&
           json::get_string(one, {"restartPolicy"}) != "Always";
  });
}

bool ephemeral(const json::value& pod, std::string_view name) {
  const json::array& all = json::get_array(pod, {"spec", "ephemeralContainers"});
  return std::ranges::any_of(
      all, [&](const json::value& one) { return json::get_string(one, {"name"}) == name; });
}

}  // namespace

// Labels say which GPUs there are. What an earlier life said is taken back where it is no longer
// so.
void Agent::Impl::register_gpus(const json::value& node) {
  const auto labels = gpu_labels(options_.gpus);
  const bool before = api::label(node, kPresent) == "true";
  if (labels.empty() && !before) return;
  if (labels.empty()) node_.extended.try_emplace(std::string(kGpuResource), "0");
  json::object patch;
  for (const auto& member : json::get_object(node, {"metadata", "labels"})) {
    const bool ours = member.key().starts_with("nvidia.com/gpu.");
    if (ours && !labels.contains(std::string(member.key()))) patch[member.key()] = nullptr;
  }
  for (const auto& [name, value] : labels) {
    if (api::label(node, name) != value) patch[name] = value;
  }
  if (patch.empty()) return;
  const client::Write write{.verb = client::Verb::kMergePatch,
                            .resource = {"", "v1", "nodes", "Node", false},
                            .name = node_.name,
                            .body = json::object{{"metadata", {{"labels", std::move(patch)}}}},
                            .synced = false};
  if (const auto done = client_.write(write); !done) {
    log("cannot label the node with its GPUs: " + done.error().message);
  }
}

void Agent::Impl::hold_gpus(const std::string& uid) {
  if (gpus_.all().empty()) return;
  const auto folder = runtime_.pod_folder(uid);
  const auto text = folder ? read_file(*folder + "/" + kKept) : folder;
  const auto kept = text ? json::parse(*text) : Result<json::value>(json::object());
  if (kept) gpus_.hold(uid, *kept);
}

void Agent::Impl::let_go_gpus(const std::string& uid) {
  if (gpus_.kept(uid).empty()) return;
  gpus_.release(uid);
  // The folder stays as long as the pod's object does: a new Skiff must not believe it.
  const auto folder = runtime_.pod_folder(uid);
  if (folder) ::unlink((*folder + "/" + kKept).c_str());
}

std::expected<std::vector<Gpu>, Refusal> Agent::Impl::gpus_for(Pod& pod,
                                                               const json::value& container) {
  const std::string name(json::get_string(container, {"name"}));
  const std::int64_t wanted = gpus_wanted(container);
  // Who looks into a pod gets none: the scheduler has not counted them.
  if (wanted <= 0 || ephemeral(*pod.object, name)) return std::vector<Gpu>();
  const auto refuse = [](const Error& error) {
    return std::unexpected(Refusal{"CreateContainerError", error.message});
  };
  auto given = gpus_.take(pod.uid, name, wanted, ends_before_others(*pod.object, name));
  if (!given) return refuse(given.error());
  // Before the program starts: a new Skiff must not give them to another.
  const auto folder = runtime_.pod_folder(pod.uid);
  if (!folder) return refuse(folder.error());
  const auto kept = replace_file(*folder, kKept, json::serialize(gpus_.kept(pod.uid)));
  if (!kept) return refuse(kept.error());
  return std::move(*given);
}

std::expected<Setup, Refusal> Agent::Impl::set_up(Pod& pod, const json::value& object,
                                                  const json::value& container, int attempt,
                                                  const ResolvedImage& image) {
  EnvironmentInput environment = this->environment(object, container);
  if (!services_refused_) {
    environment.services = service_links(object, services_mirror_.objects());
  }
  std::optional<std::vector<int>> minors;
  if (!gpus_.all().empty()) {
    const auto gpus = gpus_for(pod, container);
    if (!gpus) return std::unexpected(gpus.error());
    environment.devices = gpu_variables(*gpus);
    minors.emplace();
    for (const Gpu& gpu : *gpus) minors->push_back(gpu.minor);
  }
  auto setup = set_up_container({.pod = object,
                                 .container = container,
                                 .attempt = attempt,
                                 .image = image,
                                 .own_uid = own_uid(),
                                 .environment = std::move(environment)});
  if (!setup) return setup;
  setup->spec.gpus = std::move(minors);
  add_remote_shell(object, container, options_.remote_shell, setup->spec);
  return setup;
}

}  // namespace skiff::node
