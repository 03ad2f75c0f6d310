#include "node/gpu/gpu_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"

namespace skiff::node {
namespace {

constexpr std::int64_t kMi = 1024 * 1024;

// "NVIDIA A100-SXM4-80GB" as the value of a label.
std::string label_value(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  std::string out;
  for (const char c : name.substr(0, kLongest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_';
    out.push_back(plain ? c : '-');
  }
  const auto edge = [](char c) { return c == '-' || c == '.' || c == '_'; };
  while (!out.empty() && edge(out.back())) out.pop_back();
  out.erase(out.begin(), std::ranges::find_if_not(out, edge));
  return out;
}

}  // namespace

bool GpuBook::taken(const std::string& uuid) const {
  for (const auto& [pod, claims] : claims_) {
    for (const auto& [container, claim] : claims) {
      if (std::ranges::count(claim.uuids, uuid) > 0) return true;
    }
  }
  return false;
}

std::size_t GpuBook::free() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(gpus_, [&](const Gpu& gpu) { return !taken(gpu.uuid); }));
}

Result<std::vector<Gpu>> GpuBook::take(const std::string& pod_uid, const std::string& container,
                                       std::int64_t count, bool init) {
  auto& claims = claims_[pod_uid];
  const auto mine = claims.find(container);
  std::vector<Gpu> out;
  if (mine != claims.end()) {
    for (const Gpu& gpu : gpus_) {
      if (std::ranges::count(mine->second.uuids, gpu.uuid) > 0) out.push_back(gpu);
    }
    if (out.size() == static_cast<std::size_t>(count)) return out;
    out.clear();
    claims.erase(mine);  // one of them has left the machine
  }
  // Init containers that came before have ended.
  std::erase_if(claims, [](const auto& claim) { return claim.second.init; });
  for (const Gpu& gpu : gpus_) {
    if (out.size() < static_cast<std::size_t>(count) && !taken(gpu.uuid)) out.push_back(gpu);
  }
  if (out.size() < static_cast<std::size_t>(count)) {
    if (claims.empty()) claims_.erase(pod_uid);
    return fail(Code::kInternal,
                fmt::format("container \"{}\" asks for {} of {}, and {} of the {} on this node {} "
                            "free",
                            container, count, kGpuResource, out.size(), gpus_.size(),
                            out.size() == 1 ? "is" : "are"));
  }
  Claim& claim = claims[container];
  claim.init = init;
  for (const Gpu& gpu : out) claim.uuids.push_back(gpu.uuid);
  return out;
}

void GpuBook::release(std::string_view pod_uid) {
  if (const auto found = claims_.find(pod_uid); found != claims_.end()) claims_.erase(found);
}

json::object GpuBook::kept(std::string_view pod_uid) const {
  json::object out;
  const auto found = claims_.find(pod_uid);
  if (found == claims_.end()) return out;
  for (const auto& [container, claim] : found->second) {
    json::array uuids;
    for (const std::string& uuid : claim.uuids) uuids.emplace_back(uuid);
    out[container] = json::object{{"gpus", std::move(uuids)}, {"init", claim.init}};
  }
  return out;
}

void GpuBook::hold(const std::string& pod_uid, const json::value& kept) {
  if (!kept.is_object()) return;
  for (const auto& member : kept.get_object()) {
    Claim claim{.uuids = json::strings(json::get_array(member.value(), {"gpus"})),
                .init = json::get_bool(member.value(), {"init"}).value_or(false)};
    if (!claim.uuids.empty()) claims_[pod_uid][std::string(member.key())] = std::move(claim);
  }
}

std::vector<std::pair<std::string, std::string>> gpu_variables(const std::vector<Gpu>& gpus) {
  std::vector<std::string> uuids;
  for (const Gpu& gpu : gpus) uuids.push_back(gpu.uuid);
  const std::string list = join(uuids, ",");
  // Many images say "all", which is not theirs to say; "void" is NVIDIA's word for none.
  return {{"NVIDIA_VISIBLE_DEVICES", gpus.empty() ? "void" : list}, {"CUDA_VISIBLE_DEVICES", list}};
}

std::int64_t gpus_wanted(const json::value& container) {
  const json::value* given = json::find(container, {"resources", "limits", kGpuResource});
  return given == nullptr ? 0 : Quantity::from_json(*given).value_or(Quantity()).value();
}

std::map<std::string, std::string> gpu_labels(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return {};
  return {{"nvidia.com/gpu.present", "true"},
          {"nvidia.com/gpu.count", std::to_string(gpus.size())},
          {"nvidia.com/gpu.product", label_value(gpus[0].name)},
          {"nvidia.com/gpu.memory", std::to_string(gpus[0].memory_bytes / kMi)}};
}

std::map<std::string, std::string> gpu_usage(const std::vector<GpuLoad>& loads) {
  if (loads.empty()) return {};
  std::int64_t percent = 0, bytes = 0;
  for (const GpuLoad& load : loads) {
    percent += load.busy_percent;
    bytes += load.memory_bytes;
  }
  return {{std::string(kGpuResource), fmt::format("{}m", percent * 10)},
          {std::string(kGpuResource) + ".memory", fmt::format("{}Ki", bytes / 1024)}};
}

}  // namespace skiff::node
