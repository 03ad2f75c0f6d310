#include "api/meta.h"

#include <charconv>

namespace skiff::api {

std::string_view name(const json::value& object) {
  return json::get_string(object, {"metadata", "name"});
}
std::string_view ns(const json::value& object) {
  return json::get_string(object, {"metadata", "namespace"});
}
std::string_view uid(const json::value& object) {
  return json::get_string(object, {"metadata", "uid"});
}
std::string_view kind(const json::value& object) { return json::get_string(object, {"kind"}); }
std::string_view api_version(const json::value& object) {
  return json::get_string(object, {"apiVersion"});
}

std::string_view resource_version(const json::value& object) {
  return json::get_string(object, {"metadata", "resourceVersion"});
}

std::uint64_t revision(const json::value& object) {
  const std::string_view text = resource_version(object);
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc{} && end == text.data() + text.size() ? n : 0;
}

std::string_view label(const json::value& object, std::string_view key) {
  return json::get_string(object, {"metadata", "labels", key});
}

std::string_view annotation(const json::value& object, std::string_view key) {
  return json::get_string(object, {"metadata", "annotations", key});
}

bool deleting(const json::value& object) {
  return !json::get_string(object, {"metadata", "deletionTimestamp"}).empty();
}

std::optional<Time> time_at(const json::value& object,
                            std::initializer_list<std::string_view> path) {
  return parse_time(json::get_string(object, path));
}

std::optional<Time> created_at(const json::value& object) {
  return time_at(object, {"metadata", "creationTimestamp"});
}

const json::object* controller_of(const json::value& object) {
  for (const json::value& owner : json::get_array(object, {"metadata", "ownerReferences"})) {
    if (json::get_bool(owner, {"controller"}).value_or(false)) return owner.if_object();
  }
  return nullptr;
}

bool controlled_by(const json::value& object, std::string_view owner_uid) {
  const json::object* owner = controller_of(object);
  const json::value* uid = owner == nullptr ? nullptr : owner->if_contains("uid");
  return uid != nullptr && uid->is_string() && json::view(uid->get_string()) == owner_uid;
}

json::object owner_reference(const json::value& owner) {
  return {{"apiVersion", json::string(api_version(owner))},
          {"kind", json::string(kind(owner))},
          {"name", json::string(name(owner))},
          {"uid", json::string(uid(owner))},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

const json::object* condition(const json::value& object, std::string_view type) {
  for (const json::value& c : json::get_array(object, {"status", "conditions"})) {
    if (json::get_string(c, {"type"}) == type) return c.if_object();
  }
  return nullptr;
}

bool condition_true(const json::value& object, std::string_view type) {
  const json::object* c = condition(object, type);
  const json::value* status = c == nullptr ? nullptr : c->if_contains("status");
  return status != nullptr && status->is_string() && json::view(status->get_string()) == "True";
}

}  // namespace skiff::api
