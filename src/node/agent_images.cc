// How the agent comes by images: a mapping, else the store, else a registry, on threads of their
// own.
#include <fmt/format.h>

#include "api/meta.h"
#include "base/base64.h"
#include "base/strings.h"
#include "node/agent_impl.h"

namespace skiff::node {
namespace {

// An image may be loaded any time, and looking costs next to nothing.
constexpr std::chrono::seconds kStoreRetry{2};

api::Resource secrets() {
  return {.group = "", .version = "v1", .plural = "secrets", .kind = "Secret"};
}

}  // namespace

std::optional<std::expected<ResolvedImage, Refusal>> Agent::Impl::image_for(
    Pod& pod, const json::value& container, int attempt) {
  const std::string_view image = json::get_string(container, {"image"});
  auto mapped = resolve_image(image, mappings_, options_.images_host);
  if (mapped || options_.images == nullptr) return mapped;
  FetchState& state = pod.images[std::string(json::get_string(container, {"name"}))];
  if (state.image && state.attempt == attempt) return *state.image;
  if (state.busy) return std::nullopt;
  auto reference = image::parse_reference(image);
  if (!reference) {
    return std::unexpected(
        Refusal{"InvalidImageName", fmt::format("Failed to apply default image tag \"{}\": {}",
                                                image, reference.error().message)});
  }
  state.busy = true;
  fetch(pod, container, attempt, std::move(*reference));
  return std::nullopt;
}

void Agent::Impl::fetch(Pod& pod, const json::value& container, int attempt,
                        image::Reference reference) {
  const std::string name(json::get_string(container, {"name"}));
  FetchWish wish{
      .image = std::string(json::get_string(container, {"image"})),
      .reference = std::move(reference),
      .policy = std::string(json::get_string(container, {"imagePullPolicy"}, "IfNotPresent")),
      .attempt = attempt};
  if (wish.policy != "Never") wish.credentials = pull_secrets(*pod.object).lookup(wish.reference);
  // The store is looked at beside the probes, so that no slow download holds up what is here.
  probers_.run([this, uid = pod.uid, name, wish](const std::stop_token&) {
    const auto there = look_up_image(*options_.images, wish);
    post([uid, name, wish, there](Impl& agent) {
      if (there) return agent.fetched(uid, name, *there);
      const auto found = agent.pods_.find(uid);
      if (found == agent.pods_.end() || !found->second.object) return;
      agent.events_.record(
          *found->second.object,
          {false, "Pulling", fmt::format("Pulling image \"{}\"", wish.image), name},
          agent.clock_.now());
      agent.pullers_.run([&agent, uid, name, wish](const std::stop_token& stop) {
        const FetchOutcome outcome = pull_image(*agent.options_.images, wish, stop);
        agent.post([uid, name, outcome](Impl& at) { at.fetched(uid, name, outcome); });
      });
    });
  });
}

image::Keyring Agent::Impl::pull_secrets(const json::value& pod) {
  image::Keyring keyring;
  std::vector<std::string> missing;
  for (const json::value& entry : json::get_array(pod, {"spec", "imagePullSecrets"})) {
    const std::string name(json::get_string(entry, {"name"}));
    const auto secret = client_.get(secrets(), api::ns(pod), name);
    if (!secret) {
      missing.push_back(name);
      continue;
    }
    for (const std::string_view key : {".dockerconfigjson", ".dockercfg"}) {
      const auto text = base64::decode(json::get_string(*secret, {"data", key}));
      if (!text || text->empty()) continue;
      if (const auto config = json::parse(*text)) keyring.add(*config);
    }
  }
  if (!missing.empty()) {
    events_.record(pod,
                   {true, "FailedToRetrieveImagePullSecret",
                    fmt::format("Unable to retrieve some image pull secrets ({}); attempting to "
                                "pull the image may not succeed.",
                                join(missing, ", ")),
                    ""},
                   clock_.now());
  }
  return keyring;
}

void Agent::Impl::fetched(const std::string& uid, const std::string& container,
                          const FetchOutcome& outcome) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.object) return;
  Pod& pod = found->second;
  FetchState& state = pod.images[container];
  state.busy = false;
  const Time now = clock_.now();
  if (outcome.image) {
    state.attempt = outcome.attempt;
    state.image = *outcome.image;
    state.failures = 0;
    if (outcome.image->stored) state.id = image_id(*outcome.image->stored);
    pod.obstacles.erase(container);
  }
  const auto old = pod.obstacles.find(container);
  const bool again = !outcome.image && old != pod.obstacles.end() &&
                     old->second.reason == outcome.image.error().reason &&
                     old->second.reason != "ErrImagePull";
  for (PodNote note : outcome.notes) {
    // What is looked at every few seconds is told once.
    if (again) break;
    note.container = container;
    events_.record(*pod.object, note, now);
  }
  if (!outcome.image) {
    const Refusal& refusal = outcome.image.error();
    const bool pulled = refusal.reason == "ErrImagePull";
    const Duration wait = pulled ? pull_delay(++state.failures) : Duration(kStoreRetry);
    pod.obstacles[container] = {.reason = refusal.reason,
                                .message = refusal.message,
                                .since = again ? old->second.since : now,
                                .retry_at = now + wait};
  }
  visit(uid);
}

// What pods of an earlier life held; those that are still there hold theirs on.
void Agent::Impl::forget_images(const std::set<std::string, std::less<>>& existing) {
  if (options_.images == nullptr) return;
  const image::Store& store = options_.images->store();
  for (const std::string& owner : store.owners()) {
    if (!existing.contains(owner)) store.forget(owner);
  }
}

}  // namespace skiff::node
