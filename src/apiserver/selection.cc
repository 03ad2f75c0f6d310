#include "apiserver/selection.h"

#include <fmt/format.h>

#include <algorithm>

namespace skiff::apiserver {
namespace {

// Kinds that select by fields of their own say it otherwise than all others.
std::unexpected<Error> unknown_field(const ServedKind& kind, std::string_view path) {
  if (kind.resource().key() == "jobs.batch") {
    return fail(Code::kBadRequest, fmt::format("field label \"{}\" not supported for Job", path));
  }
  const bool of_kubernetes = kind.kind.schema.starts_with("io.k8s.") && !kind.custom;
  if (!of_kubernetes || !kind.kind.selectable.empty()) {
    return fail(Code::kBadRequest, fmt::format("field label not supported: {}", path));
  }
  return fail(Code::kBadRequest,
              fmt::format("\"{}\" is not a known field selector: only \"metadata.name\", "
                          "\"metadata.namespace\"",
                          path));
}

}  // namespace

Result<Selection> Selection::parse(const ServedKind& kind, std::string_view ns,
                                   std::string_view labels, std::string_view fields) {
  Selection selection;
  selection.ns_ = ns;
  selection.from_storage_ = kind.kind.from_storage;
  selection.field_text_ = kind.kind.field_text;
  auto parsed_labels = LabelSelector::parse(labels);
  if (!parsed_labels) return fail(Code::kBadRequest, parsed_labels.error().message);
  selection.labels_ = std::move(*parsed_labels);
  auto parsed_fields = FieldSelector::parse(fields);
  if (!parsed_fields) return fail(Code::kBadRequest, parsed_fields.error().message);
  selection.fields_ = std::move(*parsed_fields);
  for (const FieldSelector::Term& term : selection.fields_.terms()) {
    const bool offered = term.path == "metadata.name" ||
                         (term.path == "metadata.namespace" && kind.resource().namespaced) ||
                         std::ranges::count(kind.kind.selectable, term.path) > 0;
    if (!offered) return unknown_field(kind, term.path);
  }
  return selection;
}

bool Selection::matches(const json::value& object) const {
  if (!labels_.matches_object(object)) return false;
  if (fields_.empty() || (from_storage_ == nullptr && field_text_ == nullptr)) {
    return fields_.matches_object(object);
  }
  // Fields are those of the version that the client sees.
  json::value room;
  if (from_storage_ != nullptr) from_storage_(room = object);
  const json::value& shown = from_storage_ != nullptr ? room : object;
  return fields_.matches([&](std::string_view path) {
    const auto own = field_text_ == nullptr ? std::nullopt : field_text_(shown, path);
    return own ? *own : FieldSelector::text_at(shown, path);
  });
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
