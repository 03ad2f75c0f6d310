#include "apiserver/writes.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "apiserver/status.h"
#include "base/strings.h"
#include "schema/prune.h"

namespace skiff::apiserver {

store::Key key_of(const WriteRequest& request) {
  return {.resource = request.kind->storage_key(), .ns = request.ns, .name = request.name};
}

json::value user_info(const Identity& user) {
  const auto words = [](const std::vector<std::string>& list) {
    json::array out;
    for (const std::string& word : list) out.emplace_back(json::string(word));
    return out;
  };
  json::object out;
  if (!user.user.empty()) out["username"] = user.user;
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = words(user.groups);
  json::object extra;
  for (const auto& [key, values] : user.extra) extra[key] = words(values);
  if (!extra.empty()) out["extra"] = std::move(extra);
  return out;
}

bool has_finalizers(const json::value& object) {
  return !json::get_array(object, {"metadata", "finalizers"}).empty();
}

std::string Writes::stamp() const { return rfc3339(clock_.now()); }

std::string Writes::new_uid() {
  const std::lock_guard lock(random_lock_);
  return random_.uuid();
}

std::string Writes::new_suffix() {
  const std::lock_guard lock(random_lock_);
  return random_.suffix(5);
}

Result<Outcome> Writes::run(Transaction& txn, const WriteRequest& request) {
  if (hooks_.answer) {
    if (auto answered = hooks_.answer(request)) return std::move(*answered);
  }
  if (request.verb == Verb::kPatch && request.patch == PatchType::kApply) {
    return apply(txn, request);
  }
  if (request.subresource == "binding") return bind(txn, request);
  if (request.subresource == "finalize") return finalize(txn, request);
  if (request.subresource == "scale") return scale(txn, request);
  if (request.subresource == "eviction") return evict(txn, request);
  switch (request.verb) {
    case Verb::kCreate:
      return create(txn, request);
    case Verb::kUpdate:
      return update(txn, request);
    case Verb::kPatch:
      return patch(txn, request);
    case Verb::kDelete:
      return remove(txn, request);
    default:
      return std::unexpected(method_not_allowed());
  }
}

Result<void> match_body(const WriteRequest& request, json::value& object) {
  const api::Resource& resource = request.kind->resource();
  if (!object.is_object()) {
    return fail(Code::kBadRequest,
                fmt::format("the body must be an object, but it is: {}", json::type_name(object)));
  }
  const std::string version = resource.api_version();
  if (const std::string_view given = api::api_version(object); !given.empty() && given != version) {
    return fail(Code::kBadRequest,
                fmt::format("the API version in the data ({}) does not match the expected API "
                            "version ({})",
                            given, version));
  }
  if (const std::string_view given = api::kind(object); !given.empty() && given != resource.kind) {
    return fail(Code::kBadRequest,
                fmt::format("{} in version \"{}\" cannot be handled as a {}: the kind in the data "
                            "does not match the URL",
                            given, resource.version, resource.kind));
  }
  const std::string_view ns = api::ns(object);
  if (!ns.empty() && ns != request.ns && resource.namespaced) {
    return fail(Code::kBadRequest,
                "the namespace of the provided object does not match the namespace sent on the "
                "request");
  }
  const std::string_view name = api::name(object);
  if (!request.name.empty() && !name.empty() && name != request.name) {
    return fail(Code::kBadRequest,
                fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                            name, request.name));
  }
  json::object& root = object.get_object();
  root["apiVersion"] = version;
  root["kind"] = resource.kind;
  json::object& metadata = json::make_object(root, {"metadata"});
  if (!resource.namespaced) metadata.erase("namespace");
  if (!request.ns.empty()) metadata["namespace"] = request.ns;
  if (!request.name.empty()) metadata["name"] = request.name;
  metadata.erase("selfLink");
  return {};
}

// Namespaces have a delete of their own.
Result<void> check_namespace_preconditions(const WriteRequest& request, const json::value& old) {
  const auto differs = [&](std::string_view what, std::string_view wanted, std::string_view have) {
    return std::unexpected(conflict(
        request.kind->resource(), request.name,
        fmt::format("Precondition failed: {0} in precondition: {1}, {0} in object meta: {2}", what,
                    wanted, have)));
  };
  if (!request.uid.empty() && request.uid != api::uid(old)) {
    return differs("UID", request.uid, api::uid(old));
  }
  const std::string_view version = api::resource_version(old);
  if (!request.resource_version.empty() && request.resource_version != version) {
    return differs("ResourceVersion", request.resource_version, version);
  }
  return {};
}

// A delete names the kind where everything else names the resource.
Result<void> check_delete_preconditions(const WriteRequest& request, const json::value& old) {
  api::Resource kind = request.kind->resource();
  if (kind.key() == "namespaces") return check_namespace_preconditions(request, old);
  kind.plural = kind.kind;
  kind.group = request.kind->kind.kept_in_group.value_or(kind.group);
  const auto differs = [&](std::string_view what, std::string_view wanted, std::string_view have,
                           std::string_view why) {
    return std::unexpected(conflict(
        kind, request.name,
        fmt::format("the {} in the precondition ({}) does not match the {} in record ({}). The "
                    "object might have been {}",
                    what, wanted, what, have, why)));
  };
  if (!request.uid.empty() && request.uid != api::uid(old)) {
    return differs("UID", request.uid, api::uid(old), "deleted and then recreated");
  }
  const std::string_view version = api::resource_version(old);
  if (!request.resource_version.empty() && request.resource_version != version) {
    return differs("ResourceVersion", request.resource_version, version, "modified");
  }
  return {};
}

Result<void> check_preconditions(const WriteRequest& request, const json::value& old) {
  // Definitions are deleted by rules of their own.
  if (request.verb == Verb::kDelete && request.kind->resource().key() != kCrdKey) {
    return check_delete_preconditions(request, old);
  }
  if (!request.uid.empty() && request.uid != api::uid(old)) {
    return std::unexpected(
        conflict(request.kind->resource(), request.name,
                 fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                             request.uid, api::uid(old))));
  }
  if (!request.resource_version.empty() && request.resource_version != api::resource_version(old)) {
    return std::unexpected(modified(request.kind->resource(), request.name));
  }
  return {};
}

Result<void> Writes::check_unknown(const WriteRequest& request, json::value& object,
                                   std::vector<std::string>& warnings) const {
  const bool strict_patch = request.verb == Verb::kPatch && !request.applied &&
                            request.validation == FieldValidation::kStrict;
  const json::value patched = strict_patch ? object : json::value();
  std::vector<std::string> unknown = gate_.prune(*request.kind, object);
  // A custom kind is read whole before its schema is asked.
  if (request.kind->custom) std::ranges::sort(unknown);
  const std::vector<std::string> sentences =
      request.text.empty() || request.kind->custom
          ? schema::field_warnings(request.duplicated, unknown)
          : schema::field_warnings(request.text, unknown);
  if (request.validation == FieldValidation::kIgnore || sentences.empty()) return {};
  if (request.validation == FieldValidation::kWarn) {
    warnings.insert(warnings.end(), sentences.begin(), sentences.end());
    return {};
  }
  if (strict_patch) {
    return std::unexpected(invalid_patch(request.patch, request.body, patched,
                                         "strict decoding error: " + join(sentences, ", ")));
  }
  const api::Resource& resource = request.kind->resource();
  return std::unexpected(schema::strict_error(resource.kind, resource.version, sentences));
}

}  // namespace skiff::apiserver
