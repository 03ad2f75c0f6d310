#include "base/http.h"

#include <gtest/gtest.h>

namespace skiff::http {
namespace {

using std::string_literals::operator""s;

TEST(HttpRequest, NoPartOfItMayBeginAnotherRequest) {
  for (const std::string& bad :
       {"/a b"s, "/a\r\nX: y"s, "/a\n"s, "/a\t"s, "/a\0b"s, "/a\x7f"s, ""s}) {
    EXPECT_FALSE(is_request_target(bad)) << escape(bad);
    EXPECT_FALSE(check_request("GET", bad, {})) << escape(bad);
  }
  EXPECT_TRUE(is_request_target("/a?b=c%0d%0a&d=\xc3\xa4"));
  for (const std::string& bad : {"a\r\nb"s, "a\n"s, "a\0"s, "a\x7f"s}) {
    EXPECT_FALSE(check_request("GET", "/", {{"X-A", bad}})) << escape(bad);
    EXPECT_FALSE(check_request("GET", "/", {{bad, "x"}})) << escape(bad);
    EXPECT_FALSE(check_request(bad, "/", {})) << escape(bad);
    EXPECT_FALSE(is_host(bad)) << escape(bad);
  }
  EXPECT_TRUE(check_request("GET", "/", {{"X-A", "a b\tc"}, {"X-B", ""}}));
  for (const char* bad : {"X A", "X:", "", "X\xc3"}) EXPECT_FALSE(is_header_name(bad)) << bad;
  for (const char* bad : {"", "a b", "a/b", "a@b", "a?b", "[::1]"})
    EXPECT_FALSE(is_host(bad)) << bad;
  for (const char* good : {"a.example", "10.0.0.1", "::1", "fe80::1%eth0"}) {
    EXPECT_TRUE(is_host(good)) << good;
  }
}

// What Go 1.24 sends for each, by kubelet's formatURL().
TEST(HttpRequest, APathIsSentAsGoSendsIt) {
  struct Case {
    std::string path, target;
  };
  const Case cases[] = {
      {"", "/"},
      {"/", "/"},
      {"ok", "/ok"},
      {"/a/b?c=d&e=%20", "/a/b?c=d&e=%20"},
      {"/a b", "/a%20b"},
      {"/a%2Fb", "/a%2Fb"},
      {"/a%2Fb c", "/a/b%20c"},
      {"/(a)!*'[b]", "/(a)!*'[b]"},
      {"/\xc3\xa4", "/%C3%A4"},
      {"/a\"<>|", "/a%22%3C%3E%7C"},
      {"/a#b", "/a"},
      {"/a?b#c", "/a?b"},
      {"/a%", "/a%25"},
      {"/a%zz?b", "/a%25zz%3Fb"},
      {"/a?b c", "/a?b%20c"},
      {"/a HTTP/1.1\r\n\r\nPOST /b?c", "/a%20HTTP/1.1%0D%0A%0D%0APOST%20/b%3Fc"},
      {"/\0"s, "/%00"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(request_target(c.path), c.target);
    EXPECT_TRUE(is_request_target(request_target(c.path))) << c.target;
    EXPECT_EQ(request_target(c.target), c.target) << "what is encoded stays";
  }
}

}  // namespace
}  // namespace skiff::http
