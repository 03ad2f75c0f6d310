#include "api/core/node_selector.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/meta.h"

namespace skiff::api {
namespace {

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// `actual` is null where the node has no such label.
bool requirement_holds(const json::value& requirement, const std::string_view* actual) {
  const std::string_view op = json::get_string(requirement, {"operator"});
  const json::array& values = json::get_array(requirement, {"values"});
  const bool listed = actual != nullptr && std::ranges::any_of(values, [&](const json::value& v) {
                        return v.is_string() && json::view(v.get_string()) == *actual;
                      });
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return actual != nullptr;
  if (op == "DoesNotExist") return actual == nullptr;
  if ((op == "Gt" || op == "Lt") && actual != nullptr && values.size() == 1 &&
      values[0].is_string()) {
    const auto left = integer(*actual);
    const auto right = integer(json::view(values[0].get_string()));
    return left && right && (op == "Gt" ? *left > *right : *left < *right);
  }
  return false;
}

bool term_holds(const json::value& term, const json::value& node) {
  const json::object& labels = json::get_object(node, {"metadata", "labels"});
  const auto label_holds = [&](const json::value& requirement) {
    const json::value* found = labels.if_contains(json::get_string(requirement, {"key"}));
    if (found == nullptr || !found->is_string()) return requirement_holds(requirement, nullptr);
    const std::string_view text = json::view(found->get_string());
    return requirement_holds(requirement, &text);
  };
  const auto field_holds = [&](const json::value& requirement) {
    const std::string_view name = api::name(node);
    return json::get_string(requirement, {"key"}) == "metadata.name" &&
           requirement_holds(requirement, &name);
  };
  const json::array& expressions = json::get_array(term, {"matchExpressions"});
  const json::array& fields = json::get_array(term, {"matchFields"});
  // Kubernetes lets an empty term match nothing.
  if (expressions.empty() && fields.empty()) return false;
  return std::ranges::all_of(expressions, label_holds) && std::ranges::all_of(fields, field_holds);
}

}  // namespace

bool selects_node(const json::value& selector, const json::value& node) {
  return std::ranges::any_of(json::get_array(selector, {"nodeSelectorTerms"}),
                             [&](const json::value& term) { return term_holds(term, node); });
}

bool volume_reaches_node(const json::value& volume, const json::value& node) {
  const json::value* required = json::find(volume, {"spec", "nodeAffinity", "required"});
  return required == nullptr || !required->is_object() || selects_node(*required, node);
}

}  // namespace skiff::api
