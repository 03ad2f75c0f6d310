#include "api/storage/storage.h"

#include "api/cells.h"
#include "api/core/volumes.h"
#include "api/meta.h"
#include "api/rules.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::size_t kMostParameters = 512;
constexpr std::size_t kParameterBytes = 256 * 1024;

json::array created(std::initializer_list<json::value> cells, const json::value& object,
                    std::int64_t now_s) {
  json::array out(cells.begin(), cells.end());
  out.emplace_back(json::string(age_cell(object, now_s)));
  return out;
}

bool spec_flag(const json::value& object, std::string_view field, bool otherwise) {
  return json::get_bool(object, {"spec", field}).value_or(otherwise);
}

// StorageClass

void default_storage_class(json::value& object) {
  json::object* o = object.if_object();
  if (o == nullptr) return;
  put(*o, "reclaimPolicy", "Delete");
  put(*o, "volumeBindingMode", "Immediate");
}

void check_storage_parameters(const json::object& parameters, Rules& rules) {
  if (parameters.size() > kMostParameters) {
    rules.say(schema::too_long("parameters", kMostParameters));
    return;
  }
  std::size_t bytes = 0;
  for (const auto& [key, value] : parameters) {
    if (key.empty()) rules.say(schema::invalid("parameters", "", "field can not be empty."));
    bytes += key.size() + (value.is_string() ? value.get_string().size() : 0);
  }
  if (bytes > kParameterBytes) rules.say(schema::too_long("parameters", kParameterBytes));
}

void check_topologies(const json::value& object, Rules& rules) {
  const json::array& terms = json::get_array(object, {"allowedTopologies"});
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::string at = child(child("allowedTopologies", i), "matchLabelExpressions");
    const json::array& list = json::get_array(terms[i], {"matchLabelExpressions"});
    for (std::size_t k = 0; k < list.size(); ++k) {
      const json::array& values = json::get_array(list[k], {"values"});
      const std::string here = child(at, k);
      if (values.empty()) rules.say(schema::required(child(here, "values")));
      for (std::size_t v = 0; v < values.size(); ++v) {
        if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(v), values[v]) !=
            values.begin() + static_cast<std::ptrdiff_t>(v)) {
          rules.say(schema::duplicate(child(child(here, "values"), v), values[v]));
        }
      }
      const std::string_view key = json::get_string(list[k], {"key"});
      rules.called(child(here, "key"), key, names::check_label_key(key));
    }
  }
}

std::vector<Cause> validate_storage_class(const json::value& object, const Admission& context) {
  Rules rules;
  if (context.old != nullptr) {
    for (const std::string_view field : {"parameters", "provisioner", "reclaimPolicy"}) {
      if (same_value(json::find(object, {field}), json::find(*context.old, {field}))) continue;
      rules.say(schema::forbidden(std::string(field),
                                  "updates to " + std::string(field) + " are forbidden."));
    }
    rules.same(json::find(object, {"volumeBindingMode"}),
               json::find(*context.old, {"volumeBindingMode"}), "volumeBindingMode");
    return rules.take();
  }
  if (rules.needs(object, "", "provisioner")) {
    const std::string text = lower(json::get_string(object, {"provisioner"}));
    rules.called("provisioner", text, names::check_label_key(text));
  }
  check_storage_parameters(json::get_object(object, {"parameters"}), rules);
  if (!json::get_string(object, {"reclaimPolicy"}).empty()) {
    rules.maybe_one_of(object, "", "reclaimPolicy", {"Delete", "Retain"});
  }
  rules.maybe_one_of(object, "", "volumeBindingMode", {"Immediate", "WaitForFirstConsumer"});
  check_topologies(object, rules);
  return rules.take();
}

json::array storage_class_cells(const json::value& object, std::int64_t now_s) {
  const bool chosen =
      annotation(object, "storageclass.kubernetes.io/is-default-class") == "true" ||
      annotation(object, "storageclass.beta.kubernetes.io/is-default-class") == "true";
  const std::string title = std::string(name(object)) + (chosen ? " (default)" : "");
  return created({json::string(title), json::string(json::get_string(object, {"provisioner"})),
                  json::string(json::get_string(object, {"reclaimPolicy"}, "Delete")),
                  json::string(json::get_string(object, {"volumeBindingMode"}, "Immediate")),
                  json::get_bool(object, {"allowVolumeExpansion"}).value_or(false)},
                 object, now_s);
}

