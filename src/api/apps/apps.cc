#include "api/apps/apps.h"

#include <fmt/format.h>

#include "api/core/pod_template.h"
#include "schema/causes.h"

namespace skiff::api {

using schema::child;

std::vector<Kind> apps_kinds() {
  return {deployment_kind(), replica_set_kind(), stateful_set_kind(), daemon_set_kind(),
          controller_revision_kind()};
}

void default_int(json::object& o, std::string_view key, std::int64_t value) {
  json::value& v = o[key];
  if (v.is_null()) v = value;
}

void default_text(json::object& o, std::string_view key, std::string_view value) {
  json::value& v = o[key];
  if (v.is_null() || (v.is_string() && v.get_string().empty())) v = json::string(value);
}

void check_owned_selector(const json::value& object, std::string_view what, Causes& out) {
  const json::value* selector = json::find(object, {"spec", "selector"});
  if (selector == nullptr || !selector->is_object()) {
    out.push_back(schema::required("spec.selector"));
    return;
  }
  check_label_selector(selector, "spec.selector", out);
  if (json::get_object(*selector, {"matchLabels"}).empty() &&
      json::get_array(*selector, {"matchExpressions"}).empty()) {
    out.push_back(schema::invalid("spec.selector", shown_selector(selector),
                                  fmt::format("empty selector is invalid for {}", what)));
  }
}

void check_owned_template(const json::value& object, std::string_view kind,
                          std::string_view bad_selector, Causes& out) {
  static const json::value kNothing = json::object();
  const json::value* selector = json::find(object, {"spec", "selector"});
  const json::value* found = json::find(object, {"spec", "template"});
  const json::value& pod = found == nullptr ? kNothing : *found;
  const json::object& labels = json::get_object(pod, {"metadata", "labels"});
  const auto fits = selects(selector, labels);
  if (!fits) {
    out.push_back(schema::invalid("spec.selector", shown_selector(selector), bad_selector));
    return;
  }
  // An absent selector is complained about elsewhere, and here again, as the real server does.
  if (!*fits) {
    out.push_back(schema::invalid("spec.template.metadata.labels", shown_map(labels),
                                  "`selector` does not match template `labels`"));
  }
  check_pod_template(pod, "spec.template", out);
  check_always_running(pod, "spec.template", kind, out);
}

void check_collisions(const json::value& object, const json::value& old, Causes& out) {
  const std::int64_t now = count(object, {"status", "collisionCount"});
  if (now < count(old, {"status", "collisionCount"})) {
    out.push_back(schema::invalid("status.collisionCount", now, "cannot be decremented"));
  }
}

void check_bounded(const json::value& object, Path fields, std::string_view bound,
                   std::string_view sentence, Causes& out) {
  const std::int64_t most = count(object, {"status", bound});
  for (const std::string_view field : fields) {
    const std::int64_t n = count(object, {"status", field});
    if (n > most) out.push_back(schema::invalid(child("status", field), n, sentence));
  }
}

}  // namespace skiff::api
