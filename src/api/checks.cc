#include "api/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "api/meta.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/selectors.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

using schema::child;

constexpr std::string_view kPercent =
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')";

bool digit(char c) { return c >= '0' && c <= '9'; }

bool is_percent(std::string_view text) {
  return text.size() > 1 && text.back() == '%' &&
         std::ranges::all_of(text.substr(0, text.size() - 1), digit);
}

std::string_view text_of(const json::value& v) {
  return v.is_string() ? json::view(v.get_string()) : std::string_view();
}

void check_requirement(const json::value& r, const std::string& path, Causes& out) {
  const std::string_view op = json::get_string(r, {"operator"});
  const json::array& values = json::get_array(r, {"values"});
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      out.push_back(schema::required(child(path, "values"),
                                     "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      out.push_back(
          schema::forbidden(child(path, "values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else {
    out.push_back(schema::invalid(child(path, "operator"), json::string(op),
                                  "not a valid selector operator"));
  }
  const std::string_view key = json::get_string(r, {"key"});
  for (const std::string& bad : names::check_label_key(key)) {
    out.push_back(schema::invalid(child(path, "key"), json::string(key), bad));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::string& bad : names::check_label_value(text_of(values[i]))) {
      out.push_back(schema::invalid(child(child(path, "values"), i), values[i], bad));
    }
  }
}

// Labels in the order of their keys, as sentences about them come.
std::map<std::string_view, std::string_view> sorted(const json::object& labels) {
  std::map<std::string_view, std::string_view> out;
  for (const auto& [key, value] : labels) out.emplace(key, text_of(value));
  return out;
}

json::string joined_of_containers(const json::value& pod_spec, std::string_view field) {
  std::string out;
  for (const json::value& c : json::get_array(pod_spec, {"containers"})) {
    if (!out.empty()) out += ',';
    out += json::get_string(c, {field});
  }
  return json::string(out);
}

}  // namespace

json::object* object_in(json::object& o, std::string_view key, bool make) {
  json::value* found = o.if_contains(key);
  if (found == nullptr || found->is_null()) {
    if (!make) return nullptr;
    found = &(o[key] = json::object());
  }
  return found->if_object();
}

const json::value& value_at(const json::value& object, Path path) {
  static const json::value kNothing = json::object();
  const json::value* found = json::find(object, path);
  return found == nullptr ? kNothing : *found;
}

std::string_view text_in(const json::object& o, std::string_view key) {
  const json::value* found = o.if_contains(key);
  return found == nullptr ? std::string_view() : text_of(*found);
}

json::value shown_map(const json::object& map) {
  if (map.empty()) return nullptr;
  json::object out;
  for (const auto& [key, value] : sorted(map)) out[key] = json::string(value);
  return out;
}

json::value shown_selector(const json::value* selector) {
  if (selector == nullptr || !selector->is_object()) return nullptr;
  json::object out;
  const json::object& labels = json::get_object(*selector, {"matchLabels"});
  if (!labels.empty()) out["matchLabels"] = shown_map(labels);
  json::array requirements;
  for (const json::value& r : json::get_array(*selector, {"matchExpressions"})) {
    json::object shown{{"key", json::string(json::get_string(r, {"key"}))},
                       {"operator", json::string(json::get_string(r, {"operator"}))}};
    const json::array& values = json::get_array(r, {"values"});
    if (!values.empty()) shown["values"] = values;
    requirements.emplace_back(std::move(shown));
  }
  if (!requirements.empty()) out["matchExpressions"] = std::move(requirements);
  return out;
}

void check_counts(const json::value& at, std::string_view path, Path fields, Causes& out) {
  for (const std::string_view field : fields) {
    const auto n = json::get_int(at, {field});
    if (n && *n < 0) {
      out.push_back(schema::invalid(child(path, field), *n, "must be greater than or equal to 0"));
    }
  }
}

void check_labels(const json::object& labels, std::string_view path, Causes& out) {
  for (const auto& [key, value] : sorted(labels)) {
    for (const std::string& bad : names::check_label_key(key)) {
      out.push_back(schema::invalid(std::string(path), json::string(key), bad));
    }
    for (const std::string& bad : names::check_label_value(value)) {
      out.push_back(schema::invalid(std::string(path), json::string(value), bad));
    }
  }
}

void check_annotations(const json::object& annotations, std::string_view path, Causes& out) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : sorted(annotations)) {
    // Keys are label keys without regard to case.
    for (const std::string& bad : names::check_label_key(lower(key))) {
      out.push_back(schema::invalid(std::string(path), json::string(key), bad));
    }
    bytes += key.size() + value.size();
  }
  if (bytes > limits::kAnnotationBytes) {
    out.push_back(schema::too_long(std::string(path), limits::kAnnotationBytes));
  }
}

