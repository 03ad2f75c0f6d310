// From the image a container names to one of this machine's store: what kubelet's image manager
// does, in its words. The functions block; the agent calls them on threads of their own.
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "image/images.h"
#include "node/image.h"
#include "node/pod_plan.h"
#include "node/runtime.h"

namespace skiff::node {

struct FetchWish {
  std::string image = {};  // as the pod writes it
  image::Reference reference = {};
  std::string policy = {};  // Always, IfNotPresent, Never
  std::vector<image::Credentials> credentials = {};
  int attempt = 0;  // of the container
};

struct FetchOutcome {
  int attempt = 0;
  std::expected<ResolvedImage, Refusal> image = ResolvedImage{};
  std::vector<PodNote> notes = {};
};

// What the agent remembers about a container's image.
struct FetchState {
  bool busy = false;
  int attempt = -1;  // the one that `image` is for
  std::optional<ResolvedImage> image = {};
  int failures = 0;     // pulls in a row
  std::string id = {};  // what kubectl shows as imageID
};

// What the store alone says; nothing: a registry must be asked.
std::optional<FetchOutcome> look_up_image(const image::Images& images, const FetchWish& wish);
FetchOutcome pull_image(image::Images& images, const FetchWish& wish, const std::stop_token& stop);

// Kubelet's numbers: 10 s, doubled with each failure up to 5 min.
Duration pull_delay(int failures);
// Whether a container waits for its image.
bool about_image(std::string_view reason);
// 1m2.5s, 340ms: as Go writes it.
std::string go_duration(std::chrono::milliseconds time);

// On a worker, when the container is about to start: its files are the image's layers, which are
// kept for as long as the pod is there.
std::expected<ContainerSpec, Refusal> lay_layers(ContainerSpec spec, const image::Images& images,
                                                 const std::string& pod_uid,
                                                 const image::StoredImage& stored);

}  // namespace skiff::node
