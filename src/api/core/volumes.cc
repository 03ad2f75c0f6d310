#include "api/core/volumes.h"

#include <algorithm>
#include <array>

#include "api/cells.h"
#include "api/core/pod.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

constexpr std::string_view kStorageClassAnnotation = "volume.beta.kubernetes.io/storage-class";

// In the order in which a real server looks at them.
constexpr std::array<std::string_view, 22> kVolumeSources{"hostPath",
                                                          "gcePersistentDisk",
                                                          "awsElasticBlockStore",
                                                          "glusterfs",
                                                          "flocker",
                                                          "nfs",
                                                          "rbd",
                                                          "quobyte",
                                                          "cephfs",
                                                          "iscsi",
                                                          "cinder",
                                                          "fc",
                                                          "flexVolume",
                                                          "azureFile",
                                                          "vsphereVolume",
                                                          "photonPersistentDisk",
                                                          "portworxVolume",
                                                          "azureDisk",
                                                          "scaleIO",
                                                          "local",
                                                          "storageos",
                                                          "csi"};

void check_modes(const json::value& spec, const std::string& path, Rules& rules) {
  bool alone = false, others = false;
  const std::vector<std::string> known = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                          "ReadWriteOncePod"};
  for (const std::string& mode : json::strings(json::get_array(spec, {"accessModes"}))) {
    rules.one_of(child(path, "accessModes"), mode, known);
    if (mode == "ReadWriteOncePod") {
      alone = true;
    } else if (std::ranges::count(known, mode) > 0) {
      others = true;
    }
  }
  if (alone && others) {
    rules.say(schema::forbidden(child(path, "accessModes"),
                                "may not use ReadWriteOncePod with other access modes"));
  }
}

void check_capacity(const json::value& spec, const std::string& path, Rules& rules) {
  const json::object& capacity = json::get_object(spec, {"capacity"});
  if (capacity.empty()) rules.say(schema::required(path));
  if (!capacity.contains("storage") || capacity.size() > 1) {
    const json::value shown = capacity.empty() ? json::value() : json::value(capacity);
    rules.say(schema::unsupported(path, shown, {"storage"}));
  }
  for (const auto& [key, amount] : capacity) {
    const Quantity q = quantity_of(amount);
    const std::string at = entry(path, std::string_view(key));
    if (q.negative()) {
      rules.say(schema::invalid(at, q.value(), "must be a valid resource quantity"));
    }
    if (q.negative() || q.zero()) {
      rules.say(schema::invalid(at, json::string(q.text()), "must be greater than zero"));
    }
  }
}

void check_secret_ref(const json::value& csi, std::string_view field, const std::string& path,
                      Rules& rules) {
  const json::value* ref = present(csi, {field});
  if (ref == nullptr) return;
  const std::string at = child(path, field);
  if (rules.needs(*ref, at, "name")) {
    const std::string_view name = json::get_string(*ref, {"name"});
    rules.called(child(at, "name"), name, names::check_dns1123_subdomain(name));
  }
  if (rules.needs(*ref, at, "namespace")) {
    const std::string_view ns = json::get_string(*ref, {"namespace"});
    rules.called(child(at, "namespace"), ns, names::check_dns1123_label(ns));
  }
}

void check_volume_source(const json::value& source, std::string_view kind, const std::string& path,
                         Rules& rules) {
  if (kind == "hostPath" || kind == "local") {
    if (!rules.needs(source, path, "path")) return;
    rules.no_backsteps(child(path, "path"), json::get_string(source, {"path"}));
    if (kind == "hostPath") {
      rules.maybe_one_of(source, path, "type",
                         {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                          "FileOrCreate", "Socket"});
    }
  } else if (kind == "nfs") {
    rules.needs(source, path, "server");
    rules.needs(source, path, "path");
    const std::string_view at = json::get_string(source, {"path"});
    if (!at.starts_with('/')) {
      rules.say(schema::invalid(child(path, "path"), json::string(at), "must be an absolute path"));
    }
  } else if (kind == "csi") {
    rules.csi_driver_name(child(path, "driver"), json::get_string(source, {"driver"}));
    rules.needs(source, path, "volumeHandle");
    for (const std::string_view field : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                                         "nodePublishSecretRef", "nodeExpandSecretRef"}) {
      check_secret_ref(source, field, path, rules);
    }
  }
}

void check_volume_sources(const json::value& spec, const std::string& path, Rules& rules) {
  std::size_t found = 0;
  for (const std::string_view kind : kVolumeSources) {
    const json::value* source = present(spec, {kind});
    if (source == nullptr) continue;
    if (found++ > 0 && kind != "flexVolume") {
      rules.say(schema::forbidden(child(path, kind == "cephfs" ? "cephFS" : kind),
                                  "may not specify more than 1 volume type"));
      continue;
    }
    check_volume_source(*source, kind, child(path, kind), rules);
    if (kind == "local" && present(spec, {"nodeAffinity"}) == nullptr) {
      rules.say(
          schema::required(child(path, "nodeAffinity"), "Local volume requires node affinity"));
    }
  }
  if (found == 0) rules.say(schema::required(path, "must specify a volume type"));
}

