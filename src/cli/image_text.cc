#include "cli/image_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"

namespace skiff::cli {

std::string size_text(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB"}) {
    value /= 1000;
    if (value < 999.95 || unit[0] == 'G') return fmt::format("{:.1f} {}", value, unit);
  }
  return {};
}

std::string progress_line(const std::string& name, const image::Progress& progress) {
  if (progress.total <= 0) return name;
  constexpr std::int64_t kWidth = 30;
  const std::int64_t done = std::clamp<std::int64_t>(progress.done, 0, progress.total);
  const auto filled = static_cast<std::size_t>(static_cast<double>(done) /
                                               static_cast<double>(progress.total) * kWidth);
  std::string bar(filled, '=');
  if (filled < kWidth) bar += '>';
  return fmt::format("{} [{:<30}] {} of {} {}", name, bar, size_text(done),
                     size_text(progress.total), progress.what);
}

ImageRow mapping_row(const json::value& mapping) {
  ImageRow out{.image = std::string(json::get_string(mapping, {"spec", "pattern"})),
               .is = "host",
               .mapping = std::string(api::name(mapping))};
  for (const char* way : {"venv", "rootfs"}) {
    const auto path = json::get_string(mapping, {"spec", way});
    if (!path.empty()) out.is = fmt::format("{} {}", way, path);
  }
  return out;
}

std::vector<std::vector<std::string>> rows_table(const std::vector<ImageRow>& rows) {
  std::vector<std::vector<std::string>> out = {{"IMAGE", "IS", "SIZE", "MAPPING"}};
  for (const ImageRow& row : rows) {
    // Twelve digits tell images apart.
    const bool digest = row.is.starts_with("sha256:");
    out.push_back({row.image, digest ? row.is.substr(0, 19) : row.is,
                   row.mapping.empty() ? size_text(row.bytes) : "-",
                   row.mapping.empty() ? "-" : row.mapping});
  }
  return out;
}

json::value rows_json(const std::vector<ImageRow>& rows) {
  json::array out;
  for (const ImageRow& row : rows) {
    json::object entry{{"image", row.image}};
    if (row.mapping.empty()) {
      entry["digest"] = row.is;
      entry["size"] = row.bytes;
    } else {
      entry["is"] = row.is;
      entry["mapping"] = row.mapping;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace skiff::cli
