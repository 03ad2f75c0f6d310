#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/core/pod.h"
#include "base/names.h"
#include "base/quantity.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;
using schema::entry;

constexpr std::string_view kPortRange = "must be between 1 and 65535, inclusive";

bool native(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" ||
         resource.starts_with("hugepages-");
}

class PodChecks {
 public:
  explicit PodChecks(const json::value& spec) : spec_(spec) {
    for (const json::value& volume : json::get_array(spec, {"volumes"})) {
      volumes_.insert(std::string(json::get_string(volume, {"name"})));
    }
  }

  std::vector<Cause> run(std::string_view path) {
    check_volumes(child(path, "volumes"));
    const json::array& containers = json::get_array(spec_, {"containers"});
    if (containers.empty()) say(schema::required(child(path, "containers")));
    check_containers(json::get_array(spec_, {"initContainers"}), child(path, "initContainers"));
    check_containers(containers, child(path, "containers"));
    choice(spec_, path, "restartPolicy", {"Always", "OnFailure", "Never"});
    choice(spec_, path, "dnsPolicy",
           {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
    check_numbers(path);
    for (const std::string_view field : {"hostname", "subdomain"}) {
      const std::string_view text = json::get_string(spec_, {field});
      if (!text.empty()) named(child(path, field), text, names::check_dns1123_label(text));
    }
    for (const auto& [key, value] : json::get_object(spec_, {"nodeSelector"})) {
      const std::string at = child(path, "nodeSelector");
      named(at, key, names::check_label_key(key));
      const std::string_view text = value.is_string() ? json::view(value.get_string()) : "";
      named(at, text, names::check_label_value(text));
    }
    return std::move(out_);
  }

 private:
  void say(Cause cause) { out_.push_back(std::move(cause)); }

  void named(std::string path, std::string_view text, const names::Complaint& complaint) {
    if (complaint) say(schema::invalid(std::move(path), json::string(text), *complaint));
  }

  // An absent field has been defaulted or may be absent.
  void choice(const json::value& at, std::string_view path, std::string_view field,
              const std::vector<std::string>& allowed) {
    const std::string_view text = json::get_string(at, {field});
    if (json::find(at, {field}) == nullptr || std::ranges::find(allowed, text) != allowed.end()) {
      return;
    }
    say(schema::unsupported(child(path, field), json::string(text), allowed));
  }

  void check_numbers(std::string_view path) {
    const auto grace = json::get_int(spec_, {"terminationGracePeriodSeconds"});
    if (grace && *grace < 0) {
      say(schema::invalid(child(path, "terminationGracePeriodSeconds"), *grace,
                          "must be greater than or equal to 0"));
    }
    const auto deadline = json::get_int(spec_, {"activeDeadlineSeconds"});
    if (deadline && (*deadline < 1 || *deadline > INT32_MAX)) {
      say(schema::invalid(child(path, "activeDeadlineSeconds"), *deadline,
                          "must be between 1 and 2147483647, inclusive"));
    }
  }

  void check_volumes(const std::string& path) {
    std::set<std::string_view> seen;
    const json::array& volumes = json::get_array(spec_, {"volumes"});
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      const std::string at = child(path, i);
      const std::string_view name = json::get_string(volumes[i], {"name"});
      if (name.empty()) {
        say(schema::required(child(at, "name")));
      } else {
        named(child(at, "name"), name, names::check_dns1123_label(name));
        if (!seen.insert(name).second)
          say(schema::duplicate(child(at, "name"), json::string(name)));
      }
      if (volumes[i].is_object() && volumes[i].get_object().size() > 2) {
        say(schema::forbidden(at, "may not specify more than 1 volume type"));
      }
    }
  }

  void check_containers(const json::array& list, const std::string& path) {
    for (std::size_t i = 0; i < list.size(); ++i) check_container(list[i], child(path, i));
  }

  void check_container(const json::value& c, const std::string& path) {
    const std::string_view name = json::get_string(c, {"name"});
    if (name.empty()) {
      say(schema::required(child(path, "name")));
    } else {
      named(child(path, "name"), name, names::check_dns1123_label(name));
      // Names are unique among all containers of the pod, of whichever list.
      if (!container_names_.insert(name).second) {
        say(schema::duplicate(child(path, "name"), json::string(name)));
      }
    }
    const std::string_view image = json::get_string(c, {"image"});
    if (image.empty()) {
      say(schema::required(child(path, "image")));
    } else if (image.find_first_of(" \t\r\n") == 0 ||
               image.find_last_of(" \t\r\n") == image.size() - 1) {
      say(schema::invalid(child(path, "image"), json::string(image),
                          "must not have leading or trailing whitespace"));
    }
    choice(c, path, "imagePullPolicy", {"Always", "IfNotPresent", "Never"});
    choice(c, path, "terminationMessagePolicy", {"FallbackToLogsOnError", "File"});
    check_ports(c, child(path, "ports"));
    check_env(c, child(path, "env"));
    check_mounts(c, child(path, "volumeMounts"));
    check_resources(c, child(path, "resources"));
  }

  void check_ports(const json::value& c, const std::string& path) {
    std::set<std::string_view> seen;
    const json::array& ports = json::get_array(c, {"ports"});
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const std::string at = child(path, i);
      const std::string_view name = json::get_string(ports[i], {"name"});
      if (!name.empty()) {
        named(child(at, "name"), name, names::check_port_name(name));
        if (!seen.insert(name).second)
          say(schema::duplicate(child(at, "name"), json::string(name)));
      }
      const auto number = json::get_int(ports[i], {"containerPort"});
      if (!number) {
        say(schema::required(child(at, "containerPort")));
      } else if (*number < 1 || *number > 65535) {
        say(schema::invalid(child(at, "containerPort"), *number, kPortRange));
      }
      const auto host = json::get_int(ports[i], {"hostPort"});
      if (host && *host != 0 && (*host < 1 || *host > 65535)) {
        say(schema::invalid(child(at, "hostPort"), *host, kPortRange));
      }
      choice(ports[i], at, "protocol", {"SCTP", "TCP", "UDP"});
    }
  }

