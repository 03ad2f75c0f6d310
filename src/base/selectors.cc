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

enum class Token {
  kEnd,
  kWord,
  kIn,
  kNotIn,
  kNot,
  kEqual,
  kTwoEqual,
  kUnequal,
  kGreater,
  kLess,
  kOpen,
  kClose,
  kComma,
  kBad
};

struct Item {
  Token token = Token::kEnd;
  std::string text = {};
};

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::string_view kKeyPath = "key";
constexpr std::string_view kSymbols = "=!(),><";

Token symbol(std::string_view text) {
  constexpr std::pair<std::string_view, Token> kAll[] = {
      {")", Token::kClose},     {",", Token::kComma},    {"!", Token::kNot},
      {"==", Token::kTwoEqual}, {"=", Token::kEqual},    {">", Token::kGreater},
      {"<", Token::kLess},      {"!=", Token::kUnequal}, {"(", Token::kOpen}};
  for (const auto& [word, token] : kAll) {
    if (word == text) return token;
  }
  return Token::kBad;
}

// The symbol that stands at `at`: the longest that is one.
Item read_symbol(std::string_view text, std::size_t& at) {
  Item found{.token = Token::kBad};
  std::string read;
  while (at < text.size() && kSymbols.find(text[at]) != std::string_view::npos) {
    read += text[at];
    const Token token = symbol(read);
    if (token == Token::kBad && found.token != Token::kBad) break;
    ++at;
    if (token != Token::kBad) found = {.token = token, .text = read};
  }
  if (found.token == Token::kBad) {
    found.text = fmt::format("error expected: keyword found '{}'", read);
  }
  return found;
}

