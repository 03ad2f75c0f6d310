#include "features/workloads/revisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "api/meta.h"
#include "features/workloads/pods.h"

namespace skiff::workloads {
namespace {

// Keys in the order of the alphabet, all the way down: clients compare revisions byte by byte with
// what their own serializer makes of the set.
json::value in_order(const json::value& value) {
  if (const json::array* list = value.if_array()) {
    json::array out;
    for (const json::value& item : *list) out.push_back(in_order(item));
    return out;
  }
  const json::object* fields = value.if_object();
  if (fields == nullptr) return value;
  std::map<std::string_view, const json::value*> sorted;
  for (const auto& field : *fields) sorted.emplace(field.key(), &field.value());
  json::object out;
  for (const auto& [key, field] : sorted) out[key] = in_order(*field);
  return out;
}

// A patch that gives a set this template again, as `kubectl rollout undo` sends it.
json::value data_of(const json::value& root) {
  json::object pod_template = json::get_object(root, {"spec", "template"});
  pod_template["$patch"] = "replace";
  return in_order({{"spec", {{"template", std::move(pod_template)}}}});
}

const json::value& data(const Object& revision) {
  static const json::value kNone;
  const json::value* found = json::find(*revision, {"data"});
  return found == nullptr ? kNone : *found;
}

}  // namespace

bool rolls(const json::value& set) {
  return json::get_string(set, {"spec", "updateStrategy", "type"}, "RollingUpdate") ==
         "RollingUpdate";
}

const api::Resource& revision_resource() {
  static const api::Resource kResource{.group = "apps",
                                       .version = "v1",
                                       .plural = "controllerrevisions",
                                       .kind = "ControllerRevision"};
  return kResource;
}

Revisions::Revisions(const json::value& root, const std::vector<Object>& owned, control::Plan& plan,
                     std::string_view hash_label)
    : root_(root),
      hash_label_(hash_label),
      sorted_(owned),
      collisions_(int_at(root, {"status", "collisionCount"})) {
  std::ranges::sort(sorted_, {}, [](const Object& revision) {
    return std::tuple(int_at(*revision, {"revision"}), api::created_at(*revision),
                      api::name(*revision));
  });
  json::value wanted = data_of(root);
  const std::int64_t next = sorted_.empty() ? 1 : int_at(*sorted_.back(), {"revision"}) + 1;
  const auto found = std::find_if(sorted_.rbegin(), sorted_.rend(),
                                  [&](const Object& revision) { return data(revision) == wanted; });
  if (found == sorted_.rend()) {
    update_ = json::get_string(root, {"status", "updateRevision"});
    if (!api::deleting(root)) create(root, next, std::move(wanted), plan);
    return;
  }
  update_ = api::name(**found);
  update_hash_ = api::label(**found, hash_label_);
  if (found != sorted_.rbegin() && !api::deleting(root)) {
    plan.writes.push_back(patch(revision_resource(), **found, json::object{{"revision", next}}));
  }
}

void Revisions::create(const json::value& root, std::int64_t number, json::value data,
                       control::Plan& plan) {
  const auto taken = [&](const Object& revision) { return api::name(*revision) == update_; };
  while (true) {
    update_hash_ = template_hash(data, collisions_);
    update_ = fmt::format("{}-{}", api::name(root), update_hash_);
    if (std::ranges::none_of(sorted_, taken)) break;
    ++collisions_;
  }
  json::object labels = json::get_object(root, {"spec", "template", "metadata", "labels"});
  labels[hash_label_] = update_hash_;
  json::object meta{{"name", update_},
                    {"labels", std::move(labels)},
                    {"ownerReferences", json::array{api::owner_reference(root)}}};
  if (const json::value* annotations = json::find(root, {"metadata", "annotations"})) {
    meta["annotations"] = *annotations;
  }
  plan.writes.push_back(creation(revision_resource(), root,
                                 json::object{{"apiVersion", "apps/v1"},
                                              {"kind", "ControllerRevision"},
                                              {"metadata", std::move(meta)},
                                              {"data", std::move(data)},
                                              {"revision", number}}));
}

const std::string& Revisions::known_or_update(const std::string& name) const {
  const auto is = [&](const Object& revision) { return api::name(*revision) == name; };
  return std::ranges::any_of(sorted_, is) ? name : update_;
}

json::value Revisions::pod_template(std::string_view name) const {
  json::value out = json::get_object(root_, {"spec", "template"});
  for (const Object& revision : sorted_) {
    if (name == update_ || api::name(*revision) != name) continue;
    out = json::get_object(data(revision), {"spec", "template"});
    out.get_object().erase("$patch");
  }
  return out;
}

void Revisions::truncate(const std::set<std::string, std::less<>>& live,
                         control::Plan& plan) const {
  std::vector<Object> past = sorted_;
  std::erase_if(past, [&](const Object& revision) {
    return live.contains(api::name(*revision)) || api::deleting(*revision);
  });
  const std::int64_t limit = int_at(root_, {"spec", "revisionHistoryLimit"}, 10);
  const auto surplus = static_cast<std::int64_t>(past.size()) - limit;
  for (std::int64_t i = 0; i < surplus; ++i) {
    plan.writes.push_back(removal(revision_resource(), *past[static_cast<std::size_t>(i)]));
  }
}

}  // namespace skiff::workloads
