#include "apiserver/wire/go_json.h"

#include <gtest/gtest.h>

namespace skiff::apiserver {
namespace {

TEST(GoJson, SaysNothingOfGoodJson) {
  for (const char* text : {"{}", "[]", " null ", "5", "-0.5e+3", R"("x\u00e9\n")",
                           R"({"a":[1,{"b":true}],"c":{}})", "[[],[]]"}) {
    EXPECT_EQ(go_json_error(text), "") << text;
  }
}

TEST(GoJson, NamesTheCharacterAndThePlace) {
  struct Case {
    std::string_view text;
    std::string_view error;
  };
  for (const Case& c : {
           Case{"", "unexpected end of JSON input"},
           {"{", "unexpected end of JSON input"},
           {R"({"a)", "unexpected end of JSON input"},
           {"text", "invalid character 'e' in literal true (expecting 'r')"},
           {"nul!", "invalid character '!' in literal null (expecting 'l')"},
           {"x", "invalid character 'x' looking for beginning of value"},
           {"\x81", R"(invalid character '\u0081' looking for beginning of value)"},
           {"\xe9", "invalid character '\xc3\xa9' looking for beginning of value"},
           {"[1,]", "invalid character ']' looking for beginning of value"},
           {"[1 2]", "invalid character '2' after array element"},
           {"{'a':1}", R"(invalid character '\'' looking for beginning of object key string)"},
           {R"({"a":1,})", "invalid character '}' looking for beginning of object key string"},
           {R"({"a" 1})", "invalid character '1' after object key"},
           {R"({"a":1 "b"})", "invalid character '\"' after object key:value pair"},
           {"{} x", "invalid character 'x' after top-level value"},
           {"\"a\nb\"", R"(invalid character '\n' in string literal)"},
           {R"("\x")", "invalid character 'x' in string escape code"},
           {R"("\u00g0")", R"(invalid character 'g' in \u hexadecimal character escape)"},
           {"-x", "invalid character 'x' in numeric literal"},
           {"1.x", "invalid character 'x' after decimal point in numeric literal"},
           {"1e", "unexpected end of JSON input"},
           {"01", "invalid character '1' after top-level value"},
       }) {
    EXPECT_EQ(go_json_error(c.text), c.error) << c.text;
  }
}

}  // namespace
}  // namespace skiff::apiserver
