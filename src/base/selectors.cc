#include "base/selectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/names.h"
#include "base/strings.h"

namespace skiff {
namespace {

using Op = LabelSelector::Op;
using Requirement = LabelSelector::Requirement;

std::unexpected<Error> unreadable(std::string_view text, std::string_view why) {
  return fail(Code::kBadRequest, fmt::format("unable to parse selector \"{}\": {}", text, why));
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

Result<void> check(const Requirement& r) {
  if (const auto bad = names::check_label_key(r.key); !bad.empty()) {
    return fail(Code::kBadRequest,
                fmt::format("key: Invalid value: \"{}\": {}", r.key, join(bad, "; ")));
  }
  const bool compares = r.op == Op::kGreater || r.op == Op::kLess;
  for (const std::string& value : r.values) {
    if (const auto bad = names::check_label_value(value); !bad.empty()) {
      return fail(Code::kBadRequest, fmt::format("values[0][{}]: Invalid value: \"{}\": {}", r.key,
                                                 value, join(bad, "; ")));
    }
    if (compares && !integer(value)) {
      return fail(Code::kBadRequest,
                  fmt::format("values[0][{}]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, the "
                              "value must be an integer",
                              r.key, value));
    }
  }
  return {};
}

// Reads one requirement after the other from the text.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Requirement>> all() {
    std::vector<Requirement> out;
    skip_spaces();
    while (at_ < text_.size()) {
      SKIFF_ASSIGN(Requirement next, one());
      SKIFF_TRY(check(next));
      out.push_back(std::move(next));
      skip_spaces();
      if (at_ == text_.size()) break;
      if (!take(",")) return unreadable(text_, fmt::format("expected ',' at {}", position()));
      skip_spaces();
      if (at_ == text_.size()) return unreadable(text_, "a requirement is missing after ','");
    }
    return out;
  }

 private:
  Result<Requirement> one() {
    Requirement r;
    if (take("!")) {
      skip_spaces();
      r.key = word();
      r.op = Op::kAbsent;
      if (r.key.empty()) return unreadable(text_, "a key is missing after '!'");
      return r;
    }
    r.key = word();
    if (r.key.empty()) return unreadable(text_, fmt::format("a key is missing at {}", position()));
    skip_spaces();
    if (take("!=")) return with_value(std::move(r), Op::kNotIn);
    if (take("==") || take("=")) return with_value(std::move(r), Op::kIn);
    if (take(">")) return with_value(std::move(r), Op::kGreater);
    if (take("<")) return with_value(std::move(r), Op::kLess);
    if (at_ == text_.size() || text_[at_] == ',') return r;
    const std::string op = word();
    if (op != "in" && op != "notin") {
      return unreadable(text_, fmt::format("found '{}', expected one of =, ==, !=, in, notin, >, <",
                                           op.empty() ? text_.substr(at_, 1) : op));
    }
    r.op = op == "in" ? Op::kIn : Op::kNotIn;
    SKIFF_ASSIGN(r.values, list());
    return r;
  }

  Result<Requirement> with_value(Requirement r, Op op) {
    skip_spaces();
    r.op = op;
    r.values = {word()};
    return r;
  }

  Result<std::vector<std::string>> list() {
    skip_spaces();
    if (!take("(")) return unreadable(text_, fmt::format("expected '(' at {}", position()));
    std::vector<std::string> out;
    while (true) {
      skip_spaces();
      out.push_back(word());
      skip_spaces();
      if (take(")")) break;
      if (!take(","))
        return unreadable(text_, fmt::format("expected ',' or ')' at {}", position()));
    }
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
  }

