#include "node/security.h"

#include <gtest/gtest.h>

#include "node/capabilities.h"
#include "node/container_setup.h"
#include "node/testing/parse.h"

namespace skiff::node {
namespace {

struct SecurityCase {
  std::string pod = "{}";        // securityContext of the pod
  std::string container = "{}";  // and of the container
  ContainerSpec spec = {};       // as the image has it
  int own_uid = 0;

  std::expected<ContainerSpec, Refusal> answer() const {
    const json::value whole =
        parse(R"({"metadata":{"name":"p","namespace":"ns","uid":"u1"},"spec":{"securityContext":)" +
              pod + R"(,"containers":[{"name":"main","securityContext":)" + container + "}]}}");
    ContainerSpec out = spec;
    const auto done =
        secure(whole, json::get_array(whole, {"spec", "containers"})[0], own_uid, out);
    if (!done) return std::unexpected(done.error());
    return out;
  }
};

TEST(Security, SaysNothingWhereNothingIsSaid) {
  const auto spec = SecurityCase{}.answer();
  ASSERT_TRUE(spec);
  EXPECT_FALSE(spec->uid);
  EXPECT_FALSE(spec->gid);
  EXPECT_TRUE(spec->groups.empty());
  EXPECT_TRUE(spec->own_groups);
  EXPECT_EQ(spec->capabilities, kDefaultCapabilities);
  EXPECT_FALSE(spec->privileged || spec->no_new_privileges || spec->read_only_root);
}

TEST(Security, TheContainersWordGoesBeforeThePodsAndThatBeforeTheImages) {
  auto spec = SecurityCase{.pod = R"({"runAsUser":5,"runAsGroup":6})",
                           .container = R"({"runAsUser":7})",
                           .spec = {.uid = 8, .gid = 9}}
                  .answer();
  EXPECT_EQ(spec->uid, 7);
  EXPECT_EQ(spec->gid, 6);
  spec = SecurityCase{.spec = {.uid = 8, .gid = 9}}.answer();
  EXPECT_EQ(spec->uid, 8);
  EXPECT_EQ(spec->gid, 9);
  spec = SecurityCase{.pod = R"({"runAsUser":5})", .spec = {.uid = 8, .gid = 9}}.answer();
  EXPECT_FALSE(spec->gid) << "the image's group is its user's";
}

TEST(Security, GroupsAreThoseOfThePodAndOfItsVolumes) {
  const auto spec = SecurityCase{.pod = R"({"supplementalGroups":[11,12],"fsGroup":13,
                                    "supplementalGroupsPolicy":"Strict"})"}
                        .answer();
  EXPECT_EQ(spec->groups, (std::vector<int>{11, 12, 13}));
  EXPECT_FALSE(spec->own_groups);
}

TEST(Security, RootIsRefusedInKubeletsWordsWhereItIsNotWanted) {
  const struct {
    std::string_view sentence;
    SecurityCase given;
    std::string_view message;  // empty: allowed
  } kCases[] = {
      {"root by the pod's word",
       {.pod = R"({"runAsNonRoot":true,"runAsUser":0})"},
       "container's runAsUser breaks non-root policy (pod: \"p_ns(u1)\", container: main)"},
      {"root by nobody's word",
       {.pod = R"({"runAsNonRoot":true})"},
       "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: "
       "main)"},
      {"root by the image",
       {.pod = R"({"runAsNonRoot":true})", .spec = {.uid = 0}, .own_uid = 1000},
       "container has runAsNonRoot and image will run as root (pod: \"p_ns(u1)\", container: "
       "main)"},
      {"another user by the image", {.pod = R"({"runAsNonRoot":true})", .spec = {.uid = 5}}, ""},
      {"another user by the pod", {.pod = R"({"runAsNonRoot":true,"runAsUser":5})"}, ""},
      {"Skiff itself is not root", {.pod = R"({"runAsNonRoot":true})", .own_uid = 1000}, ""},
      {"the container allows what the pod does not",
       {.pod = R"({"runAsNonRoot":true})", .container = R"({"runAsNonRoot":false})"},
       ""},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.sentence);
    const auto spec = c.given.answer();
    EXPECT_EQ(spec.has_value(), c.message.empty());
    if (spec) continue;
    EXPECT_EQ(spec.error().reason, "CreateContainerConfigError");
    EXPECT_EQ(spec.error().message, c.message);
  }
}

