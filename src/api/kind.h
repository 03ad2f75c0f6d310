// What a kind is, as data: where it is served, how it is printed, defaulted and checked.
// A kind is declared once (api/<group>/ or features/<f>/) and listed in one place; discovery,
// OpenAPI, tables, admission and `explain` all read this.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::api {

// Group, version and plural name the endpoint; kind is what objects there say they are.
struct Resource {
  std::string group = {};  // empty: core
  std::string version = {};
  std::string plural = {};
  std::string kind = {};
  bool namespaced = true;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  // "pods", "tfjobs.kubeflow.org": one per kind, whatever the version.
  std::string key() const { return group.empty() ? plural : plural + "." + group; }
  // /api/v1/namespaces/NS/pods or /apis/kubeflow.org/v1/tfjobs; `ns` empty: all or cluster.
  std::string collection_path(std::string_view ns) const;
  std::string path(std::string_view ns, std::string_view name,
                   std::string_view subresource = {}) const;

  auto operator<=>(const Resource&) const = default;
};

// As additionalPrinterColumns of a CRD. Priority 0 is shown always, 1 with -o wide.
struct Column {
  std::string name = {};
  std::string type = {};       // string, integer, number, boolean, date
  std::string json_path = {};  // .spec.replicas, .status.conditions[-1:].type
  int priority = 0;
  std::string description = {};
  std::string format = {};
};

struct Admission {
  // What the API server knows besides the object itself.
  const json::value* old = nullptr;  // null on create
  std::string_view subresource = {};
  std::string_view now = {};          // as metav1.Time
  const json::value* user = nullptr;  // username, uid and groups of who asks
  // The object as the client sent it, where it sent one whole: an empty list that the object has
  // lost is still there.
  const json::value* sent = nullptr;
};

// A path below an object, as discovery lists it.
struct Subresource {
  std::string name = {};
  std::string kind = {};
  std::vector<std::string> verbs = {};
  // Of its kind, where it is another group's than the object's: policy/v1 Eviction.
  std::string group = {};
  std::string version = {};
};

// Where a kind keeps what autoscaling/v1 Scale shows. JSON paths: .spec.replicas
struct ScalePaths {
  std::string spec = {};
  std::string status = {};
  std::string selector = {};  // empty: none. A label selector, as an object or as text.
};

struct Kind {
  Resource resource = {};
  std::string singular = {};
  std::vector<std::string> short_names = {};
  std::vector<std::string> categories = {};
  std::string deprecation = {};  // what every answer about the kind warns of; empty: nothing
  // A delete answers with what was deleted, not with a Status.
  bool returns_deleted = false;
  bool has_status = false;  // status is a sub-resource: create and update leave it alone
  // metadata.generation counts changes of what the user wants. Some built-in kinds have none.
  bool has_generation = true;
  bool annotations_count = false;        // for the generation, as if they were part of the spec
  std::optional<ScalePaths> scale = {};  // scale is a sub-resource
  std::vector<Subresource> subresources = {};  // besides status and scale
  std::vector<std::string> verbs = {};         // empty: all eight
  std::string schema = {};  // name of its schema in schema::Registry; empty: anything goes
  std::vector<Column> columns = {};
  // Field selectors besides metadata.name and metadata.namespace: status.phase, spec.nodeName.
  std::vector<std::string> selectable = {};
  // True for kinds whose loss by a power cut harms nobody: Event, Lease.
  bool lazy = false;
  // Where the objects are kept as another kind of the same plural, of which this is only a view:
  // the group of that kind (events.k8s.io/v1 Event is kept as core's). Of several versions in one
  // group the one that is listed first is kept. The kind that is kept must be listed before its
  // views.
  std::optional<std::string> kept_in_group = {};
  // From this view to the kept form and back; nothing may be lost on the way. set_defaults() and
  // cells() see objects as this view shows them, validate() as they are kept.
  void (*to_storage)(json::value& object) = nullptr;
  void (*from_storage)(json::value& object) = nullptr;
  // An update without resourceVersion overwrites (most built-in kinds) or is refused (custom ones).
  bool unconditional_update = true;
  // Rules that a schema cannot say. Pure. Defaulting runs on create and update, before validation.
  void (*set_defaults)(json::value& object) = nullptr;
  // What the server itself sets or takes back, when all defaults are in: on create, on update and
  // for each sub-resource that writes the object.
  void (*prepare)(json::value& object, const Admission& context) = nullptr;
  std::vector<Cause> (*validate)(const json::value& object, const Admission& context) = nullptr;
  // What a client should be told about a good object.
  std::vector<std::string> (*warnings)(const json::value& object,
                                       const Admission& context) = nullptr;
  // The text of a selectable field that is not simply what stands at its path.
  std::optional<std::string> (*field_text)(const json::value& object,
                                           std::string_view path) = nullptr;
  // Cells of the table columns, where JSON paths do not suffice (Pod's STATUS). In column order.
  json::array (*cells)(const json::value& object, std::int64_t now_s) = nullptr;
};

}  // namespace skiff::api