  std::string word() {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,()=!<>", at_), text_.size());
    std::string out(text_.substr(at_, end - at_));
    at_ = end;
    return out;
  }

  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  std::string position() const {
    return at_ == text_.size() ? std::string("the end") : fmt::format("'{}'", text_.substr(at_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool holds(const Requirement& r, const json::object& labels) {
  const json::value* found = labels.if_contains(r.key);
  if (found != nullptr && !found->is_string()) found = nullptr;
  const std::string_view value = found == nullptr ? "" : json::view(found->get_string());
  switch (r.op) {
    case Op::kExists:
      return found != nullptr;
    case Op::kAbsent:
      return found == nullptr;
    case Op::kIn:
      return found != nullptr && std::ranges::find(r.values, value) != r.values.end();
    case Op::kNotIn:
      return found == nullptr || std::ranges::find(r.values, value) == r.values.end();
    case Op::kGreater:
    case Op::kLess: {
      const auto have = integer(value), limit = integer(r.values.front());
      if (found == nullptr || !have || !limit) return false;
      return r.op == Op::kGreater ? *have > *limit : *have < *limit;
    }
  }
  return false;
}

std::string scalar_text(const json::value& v) {
  return v.is_string() ? std::string(json::view(v.get_string())) : json::serialize(v);
}

Result<Requirement> expression(const json::value& e, std::size_t index) {
  Requirement r{.key = std::string(json::get_string(e, {"key"}))};
  const std::string_view op = json::get_string(e, {"operator"});
  r.values = json::strings(json::get_array(e, {"values"}));
  const bool takes_values = op == "In" || op == "NotIn";
  if (takes_values) {
    r.op = op == "In" ? Op::kIn : Op::kNotIn;
  } else if (op == "Exists" || op == "DoesNotExist") {
    r.op = op == "Exists" ? Op::kExists : Op::kAbsent;
  } else {
    return fail(Code::kInvalid, fmt::format("matchExpressions[{}].operator: Invalid value: \"{}\": "
                                            "not a valid selector operator",
                                            index, op));
  }
  if (takes_values == r.values.empty()) {
    return fail(Code::kInvalid,
                fmt::format("matchExpressions[{}].values: {}", index,
                            takes_values ? "Required value: must be specified when `operator` is "
                                           "'In' or 'NotIn'"
                                         : "Forbidden: may not be specified when `operator` is "
                                           "'Exists' or 'DoesNotExist'"));
  }
  SKIFF_TRY(check(r));
  return r;
}

}  // namespace

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector out;
  SKIFF_ASSIGN(out.requirements_, Parser(text).all());
  return out;
}

Result<LabelSelector> LabelSelector::from_object(const json::value& selector) {
  LabelSelector out = from_map(json::get_object(selector, {"matchLabels"}));
  for (const Requirement& r : out.requirements_) SKIFF_TRY(check(r));
  std::size_t index = 0;
  for (const json::value& e : json::get_array(selector, {"matchExpressions"})) {
    SKIFF_ASSIGN(Requirement r, expression(e, index++));
    out.requirements_.push_back(std::move(r));
  }
  // In the order in which the Kubernetes server writes them.
  std::ranges::sort(out.requirements_, {}, &Requirement::key);
  return out;
}

LabelSelector LabelSelector::from_map(const json::object& labels) {
  LabelSelector out;
  for (const auto& [key, value] : labels) {
    out.requirements_.push_back({.key = key, .op = Op::kIn, .values = {scalar_text(value)}});
  }
  std::ranges::sort(out.requirements_, {}, &Requirement::key);
  return out;
}

bool LabelSelector::matches(const json::object& labels) const {
  return std::ranges::all_of(requirements_, [&](const Requirement& r) { return holds(r, labels); });
}

bool LabelSelector::matches_object(const json::value& object) const {
  return matches(json::get_object(object, {"metadata", "labels"}));
}

std::string LabelSelector::text() const {
  std::vector<std::string> parts;
  for (const Requirement& r : requirements_) {
    const bool one = r.values.size() == 1;
    switch (r.op) {
      case Op::kExists:
        parts.push_back(r.key);
        break;
      case Op::kAbsent:
        parts.push_back("!" + r.key);
        break;
      case Op::kGreater:
        parts.push_back(r.key + ">" + r.values.front());
        break;
      case Op::kLess:
        parts.push_back(r.key + "<" + r.values.front());
        break;
      case Op::kIn:
        parts.push_back(one ? r.key + "=" + r.values.front()
                            : fmt::format("{} in ({})", r.key, join(r.values, ",")));
        break;
      case Op::kNotIn:
        parts.push_back(one ? r.key + "!=" + r.values.front()
                            : fmt::format("{} notin ({})", r.key, join(r.values, ",")));
        break;
    }
  }
  return join(parts, ",");
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector out;
  if (trim(text).empty()) return out;
  for (const std::string_view piece : split(text, ',')) {
    const std::string_view part = trim(piece);
    if (part.empty()) continue;
    const std::size_t at = part.find('=');
    if (at == std::string_view::npos) {
      return fail(Code::kBadRequest,
                  fmt::format("invalid selector: '{}'; can't understand '{}'", text, part));
    }
    Term term{.negated = at > 0 && part[at - 1] == '!'};
    term.path = trim(part.substr(0, term.negated ? at - 1 : at));
    const std::size_t value = part.substr(at).starts_with("==") ? at + 2 : at + 1;
    term.value = trim(part.substr(value));
    if (term.path.empty()) {
      return fail(Code::kBadRequest,
                  fmt::format("invalid selector: '{}'; a field is missing in '{}'", text, part));
    }
    out.terms_.push_back(std::move(term));
  }
  return out;
}

std::string FieldSelector::text_at(const json::value& object, std::string_view path) {
  const json::value* at = &object;
  for (const std::string_view key : split(path, '.')) {
    at = json::find(*at, {key});
    if (at == nullptr) return {};
  }
  return at->is_null() ? std::string() : scalar_text(*at);
}

bool FieldSelector::matches_object(const json::value& object) const {
  return matches([&](std::string_view path) { return text_at(object, path); });
}

}  // namespace skiff
