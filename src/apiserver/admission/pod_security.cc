#include "apiserver/admission/pod_security.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "apiserver/status.h"
#include "base/strings.h"

namespace skiff::apiserver::pod_security {
namespace {

constexpr std::string_view kLabelPrefix = "pod-security.kubernetes.io/";
// The newest version that changed a check: later ones mean the same.
constexpr int kNewestCheck = 34;

struct Reader {
  const json::object& labels;
  std::vector<Cause>& causes;

  const json::value* find(std::string_view label) const {
    return labels.if_contains(std::string(kLabelPrefix) + std::string(label));
  }
  void complain(std::string_view label, const json::value& value, std::string_view why) const {
    causes.push_back(
        invalid_value(fmt::format("metadata.labels[{}{}]", kLabelPrefix, label), value, why));
  }
  // False where the label is absent or cannot be read.
  bool level(std::string_view label, Level fallback, Level& out) const {
    const json::value* value = find(label);
    if (value == nullptr) return false;
    const std::string_view text = value->is_string() ? json::view(value->get_string()) : "";
    for (const auto& [name, level] : {std::pair{"privileged", Level::kPrivileged},
                                      {"baseline", Level::kBaseline},
                                      {"restricted", Level::kRestricted}}) {
      if (text != name) continue;
      out = level;
      return true;
    }
    out = fallback;
    complain(label, *value, "must be one of privileged, baseline, restricted");
    return false;
  }
  bool version(std::string_view label, int& out) const {
    const json::value* value = find(label);
    if (value == nullptr) return false;
    std::string_view text = value->is_string() ? json::view(value->get_string()) : "";
    out = kLatest;
    if (text == "latest") return true;
    if (text.starts_with("v1.")) {
      text.remove_prefix(3);
      int minor = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minor);
      const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
      if (digits && error == std::errc{} && end == text.data() + text.size() &&
          (text[0] != '0' || text.size() == 1)) {
        out = minor;
        return true;
      }
    }
    complain(label, *value, "must be \"latest\" or \"v1.x\"");
    return true;
  }
};

const VersionedCheck* at_version(const Check& check, int minor) {
  const VersionedCheck* found = nullptr;
  for (const VersionedCheck& version : check.versions) {
    if (version.minor <= minor) found = &version;
  }
  return found;
}

}  // namespace

std::string Policy::text() const {
  constexpr std::string_view kNames[] = {"privileged", "baseline", "restricted"};
  const std::string_view name = kNames[static_cast<int>(level)];
  return minor == kLatest ? fmt::format("{}:latest", name) : fmt::format("{}:v1.{}", name, minor);
}

Policies read_policies(const json::object& labels, std::vector<Cause>& causes) {
  Policies out;
  const Reader reader{labels, causes};
  const bool enforced = reader.level("enforce", Level::kRestricted, out.enforce.level);
  reader.version("enforce-version", out.enforce.minor);
  reader.level("audit", Level::kPrivileged, out.audit.level);
  reader.version("audit-version", out.audit.minor);
  reader.level("warn", Level::kPrivileged, out.warn.level);
  const bool warn_version = reader.version("warn-version", out.warn.minor);
  // What is enforced on pods is worth a warning on what makes pods.
  if (reader.find("warn") == nullptr && enforced && out.enforce.level > out.warn.level) {
    out.warn.level = out.enforce.level;
    if (!warn_version) out.warn.minor = out.enforce.minor;
  }
  return out;
}

std::vector<Finding> evaluate(const Policy& policy, const json::value& metadata,
                              const json::value& spec) {
  std::vector<Finding> findings;
  if (policy.level == Level::kPrivileged) return findings;
  Pod pod{.metadata = metadata, .spec = spec};
  for (std::string_view field : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const json::value& container : json::get_array(spec, {field})) {
      pod.containers.push_back(&container);
    }
  }
  const int minor = std::min(policy.minor, kNewestCheck);
  const auto run = [&](const Check& check) {
    const VersionedCheck* version = at_version(check, minor);
    if (version == nullptr) return;
    Finding finding = version->run(pod);
    if (!finding.reason.empty()) findings.push_back(std::move(finding));
  };
  const bool restricted = policy.level == Level::kRestricted;
  std::set<std::string_view> replaced;
  for (const Check& check : restricted_checks()) {
    if (restricted && at_version(check, minor) != nullptr) replaced.insert(check.replaces);
  }
  for (const Check& check : baseline_checks()) {
    if (!replaced.contains(check.name)) run(check);
  }
  if (!restricted) return findings;
  for (const Check& check : restricted_checks()) run(check);
  return findings;
}

std::string reasons(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) out.push_back(finding.reason);
  return join(out, ", ");
}

std::string details(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) {
    out.push_back(finding.detail.empty() ? finding.reason
                                         : fmt::format("{} ({})", finding.reason, finding.detail));
  }
  return join(out, ", ");
}

std::string name_of(const json::value* named_thing) {
  return std::string(json::get_string(*named_thing, {"name"}));
}

Names sorted(const std::set<std::string>& values) { return {values.begin(), values.end()}; }

std::string setters(bool pod, const Names& containers) {
  std::vector<std::string> out;
  if (pod) out.emplace_back("pod");
  if (!containers.empty()) out.push_back(named("container", containers));
  return join(out, " and ");
}

std::string quoted(const Names& names) {
  return names.empty() ? "" : "\"" + join(names, "\", \"") + "\"";
}

std::string_view plural(std::string_view one, std::string_view many, std::size_t count) {
  return count == 1 ? one : many;
}

std::string named(std::string_view singular, const Names& names) {
  return fmt::format("{}{} {}", singular, names.size() == 1 ? "" : "s", quoted(names));
}

}  // namespace skiff::apiserver::pod_security
