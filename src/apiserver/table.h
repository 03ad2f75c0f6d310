// Objects as rows, the way kubectl prints them.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/kinds.h"
#include "base/json.h"
#include "base/time.h"

namespace skiff::apiserver {

// What each row carries of its object (?includeObject=).
enum class RowObject { kNone, kMetadata, kObject };

json::array table_columns(const ServedKind& kind);
json::object table_row(const ServedKind& kind, const json::value& object, RowObject include,
                       std::string_view meta_version, Time now);
json::object partial_metadata(const json::value& object, std::string_view meta_version);

}  // namespace skiff::apiserver
