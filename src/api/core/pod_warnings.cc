#include "api/core/pod_warnings.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "api/checks.h"
#include "api/core/volume_warnings.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace skiff::api {
namespace {

using Warnings = std::vector<std::string>;

// By key of a node's label.
const std::map<std::string, std::string, std::less<>> kOldLabels = {
    {"beta.kubernetes.io/arch", R"(deprecated since v1.14; use "kubernetes.io/arch" instead)"},
    {"beta.kubernetes.io/os", R"(deprecated since v1.14; use "kubernetes.io/os" instead)"},
    {"failure-domain.beta.kubernetes.io/region",
     R"(deprecated since v1.17; use "topology.kubernetes.io/region" instead)"},
    {"failure-domain.beta.kubernetes.io/zone",
     R"(deprecated since v1.17; use "topology.kubernetes.io/zone" instead)"},
    {"beta.kubernetes.io/instance-type",
     R"(deprecated since v1.17; use "node.kubernetes.io/instance-type" instead)"},
    {"app.kubernetes.io/created-by", "deprecated since v1.9"},
    {"scheduler.alpha.kubernetes.io/preferAvoidPods",
     "deprecated since v1.22; use Taints and Tolerations instead"},
    {"node-role.kubernetes.io/master", R"(use "node-role.kubernetes.io/control-plane" instead)"}};

constexpr std::pair<std::string_view, std::string_view> kOldAnnotations[] = {
    {"scheduler.alpha.kubernetes.io/critical-pod",
     R"(non-functional in v1.16+; use the "priorityClassName" field instead)"},
    {"security.alpha.kubernetes.io/sysctls",
     R"(non-functional in v1.11+; use the "sysctls" field instead)"},
    {"security.alpha.kubernetes.io/unsafe-sysctls",
     R"(non-functional in v1.11+; use the "sysctls" field instead)"}};

constexpr std::string_view kBytes[] = {"memory", "ephemeral-storage"};

constexpr std::string_view kNoSeccomp =
    R"(non-functional in v1.27+; use the "seccompProfile" field instead)";

class Reader {
 public:
  Reader(const json::value& pod, std::string path)
      : pod_(pod), spec_(object_at(pod, "spec")), path_(std::move(path)) {
    if (!path_.empty()) path_ += '.';
  }

  Warnings read() {
    placement();
    annotations();
    warn_of_volumes(json::get_array(spec_, {"volumes"}), spec("volumes"), out_);
    doubles("hostAliases", "ip");
    doubles("imagePullSecrets", "name");
    std::size_t i = 0;
    for (const json::value& secret : json::get_array(spec_, {"imagePullSecrets"})) {
      if (json::get_string(secret, {"name"}).empty()) {
        say("{}[{}].name: invalid empty name \"\"", spec("imagePullSecrets"), i);
      }
      ++i;
    }
    for (const std::string_view name : kBytes) fraction(spec_, "overhead", name, path_ + "spec");
    if (old_annotation("seccomp.security.alpha.kubernetes.io/pod") &&
        json::find(spec_, {"securityContext", "seccompProfile"}) == nullptr) {
      say("{}: {}", annotation("seccomp.security.alpha.kubernetes.io/pod"), kNoSeccomp);
    }
    each_container([&](const json::value& c, const std::string& at) { container(c, at); });
    ports();
    port_names();
    if (json::get_int(spec_, {"terminationGracePeriodSeconds"}).value_or(0) < 0) {
      say("{}: must be >= 0; negative values are invalid and will be treated as 1",
          spec("terminationGracePeriodSeconds"));
    }
    pod_affinity("podAffinity");
    pod_affinity("podAntiAffinity");
    return std::move(out_);
  }

 private:
  static const json::value& object_at(const json::value& v, std::string_view key) {
    static const json::value kEmpty = json::object{};
    const json::value* found = json::find(v, {key});
    return found == nullptr ? kEmpty : *found;
  }

  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    if (out_.size() >= limits::kNamedWarnings) return;
    out_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  std::string spec(std::string_view child) const { return fmt::format("{}spec.{}", path_, child); }
  std::string annotation(std::string_view key) const {
    return fmt::format("{}metadata.annotations[{}]", path_, key);
  }
  bool old_annotation(std::string_view key) const {
    return json::find(pod_, {"metadata", "annotations", key}) != nullptr;
  }

