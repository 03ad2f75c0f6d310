#include "apiserver/selection.h"

#include <fmt/format.h>

#include <algorithm>

namespace skiff::apiserver {

Result<Selection> Selection::parse(const ServedKind& kind, std::string_view ns,
                                   std::string_view labels, std::string_view fields) {
  Selection selection;
  selection.ns_ = ns;
  auto parsed_labels = LabelSelector::parse(labels);
  if (!parsed_labels) {
    return fail(Code::kBadRequest,
                fmt::format("unable to parse requirement: {}", parsed_labels.error().message));
  }
  selection.labels_ = std::move(*parsed_labels);
  auto parsed_fields = FieldSelector::parse(fields);
  if (!parsed_fields) return fail(Code::kBadRequest, parsed_fields.error().message);
  selection.fields_ = std::move(*parsed_fields);
  for (const FieldSelector::Term& term : selection.fields_.terms()) {
    const bool offered = term.path == "metadata.name" ||
                         (term.path == "metadata.namespace" && kind.resource().namespaced) ||
                         std::ranges::count(kind.kind.selectable, term.path) > 0;
    if (!offered) {
      return fail(Code::kBadRequest, fmt::format("field label not supported: {}", term.path));
    }
  }
  return selection;
}

bool Selection::matches(const json::value& object) const {
  return labels_.matches_object(object) && fields_.matches_object(object);
}

bool Selection::matches(const store::Entry& entry) const {
  if (!in_namespace(entry.key())) return false;
  if (everything()) return true;
  // The commonest field selector by far names one object; the key answers it without parsing.
  if (labels_.empty() && fields_.terms().size() == 1 &&
      fields_.terms()[0].path == "metadata.name") {
    return (entry.key().name == fields_.terms()[0].value) != fields_.terms()[0].negated;
  }
  return matches(*entry.value());
}

}  // namespace skiff::apiserver