// CSIDriver

void default_driver(json::value& object) {
  if (!object.is_object()) return;
  json::object& spec = json::make_object(object, {"spec"});
  put(spec, "attachRequired", true);
  put(spec, "podInfoOnMount", false);
  put(spec, "storageCapacity", false);
  put(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  put(spec, "volumeLifecycleModes", json::array{"Persistent"});
  put(spec, "requiresRepublish", false);
  put(spec, "seLinuxMount", false);
}

void check_token_requests(const json::array& requests, Rules& rules) {
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string at = child("spec.tokenRequests", i);
    const std::string_view audience = json::get_string(requests[i], {"audience"});
    if (std::ranges::count(seen, audience) > 0) {
      rules.say(schema::duplicate(child(at, "audience"), json::string(audience)));
      continue;
    }
    seen.push_back(audience);
    const auto seconds = json::get_int(requests[i], {"expirationSeconds"});
    if (seconds && *seconds < 600) {
      rules.say(schema::invalid(child(at, "expirationSeconds"), *seconds,
                                "may not specify a duration less than 10 minutes"));
    }
    if (seconds && *seconds > (std::int64_t{1} << 32)) {
      rules.say(schema::invalid(child(at, "expirationSeconds"), *seconds,
                                "may not specify a duration larger than 2^32 seconds"));
    }
  }
}

std::vector<Cause> validate_driver(const json::value& object, const Admission& context) {
  Rules rules;
  if (present(object, {"spec", "fsGroupPolicy"}) != nullptr) {
    rules.one_of("spec.fsGroupPolicy", json::get_string(object, {"spec", "fsGroupPolicy"}),
                 {"File", "None", "ReadWriteOnceWithFSType"});
  }
  check_token_requests(json::get_array(object, {"spec", "tokenRequests"}), rules);
  for (const std::string& mode :
       json::strings(json::get_array(object, {"spec", "volumeLifecycleModes"}))) {
    rules.one_of("spec.volumeLifecycleModes", mode, {"Persistent", "Ephemeral"});
  }
  const auto period = json::get_int(object, {"spec", "nodeAllocatableUpdatePeriodSeconds"});
  if (period && *period < 10) {
    rules.say(schema::invalid("spec.nodeAllocatableUpdatePeriodSeconds", *period,
                              "must be greater than or equal to 10 seconds"));
  }
  if (context.old != nullptr) {
    rules.same(json::find(object, {"spec", "attachRequired"}),
               json::find(*context.old, {"spec", "attachRequired"}), "spec.attachedRequired");
    rules.same(json::find(object, {"spec", "volumeLifecycleModes"}),
               json::find(*context.old, {"spec", "volumeLifecycleModes"}),
               "spec.volumeLifecycleModes");
  }
  return rules.take();
}

json::array driver_cells(const json::value& object, std::int64_t now_s) {
  const std::vector<std::string> modes =
      json::strings(json::get_array(object, {"spec", "volumeLifecycleModes"}));
  std::string tokens = "<unset>";
  if (present(object, {"spec", "tokenRequests"}) != nullptr) {
    std::vector<std::string> audiences;
    for (const json::value& r : json::get_array(object, {"spec", "tokenRequests"})) {
      audiences.emplace_back(json::get_string(r, {"audience"}));
    }
    tokens = join(audiences, ",");
  }
  return created(
      {spec_flag(object, "attachRequired", true), spec_flag(object, "podInfoOnMount", false),
       spec_flag(object, "storageCapacity", false), json::string(tokens),
       spec_flag(object, "requiresRepublish", false), json::string(or_none(join(modes, ",")))},
      object, now_s);
}

// CSINode

