#include "features/workloads/adoption.h"

#include <fmt/format.h>

#include <utility>

#include "api/meta.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

// What every orphan has, so that a root without plain labels in its selector looks at them all.
constexpr std::string_view kOrphan = "orphan";

std::vector<std::string> words_of_orphan(const json::value& object) {
  if (api::controller_of(object) != nullptr || api::deleting(object)) return {};
  std::vector<std::string> words = label_words(json::get_object(object, {"metadata", "labels"}));
  words.emplace_back(kOrphan);
  return words;
}

std::vector<std::string> wanted_words(const json::value& root,
                                      const std::optional<LabelSelector>& selector) {
  if (!selector || api::deleting(root)) return {};
  std::vector<std::string> words{std::string(kOrphan)};
  for (const LabelSelector::Requirement& requirement : selector->requirements()) {
    if (requirement.op != LabelSelector::Op::kIn || requirement.values.size() != 1) continue;
    words.push_back(fmt::format("{}={}", requirement.key, requirement.values.front()));
  }
  return words;
}

}  // namespace

std::optional<LabelSelector> selector_of(const json::value& root) {
  const json::value* wanted = json::find(root, {"spec", "selector"});
  if (wanted == nullptr) return std::nullopt;
  auto selector = LabelSelector::from_object(*wanted);
  if (!selector || selector->empty()) return std::nullopt;
  return *std::move(selector);
}

std::optional<LabelSelector> map_selector_of(const json::value& root) {
  LabelSelector selector = LabelSelector::from_map(json::get_object(root, {"spec", "selector"}));
  if (selector.empty()) return std::nullopt;
  return selector;
}

control::Related orphans(const api::Resource& resource, SelectorOf selector) {
  return {.resource = resource,
          .wants = [selector = std::move(selector)](
                       const json::value& root) { return wanted_words(root, selector(root)); },
          .has = words_of_orphan,
          .writes = true};
}

client::Write adoption(const api::Resource& resource, const json::value& object,
                       const json::value& root) {
  json::array owners;
  for (const json::value& owner : json::get_array(object, {"metadata", "ownerReferences"})) {
    if (json::get_string(owner, {"uid"}) != api::uid(root)) owners.push_back(owner);
  }
  owners.push_back(api::owner_reference(root));
  return patch(resource, object,
               json::object{{"metadata", json::object{{"ownerReferences", std::move(owners)}}}});
}

bool adopt(const api::Resource& resource, const json::value& root, const LabelSelector& selector,
           const std::vector<Object>& seen, control::Plan& plan) {
  bool any = false;
  if (api::deleting(root)) return any;
  for (const Object& object : seen) {
    if (api::controller_of(*object) != nullptr || api::deleting(*object)) continue;
    if (!selector.matches_object(*object)) continue;
    plan.writes.push_back(adoption(resource, *object, root));
    any = true;
  }
  // A root that was deleted meanwhile must not take what its deletion leaves to others.
  plan.only_if_unchanged |= any;
  return any;
}

std::vector<Object> kept(const api::Resource& resource, const json::value& root,
                         const LabelSelector& selector, const std::vector<Object>& owned,
                         control::Plan& plan) {
  std::vector<Object> out;
  for (const Object& object : owned) {
    if (selector.matches_object(*object)) {
      out.push_back(object);
    } else if (!api::deleting(*object) && !api::deleting(root)) {
      plan.writes.push_back(release(resource, *object, api::uid(root)));
    }
  }
  return out;
}

}  // namespace skiff::workloads