// What a volume inside an attachment may not say.
void check_inlined(const json::value& spec, const std::string& path, Rules& rules) {
  constexpr std::string_view kWhy = "may not be specified in the context of inline volumes";
  for (const std::string_view field : {"claimRef", "capacity"}) {
    if (present(spec, {field}) != nullptr) rules.say(schema::forbidden(child(path, field), kWhy));
  }
  if (present(spec, {"csi"}) == nullptr) {
    rules.say(schema::required(child(path, "csi"),
                               "has to be specified in the context of inline volumes"));
  }
}

void check_class_name(const json::value& spec, std::string_view field, const std::string& path,
                      Rules& rules) {
  const std::string_view name = json::get_string(spec, {field});
  if (!name.empty()) rules.called(child(path, field), name, names::check_dns1123_subdomain(name));
}

bool empty_text(const json::value* v) { return v != nullptr && *v == ""; }

// PersistentVolume

void set_volume_defaults(json::value& object) {
  if (!object.is_object()) return;
  json::object& spec = json::make_object(object, {"spec"});
  put(spec, "persistentVolumeReclaimPolicy", "Retain");
  put(spec, "volumeMode", "Filesystem");
  if (json::object* host = find_object(spec, "hostPath")) put(*host, "type", "");
  json::object& status = json::make_object(object, {"status"});
  put(status, "phase", "Pending");
}

// When the phase last changed is told by the server.
void prepare_volume(json::value& object, const Admission& context) {
  const std::string phase(json::get_string(object, {"status", "phase"}));
  const bool same =
      context.old != nullptr && phase == json::get_string(*context.old, {"status", "phase"});
  if (!same && !context.now.empty()) {
    json::set(object, {"status", "lastPhaseTransitionTime"}, json::string(context.now));
  }
}

// The part of a spec that tells where the volume is.
json::object source_of(const json::value& object) {
  json::object out;
  for (const std::string_view kind : kVolumeSources) {
    if (const json::value* source = present(object, {"spec", kind})) out[kind] = *source;
  }
  return out;
}

std::vector<Cause> validate_volume(const json::value& object, const Admission& context) {
  if (context.subresource == "status") return {};
  Rules rules;
  static const json::value kNothing = json::object();
  const json::value* spec = present(object, {"spec"});
  rules.add(validate_volume_spec(spec == nullptr ? kNothing : *spec, "spec", false));
  if (context.old == nullptr) return rules.take();
  if (source_of(object) != source_of(*context.old)) {
    rules.say(schema::forbidden("spec.persistentvolumesource",
                                "spec.persistentvolumesource is immutable after creation"));
  }
  rules.same(json::find(object, {"spec", "volumeMode"}),
             json::find(*context.old, {"spec", "volumeMode"}), "volumeMode");
  if (const json::value* before = present(*context.old, {"spec", "nodeAffinity"})) {
    rules.same(json::find(object, {"spec", "nodeAffinity"}), before, "nodeAffinity");
  }
  if (present(*context.old, {"spec", "volumeAttributesClassName"}) != nullptr &&
      present(object, {"spec", "volumeAttributesClassName"}) == nullptr) {
    rules.say(schema::forbidden("spec.volumeAttributesClassName",
                                "update from non-nil value to nil is forbidden"));
  }
  return rules.take();
}

std::string modes_text(const json::array& modes) {
  std::vector<std::string> out;
  const std::vector<std::string> given = json::strings(modes);
  for (const auto& [mode, text] :
       {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
        std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}}) {
    if (std::ranges::count(given, mode) > 0) out.emplace_back(text);
  }
  return join(out, ",");
}

std::string storage_text(const json::object& amounts) {
  const json::value* storage = amounts.if_contains("storage");
  return storage == nullptr ? "0" : quantity_of(*storage).text();
}

std::string class_text(const json::value& object) {
  const std::string_view old = annotation(object, kStorageClassAnnotation);
  return std::string(old.empty() ? json::get_string(object, {"spec", "storageClassName"}) : old);
}

std::string or_unset(const json::value& object, std::string_view field) {
  return present(object, {"spec", field}) == nullptr
             ? "<unset>"
             : std::string(json::get_string(object, {"spec", field}));
}

json::array texts(std::initializer_list<std::string> cells) {
  json::array out;
  for (const std::string& cell : cells) out.emplace_back(json::string(cell));
  return out;
}

std::string phase_text(const json::value& object) {
  return deleting(object) ? "Terminating"
                          : std::string(json::get_string(object, {"status", "phase"}));
}

