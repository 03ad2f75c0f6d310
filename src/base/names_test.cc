#include "base/names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/base64.h"

namespace skiff::names {
namespace {

struct Case {
  const char* name;
  Complaints (*check)(std::string_view);
  std::string text;
  const char* complaint;  // a part of it; null for none
};

TEST(Names, AsKubernetes) {
  const std::string long_label(64, 'a');
  const Case cases[] = {
      {"a label", check_dns1123_label, "a-1", nullptr},
      {"a label may start with a digit", check_dns1123_label, "1a", nullptr},
      {"no upper case", check_dns1123_label, "A", "a lowercase RFC 1123 label must consist of"},
      {"no hyphen at the end", check_dns1123_label, "a-",
       "must start and end with an alphanumeric"},
      {"not empty", check_dns1123_label, "", "a lowercase RFC 1123 label"},
      {"63 at most", check_dns1123_label, long_label, "must be no more than 63 characters"},
      {"a search domain", check_search_domain, "_a.b_c.d", nullptr},
      {"a search domain with a space", check_search_domain, "a b", "characters, '_', '-' or '.'"},
      {"a search domain of an underscore", check_search_domain, "_", "'_', '-' or '.'"},
      {"an empty environment name", check_env_name, "",
       "environment variable name must be non-empty"},
      {"dots make a subdomain", check_dns1123_subdomain, "a.b-c.d", nullptr},
      {"no empty piece", check_dns1123_subdomain, "a..b", "a lowercase RFC 1123 subdomain"},
      {"no underscore", check_dns1123_subdomain, "a_b", "a lowercase RFC 1123 subdomain"},
      {"a service starts with a letter", check_dns1035_label, "1a", "a DNS-1035 label must"},
      {"a service", check_dns1035_label, "a1", nullptr},
      {"a label key", check_label_key, "app.kubernetes.io/Name_x", nullptr},
      {"an empty prefix", check_label_key, "/a", "prefix part must be non-empty"},
      {"an empty name", check_label_key, "a/", "name part must be non-empty"},
      {"two slashes", check_label_key, "a/b/c", "a qualified name must consist of"},
      {"a prefix is a subdomain", check_label_key, "A/b", "prefix part a lowercase RFC 1123"},
      {"a key with a space", check_label_key, "a b", "name part must consist of"},
      {"an empty label value", check_label_value, "", nullptr},
      {"a label value with a slash", check_label_value, "a/b", "a valid label must be an empty"},
      {"a port name", check_port_name, "http-2", nullptr},
      {"a port name of digits", check_port_name, "80", "must contain at least one letter"},
      {"a long port name", check_port_name, "abcdefghijklmnop", "no more than 15 characters"},
      {"an empty port name", check_port_name, "", "must contain at least one letter"},
      {"an environment name", check_env_name, "A_b.c-1", nullptr},
      {"an environment name with =", check_env_name, "A=b", "printable ASCII characters"},
      {"a config key", check_config_key, "a.b_C-1", nullptr},
      {"a config key that climbs", check_config_key, "..a", "must not start with '..'"},
      {"a config key with a slash", check_config_key, "a/b", "a valid config key must"},
  };
  for (const Case& c : cases) {
    const Complaints got = c.check(c.text);
    if (c.complaint == nullptr) {
      EXPECT_EQ(got, Complaints{}) << c.name;
    } else {
      EXPECT_TRUE(std::ranges::any_of(got, [&](const std::string& one) {
        return one.contains(c.complaint);
      })) << c.name;
    }
  }
}

TEST(Names, EverythingThatIsWrongIsSaid) {
  const auto beginnings = [](const Complaints& all) {
    std::vector<std::string> out;
    for (const std::string& one : all) out.push_back(one.substr(0, 24));
    return out;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(beginnings(check_dns1123_subdomain(std::string(254, '-'))),
            (Lines{"must be no more than 253", "a lowercase RFC 1123 sub"}));
  EXPECT_EQ(beginnings(check_label_key("")),
            (Lines{"name part must be non-em", "name part must consist o"}));
  EXPECT_EQ(
      beginnings(check_label_key("A/" + std::string(64, '-'))),
      (Lines{"prefix part a lowercase ", "name part must be no mor", "name part must consist o"}));
  EXPECT_EQ(beginnings(check_port_name("--------------------")),
            (Lines{"must be no more than 15 ", "must contain at least on",
                   "must not contain consecu", "must not begin or end wi"}));
  EXPECT_EQ(check_dns1123_label("a.b"), Lines{"must not contain dots"});
  EXPECT_EQ(check_config_key("/..").size(), 1u);
  EXPECT_EQ(check_path_segment("a/b%c"), (Lines{"may not contain '/'", "may not contain '%'"}));
  EXPECT_EQ(check_path_segment(".."), Lines{"may not be '..'"});
  EXPECT_EQ(check_path_segment("system:node"), Lines{});
}

TEST(Base64, RoundTrip) {
  for (const std::string& bytes : {std::string(), std::string("a"), std::string("ab"),
                                   std::string("abc"), std::string("\0\xff\x80", 3)}) {
    EXPECT_EQ(base64::decode(base64::encode(bytes)), bytes);
  }
  EXPECT_EQ(base64::encode("skiff"), "c2tpZmY=");
  EXPECT_EQ(base64::decode("c2tp\nZmY="), "skiff");
  for (const char* bad : {"a", "ab", "abc", "ab=c", "a===", "ab==c", "!!!!", "=", "abcd="}) {
    EXPECT_FALSE(base64::decode(bad)) << bad;
  }
}

}  // namespace
}  // namespace skiff::names
