// Which objects of a resource a list or watch asks for: namespace, labels and fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/kinds.h"
#include "base/http.h"
#include "base/result.h"
#include "base/selectors.h"
#include "store/store.h"

namespace skiff::apiserver {

class Selection {
 public:
  // kBadRequest for a selector that does not parse or a field the kind does not offer.
  static Result<Selection> parse(const ServedKind& kind, std::string_view ns,
                                 std::string_view labels, std::string_view fields);

  const std::string& ns() const { return ns_; }
  // True where every object of the namespace matches, so that nobody needs to parse them.
  bool everything() const { return labels_.empty() && fields_.empty(); }
  bool in_namespace(const store::Key& key) const { return ns_.empty() || key.ns == ns_; }
  bool matches(const store::Entry& entry) const;
  bool matches(const json::value& object) const;

 private:
  std::string ns_;
  LabelSelector labels_;
  FieldSelector fields_;
  // Of the kind, where it has them.
  void (*from_storage_)(json::value&) = nullptr;
  std::optional<std::string> (*field_text_)(const json::value&, std::string_view) = nullptr;
};

}  // namespace skiff::apiserver