  void check_env(const json::value& c, const std::string& path) {
    const json::array& env = json::get_array(c, {"env"});
    for (std::size_t i = 0; i < env.size(); ++i) {
      const std::string at = child(path, i);
      const std::string_view name = json::get_string(env[i], {"name"});
      if (name.empty()) {
        say(schema::required(child(at, "name")));
      } else {
        named(child(at, "name"), name, names::check_env_name(name));
      }
      const json::value* from = json::find(env[i], {"valueFrom"});
      if (from == nullptr || !from->is_object()) continue;
      if (!json::get_string(env[i], {"value"}).empty()) {
        say(schema::invalid(child(at, "valueFrom"), "",
                            "may not be specified when `value` is not empty"));
      }
      if (from->get_object().size() != 1) {
        say(schema::invalid(child(at, "valueFrom"), "",
                            from->get_object().empty()
                                ? "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                  "`configMapKeyRef` or `secretKeyRef`"
                                : "may not have more than one field specified at a time"));
      }
    }
  }

  void check_mounts(const json::value& c, const std::string& path) {
    std::set<std::string_view> places;
    const json::array& mounts = json::get_array(c, {"volumeMounts"});
    for (std::size_t i = 0; i < mounts.size(); ++i) {
      const std::string at = child(path, i);
      const std::string_view name = json::get_string(mounts[i], {"name"});
      const std::string_view place = json::get_string(mounts[i], {"mountPath"});
      if (name.empty()) {
        say(schema::required(child(at, "name")));
      } else if (!volumes_.contains(std::string(name))) {
        say(schema::not_found(child(at, "name"), json::string(name)));
      }
      if (place.empty()) {
        say(schema::required(child(at, "mountPath")));
      } else if (!places.insert(place).second) {
        say(schema::invalid(child(at, "mountPath"), json::string(place), "must be unique"));
      }
      const std::string_view inside = json::get_string(mounts[i], {"subPath"});
      if (inside.starts_with('/')) {
        say(schema::invalid(child(at, "subPath"), json::string(inside), "must be a relative path"));
      }
      if (("/" + std::string(inside) + "/").find("/../") != std::string::npos) {
        say(schema::invalid(child(at, "subPath"), json::string(inside), "must not contain '..'"));
      }
    }
  }

