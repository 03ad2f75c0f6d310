#include "node/image_fetch.h"

#include <fmt/format.h>

#include <algorithm>

namespace skiff::node {
namespace {

Result<ResolvedImage> resolve(const image::Images& images, const image::StoredImage& stored) {
  SKIFF_ASSIGN(const auto lease, images.store().adding());
  SKIFF_ASSIGN(const image::Image image, images.store().read(stored));
  SKIFF_TRY(images.store().unpack(image));
  SKIFF_ASSIGN(const auto layers, images.store().layers(image));
  return from_store(image, image::read_accounts(layers));
}

FetchOutcome failed(const FetchWish& wish, Refusal refusal) {
  FetchOutcome out{.attempt = wish.attempt, .image = std::unexpected(std::move(refusal))};
  return out;
}

FetchOutcome pull_failed(const FetchWish& wish, const Error& error) {
  const std::string message = fmt::format(
      "failed to pull image \"{}\": {}; to run the pod on this machine's own programs instead: "
      "skiff image map {} --host",
      wish.reference.text(), error.message, wish.image);
  FetchOutcome out = failed(wish, {"ErrImagePull", message});
  out.notes.push_back(
      {true, "Failed", fmt::format("Failed to pull image \"{}\": {}", wish.image, message), ""});
  out.notes.push_back({true, "Failed", "Error: ErrImagePull", ""});
  return out;
}

}  // namespace

std::optional<FetchOutcome> look_up_image(const image::Images& images, const FetchWish& wish) {
  if (wish.policy == "Always") return std::nullopt;
  const auto stored = images.store().find(wish.reference);
  if (!stored) {
    if (wish.policy != "Never") return std::nullopt;
    FetchOutcome out =
        failed(wish, {"ErrImageNeverPull",
                      fmt::format("Container image \"{}\" is not present with pull policy of Never",
                                  wish.image)});
    out.notes.push_back({true, "ErrImageNeverPull", out.image.error().message, ""});
    out.notes.push_back({true, "Failed", "Error: ErrImageNeverPull", ""});
    return out;
  }
  auto image = resolve(images, *stored);
  if (!image) {
    // What the disk lost a registry may have.
    if (wish.policy != "Never") return std::nullopt;
    FetchOutcome out = failed(wish, {"ImageInspectError", image.error().message});
    out.notes.push_back(
        {true, "InspectFailed",
         fmt::format("Failed to inspect image \"{}\": {}", wish.image, image.error().message), ""});
    return out;
  }
  FetchOutcome out{.attempt = wish.attempt, .image = std::move(*image)};
  out.notes.push_back({false, "Pulled",
                       fmt::format("Container image \"{}\" already present on machine", wish.image),
                       ""});
  return out;
}

FetchOutcome pull_image(image::Images& images, const FetchWish& wish, const std::stop_token& stop) {
  const auto began = std::chrono::steady_clock::now();
  const auto stored =
      images.pull({.reference = wish.reference, .credentials = wish.credentials}, stop);
  if (!stored) return pull_failed(wish, stored.error());
  auto image = resolve(images, *stored);
  if (!image) return pull_failed(wish, image.error());
  // A tag that moved on leaves its old image behind; what cannot be removed now is later.
  (void)images.store().collect();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  const auto whole = images.store().read(*stored);
  FetchOutcome out{.attempt = wish.attempt, .image = std::move(*image)};
  out.notes.push_back(
      {false, "Pulled",
       fmt::format("Successfully pulled image \"{0}\" in {1} ({1} including waiting). Image size: "
                   "{2} bytes.",
                   wish.image, go_duration(took), whole ? whole->manifest.size() : 0),
       ""});
  return out;
}

Duration pull_delay(int failures) {
  Duration delay = kBackoffFirst;
  for (int i = 1; i < failures && delay < kBackoffMax; ++i) delay *= 2;
  return std::min<Duration>(delay, kBackoffMax);
}

bool about_image(std::string_view reason) {
  return reason == "ErrImagePull" || reason == "ErrImageNeverPull" ||
         reason == "InvalidImageName" || reason == "ImageInspectError";
}

std::string go_duration(std::chrono::milliseconds time) {
  const auto ms = time.count();
  if (ms == 0) return "0s";
  if (ms < 1000) return fmt::format("{}ms", ms);
  std::string seconds = fmt::format("{}.{:03}", ms / 1000 % 60, ms % 1000);
  while (seconds.ends_with('0')) seconds.pop_back();
  if (seconds.ends_with('.')) seconds.pop_back();
  const auto minutes = ms / 60'000;
  if (minutes == 0) return seconds + "s";
  if (minutes < 60) return fmt::format("{}m{}s", minutes, seconds);
  return fmt::format("{}h{}m{}s", minutes / 60, minutes % 60, seconds);
}

std::expected<ContainerSpec, Refusal> lay_layers(ContainerSpec spec, const image::Images& images,
                                                 const std::string& pod_uid,
                                                 const image::StoredImage& stored) {
  auto layers = images.hold(pod_uid, stored);
  if (!layers) return std::unexpected(Refusal{"CreateContainerError", layers.error().message});
  if (layers->empty()) {
    return std::unexpected(
        Refusal{"CreateContainerError", fmt::format("image {} has no files in it", stored.name)});
  }
  spec.layers = std::move(*layers);
  return spec;
}

}  // namespace skiff::node
