#include "apiserver/json_path.h"

#include <fmt/format.h>

#include <charconv>

#include "base/strings.h"

namespace skiff::apiserver {
namespace {

std::optional<std::int64_t> read_index(std::string_view text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return n;
}

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
         text.back() == text.front();
}

const json::value* follow_dotted(const json::value& at, std::string_view dotted) {
  const json::value* found = &at;
  for (std::string_view key : split(dotted, '.')) {
    if (key.empty()) continue;
    const json::object* object = found->if_object();
    found = object == nullptr ? nullptr : object->if_contains(key);
    if (found == nullptr) return nullptr;
  }
  return found;
}

// Where the bracket opened at `open` closes; quotes hide brackets.
std::size_t closing_bracket(std::string_view text, std::size_t open) {
  char quote = 0;
  for (std::size_t i = open + 1; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text[i] == ']') {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Result<JsonPath::Step> JsonPath::parse_bracket(std::string_view inside) {
  using enum Step::Kind;
  inside = trim(inside);
  if (inside == "*") return Step{.kind = kAll};
  if (is_quoted(inside)) {
    return Step{.kind = kField, .field = std::string(inside.substr(1, inside.size() - 2))};
  }
  if (inside.starts_with("?(@") && inside.ends_with(")")) {
    const std::string_view filter = inside.substr(3, inside.size() - 4);
    std::size_t at = filter.find("==");
    const bool equal = at != std::string_view::npos;
    if (!equal) at = filter.find("!=");
    if (at == std::string_view::npos) {
      return fail(Code::kInvalid, fmt::format("filter [{}] needs == or !=", inside));
    }
    Step step{.kind = kFilter, .field = std::string(trim(filter.substr(0, at))), .equal = equal};
    const std::string_view right = trim(filter.substr(at + 2));
    if (is_quoted(right)) {
      step.operand = json::string(right.substr(1, right.size() - 2));
    } else {
      SKIFF_ASSIGN(step.operand, json::parse(right));
    }
    return step;
  }
  if (const auto index = read_index(inside)) return Step{.kind = kIndex, .from = *index};
  const std::size_t colon = inside.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view left = inside.substr(0, colon), right = inside.substr(colon + 1);
    Step step{.kind = kSlice, .from = left.empty() ? 0 : read_index(left).value_or(INT64_MIN)};
    if (!right.empty()) step.to = read_index(right);
    if (step.from != INT64_MIN && (right.empty() || step.to)) return step;
  }
  return fail(Code::kInvalid, fmt::format("[{}] is not a JSONPath step", inside));
}

Result<JsonPath> JsonPath::parse(std::string_view text) {
  text = trim(text);
  if (text.starts_with("{") && text.ends_with("}")) text = text.substr(1, text.size() - 2);
  if (text.starts_with("$")) text.remove_prefix(1);
  JsonPath path;
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '[') {
      const std::size_t end = closing_bracket(text, i);
      if (end == std::string_view::npos) {
        return fail(Code::kInvalid, fmt::format("JSONPath {} has an open bracket", text));
      }
      SKIFF_ASSIGN(Step step, parse_bracket(text.substr(i + 1, end - i - 1)));
      path.steps_.push_back(std::move(step));
      i = end + 1;
    } else {
      if (text[i] == '.') ++i;
      // A backslash takes the next character as it is: .metadata.annotations.a\.b/c
      std::string field;
      for (; i < text.size() && text[i] != '.' && text[i] != '['; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        field += text[i];
      }
      if (field == "*") {
        path.steps_.push_back({.kind = Step::Kind::kAll});
      } else if (!field.empty()) {
        path.steps_.push_back({.field = std::move(field)});
      }
    }
  }
  return path;
}

void JsonPath::walk(const Step& step, const json::value& at, std::vector<const json::value*>& out) {
  if (step.kind == Step::Kind::kField) {
    const json::object* object = at.if_object();
    const json::value* found = object == nullptr ? nullptr : object->if_contains(step.field);
    if (found != nullptr) out.push_back(found);
    return;
  }
  if (const json::object* object = at.if_object();
      object != nullptr && step.kind == Step::Kind::kAll) {
    for (const auto& member : *object) out.push_back(&member.value());
    return;
  }
  const json::array* array = at.if_array();
  if (array == nullptr) return;
  const auto size = static_cast<std::int64_t>(array->size());
  std::int64_t from = 0, to = size;
  if (step.kind == Step::Kind::kIndex || step.kind == Step::Kind::kSlice) {
    from = step.from < 0 ? step.from + size : step.from;
    to = step.kind == Step::Kind::kIndex ? from + 1 : step.to.value_or(size);
    if (to < 0) to += size;
    if (step.kind == Step::Kind::kIndex && (from < 0 || from >= size)) return;
  }
  for (std::int64_t i = std::max<std::int64_t>(from, 0); i < std::min(to, size); ++i) {
    const json::value& item = (*array)[static_cast<std::size_t>(i)];
    if (step.kind == Step::Kind::kFilter) {
      const json::value* left = follow_dotted(item, step.field);
      if ((left != nullptr && *left == step.operand) != step.equal) continue;
    }
    out.push_back(&item);
  }
}

std::vector<const json::value*> JsonPath::find(const json::value& root) const {
  std::vector<const json::value*> now{&root};
  for (const Step& step : steps_) {
    std::vector<const json::value*> next;
    for (const json::value* at : now) walk(step, *at, next);
    now = std::move(next);
  }
  return now;
}

}  // namespace skiff::apiserver
