// Volumes of a pod, and references to its own fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/core/pod_checks.h"
#include "api/core/volumes.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kFileMode =
    "must be a number between 0 and 0777 (octal), both inclusive";

// In the order in which a real server looks at them.
constexpr std::array<std::string_view, 29> kPodVolumeSources{"emptyDir",
                                                             "hostPath",
                                                             "gitRepo",
                                                             "gcePersistentDisk",
                                                             "awsElasticBlockStore",
                                                             "secret",
                                                             "nfs",
                                                             "iscsi",
                                                             "glusterfs",
                                                             "flocker",
                                                             "persistentVolumeClaim",
                                                             "rbd",
                                                             "cinder",
                                                             "cephfs",
                                                             "quobyte",
                                                             "downwardAPI",
                                                             "fc",
                                                             "flexVolume",
                                                             "configMap",
                                                             "azureFile",
                                                             "vsphereVolume",
                                                             "photonPersistentDisk",
                                                             "portworxVolume",
                                                             "azureDisk",
                                                             "storageos",
                                                             "projected",
                                                             "scaleIO",
                                                             "csi",
                                                             "ephemeral"};

const std::vector<std::string>& volume_fields() {
  static const std::vector<std::string> kFields = {"metadata.annotations", "metadata.labels",
                                                   "metadata.name", "metadata.namespace",
                                                   "metadata.uid"};
  return kFields;
}

void check_file_mode(const json::value& at, std::string_view field, const std::string& path,
                     Rules& rules) {
  const auto mode = json::get_int(at, {field});
  if (mode && (*mode < 0 || *mode > 0777)) {
    rules.say(schema::invalid(child(path, field), *mode, kFileMode));
  }
}

void check_local_path(const std::string& path, std::string_view text, Rules& rules) {
  check_inner_path(path, text, rules);
  if (text.starts_with("..") && !text.starts_with("../")) {
    rules.say(schema::invalid(path, json::string(text), "must not start with '..'"));
  }
}

void check_items(const json::value& source, const std::string& path, Rules& rules) {
  const json::array& items = json::get_array(source, {"items"});
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string at = child(child(path, "items"), i);
    rules.needs(items[i], at, "key");
    rules.needs(items[i], at, "path");
    check_local_path(child(at, "path"), json::get_string(items[i], {"path"}), rules);
    check_file_mode(items[i], "mode", at, rules);
  }
}

void check_downward_file(const json::value& file, const std::string& path, Rules& rules) {
  rules.needs(file, path, "path");
  check_local_path(child(path, "path"), json::get_string(file, {"path"}), rules);
  const json::value* field = present(file, {"fieldRef"});
  const json::value* resource = present(file, {"resourceFieldRef"});
  if (field != nullptr) {
    check_field_ref(*field, volume_fields(), child(path, "fieldRef"), rules);
    if (resource != nullptr) {
      rules.say(schema::invalid(path, "resource",
                                "fieldRef and resourceFieldRef can not be specified "
                                "simultaneously"));
    }
  } else if (resource != nullptr) {
    check_resource_field_ref(*resource, true, child(path, "resourceFieldRef"), rules);
  } else {
    rules.say(schema::required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  check_file_mode(file, "mode", path, rules);
}

void check_token(const json::value& token, const std::string& path, const std::string& owner,
                 Rules& rules) {
  const std::int64_t seconds = json::get_int(token, {"expirationSeconds"}).value_or(3600);
  if (seconds < 600) {
    rules.say(schema::invalid(child(path, "expirationSeconds"), seconds,
                              "may not specify a duration less than 10 minutes"));
  }
  if (seconds > (std::int64_t{1} << 32)) {
    rules.say(schema::invalid(child(path, "expirationSeconds"), seconds,
                              "may not specify a duration larger than 2^32 seconds"));
  }
  if (rules.needs(token, owner, "path")) {
    check_local_path(child(owner, "path"), json::get_string(token, {"path"}), rules);
  }
}

void check_projected(const json::value& projected, const std::string& path, Rules& rules) {
  check_file_mode(projected, "defaultMode", path, rules);
  const json::array& sources = json::get_array(projected, {"sources"});
  std::set<std::string> places;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string at = child(child(path, "sources"), i);
    int found = 0;
    for (const std::string_view kind :
         {"secret", "configMap", "downwardAPI", "serviceAccountToken"}) {
      const json::value* source = present(sources[i], {kind});
      if (source == nullptr) continue;
      ++found;
      const std::string here = child(at, kind);
      if (kind == "serviceAccountToken") {
        check_token(*source, here, path, rules);
        continue;
      }
      if (kind != "downwardAPI") {
        rules.needs(*source, here, "name");
        check_items(*source, here, rules);
      }
      for (const json::value& item : json::get_array(*source, {"items"})) {
        if (kind == "downwardAPI") check_downward_file(item, here, rules);
        const std::string place(json::get_string(item, {"path"}));
        if (place.empty() || places.insert(place).second) continue;
        const std::string_view told =
            kind == "downwardAPI" ? std::string_view(place) : json::get_string(*source, {"name"});
        rules.say(schema::invalid(path, json::string(told), "conflicting duplicate paths"));
      }
    }
    if (found > 1) {
      rules.say(schema::forbidden(at, "may not specify more than 1 volume type per source"));
    }
  }
}

void check_claim_template(const json::value& ephemeral, const std::string& path, Rules& rules) {
  const json::value* body = present(ephemeral, {"volumeClaimTemplate"});
  if (body == nullptr) {
    rules.say(schema::required(child(path, "volumeClaimTemplate")));
    return;
  }
  static const json::value kNothing = json::object();
  const json::value* spec = present(*body, {"spec"});
  rules.add(validate_claim_spec(spec == nullptr ? kNothing : *spec,
                                child(path, "volumeClaimTemplate.spec")));
}

void check_pod_volume_source(const json::value& source, std::string_view kind,
                             const std::string& path, Rules& rules) {
  if (kind == "emptyDir") {
    const json::value* most = present(source, {"sizeLimit"});
    if (most != nullptr && quantity_of(*most).negative()) {
      rules.say(schema::forbidden(child(path, "sizeLimit"),
                                  "SizeLimit field must be a valid resource quantity"));
    }
  } else if (kind == "hostPath") {
    if (!rules.needs(source, path, "path")) return;
    rules.no_backsteps(child(path, "path"), json::get_string(source, {"path"}));
    rules.maybe_one_of(source, path, "type",
                       {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                        "FileOrCreate", "Socket"});
  } else if (kind == "secret" || kind == "configMap") {
    rules.needs(source, path, kind == "secret" ? "secretName" : "name");
    check_file_mode(source, "defaultMode", path, rules);
    check_items(source, path, rules);
  } else if (kind == "nfs") {
    rules.needs(source, path, "server");
    rules.needs(source, path, "path");
    const std::string_view at = json::get_string(source, {"path"});
    if (!at.starts_with('/')) {
      rules.say(schema::invalid(child(path, "path"), json::string(at), "must be an absolute path"));
    }
  } else if (kind == "persistentVolumeClaim") {
    rules.needs(source, path, "claimName");
  } else if (kind == "downwardAPI") {
    check_file_mode(source, "defaultMode", path, rules);
    for (const json::value& file : json::get_array(source, {"items"})) {
      check_downward_file(file, path, rules);
    }
  } else if (kind == "projected") {
    check_projected(source, path, rules);
  } else if (kind == "csi") {
    rules.csi_driver_name(child(path, "driver"), json::get_string(source, {"driver"}));
  } else if (kind == "ephemeral") {
    check_claim_template(source, path, rules);
  }
}

void check_pod_volume_sources(const json::value& volume, const std::string& path, Rules& rules) {
  int found = 0;
  for (const std::string_view kind : kPodVolumeSources) {
    const json::value* source = present(volume, {kind});
    if (source == nullptr) continue;
    const std::string at = child(path, kind);
    if (found++ > 0) {
      rules.say(schema::forbidden(at, "may not specify more than 1 volume type"));
    } else {
      check_pod_volume_source(*source, kind, at, rules);
    }
  }
}

}  // namespace