TEST(Security, CapabilitiesAreAddedAndDroppedAsContainerEnginesDo) {
  const Capabilities admin = capability(CAP_NET_ADMIN);
  const Capabilities chown = capability(CAP_CHOWN);
  const struct {
    std::string_view capabilities;
    Capabilities expected;
  } kCases[] = {
      {R"({})", kDefaultCapabilities},
      {R"({"add":["NET_ADMIN"]})", kDefaultCapabilities | admin},
      {R"({"add":["CAP_NET_ADMIN"]})", kDefaultCapabilities | admin},
      {R"({"drop":["CHOWN"]})", kDefaultCapabilities & ~chown},
      {R"({"drop":["ALL"]})", 0},
      {R"({"drop":["ALL"],"add":["CHOWN"]})", chown},
      {R"({"add":["ALL"]})", kAllCapabilities},
      {R"({"add":["ALL"],"drop":["CHOWN"]})", kAllCapabilities & ~chown},
      {R"({"add":["CHOWN"],"drop":["CHOWN"]})", kDefaultCapabilities & ~chown},
      {R"({"add":["NO_SUCH"]})", kDefaultCapabilities},
  };
  for (const auto& c : kCases) {
    const auto spec =
        SecurityCase{.container = R"({"capabilities":)" + std::string(c.capabilities) + "}"}
            .answer();
    EXPECT_EQ(spec->capabilities, c.expected) << c.capabilities;
  }
  EXPECT_EQ(capability_named("SYS_ADMIN"), capability(CAP_SYS_ADMIN));
  EXPECT_EQ(capability_named("checkpoint_restore"), capability(CAP_CHECKPOINT_RESTORE));
}

TEST(Security, PrivilegedContainersHaveEveryCapability) {
  const auto spec =
      SecurityCase{.container = R"({"privileged":true,"capabilities":{"drop":["ALL"]}})"}.answer();
  EXPECT_TRUE(spec->privileged);
  EXPECT_EQ(spec->capabilities, kAllCapabilities);
}

TEST(Security, EscalationAndTheRootsFilesFollowTheContainer) {
  const auto spec = SecurityCase{.container = R"({"allowPrivilegeEscalation":false,
                                          "readOnlyRootFilesystem":true})"}
                        .answer();
  EXPECT_TRUE(spec->no_new_privileges);
  EXPECT_TRUE(spec->read_only_root);
  EXPECT_FALSE(SecurityCase{.container = R"({"allowPrivilegeEscalation":true})"}
                   .answer()
                   ->no_new_privileges);
}

int score(const std::string& resources, const std::string& more = "") {
  const json::value pod = parse(R"({"spec":{"containers":[{"name":"main","resources":)" +
                                resources + "}" + more + "]}}");
  return oom_score(pod, json::get_array(pod, {"spec", "containers"})[0], 1000 << 20);
}

TEST(OomScore, FollowsTheQualityOfService) {
  EXPECT_EQ(score("{}"), 1000);
  EXPECT_EQ(score(R"({"limits":{"cpu":1,"memory":"1Mi"}})"), -997);
  EXPECT_EQ(score(R"({"requests":{"memory":"100Mi"}})"), 900);
  EXPECT_EQ(score(R"({"requests":{"memory":"1000Mi"}})"), 3) << "later than every Guaranteed pod";
  EXPECT_EQ(score(R"({"requests":{"cpu":1}})"), 999) << "sooner than every BestEffort pod";
}

TEST(OomScore, OfASidecarIsNoWorseThanThatOfTheContainersItServes) {
  const json::value pod = parse(R"({"spec":{
      "initContainers":[{"name":"side","restartPolicy":"Always"}],
      "containers":[{"name":"a","resources":{"requests":{"memory":"300Mi"}}},
                    {"name":"b","resources":{"requests":{"memory":"200Mi"}}}]}})");
  EXPECT_EQ(oom_score(pod, json::get_array(pod, {"spec", "initContainers"})[0], 1000 << 20), 800);
}

json::value with_sysctls(const std::string& sysctls, const std::string& more = "") {
  return *json::parse(R"({"spec":{"securityContext":{"sysctls":[)" + sysctls + "]}" + more + "}}");
}

TEST(Sysctls, AreNamedWithDotsAndKeepTheirOrder) {
  const Sysctls expected = {{"net.ipv4.tcp_rmem", "1 2 3"}, {"kernel.shm_rmid_forced", "1"}};
  EXPECT_EQ(pod_sysctls(with_sysctls(R"({"name":"net/ipv4/tcp_rmem","value":"1 2 3"},
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
      {"none", with_sysctls(""), ""},
      {"safe ones", with_sysctls(forced + "," + ports), ""},
      {"one that is not in the list", with_sysctls(forced + "," + unsafe),
       "forbidden sysctl: \"kernel.msgmax\" not allowlisted"},
      {"the machine's network", with_sysctls(ports, R"(,"hostNetwork":true)"),
       "forbidden sysctl: \"net.ipv4.ip_local_port_range\" not allowed with host net enabled"},
      {"the machine's memory", with_sysctls(forced, R"(,"hostIPC":true)"),
       "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc enabled"},
      {"another namespace of the machine", with_sysctls(forced, R"(,"hostNetwork":true)"), ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(forbidden_sysctl(c.pod).value_or(""), c.answer) << c.sentence;
  }
}

}  // namespace
}  // namespace skiff::node