  void each_container(const std::function<void(const json::value&, const std::string&)>& fn) const {
    for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
      std::size_t i = 0;
      for (const json::value& container : json::get_array(spec_, {list})) {
        fn(container, fmt::format("{}[{}]", spec(list), i++));
      }
    }
  }

  void node_term(const json::value& term, const std::string& at, bool check_values) {
    std::size_t i = 0;
    for (const json::value& expression : json::get_array(term, {"matchExpressions"})) {
      const std::string_view key = json::get_string(expression, {"key"});
      if (const auto old = kOldLabels.find(key); old != kOldLabels.end()) {
        say("{}.matchExpressions[{}].key: {} is {}", at, i, key, old->second);
      }
      std::size_t v = 0;
      for (const std::string& value : json::strings(json::get_array(expression, {"values"}))) {
        for (const std::string& bad : names::check_label_value(value)) {
          if (!check_values) break;
          say("{}.matchExpressions[{}].values[{}]: {} is invalid, {}", at, i, v, value, bad);
        }
        ++v;
      }
      ++i;
    }
  }

  void placement() {
    for (const auto& [key, value] : json::get_object(spec_, {"nodeSelector"})) {
      const auto old = kOldLabels.find(std::string_view(key));
      if (old != kOldLabels.end()) {
        say("{}[{}]: {}", spec("nodeSelector"), std::string_view(key), old->second);
      }
    }
    constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
    constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
    const std::string at = spec("affinity.nodeAffinity");
    std::size_t i = 0;
    for (const json::value& term :
         json::get_array(spec_, {"affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"})) {
      node_term(term, fmt::format("{}.{}.nodeSelectorTerms[{}]", at, kRequired, i++), false);
    }
    i = 0;
    for (const json::value& term :
         json::get_array(spec_, {"affinity", "nodeAffinity", kPreferred})) {
      node_term(object_at(term, "preference"),
                fmt::format("{}.{}[{}].preference", at, kPreferred, i++), true);
    }
    i = 0;
    for (const json::value& spread : json::get_array(spec_, {"topologySpreadConstraints"})) {
      const std::string one = fmt::format("{}[{}]", spec("topologySpreadConstraints"), i++);
      const std::string_view key = json::get_string(spread, {"topologyKey"});
      if (const auto old = kOldLabels.find(key); old != kOldLabels.end()) {
        say("{}.topologyKey: {} is {}", one, key, old->second);
      }
      no_selector(spread, one);
    }
  }

  void no_selector(const json::value& term, const std::string& at) {
    if (json::find(term, {"labelSelector"}) != nullptr) return;
    say("{}.labelSelector: a null labelSelector results in matching no pod", at);
  }

  void pod_affinity(std::string_view kind) {
    constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
    constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
    std::size_t i = 0;
    for (const json::value& term : json::get_array(spec_, {"affinity", kind, kRequired})) {
      no_selector(term, fmt::format("{}.{}.{}[{}]", spec("affinity"), kind, kRequired, i++));
    }
    i = 0;
    for (const json::value& term : json::get_array(spec_, {"affinity", kind, kPreferred})) {
      no_selector(
          object_at(term, "podAffinityTerm"),
          fmt::format("{}.{}.{}[{}].podAffinityTerm", spec("affinity"), kind, kPreferred, i++));
    }
  }

  void annotations() {
    for (const auto& [key, message] : kOldAnnotations) {
      if (old_annotation(key)) say("{}: {}", annotation(key), message);
    }
  }

  void doubles(std::string_view list, std::string_view key) {
    std::set<std::string, std::less<>> seen;
    std::size_t i = 0;
    for (const json::value& item : json::get_array(spec_, {list})) {
      const std::string_view value = json::get_string(item, {key});
      if (!seen.emplace(value).second) {
        say("{}[{}].{}: duplicate {} \"{}\"", spec(list), i, key, key, value);
      }
      ++i;
    }
  }

  void fraction(const json::value& owner, std::string_view list, std::string_view name,
                const std::string& at) {
    const json::value* found = json::find(owner, {list, name});
    if (found == nullptr) return;
    const auto amount = Quantity::from_json(*found);
    if (!amount || amount->whole()) return;
    say("{}.{}[{}]: fractional byte value \"{}\" is invalid, must be an integer", at, list, name,
        amount->text());
  }