void check_inner_path(std::string path, std::string_view text, Rules& rules) {
  if (text.starts_with('/')) {
    rules.say(schema::invalid(path, json::string(text), "must be a relative path"));
  }
  rules.no_backsteps(std::move(path), text);
}

void check_field_ref(const json::value& ref, const std::vector<std::string>& fields,
                     const std::string& path, Rules& rules) {
  if (!rules.needs(ref, path, "fieldPath")) return;
  const std::string_view field = json::get_string(ref, {"fieldPath"});
  const std::size_t bracket = field.find("['");
  if (bracket != field.npos && field.ends_with("']")) {
    const std::string_view base = field.substr(0, bracket);
    const std::string_view key = field.substr(bracket + 2, field.size() - bracket - 4);
    if (base == "metadata.annotations" || base == "metadata.labels") {
      const std::string text = base == "metadata.labels" ? std::string(key) : lower(key);
      rules.called(path, text, names::check_label_key(text));
      return;
    }
  }
  static const std::set<std::string_view> kKnown = {
      "metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
      "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
      "spec.schedulerName",   "status.phase",    "status.hostIP",      "status.hostIPs",
      "status.podIP",         "status.podIPs"};
  if (!kKnown.contains(field)) {
    rules.say(schema::invalid(
        child(path, "fieldPath"), json::string(field),
        fmt::format("error converting fieldPath: field label not supported: {}", field)));
  } else {
    rules.one_of(child(path, "fieldPath"), field, fields);
  }
}

void check_resource_field_ref(const json::value& ref, bool needs_container, const std::string& path,
                              Rules& rules) {
  static const std::vector<std::string> kResources = {
      "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
      "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  if (needs_container && !rules.needs(ref, path, "containerName")) return;
  if (!rules.needs(ref, path, "resource")) return;
  const std::string_view resource = json::get_string(ref, {"resource"});
  if (resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-")) {
    return;
  }
  rules.one_of(child(path, "resource"), resource, kResources);
}

void check_volumes(const json::value& spec, const std::string& path, PodFacts& facts,
                   Rules& rules) {
  const json::array& volumes = json::get_array(spec, {"volumes"});
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const std::string at = child(path, i);
    const std::string_view name = json::get_string(volumes[i], {"name"});
    Rules own;
    check_pod_volume_sources(volumes[i], at, own);
    if (own.needs(volumes[i], at, "name")) {
      own.called(child(at, "name"), name, names::check_dns1123_label(name));
    }
    if (facts.volumes.contains(name)) {
      own.say(schema::duplicate(child(at, "name"), json::string(name)));
    }
    if (own.empty()) facts.volumes.emplace(name, &volumes[i]);
    rules.add(own.take());
  }
}

}  // namespace skiff::api
