// kubectl's JSONPath templates: text with {.a.b[0]}, {.items[*].metadata.name},
// {.c[?(@.type=="Ready")].status}, {..name}, {range .items[*]}...{"\n"}{end}. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

class JsonPath {
 public:
  // A path without braces is taken as one: .metadata.name
  static Result<JsonPath> parse(std::string_view text);
  JsonPath(JsonPath&&) noexcept;
  JsonPath& operator=(JsonPath&&) noexcept;
  ~JsonPath();

  // The text, with what each path leads to; several values with a space between them, nothing for
  // a path that leads nowhere.
  std::string render(const json::value& root) const;
  // What the paths of the template lead to, in order.
  std::vector<const json::value*> find(const json::value& root) const;

  struct Node;

 private:
  explicit JsonPath(std::vector<Node> nodes);
  std::vector<Node> nodes_;
};

// As a person reads it: strings bare, the rest as JSON.
std::string plain_text(const json::value& value);

}  // namespace skiff::cli
