#include "base/names.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace skiff::names {
namespace {

struct Case {
  const char* name;
  Complaint (*check)(std::string_view);
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
    const Complaint got = c.check(c.text);
    if (c.complaint == nullptr) {
      EXPECT_FALSE(got) << c.name << ": " << *got;
    } else {
      ASSERT_TRUE(got) << c.name;
      EXPECT_NE(got->find(c.complaint), std::string::npos) << c.name << ": " << *got;
    }
  }
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
