// Images as text for people: sizes, progress and the table of `skiff image ls`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "image/images.h"

namespace skiff::cli {

// 950 B, 1.2 kB, 34.0 MB: thousands, as Docker counts.
std::string size_text(std::int64_t bytes);

// name [=====>    ] 12.0 MB of 40.0 MB
std::string progress_line(const std::string& name, const image::Progress& progress);

struct ImageRow {
  std::string image = {};  // or a pattern
  std::string is = {};     // a digest, or what it is mapped to
  std::int64_t bytes = 0;
  std::string mapping = {};  // the object's name; empty: an image of the store
};
ImageRow mapping_row(const json::value& mapping);
std::vector<std::vector<std::string>> rows_table(const std::vector<ImageRow>& rows);
json::value rows_json(const std::vector<ImageRow>& rows);

}  // namespace skiff::cli
