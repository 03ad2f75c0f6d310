#include "apiserver/wire/json_syntax.h"

#include <gtest/gtest.h>

namespace skiff::apiserver {
namespace {

TEST(JsonSyntax, SaysWhatGoSays) {
  struct Case {
    const char* text;
    const char* sentence;
  };
  const Case cases[] = {
      {"", "unexpected end of JSON input"},
      {"  ", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {"{\"a", "unexpected end of JSON input"},
      {"{\"a\":1", "unexpected end of JSON input"},
      {"[1,", "unexpected end of JSON input"},
      {"-", "unexpected end of JSON input"},
      {"tru", "unexpected end of JSON input"},
      {"hello", "invalid character 'h' looking for beginning of value"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"\xEF\xBB\xBF{}", "invalid character 'ï' looking for beginning of value"},
      {"\x01", R"(invalid character '\x01' looking for beginning of value)"},
      {"\x80", R"(invalid character '\u0080' looking for beginning of value)"},
      {"{'a':1}", R"(invalid character '\'' looking for beginning of object key string)"},
      {"{\"a\":1,}", "invalid character '}' looking for beginning of object key string"},
      {"{\"a\" 1}", "invalid character '1' after object key"},
      {"{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"{} trailing", "invalid character 't' after top-level value"},
      {"01", "invalid character '1' after top-level value"},
      {"-a", "invalid character 'a' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1e+", "unexpected end of JSON input"},
      {"1ex", "invalid character 'x' in exponent of numeric literal"},
      {"trap", "invalid character 'a' in literal true (expecting 'u')"},
      {"nil", "invalid character 'i' in literal null (expecting 'u')"},
      {"\"a\nb\"", R"(invalid character '\n' in string literal)"},
      {R"("\q")", "invalid character 'q' in string escape code"},
      {R"("\u12g4")", R"(invalid character 'g' in \u hexadecimal character escape)"},
  };
  for (const Case& c : cases) EXPECT_EQ(json_syntax_error(c.text), c.sentence) << c.text;
}

TEST(JsonSyntax, HasNothingAgainstWhatGoReads) {
  for (const char* text : {"{}", " [ ] ", "null", "-0.5e-3", "0",
                           R"({"a":[{"b":"\ud800\u00e9\/"},true,false]})", "\"\xff\""}) {
    EXPECT_EQ(json_syntax_error(text), "") << text;
  }
  EXPECT_EQ(json_syntax_error(std::string(3000, '[') + std::string(3000, ']')), "");
}

}  // namespace
}  // namespace skiff::apiserver