void check_node_driver(const json::value& driver, const std::string& path,
                       std::vector<std::string_view>& seen, Rules& rules) {
  constexpr std::size_t kMostId = 256;
  const std::string_view name = json::get_string(driver, {"name"});
  rules.csi_driver_name(child(path, "name"), name);
  rules.needs(driver, path, "nodeID");
  const std::string_view id = json::get_string(driver, {"nodeID"});
  if (id.size() > kMostId) {
    rules.say(
        schema::invalid(child(path, "nodeID"), json::string(id), "must be 256 characters or less"));
  }
  rules.not_negative(child(child(path, "allocatable"), "count"),
                     json::get_int(driver, {"allocatable", "count"}).value_or(0));
  if (std::ranges::count(seen, name) > 0) {
    rules.say(schema::duplicate(child(path, "name"), json::string(name)));
  }
  seen.push_back(name);
  std::vector<std::string> keys;
  for (const std::string& key : json::strings(json::get_array(driver, {"topologyKeys"}))) {
    if (key.empty()) rules.say(schema::required(path));
    if (std::ranges::count(keys, key) > 0) {
      rules.say(schema::duplicate(path, json::string(key)));
    }
    keys.push_back(key);
    rules.called(path, key, names::check_label_key(key));
  }
}

std::vector<Cause> validate_node(const json::value& object, const Admission& context) {
  Rules rules;
  std::vector<std::string_view> seen;
  const json::array& drivers = json::get_array(object, {"spec", "drivers"});
  for (std::size_t i = 0; i < drivers.size(); ++i) {
    check_node_driver(drivers[i], child("spec.drivers", i), seen, rules);
  }
  if (context.old == nullptr) return rules.take();
  for (const json::value& before : json::get_array(*context.old, {"spec", "drivers"})) {
    for (const json::value& now : drivers) {
      if (json::get_string(before, {"name"}) != json::get_string(now, {"name"})) continue;
      rules.same(&now, &before, "spec.drivers");
    }
  }
  return rules.take();
}

json::array csi_node_cells(const json::value& object, std::int64_t now_s) {
  return created({json::get_array(object, {"spec", "drivers"}).size()}, object, now_s);
}

// CSIStorageCapacity

std::vector<Cause> validate_capacity(const json::value& object, const Admission& context) {
  Rules rules;
  rules.label_selector(present(object, {"nodeTopology"}), "nodeTopology");
  const std::string_view storage_class = json::get_string(object, {"storageClassName"});
  rules.called("storageClassName", storage_class, names::check_dns1123_subdomain(storage_class));
  const json::value* capacity = present(object, {"capacity"});
  if (capacity != nullptr && quantity_of(*capacity).negative()) {
    rules.say(schema::invalid("capacity", *capacity, "must be greater than or equal to 0"));
  }
  if (context.old != nullptr) {
    for (const std::string_view field : {"nodeTopology", "storageClassName"}) {
      rules.same(json::find(object, {field}), json::find(*context.old, {field}),
                 std::string(field));
    }
  }
  return rules.take();
}

// VolumeAttachment

void check_error(const json::value& object, std::string_view field, Rules& rules) {
  const json::value* error = present(object, {"status", field});
  if (error == nullptr) return;
  const std::string path = child("status", field);
  if (json::get_string(*error, {"message"}).size() > 1024) {
    rules.say(schema::too_long(child(path, "message"), kParameterBytes));
  }
  const auto code = json::get_int(*error, {"errorCode"});
  if (code && *code < 0) {
    rules.say(schema::invalid(child(path, "errorCode"), *code,
                              "must be between 0 and 2147483647, inclusive"));
  }
}

void check_attachment_source(const json::value& object, Rules& rules) {
  constexpr std::string_view kWhy =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const json::value* inlined = present(object, {"spec", "source", "inlineVolumeSpec"});
  const json::value* volume = present(object, {"spec", "source", "persistentVolumeName"});
  if (inlined == nullptr && volume == nullptr) {
    rules.say(schema::required("spec.source", kWhy));
  } else if (inlined != nullptr && volume != nullptr) {
    rules.say(schema::forbidden("spec.source", kWhy));
  } else if (inlined != nullptr) {
    rules.add(validate_volume_spec(*inlined, "spec.source.inlineVolumeSpec", true));
  } else if (*volume == "") {
    rules.say(schema::required("spec.source.persistentVolumeName",
                               "must specify non empty persistentVolumeName"));
  }
}

