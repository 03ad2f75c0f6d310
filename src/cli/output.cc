#include "cli/output.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/json_path.h"
#include "cli/printer.h"

namespace skiff::cli {
namespace {

struct NamedPath {
  std::string header;
  JsonPath path;
};

// HEADER:PATH pairs; a comma inside brackets belongs to the path.
Result<std::vector<NamedPath>> read_columns(std::string_view text) {
  std::vector<NamedPath> out;
  std::string part;
  int depth = 0;
  const auto finish = [&]() -> Result<void> {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos || colon == 0) {
      return fail(
          Code::kBadRequest,
          fmt::format("custom-columns: \"{}\" is not HEADER:PATH, as in NAME:.metadata.name",
                      part));
    }
    SKIFF_ASSIGN(JsonPath path, JsonPath::parse(part.substr(colon + 1)));
    out.push_back({part.substr(0, colon), std::move(path)});
    part.clear();
    return {};
  };
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      SKIFF_TRY(finish());
    } else {
      part += c;
    }
  }
  SKIFF_TRY(finish());
  return out;
}

Result<std::string> columns_text(std::string_view text, const json::array& objects) {
  SKIFF_ASSIGN(const std::vector<NamedPath> paths, read_columns(text));
  std::vector<std::vector<std::string>> rows(1);
  for (const NamedPath& path : paths) rows.front().push_back(path.header);
  for (const json::value& object : objects) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const NamedPath& path : paths) {
      std::vector<std::string> found;
      for (const json::value* value : path.path.find(object)) found.push_back(plain_text(*value));
      row.push_back(found.empty() ? "<none>" : printable(join(found, ",")));
    }
  }
  return columns(rows);
}

}  // namespace

Result<Format> parse_format(std::string_view text) {
  using Kind = Format::Kind;
  if (text.empty()) return Format{};
  if (text == "wide") return Format{.kind = Kind::kWide};
  if (text == "name") return Format{.kind = Kind::kName};
  if (text == "json") return Format{.kind = Kind::kJson};
  if (text == "yaml") return Format{.kind = Kind::kYaml};
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string argument(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  if (name == "jsonpath" && !argument.empty()) {
    SKIFF_TRY(JsonPath::parse(argument));
    return Format{.kind = Kind::kJsonPath, .argument = argument};
  }
  if (name == "custom-columns" && !argument.empty()) {
    SKIFF_TRY(read_columns(argument));
    return Format{.kind = Kind::kColumns, .argument = argument};
  }
  return fail(Code::kBadRequest,
              fmt::format("-o {}: known are json, yaml, wide, name, jsonpath=TEMPLATE and "
                          "custom-columns=HEADER:PATH,...",
                          text));
}

Result<std::string> render(const Format& format, json::array objects, bool list,
                           const NameOf& name_of) {
  using Kind = Format::Kind;
  if (format.kind == Kind::kName) {
    std::string out;
    for (const json::value& object : objects) out += name_of(object) + "\n";
    return out;
  }
  if (format.kind == Kind::kColumns) return columns_text(format.argument, objects);
  json::value all;
  if (!list && objects.size() == 1) {
    all = std::move(objects.front());
  } else {
    all = json::object{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(objects)}};
  }
  if (format.kind == Kind::kJsonPath) {
    SKIFF_ASSIGN(const JsonPath path, JsonPath::parse(format.argument));
    return path.render(all);
  }
  return format.kind == Kind::kJson ? json::pretty(all) + "\n" : yaml::serialize(all);
}

}  // namespace skiff::cli
