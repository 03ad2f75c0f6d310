// What `skiff wait --for` waits for, and whether an object has it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/json_path.h"

namespace skiff::cli {

class WaitFor {
 public:
  // create, delete, condition=TYPE[=STATUS], jsonpath={PATH}[=VALUE]
  static Result<WaitFor> parse(std::string_view text);

  // Null: the object does not exist.
  bool met(const json::value* object) const;
  // Only a wait for its end or its beginning makes sense for an object that is not there.
  bool needs_object() const { return kind_ == Kind::kCondition || kind_ == Kind::kPath; }
  bool for_delete() const { return kind_ == Kind::kDelete; }
  // "condition met", "deleted", "created"
  std::string_view done() const;

 private:
  enum class Kind { kCreate, kDelete, kCondition, kPath };
  bool condition_met(const json::value& object) const;

  Kind kind_ = Kind::kCreate;
  std::string type_ = {};
  std::optional<std::string> value_ = {};
  std::optional<JsonPath> path_ = {};
};

// 30s, 5m, 1h30m, 500ms; a plain number is seconds. Below zero is a week, as in kubectl.
Result<Duration> parse_timeout(std::string_view text);

}  // namespace skiff::cli
