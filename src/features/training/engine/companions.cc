#include "features/training/engine/companions.h"

#include <algorithm>

#include "api/meta.h"
#include "features/training/engine/plan.h"

namespace skiff::training {
namespace {

// The place of a kind's objects in Observed::owned; npos where this controller sees none of them.
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

struct Shelf {
  const api::Resource* resource = nullptr;
  std::size_t at = kNowhere;
};

Shelf shelf_of(const JobKind& kind, const json::value& object) {
  const std::string_view name = api::kind(object);
  if (name == service_resource().kind) return {&service_resource(), 1};
  for (std::size_t i = 0; i < kind.companion_kinds.size(); ++i) {
    if (kind.companion_kinds[i].kind == name) return {&kind.companion_kinds[i], i + 2};
  }
  return {};
}

const json::value* find_named(const control::Observed& observed, std::size_t at,
                              std::string_view name) {
  if (at >= observed.owned.size()) return nullptr;
  const auto& objects = observed.owned[at];
  const auto found = std::ranges::find_if(
      objects, [&](const Object& object) { return api::name(*object) == name; });
  return found == objects.end() ? nullptr : found->get();
}

client::Write mending(const api::Resource& resource, const json::value& object,
                      json::value wanted) {
  // Who it is cannot change; the rest is merged, so that what others have added stays.
  wanted.as_object().erase("apiVersion");
  wanted.as_object().erase("kind");
  return {.verb = client::Verb::kMergePatch,
          .resource = resource,
          .ns = std::string(api::ns(object)),
          .name = std::string(api::name(object)),
          .body = std::move(wanted),
          .uid = std::string(api::uid(object))};
}

}  // namespace

bool has_all_of(const json::value& object, const json::value& wanted) {
  if (!wanted.is_object()) return object == wanted;
  if (!object.is_object()) return false;
  return std::ranges::all_of(wanted.get_object(), [&](const auto& member) {
    const json::value* own = object.get_object().if_contains(member.key());
    return own != nullptr && has_all_of(*own, member.value());
  });
}

void keep_companions(const control::Observed& observed, Draft& draft) {
  const JobKind& kind = *draft.job.kind;
  if (kind.companions == nullptr) return;
  for (json::value& wanted : kind.companions(draft.job, draft.replicas)) {
    const Shelf shelf = shelf_of(kind, wanted);
    if (shelf.resource == nullptr) continue;
    const json::value* object = find_named(observed, shelf.at, api::name(wanted));
    if (object == nullptr) {
      json::make_object(wanted, {"metadata"})["ownerReferences"] =
          json::array{api::owner_reference(*draft.job.root)};
      draft.plan.writes.push_back({.verb = client::Verb::kCreate,
                                   .resource = *shelf.resource,
                                   .ns = std::string(draft.job.ns),
                                   .body = std::move(wanted)});
    } else if (!api::deleting(*object) && !has_all_of(*object, wanted)) {
      draft.plan.writes.push_back(mending(*shelf.resource, *object, std::move(wanted)));
    }
  }
}

}  // namespace skiff::training