void check_label_selector(const json::value* selector, std::string_view path, Causes& out) {
  if (selector == nullptr || !selector->is_object()) return;
  check_labels(json::get_object(*selector, {"matchLabels"}), child(path, "matchLabels"), out);
  const json::array& list = json::get_array(*selector, {"matchExpressions"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_requirement(list[i], child(child(path, "matchExpressions"), i), out);
  }
}

void check_immutable(const json::value* now, const json::value* old, std::string path,
                     Causes& out) {
  const json::value nothing;
  const json::value& a = now == nullptr ? nothing : *now;
  const json::value& b = old == nullptr ? nothing : *old;
  if (a == b) return;
  out.push_back(schema::invalid(std::move(path), a, "field is immutable"));
}

void check_int_or_percent(const json::value& v, const std::string& path, Causes& out) {
  if (v.is_string()) {
    if (!is_percent(text_of(v))) out.push_back(schema::invalid(path, v, kPercent));
  } else if (const auto n = json::get_int(v, {}); n && *n < 0) {
    out.push_back(schema::invalid(path, *n, "must be greater than or equal to 0"));
  }
}

void check_at_most_100_percent(const json::value& v, const std::string& path, Causes& out) {
  if (is_percent(text_of(v)) && int_or_percent(v) > 100) {
    out.push_back(schema::invalid(path, v, "must not be greater than 100%"));
  }
}

std::int64_t int_or_percent(const json::value& v) {
  if (!v.is_string()) return json::get_int(v, {}).value_or(0);
  std::int64_t n = 0;
  const std::string_view text = text_of(v);
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

void check_domain_path(std::string_view text, const std::string& path, Causes& out) {
  constexpr std::string_view kPathCharacters = "/-._~%!$&'()*+,;=:";
  if (text.empty()) {
    out.push_back(schema::required(path));
    return;
  }
  const std::size_t slash = text.find('/');
  if (slash == text.npos || slash == 0 || slash + 1 == text.size()) {
    out.push_back(schema::invalid(path, json::string(text),
                                  "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    return;
  }
  const std::string_view host = text.substr(0, slash), rest = text.substr(slash + 1);
  for (const std::string& bad : names::check_dns1123_subdomain(host)) {
    out.push_back(schema::invalid(path, json::string(host), bad));
  }
  const bool fine = std::ranges::all_of(rest, [&](char c) {
    return digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPathCharacters.find(c) != kPathCharacters.npos;
  });
  if (!fine) {
    out.push_back(schema::invalid(
        path, json::string(rest),
        R"(Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+'))"));
  }
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> choices) {
  return std::ranges::find(choices, text) != choices.end();
}

std::optional<bool> selects(const json::value* selector, const json::object& labels) {
  if (selector == nullptr || !selector->is_object()) return false;
  const auto read = LabelSelector::from_object(*selector);
  if (!read) return std::nullopt;
  return read->matches(labels);
}

json::string selector_cell(const json::value* selector) {
  if (selector == nullptr || !selector->is_object()) return "<none>";
  const auto read = LabelSelector::from_object(*selector);
  if (!read) return "<error>";
  const std::string text = read->text();
  return json::string(text.empty() ? "<none>" : text);
}

json::string names_cell(const json::value& pod_spec) {
  return joined_of_containers(pod_spec, "name");
}
json::string images_cell(const json::value& pod_spec) {
  return joined_of_containers(pod_spec, "image");
}

std::int64_t count(const json::value& object, Path path) {
  return json::get_int(object, path).value_or(0);
}

void warn_of_pod_names(const json::value& object, std::vector<std::string>& out,
                       std::string_view used_in) {
  const names::Complaints bad = names::check_dns1123_label(name(object));
  if (bad.empty()) return;
  out.push_back(
      fmt::format("metadata.name: this is used in {}, which can result in surprising behavior; a "
                  "DNS label is recommended: [{}]",
                  used_in, join(bad, " ")));
}

}  // namespace skiff::api
