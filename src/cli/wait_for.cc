#include "cli/wait_for.h"

#include <fmt/format.h>

#include <charconv>

#include "base/strings.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kForms =
    "condition=TYPE[=STATUS], jsonpath='{.path}'[=VALUE], create or delete";

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Code::kBadRequest, fmt::format("--for {}: {}; write {}", text, why, kForms));
}

// Splits jsonpath={...}=VALUE behind the last brace, else at the last '='.
std::size_t value_mark(std::string_view path) {
  const std::size_t brace = path.rfind('}');
  if (brace == std::string_view::npos) return path.find('=');
  return brace + 1 < path.size() && path[brace + 1] == '=' ? brace + 1 : std::string_view::npos;
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

}  // namespace

Result<WaitFor> WaitFor::parse(std::string_view text) {
  WaitFor out;
  const std::string word = lower(text);
  if (word == "create") return out;
  if (word == "delete") {
    out.kind_ = Kind::kDelete;
    return out;
  }
  if (word.starts_with("condition=")) {
    out.kind_ = Kind::kCondition;
    std::string_view rest = text.substr(10);
    const std::size_t equals = rest.find('=');
    out.type_ = rest.substr(0, equals);
    if (equals != std::string_view::npos) out.value_ = rest.substr(equals + 1);
    if (out.type_.empty()) return bad(text, "the condition's type is missing");
    return out;
  }
  if (word.starts_with("jsonpath=")) {
    out.kind_ = Kind::kPath;
    const std::string_view rest = text.substr(9);
    const std::size_t equals = value_mark(rest);
    if (equals != std::string_view::npos) out.value_ = unquoted(rest.substr(equals + 1));
    const std::string_view path = unquoted(rest.substr(0, equals));
    if (path.empty()) return bad(text, "the path is missing");
    SKIFF_ASSIGN(out.path_, JsonPath::parse(path));
    return out;
  }
  return bad(text, "not known");
}

std::string_view WaitFor::done() const {
  return kind_ == Kind::kDelete ? "deleted" : "condition met";
}

bool WaitFor::condition_met(const json::value& object) const {
  const std::string wanted = lower(value_.value_or("True"));
  for (const json::value& condition : json::get_array(object, {"status", "conditions"})) {
    if (!equal_ignoring_case(json::get_string(condition, {"type"}), type_)) continue;
    // What the controller said of an older spec says nothing about this one.
    const auto generation = json::get_int(object, {"metadata", "generation"});
    const auto observed = json::get_int(condition, {"observedGeneration"});
    if (generation && observed && *observed < *generation) return false;
    return lower(json::get_string(condition, {"status"})) == wanted;
  }
  return false;
}

bool WaitFor::met(const json::value* object) const {
  switch (kind_) {
    case Kind::kCreate:
      return object != nullptr;
    case Kind::kDelete:
      return object == nullptr;
    case Kind::kCondition:
      return object != nullptr && condition_met(*object);
    case Kind::kPath: {
      if (object == nullptr) return false;
      const auto found = path_->find(*object);
      if (!value_) return !found.empty();
      return found.size() == 1 && plain_text(*found.front()) == *value_;
    }
  }
  return false;
}

Result<Duration> parse_timeout(std::string_view text) {
  if (text.starts_with('-')) return Duration(24h * 7);
  Duration total{};
  std::string_view rest = text;
  while (!rest.empty()) {
    double number = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const auto used = static_cast<std::size_t>(read.ptr - rest.data());
    if (read.ec != std::errc{} || used == 0) break;
    rest.remove_prefix(used);
    const std::size_t end = rest.find_first_of("0123456789.");
    const std::string_view unit = rest.substr(0, end);
    const double us = unit == "ms"                  ? 1e3
                      : unit == "s" || unit.empty() ? 1e6
                      : unit == "m"                 ? 60e6
                      : unit == "h"                 ? 3600e6
                                                    : 0;
    if (us == 0) break;
    total += Duration(static_cast<std::int64_t>(number * us));
    rest.remove_prefix(unit.size());
    if (rest.empty()) return total;
  }
  return fail(Code::kBadRequest, fmt::format("\"{}\" is no time; write 30s, 5m or 1h30m", text));
}

}  // namespace skiff::cli