std::vector<Item> scan(std::string_view text) {
  std::vector<Item> out;
  std::size_t at = 0;
  while (true) {
    at = std::min(text.find_first_not_of(kSpaces, at), text.size());
    if (at == text.size()) break;
    if (kSymbols.find(text[at]) != std::string_view::npos) {
      out.push_back(read_symbol(text, at));
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \t\r\n=!(),><", at), text.size());
    Item word{.token = Token::kWord, .text = std::string(text.substr(at, end - at))};
    if (word.text == "in") word.token = Token::kIn;
    if (word.text == "notin") word.token = Token::kNotIn;
    out.push_back(std::move(word));
    at = end;
  }
  out.emplace_back();
  return out;
}

std::unexpected<Error> unexpected_word(const Item& found, std::string_view expected) {
  return fail(Code::kBadRequest, fmt::format("found '{}', expected: {}", found.text, expected));
}

// Reads one requirement after the other. The sentences are those of the real server.
class Parser {
 public:
  explicit Parser(std::string_view text) : items_(scan(text)) {}

  Result<std::vector<Requirement>> all() {
    std::vector<Requirement> out;
    while (peek().token != Token::kEnd) {
      if (!starts_requirement()) {
        return unexpected_word(peek(), "!, identifier, or 'end of string'");
      }
      auto next = one();
      if (!next) {
        return fail(Code::kBadRequest,
                    fmt::format("unable to parse requirement: {}", next.error().message));
      }
      out.push_back(std::move(*next));
      const Item after = take();
      if (after.token == Token::kEnd) break;
      if (after.token != Token::kComma) {
        return unexpected_word(after, "',' or 'end of string'");
      }
      if (!starts_requirement()) return unexpected_word(peek(), "identifier after ','");
    }
    return out;
  }

 private:
  // `in` and `notin` are words like any other where no operator can stand.
  static bool is_word(const Item& item) {
    return item.token == Token::kWord || item.token == Token::kIn || item.token == Token::kNotIn;
  }
  bool starts_requirement() const { return is_word(peek()) || peek().token == Token::kNot; }
  bool ends_requirement() const {
    return peek().token == Token::kEnd || peek().token == Token::kComma;
  }

  Result<Requirement> one() {
    Requirement r;
    Item key = take();
    const bool absent = key.token == Token::kNot;
    if (absent) key = take();
    if (!is_word(key)) return unexpected_word(key, "identifier");
    r.key = key.text;
    if (auto good = check({.key = r.key}); !good) {
      // The real server has no path for a key that it reads from text.
      return fail(Code::kBadRequest, "<nil>" + good.error().message.substr(kKeyPath.size()));
    }
    if (ends_requirement() || absent) {
      r.op = absent ? Op::kAbsent : Op::kExists;
      return r;
    }
    SKIFF_TRY(read_operator(r));
    SKIFF_TRY(check(r));
    return r;
  }

  Result<void> read_operator(Requirement& r) {
    const Item op = take();
    switch (op.token) {
      case Token::kIn:
      case Token::kNotIn: {
        r.op = op.token == Token::kIn ? Op::kIn : Op::kNotIn;
        SKIFF_ASSIGN(r.values, list());
        return {};
      }
      case Token::kEqual:
      case Token::kTwoEqual:
        r.op = Op::kIn;
        break;
      case Token::kUnequal:
        r.op = Op::kNotIn;
        break;
      case Token::kGreater:
        r.op = Op::kGreater;
        break;
      case Token::kLess:
        r.op = Op::kLess;
        break;
      default:
        return unexpected_word(op, "in, notin, =, ==, !=, gt, lt");
    }
    const Item value = ends_requirement() ? Item{.token = Token::kWord} : take();
    if (!is_word(value)) return unexpected_word(value, "identifier");
    r.values = {value.text};
    const bool compares = r.op == Op::kGreater || r.op == Op::kLess;
    if (!compares || integer(value.text)) return {};
    return fail(Code::kBadRequest,
                fmt::format("values[0]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, the value "
                            "must be an integer",
                            value.text));
  }

  // (x,y): an empty place is an empty value.
  Result<std::vector<std::string>> list() {
    if (const Item open = take(); open.token != Token::kOpen) {
      return fail(Code::kBadRequest, fmt::format("found '{}' expected: '('", open.text));
    }
    if (!is_word(peek()) && peek().token != Token::kComma && peek().token != Token::kClose) {
      return unexpected_word(peek(), "',', ')' or identifier");
    }
    std::vector<std::string> out;
    bool value = false;  // since the last comma
    while (peek().token != Token::kClose) {
      const Item item = take();
      if (item.token == Token::kComma) {
        if (!value) out.emplace_back();
        value = false;
      } else if (!is_word(item)) {
        return unexpected_word(item, "',', or identifier");
      } else {
        out.push_back(item.text);
        value = true;
        if (peek().token != Token::kComma && peek().token != Token::kClose) {
          return unexpected_word(peek(), "',' or ')'");
        }
      }
    }
    if (!value) out.emplace_back();
    take();
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
  }

  // Beyond the end there is the end, for ever.
  const Item& peek() const { return items_[std::min(at_, items_.size() - 1)]; }
  Item take() {
    Item item = peek();
    ++at_;
    return item;
  }

  const std::vector<Item> items_;
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

// A backslash before a comma makes it part of the value.
std::vector<std::string> field_terms(std::string_view text) {
  std::vector<std::string> out(1);
  bool escaped = false;
  for (const char c : text) {
    if (c == ',' && !escaped) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
    escaped = c == '\\' && !escaped;
  }
  return out;
}

Result<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' || text[i] == '=') {
      return fail(Code::kBadRequest,
                  fmt::format("invalid field selector: unescaped character in value: {}",
                              static_cast<int>(text[i])));
    }
    if (text[i] == '\\') {
      const std::string_view next = text.substr(i + 1, 1);
      if (next != "\\" && next != "," && next != "=") {
        return fail(Code::kBadRequest,
                    fmt::format("invalid field selector: invalid escape sequence: \\{}", next));
      }
      ++i;
    }
    out += text[i];
  }
  return out;
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
  for (const std::string& part : field_terms(text)) {
    if (part.empty()) continue;
    const std::size_t at = part.find('=');
    if (at == std::string::npos) {
      return fail(Code::kBadRequest,
                  fmt::format("invalid selector: '{}'; can't understand '{}'", text, part));
    }
    Term term{.negated = at > 0 && part[at - 1] == '!'};
    term.path = part.substr(0, term.negated ? at - 1 : at);
    const bool twice = !term.negated && part.substr(at).starts_with("==");
    SKIFF_ASSIGN(term.value, unescaped(part.substr(twice ? at + 2 : at + 1)));
    if (term.path.empty() && term.value.empty()) continue;  // nothing is asked
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