  void check_amounts(const json::object& amounts, const std::string& path) {
    for (const auto& [key, amount] : amounts) {
      const std::string_view name = key;
      const std::string at = entry(path, name);
      named(path, name, names::check_label_key(name));
      const Result<Quantity> q = Quantity::from_json(amount);
      if (!q) {
        say(schema::invalid(at, amount, q.error().message));
      } else if (q->negative()) {
        say(schema::invalid(at, amount, "must be greater than or equal to 0"));
      } else if (!native(name) && *q != Quantity::of(q->value())) {
        say(schema::invalid(at, amount, "must be an integer"));
      }
    }
  }

  void check_resources(const json::value& c, const std::string& path) {
    const json::object& limits = json::get_object(c, {"resources", "limits"});
    const json::object& requests = json::get_object(c, {"resources", "requests"});
    check_amounts(limits, child(path, "limits"));
    check_amounts(requests, child(path, "requests"));
    const std::string at = child(path, "requests");
    for (const auto& [key, amount] : requests) {
      const std::string_view name = key;
      const json::value* limit = limits.if_contains(name);
      const Result<Quantity> want = Quantity::from_json(amount);
      if (!want) continue;
      if (limit == nullptr) {
        if (!native(name)) {
          say(schema::required(entry(child(path, "limits"), name),
                               "Limit must be set for non overcommitable resources"));
        }
        continue;
      }
      const Result<Quantity> most = Quantity::from_json(*limit);
      if (!most) continue;
      if (!native(name) && *want != *most) {
        say(schema::invalid(at, amount,
                            fmt::format("must be equal to {} limit of {}", name, most->text())));
      } else if (*want > *most) {
        say(schema::invalid(
            at, amount,
            fmt::format("must be less than or equal to {} limit of {}", name, most->text())));
      }
    }
  }

  const json::value& spec_;
  std::set<std::string> volumes_;
  std::set<std::string_view> container_names_;
  std::vector<Cause> out_;
};

// Gives `to` the member that `from` has, or takes it away.
void copy_member(json::object& to, const json::value& from, std::string_view key) {
  const json::value* v = json::find(from, {key});
  if (v != nullptr) {
    to[key] = *v;
  } else {
    to.erase(key);
  }
}

void copy_images(json::object& to, const json::value& from, std::string_view list) {
  json::value* containers = to.if_contains(list);
  const json::array& old = json::get_array(from, {list});
  if (containers == nullptr || !containers->is_array()) return;
  json::array& now = containers->get_array();
  if (now.size() != old.size()) return;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (json::object* c = now[i].if_object()) copy_member(*c, old[i], "image");
  }
}

bool holds_all(const json::array& list, const json::array& wanted) {
  return std::ranges::all_of(
      wanted, [&](const json::value& v) { return std::ranges::find(list, v) != list.end(); });
}

}  // namespace

std::vector<Cause> validate_pod_spec(const json::value& spec, std::string_view path) {
  return PodChecks(spec).run(path);
}

std::vector<Cause> validate_pod_update(const json::value& spec, const json::value& old_spec) {
  if (!spec.is_object()) return {};
  // Whatever may change is made equal first; any difference left is one that may not be.
  json::value rest = spec;
  json::object& o = rest.get_object();
  copy_images(o, old_spec, "containers");
  copy_images(o, old_spec, "initContainers");
  copy_member(o, old_spec, "activeDeadlineSeconds");
  const json::array& gates = json::get_array(old_spec, {"schedulingGates"});
  if (holds_all(gates, json::get_array(spec, {"schedulingGates"}))) {
    copy_member(o, old_spec, "schedulingGates");
  }
  const json::array& tolerations = json::get_array(old_spec, {"tolerations"});
  if (holds_all(json::get_array(spec, {"tolerations"}), tolerations)) {
    copy_member(o, old_spec, "tolerations");
  }
  if (json::get_int(old_spec, {"terminationGracePeriodSeconds"}).value_or(0) < 0) {
    copy_member(o, old_spec, "terminationGracePeriodSeconds");
  }
  if (rest == old_spec) return {};
  return {schema::forbidden(
      "spec",
      "pod updates may not change fields other than `spec.containers[*].image`,"
      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
      "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
      "to 1 if it was previously negative)")};
}

}  // namespace skiff::api