std::vector<Cause> validate_attachment(const json::value& object, const Admission& context) {
  Rules rules;
  const std::string_view attacher = json::get_string(object, {"spec", "attacher"});
  if (attacher.empty()) rules.say(schema::required("spec.attacher"));
  check_attachment_source(object, rules);
  const std::string_view node = json::get_string(object, {"spec", "nodeName"});
  rules.called("spec.nodeName", node, names::check_dns1123_subdomain(node));
  check_error(object, "attachError", rules);
  check_error(object, "detachError", rules);
  if (context.old != nullptr) {
    rules.same(json::find(object, {"spec"}), json::find(*context.old, {"spec"}), "spec");
    return rules.take();
  }
  rules.csi_driver_name("spec.attacher", attacher);
  if (present(object, {"spec", "source", "persistentVolumeName"}) != nullptr) {
    const std::string_view name =
        json::get_string(object, {"spec", "source", "persistentVolumeName"});
    rules.called("spec.source.persistentVolumeName", name, names::check_dns1123_subdomain(name));
  }
  return rules.take();
}

json::array attachment_cells(const json::value& object, std::int64_t now_s) {
  return created(
      {json::string(json::get_string(object, {"spec", "attacher"})),
       json::string(json::get_string(object, {"spec", "source", "persistentVolumeName"})),
       json::string(json::get_string(object, {"spec", "nodeName"})),
       json::get_bool(object, {"status", "attached"}).value_or(false)},
      object, now_s);
}

Kind storage_kind(std::string plural, std::string name) {
  return {.resource = {"storage.k8s.io", "v1", std::move(plural), name, false},
          .singular = lower(name),
          .returns_deleted = true,
          .has_generation = false,
          .schema = "io.k8s.api.storage.v1." + name};
}

}  // namespace

std::vector<Kind> storage_kinds() {
  Kind classes = storage_kind("storageclasses", "StorageClass");
  classes.short_names = {"sc"};
  classes.columns = {{"Name", "string"},
                     {"Provisioner", "string"},
                     {"ReclaimPolicy", "string"},
                     {"VolumeBindingMode", "string"},
                     {"AllowVolumeExpansion", "string"},
                     {"Age", "string"}};
  classes.set_defaults = default_storage_class;
  classes.validate = validate_storage_class;
  classes.cells = storage_class_cells;

  Kind drivers = storage_kind("csidrivers", "CSIDriver");
  drivers.columns = {{"AttachRequired", "boolean"},
                     {"PodInfoOnMount", "boolean"},
                     {"StorageCapacity", "boolean"},
                     {"TokenRequests", "string"},
                     {"RequiresRepublish", "boolean"},
                     {"Modes", "string"},
                     {"Age", "string"}};
  drivers.unconditional_update = false;
  drivers.set_defaults = default_driver;
  drivers.validate = validate_driver;
  drivers.cells = driver_cells;

  Kind nodes = storage_kind("csinodes", "CSINode");
  nodes.columns = {{"Drivers", "integer"}, {"Age", "string"}};
  nodes.unconditional_update = false;
  nodes.validate = validate_node;
  nodes.cells = csi_node_cells;

  Kind capacities = storage_kind("csistoragecapacities", "CSIStorageCapacity");
  capacities.resource.namespaced = true;
  capacities.returns_deleted = false;
  capacities.columns = {{"Created At", "date"}};
  capacities.cells = [](const json::value& object, std::int64_t) {
    return json::array{json::string(json::get_string(object, {"metadata", "creationTimestamp"}))};
  };
  capacities.unconditional_update = false;
  capacities.validate = validate_capacity;

  Kind attachments = storage_kind("volumeattachments", "VolumeAttachment");
  attachments.has_status = true;
  attachments.columns = {{.name = "Attacher", .type = "string", .format = "name"},
                         {"PV", "string"},
                         {"Node", "string"},
                         {"Attached", "boolean"},
                         {"Age", "string"}};
  attachments.unconditional_update = false;
  attachments.validate = validate_attachment;
  attachments.cells = attachment_cells;
  return {classes, drivers, nodes, capacities, attachments};
}

}  // namespace skiff::api
