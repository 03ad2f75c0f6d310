#include "apiserver/wire/json_syntax.h"

#include <fmt/format.h>

#include <vector>

namespace skiff::apiserver {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kEnd = "unexpected end of JSON input";

// A byte as Go shows it: taken for the character of that number.
std::string shown(char c) {
  const auto u = static_cast<unsigned char>(c);
  constexpr std::string_view kNamed = "\a\b\t\n\v\f\r", kNames = "abtnvfr";
  if (const auto at = kNamed.find(c); at != kNamed.npos) return fmt::format("\\{}", kNames[at]);
  if (c == '\'' || c == '\\') return fmt::format("\\{}", c);
  if (u < 0x20 || u == 0x7F) return fmt::format("\\x{:02x}", u);
  if (u < 0x80) return std::string(1, c);
  if (u <= 0xA0 || u == 0xAD) return fmt::format("\\u{:04x}", u);
  return {static_cast<char>(0xC0 | (u >> 6)), static_cast<char>(0x80 | (u & 0x3F))};
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  std::string run() {
    while (wrong_.empty()) {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
      if (next_ == Next::kEnd) {
        if (!rest_.empty()) complain("after top-level value");
        break;
      }
      if (rest_.empty()) return std::string(kEnd);
      step();
    }
    return std::move(wrong_);
  }

 private:
  enum class Next { kValue, kFirstItem, kKey, kFirstKey, kColon, kMore, kEnd };

  void step() {
    const char c = rest_.front();
    switch (next_) {
      case Next::kFirstItem:
      case Next::kFirstKey:
        if (c == (next_ == Next::kFirstKey ? '}' : ']')) {
          close();
        } else {
          next_ = next_ == Next::kFirstKey ? Next::kKey : Next::kValue;
        }
        break;
      case Next::kValue:
        value(c);
        break;
      case Next::kKey:
        if (c != '"') return complain("looking for beginning of object key string");
        string();
        next_ = Next::kColon;
        break;
      case Next::kColon:
        if (c != ':') return complain("after object key");
        rest_.remove_prefix(1);
        next_ = Next::kValue;
        break;
      default:
        more(c);
    }
  }

  void more(char c) {
    const bool object = open_.back() == '{';
    if (c == ',') {
      rest_.remove_prefix(1);
      next_ = object ? Next::kKey : Next::kValue;
    } else if (c == (object ? '}' : ']')) {
      close();
    } else {
      complain(object ? "after object key:value pair" : "after array element");
    }
  }

  void value(char c) {
    if (c == '{' || c == '[') {
      open_.push_back(c);
      rest_.remove_prefix(1);
      next_ = c == '{' ? Next::kFirstKey : Next::kFirstItem;
      return;
    }
    if (c == '"') {
      string();
    } else if (c == '-' || kDigits.contains(c)) {
      number();
    } else if (c == 't' || c == 'f' || c == 'n') {
      word(c == 't' ? "true" : c == 'f' ? "false" : "null");
    } else {
      return complain("looking for beginning of value");
    }
    done();
  }

  void close() {
    rest_.remove_prefix(1);
    open_.pop_back();
    done();
  }

  void done() { next_ = open_.empty() ? Next::kEnd : Next::kMore; }

  void complain(std::string_view where) {
    if (!wrong_.empty()) return;
    wrong_ = rest_.empty() ? std::string(kEnd)
                           : fmt::format("invalid character '{}' {}", shown(rest_.front()), where);
  }

  bool take(std::string_view any_of) {
    if (rest_.empty() || !any_of.contains(rest_.front())) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void digits(std::string_view where) {
    if (!take(kDigits)) return complain(where);
    while (take(kDigits)) {
    }
  }

  void number() {
    take("-");
    if (!take("0")) digits("in numeric literal");
    if (take(".")) digits("after decimal point in numeric literal");
    if (take("eE")) {
      take("+-");
      digits("in exponent of numeric literal");
    }
  }

  void word(std::string_view wanted) {
    for (const char c : wanted) {
      if (take(std::string_view(&c, 1))) continue;
      return complain(fmt::format("in literal {} (expecting '{}')", wanted, c));
    }
  }

  void string() {
    rest_.remove_prefix(1);
    while (wrong_.empty()) {
      if (rest_.empty() || static_cast<unsigned char>(rest_.front()) < 0x20) {
        return complain("in string literal");
      }
      if (take("\"")) return;
      if (take("\\")) {
        escape();
      } else {
        rest_.remove_prefix(1);
      }
    }
  }

  void escape() {
    if (take("bfnrt\\/\"")) return;
    if (!take("u")) return complain("in string escape code");
    for (int i = 0; i < 4; ++i) {
      if (!take("0123456789abcdefABCDEF")) return complain("in \\u hexadecimal character escape");
    }
  }

  std::string_view rest_;
  std::vector<char> open_;
  Next next_ = Next::kValue;
  std::string wrong_;
};

}  // namespace

std::string json_syntax_error(std::string_view text) { return Scanner(text).run(); }

}  // namespace skiff::apiserver
