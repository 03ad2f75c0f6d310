// What -o asks for, and objects in that form. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

struct Format {
  enum class Kind { kTable, kWide, kName, kJson, kYaml, kJsonPath, kColumns } kind = Kind::kTable;
  std::string argument = {};  // of jsonpath= and custom-columns=

  // The server makes tables; everything else is made here, of objects.
  bool table() const { return kind == Kind::kTable || kind == Kind::kWide; }
};

// Empty, json, yaml, wide, name, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,...
Result<Format> parse_format(std::string_view text);

using NameOf = std::function<std::string(const json::value&)>;  // pod/a, tfjob.kubeflow.org/b

// `list` false: there is one object, and it is printed as itself.
Result<std::string> render(const Format& format, json::array objects, bool list,
                           const NameOf& name_of);

}  // namespace skiff::cli