  void container(const json::value& c, const std::string& at) {
    const std::string_view name = json::get_string(c, {"name"});
    const std::string seccomp =
        fmt::format("container.seccomp.security.alpha.kubernetes.io/{}", name);
    if (old_annotation(seccomp) &&
        json::find(c, {"securityContext", "seccompProfile"}) == nullptr) {
      say("{}: {}", annotation(seccomp), kNoSeccomp);
    }
    for (const std::string_view resource : kBytes) {
      fraction(object_at(c, "resources"), "limits", resource, at + ".resources");
      fraction(object_at(c, "resources"), "requests", resource, at + ".resources");
    }
    std::set<std::string, std::less<>> seen;
    std::size_t i = 0;
    for (const json::value& item : json::get_array(c, {"env"})) {
      const std::string_view variable = json::get_string(item, {"name"});
      const std::string_view value = json::get_string(item, {"value"});
      const std::string reference = fmt::format("$({})", variable);
      // X=a, X=$(X)b adds to the first one and is meant.
      const bool adds = json::find(item, {"valueFrom"}) == nullptr && value != reference &&
                        value.contains(reference);
      if (!seen.emplace(variable).second && !adds) {
        say("{}.env[{}]: hides previous definition of \"{}\", which may be dropped when using "
            "apply",
            at, i, variable);
      }
      ++i;
    }
  }

  struct Port {
    std::string at;
    std::string_view host_ip;
    std::int64_t host_port = 0;
  };

  void ports() {
    std::map<std::string, std::vector<Port>> all;
    each_container([&](const json::value& c, const std::string& at) {
      std::size_t i = 0;
      for (const json::value& port : json::get_array(c, {"ports"})) {
        const Port one{fmt::format("{}.ports[{}]", at, i++), json::get_string(port, {"hostIP"}),
                       json::get_int(port, {"hostPort"}).value_or(0)};
        auto& others = all[fmt::format("{}/{}", json::get_int(port, {"containerPort"}).value_or(0),
                                       json::get_string(port, {"protocol"}))];
        for (const Port& other : others) compare(one, other);
        if (others.size() < limits::kComparedForWarnings) others.push_back(one);
      }
    });
  }

  void compare(const Port& one, const Port& other) {
    if (one.host_ip == other.host_ip && one.host_port == other.host_port) {
      say("{}: duplicate port definition with {}", one.at, other.at);
    } else if (one.host_port == 0 || other.host_port == 0) {
      say("{}: overlapping port definition with {}", one.at, other.at);
    } else if (one.host_port == other.host_port && one.host_ip.empty() != other.host_ip.empty()) {
      say("{}: dangerously ambiguous port definition with {}", one.at, other.at);
    }
  }

  void port_names() {
    std::map<std::string, std::string, std::less<>> all;
    each_container([&](const json::value& c, const std::string& at) {
      std::size_t i = 0;
      for (const json::value& port : json::get_array(c, {"ports"})) {
        const std::string here = fmt::format("{}.ports[{}]", at, i++);
        const std::string_view name = json::get_string(port, {"name"});
        if (name.empty()) continue;
        const auto [first, fresh] = all.try_emplace(std::string(name), here);
        if (fresh) continue;
        say("{}: duplicate port name \"{}\" with {}, services and probes that select ports by "
            "name will use {}",
            here, name, first->second, first->second);
      }
    });
  }

  const json::value& pod_;
  const json::value& spec_;
  std::string path_;
  Warnings out_ = {};
};

}  // namespace

std::vector<std::string> pod_warnings(const json::value& pod, const std::string& path) {
  return Reader(pod, path).read();
}

void warn_of_template(const json::value& object, const Admission& context, const std::string& path,
                      std::vector<std::string>& out) {
  if (!context.subresource.empty()) return;
  const std::string root(split(path, '.').front());
  const json::value* now = json::find(object, {root});
  const json::value* old = context.old == nullptr ? nullptr : json::find(*context.old, {root});
  if (now == nullptr || (old != nullptr && *now == *old)) return;
  const json::value* found = &object;
  for (const std::string_view step : split(path, '.')) {
    found = json::find(*found, {step});
    if (found == nullptr) return;
  }
  for (std::string& warning : pod_warnings(*found, path)) out.push_back(std::move(warning));
}

std::vector<std::string> workload_warnings(const json::value& object, const Admission& context) {
  std::vector<std::string> out;
  if (context.old == nullptr) warn_of_pod_names(object, out);
  warn_of_template(object, context, "spec.template", out);
  return out;
}

}  // namespace skiff::api