json::array volume_cells(const json::value& object, std::int64_t now_s) {
  std::string claim;
  if (const json::value* ref = present(object, {"spec", "claimRef"})) {
    claim = std::string(json::get_string(*ref, {"namespace"})) + "/" +
            std::string(json::get_string(*ref, {"name"}));
  }
  return texts({storage_text(json::get_object(object, {"spec", "capacity"})),
                modes_text(json::get_array(object, {"spec", "accessModes"})),
                std::string(json::get_string(object, {"spec", "persistentVolumeReclaimPolicy"})),
                phase_text(object), claim, class_text(object),
                or_unset(object, "volumeAttributesClassName"),
                std::string(json::get_string(object, {"status", "reason"})),
                age_cell(object, now_s), or_unset(object, "volumeMode")});
}

// PersistentVolumeClaim

void default_claim(json::value& object) {
  if (!object.is_object()) return;
  put(json::make_object(object, {"spec"}), "volumeMode", "Filesystem");
  put(json::make_object(object, {"status"}), "phase", "Pending");
}

void check_data_source(const json::value& spec, std::string_view field, const std::string& path,
                       Rules& rules) {
  const json::value* source = present(spec, {field});
  if (source == nullptr) return;
  const std::string at = child(path, field);
  rules.needs(*source, at, "name");
  rules.needs(*source, at, "kind");
  const std::string_view group = json::get_string(*source, {"apiGroup"});
  const std::string_view kind = json::get_string(*source, {"kind"});
  if (group.empty() && kind != "PersistentVolumeClaim") {
    rules.say(
        schema::invalid(at, json::string(kind),
                        "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  }
  if (!group.empty()) {
    rules.called(child(at, "apiGroup"), group, names::check_dns1123_subdomain(group));
  }
  const std::string_view ns = json::get_string(*source, {"namespace"});
  if (!ns.empty()) rules.called(child(at, "namespace"), ns, names::check_dns1123_label(ns));
}

// What may not change is left when what may has been made equal.
void check_claim_update(const json::value& object, const json::value& old, Rules& rules) {
  const bool bound = json::get_string(object, {"status", "phase"}) == "Bound";
  json::value now = json::get_object(object, {"spec"}), before = json::get_object(old, {"spec"});
  const auto make_equal = [](json::value& to, const json::value& from,
                             std::initializer_list<std::string_view> path) {
    if (const json::value* v = present(from, path)) json::set(to, path, *v);
  };
  if (json::get_string(before, {"volumeName"}).empty()) make_equal(before, now, {"volumeName"});
  if (present(before, {"storageClassName"}) == nullptr) {
    make_equal(before, now, {"storageClassName"});
  }
  if (bound) {
    make_equal(now, before, {"resources", "requests", "storage"});
    now.get_object().erase("volumeAttributesClassName");
    before.get_object().erase("volumeAttributesClassName");
  }
  if (now != before) {
    rules.say(schema::forbidden("spec",
                                "spec is immutable after creation except resources.requests and "
                                "volumeAttributesClassName for bound claims"));
  }
  const auto size = [](const json::value& o, std::initializer_list<std::string_view> path) {
    const json::value* v = present(o, path);
    return v == nullptr ? Quantity() : quantity_of(*v);
  };
  const Quantity wanted = size(object, {"spec", "resources", "requests", "storage"});
  if (wanted < size(old, {"spec", "resources", "requests", "storage"}) &&
      wanted <= size(old, {"status", "capacity", "storage"})) {
    rules.say(schema::forbidden("spec.resources.requests.storage",
                                "field can not be less than status.capacity"));
  }
  rules.same(json::find(object, {"spec", "volumeMode"}), json::find(old, {"spec", "volumeMode"}),
             "volumeMode");
}

std::vector<Cause> validate_claim(const json::value& object, const Admission& context) {
  if (context.subresource == "status") return {};
  Rules rules;
  static const json::value kNothing = json::object();
  const json::value* spec = present(object, {"spec"});
  rules.add(validate_claim_spec(spec == nullptr ? kNothing : *spec, "spec"));
  if (context.old != nullptr) check_claim_update(object, *context.old, rules);
  return rules.take();
}

json::array claim_cells(const json::value& object, std::int64_t now_s) {
  const std::string volume(json::get_string(object, {"spec", "volumeName"}));
  const bool bound = !volume.empty();
  return texts({phase_text(object), volume,
                bound ? storage_text(json::get_object(object, {"status", "capacity"})) : "",
                bound ? modes_text(json::get_array(object, {"status", "accessModes"})) : "",
                class_text(object), or_unset(object, "volumeAttributesClassName"),
                age_cell(object, now_s), or_unset(object, "volumeMode")});
}

}  // namespace

std::vector<Cause> validate_volume_spec(const json::value& spec, const std::string& path,
                                        bool inlined) {
  Rules rules;
  if (inlined) check_inlined(spec, path, rules);
  if (json::get_array(spec, {"accessModes"}).empty()) {
    rules.say(schema::required(child(path, "accessModes")));
  }
  check_modes(spec, path, rules);
  if (!inlined) {
    check_capacity(spec, child(path, "capacity"), rules);
    if (!json::get_string(spec, {"persistentVolumeReclaimPolicy"}).empty()) {
      rules.maybe_one_of(spec, path, "persistentVolumeReclaimPolicy",
                         {"Delete", "Recycle", "Retain"});
    }
    if (present(spec, {"nodeAffinity"}) != nullptr) {
      if (const json::value* needed = present(spec, {"nodeAffinity", "required"})) {
        rules.add(validate_node_selector(*needed, child(path, "nodeAffinity.required")));
      } else {
        rules.say(schema::required(child(path, "nodeAffinity.required"),
                                   "must specify required node constraints"));
      }
    }
  }
  check_volume_sources(spec, path, rules);
  const std::string_view host = json::get_string(spec, {"hostPath", "path"});
  if (!host.empty() && host.find_first_not_of('/') == host.npos &&
      json::get_string(spec, {"persistentVolumeReclaimPolicy"}) == "Recycle") {
    rules.say(schema::forbidden(child(path, "persistentVolumeReclaimPolicy"),
                                "may not be 'recycle' for a hostPath mount of '/'"));
  }
  check_class_name(spec, "storageClassName", path, rules);
  rules.maybe_one_of(spec, path, "volumeMode", {"Block", "Filesystem"});
  if (empty_text(present(spec, {"volumeAttributesClassName"}))) {
    rules.say(schema::required(child(path, "volumeAttributesClassName"),
                               "an empty string is disallowed"));
  }
  check_class_name(spec, "volumeAttributesClassName", path, rules);
  if (present(spec, {"volumeAttributesClassName"}) != nullptr &&
      present(spec, {"csi"}) == nullptr) {
    rules.say(schema::required(child(path, "csi"),
                               "has to be specified when using volumeAttributesClassName"));
  }
  return rules.take();
}

std::vector<Cause> validate_claim_spec(const json::value& spec, const std::string& path) {
  Rules rules;
  if (json::get_array(spec, {"accessModes"}).empty()) {
    rules.say(schema::required(child(path, "accessModes"), "at least 1 access mode is required"));
  }
  rules.label_selector(present(spec, {"selector"}), child(path, "selector"));
  check_modes(spec, path, rules);
  const std::string storage = entry(child(path, "resources"), "storage");
  const json::value* amount = present(spec, {"resources", "requests", "storage"});
  if (amount == nullptr) {
    rules.say(schema::required(storage));
  } else if (const Quantity q = quantity_of(*amount); q.negative() || q.zero()) {
    rules.say(schema::invalid(storage, json::string(q.text()), "must be greater than zero"));
  }
  check_class_name(spec, "storageClassName", path, rules);
  rules.maybe_one_of(spec, path, "volumeMode", {"Block", "Filesystem"});
  check_data_source(spec, "dataSource", path, rules);
  check_data_source(spec, "dataSourceRef", path, rules);
  check_class_name(spec, "volumeAttributesClassName", path, rules);
  return rules.take();
}

Kind persistent_volume_kind() {
  return {.resource = {"", "v1", "persistentvolumes", "PersistentVolume", false},
          .singular = "persistentvolume",
          .short_names = {"pv"},
          .returns_deleted = true,
          .has_status = true,
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.PersistentVolume",
          .columns = {{"Capacity", "string"},
                      {"Access Modes", "string"},
                      {"Reclaim Policy", "string"},
                      {"Status", "string"},
                      {"Claim", "string"},
                      {"StorageClass", "string"},
                      {"VolumeAttributesClass", "string"},
                      {"Reason", "string"},
                      {"Age", "string"},
                      {"VolumeMode", "string", "", 1}},
          .set_defaults = set_volume_defaults,
          .prepare = prepare_volume,
          .validate = validate_volume,
          .cells = volume_cells};
}

Kind persistent_volume_claim_kind() {
  return {.resource = {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true},
          .singular = "persistentvolumeclaim",
          .short_names = {"pvc"},
          .returns_deleted = true,
          .has_status = true,
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.PersistentVolumeClaim",
          .columns = {{"Status", "string"},
                      {"Volume", "string"},
                      {"Capacity", "string"},
                      {"Access Modes", "string"},
                      {"StorageClass", "string"},
                      {"VolumeAttributesClass", "string"},
                      {"Age", "string"},
                      {"VolumeMode", "string", "", 1}},
          .set_defaults = default_claim,
          .validate = validate_claim,
          .cells = claim_cells};
}

}  // namespace skiff::api
