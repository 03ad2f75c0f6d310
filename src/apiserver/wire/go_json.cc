#include "apiserver/wire/go_json.h"

#include <fmt/format.h>

namespace skiff::apiserver {
namespace {

constexpr std::string_view kEnd = "unexpected end of JSON input";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// A byte as Go quotes it: what is above ASCII is taken for the character of that number.
std::string quoted(char c) {
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '\'':
      return R"('\'')";
    case '\\':
      return R"('\\')";
    case '\a':
      return R"('\a')";
    case '\b':
      return R"('\b')";
    case '\f':
      return R"('\f')";
    case '\n':
      return R"('\n')";
    case '\r':
      return R"('\r')";
    case '\t':
      return R"('\t')";
    case '\v':
      return R"('\v')";
    default:
      break;
  }
  if (byte < ' ' || byte == 0x7F) return fmt::format("'\\x{:02x}'", byte);
  if (byte < 0x80) return fmt::format("'{}'", c);
  // No-break space and soft hyphen are not printed either.
  if (byte < 0xA1 || byte == 0xAD) return fmt::format("'\\u{:04x}'", byte);
  return fmt::format("'{}{}'", static_cast<char>(0xC0 | (byte >> 6)),
                     static_cast<char>(0x80 | (byte & 0x3F)));
}

// Looks at one character after the other, with the open brackets on a stack.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string run() {
    if (!value()) return std::move(error_);
    skip_spaces();
    if (at_ < text_.size()) wrong("after top-level value");
    return std::move(error_);
  }

 private:
  bool wrong(std::string_view where) {
    error_ = at_ < text_.size() ? fmt::format("invalid character {} {}", quoted(text_[at_]), where)
                                : std::string(kEnd);
    return false;
  }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // One value, with all that is in it.
  bool value() {
    while (true) {
      skip_spaces();
      if (here() == '{' || here() == '[') {
        open_ += text_[at_++];
        skip_spaces();
        if (!closes()) {
          if (open_.back() == '{' && !key()) return false;
          continue;
        }
      } else if (!scalar()) {
        return false;
      }
      while (true) {  // a value has ended
        if (open_.empty()) return true;
        skip_spaces();
        if (closes()) continue;
        if (here() != ',') {
          return wrong(open_.back() == '{' ? "after object key:value pair" : "after array element");
        }
        ++at_;
        skip_spaces();
        if (open_.back() == '{' && !key()) return false;
        break;
      }
    }
  }

  bool closes() {
    if (here() != (open_.back() == '{' ? '}' : ']')) return false;
    open_.pop_back();
    ++at_;
    return true;
  }

  bool key() {
    if (here() != '"') return wrong("looking for beginning of object key string");
    if (!string()) return false;
    skip_spaces();
    if (here() != ':') return wrong("after object key");
    ++at_;
    return true;
  }

  bool scalar() {
    const char c = here();
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    if (c == 't') return word("true");
    if (c == 'f') return word("false");
    if (c == 'n') return word("null");
    return wrong("looking for beginning of value");
  }

  bool word(std::string_view whole) {
    for (const char wanted : whole) {
      if (here() != wanted)
        return wrong(fmt::format("in literal {} (expecting '{}')", whole, wanted));
      ++at_;
    }
    return true;
  }

  bool string() {
    ++at_;
    while (here() != '"') {
      if (at_ >= text_.size()) return wrong("");
      if (static_cast<unsigned char>(here()) < ' ') return wrong("in string literal");
      if (text_[at_++] == '\\' && !escape()) return false;
    }
    ++at_;
    return true;
  }

  bool escape() {
    if (at_ >= text_.size() ||
        std::string_view("bfnrt\\/\"u").find(here()) == std::string_view::npos) {
      return wrong("in string escape code");
    }
    if (text_[at_++] != 'u') return true;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (!is_hex(here())) return wrong("in \\u hexadecimal character escape");
    }
    return true;
  }

  void digits() {
    while (is_digit(here())) ++at_;
  }

  bool number() {
    if (here() == '-') ++at_;
    if (!is_digit(here())) return wrong("in numeric literal");
    if (here() == '0') {
      ++at_;
    } else {
      digits();
    }
    if (here() == '.') {
      ++at_;
      if (!is_digit(here())) return wrong("after decimal point in numeric literal");
      digits();
    }
    if (here() == 'e' || here() == 'E') {
      ++at_;
      if (here() == '+' || here() == '-') ++at_;
      if (!is_digit(here())) return wrong("in exponent of numeric literal");
      digits();
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;
  std::string error_;
};

}  // namespace

std::string go_json_error(std::string_view text) { return Scanner(text).run(); }

}  // namespace skiff::apiserver
