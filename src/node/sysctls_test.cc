#include "node/sysctls.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

json::value pod(const std::string& sysctls, const std::string& more = "") {
  return *json::parse(R"({"spec":{"securityContext":{"sysctls":[)" + sysctls + "]}" + more + "}}");
}

TEST(Sysctls, AreNamedWithDotsAndKeepTheirOrder) {
  const Sysctls expected = {{"net.ipv4.tcp_rmem", "1 2 3"}, {"kernel.shm_rmid_forced", "1"}};
  EXPECT_EQ(pod_sysctls(pod(R"({"name":"net/ipv4/tcp_rmem","value":"1 2 3"},
                               {"name":"kernel.shm_rmid_forced","value":"1"})")),
            expected);
  EXPECT_TRUE(pod_sysctls(*json::parse(R"({"spec":{}})")).empty());
}

TEST(Sysctls, OnlyThoseOfThePodAloneMayBeSet) {
  const std::string forced = R"({"name":"kernel.shm_rmid_forced","value":"1"})";
  const std::string ports = R"({"name":"net.ipv4.ip_local_port_range","value":"1 2"})";
  const std::string unsafe = R"({"name":"kernel.msgmax","value":"1"})";
  struct Case {
    const char* sentence;
    json::value pod;
    std::string answer;  // empty: allowed
  };
  const Case cases[] = {
      {"none", pod(""), ""},
      {"safe ones", pod(forced + "," + ports), ""},
      {"one that is not in the list", pod(forced + "," + unsafe),
       "forbidden sysctl: \"kernel.msgmax\" not allowlisted"},
      {"the machine's network", pod(ports, R"(,"hostNetwork":true)"),
       "forbidden sysctl: \"net.ipv4.ip_local_port_range\" not allowed with host net enabled"},
      {"the machine's memory", pod(forced, R"(,"hostIPC":true)"),
       "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc enabled"},
      {"another namespace of the machine", pod(forced, R"(,"hostNetwork":true)"), ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(forbidden_sysctl(c.pod).value_or(""), c.answer) << c.sentence;
  }
}

}  // namespace
}  // namespace skiff::node
