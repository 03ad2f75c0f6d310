#include "apiserver/admission/pod_security.h"

#include <gtest/gtest.h>

#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

using pod_security::Level;

std::string judge(const pod_security::Policy& policy, std::string_view spec,
                  std::string_view metadata = "{}") {
  return details(evaluate(policy, text_to_json(metadata), text_to_json(spec)));
}

constexpr pod_security::Policy kBaseline{.level = Level::kBaseline};
constexpr pod_security::Policy kRestricted{.level = Level::kRestricted};
constexpr std::string_view kHardened =
    R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
        "containers":[{"name":"c","securityContext":{"allowPrivilegeEscalation":false,
          "capabilities":{"drop":["ALL"]}}}]})";

std::string with_context(std::string_view context) {
  return R"({"containers":[{"name":"c","securityContext":)" + std::string(context) + "}]}";
}

struct PodSecurityCase {
  std::string spec;
  std::string_view finding;
};

TEST(PodSecurityBaseline, Each_check_speaks_as_the_real_one) {
  const PodSecurityCase kCases[] = {
      {R"({"hostNetwork":true,"hostIPC":true})",
       "host namespaces (hostNetwork=true, hostIPC=true)"},
      {R"({"volumes":[{"name":"a","hostPath":{"path":"/"}},{"name":"b","emptyDir":{}}]})",
       R"(hostPath volumes (volume "a"))"},
      {R"({"containers":[{"name":"a","ports":[{"hostPort":9},{"hostPort":10}]},
          {"name":"b","ports":[{"hostPort":9}]}]})",
       R"(hostPort (containers "a", "b" use hostPorts 10, 9))"},
      {R"({"containers":[{"name":"a","livenessProbe":{"httpGet":{"host":"h"}}}]})",
       R"(probe or lifecycle host (container "a" uses probe or lifecycle host "h"))"},
      {with_context(R"({"privileged":true})"),
       R"(privileged (container "c" must not set securityContext.privileged=true))"},
      {with_context(R"({"procMount":"Unmasked"})"),
       R"(procMount (container "c" must not set securityContext.procMount to "Unmasked"))"},
      {with_context(R"({"capabilities":{"add":["NET_RAW","CHOWN","BPF"]}})"),
       R"(non-default capabilities (container "c" must not include "BPF", "NET_RAW" in )"
       R"(securityContext.capabilities.add))"},
      {R"({"securityContext":{"seLinuxOptions":{"type":"odd","user":"u"}},
          "containers":[{"name":"c","securityContext":{"seLinuxOptions":{"role":"r"}}}]})",
       R"(seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type )"
       R"("odd"; user may not be set; role may not be set))"},
      {R"({"securityContext":{"seccompProfile":{"type":"Unconfined"}}})",
       R"(seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined"))"},
      {R"({"securityContext":{"sysctls":[{"name":"kernel.x"},{"name":"net.ipv4.tcp_rmem"}]}})",
       "forbidden sysctls (kernel.x)"},
      {R"({"securityContext":{"windowsOptions":{"hostProcess":true}}})",
       "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
      {R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"}}})",
       R"(forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"))"}};
  for (const PodSecurityCase& c : kCases) {
    EXPECT_EQ(judge(kBaseline, c.spec), c.finding);
    EXPECT_EQ(judge({.level = Level::kPrivileged}, c.spec), "");
  }
  EXPECT_EQ(judge(kBaseline, R"({"containers":[{"name":"c"}]})"), "");
}

TEST(PodSecurityBaseline, Annotations_from_before_the_fields_count_too) {
  EXPECT_EQ(judge(kBaseline, "{}",
                  R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"bad"}})"),
            R"(forbidden AppArmor profile (annotation must not set AppArmor profile type to )"
            R"("container.apparmor.security.beta.kubernetes.io/c="bad""))");
  const std::string_view seccomp =
      R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}})";
  EXPECT_EQ(judge({.level = Level::kBaseline, .minor = 18}, "{}", seccomp),
            R"(seccompProfile (forbidden annotation )"
            R"(seccomp.security.alpha.kubernetes.io/pod="unconfined"))");
  EXPECT_EQ(judge(kBaseline, "{}", seccomp), "");
}

TEST(PodSecurityBaseline, A_version_means_what_it_meant_then) {
  const std::string sysctl = R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}]}})";
  EXPECT_EQ(judge({.level = Level::kBaseline, .minor = 31}, sysctl),
            "forbidden sysctls (net.ipv4.tcp_rmem)");
  EXPECT_EQ(judge({.level = Level::kBaseline, .minor = 32}, sysctl), "");
  EXPECT_EQ(judge({.level = Level::kBaseline, .minor = 99}, sysctl), "");
  const std::string engine =
      R"({"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}})";
  EXPECT_NE(judge({.level = Level::kBaseline, .minor = 30}, engine), "");
  EXPECT_EQ(judge({.level = Level::kBaseline, .minor = 31}, engine), "");
}

TEST(PodSecurityRestricted, A_plain_pod_lacks_four_things_in_the_order_of_their_names) {
  EXPECT_EQ(judge(kRestricted, R"({"containers":[{"name":"c"}]})"),
            R"(allowPrivilegeEscalation != false (container "c" must set )"
            R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
            R"((container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot )"
            R"(!= true (pod or container "c" must set securityContext.runAsNonRoot=true), )"
            R"(seccompProfile (pod or container "c" must set securityContext.seccompProfile.type )"
            R"(to "RuntimeDefault" or "Localhost"))");
  EXPECT_EQ(judge(kRestricted, kHardened), "");
}

TEST(PodSecurityRestricted, Its_own_checks_stand_in_for_those_of_baseline) {
  json::value spec = text_to_json(kHardened);
  spec.as_object()["volumes"] =
      json::array{json::object{{"name", "v"}, {"hostPath", json::object()}},
                  json::object{{"name", "w"}, {"nfs", json::object()}},
                  json::object{{"name", "x"}, {"emptyDir", json::object()}}};
  EXPECT_EQ(judge(kRestricted, json::serialize(spec)),
            R"(restricted volume types (volumes "v", "w" use restricted volume types "hostPath", )"
            R"("nfs"))");
}

TEST(PodSecurityRestricted, What_is_said_wrongly_is_told_before_what_is_not_said) {
  EXPECT_EQ(judge({.level = Level::kRestricted, .minor = 7},
                  R"({"securityContext":{"runAsNonRoot":false},"containers":[{"name":"a",
                      "securityContext":{"runAsNonRoot":false}},{"name":"b"}]})"),
            R"(runAsNonRoot != true (pod and container "a" must not set )"
            R"(securityContext.runAsNonRoot=false))");
  json::value root = text_to_json(kHardened);
  json::set(root, {"securityContext", "runAsUser"}, 0);
  EXPECT_EQ(judge(kRestricted, json::serialize(root)),
            "runAsUser=0 (pod must not set runAsUser=0)");
}

TEST(PodSecurityRestricted, A_windows_pod_is_not_asked_for_what_only_linux_has) {
  EXPECT_EQ(judge(kRestricted, R"({"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true},
                                   "containers":[{"name":"c"}]})"),
            "");
}

TEST(PodSecurityPolicies, Labels_are_read_with_the_defaults_of_the_real_server) {
  std::vector<Cause> causes;
  const auto read = [&](std::string_view labels) {
    causes.clear();
    const auto p = pod_security::read_policies(text_to_json(labels).as_object(), causes);
    return p.enforce.text() + " " + p.audit.text() + " " + p.warn.text();
  };
  EXPECT_EQ(read("{}"), "privileged:latest privileged:latest privileged:latest");
  EXPECT_EQ(read(R"({"pod-security.kubernetes.io/enforce":"baseline",
                     "pod-security.kubernetes.io/enforce-version":"v1.30"})"),
            "baseline:v1.30 privileged:latest baseline:v1.30");
  EXPECT_EQ(read(R"({"pod-security.kubernetes.io/enforce":"baseline",
                     "pod-security.kubernetes.io/warn":"restricted"})"),
            "baseline:latest privileged:latest restricted:latest");
  EXPECT_TRUE(causes.empty());
  EXPECT_EQ(read(R"({"pod-security.kubernetes.io/enforce":"loose",
                     "pod-security.kubernetes.io/audit":"loose",
                     "pod-security.kubernetes.io/warn-version":"v1.01"})"),
            "restricted:latest privileged:latest privileged:latest");
  ASSERT_EQ(causes.size(), 3u);
  EXPECT_EQ(causes[0].field, "metadata.labels[pod-security.kubernetes.io/enforce]");
  EXPECT_EQ(causes[0].message,
            "Invalid value: \"loose\": must be one of privileged, baseline, restricted");
  EXPECT_EQ(causes[2].message, "Invalid value: \"v1.01\": must be \"latest\" or \"v1.x\"");
}

class PodSecurity : public ::testing::Test {
 protected:
  std::pair<int, json::value> label(std::string_view labels) {
    return world.call("PATCH", "/api/v1/namespaces/default",
                      R"({"metadata":{"labels":)" + std::string(labels) + "}}",
                      "application/merge-patch+json");
  }
  AdmissionWorld world;
};

TEST_F(PodSecurity, A_namespace_refuses_what_its_level_forbids) {
  ASSERT_EQ(label(R"({"pod-security.kubernetes.io/enforce":"restricted"})").first, 200);
  const auto answer = world.run("p", R"("hostNetwork":true,"containers":[{"name":"c","image":"i:1",
      "securityContext":{"allowPrivilegeEscalation":false,"runAsNonRoot":true,
      "capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"RuntimeDefault"}}}])");
  EXPECT_EQ(answer.first, 403);
  EXPECT_EQ(world.message(answer),
            "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces "
            "(hostNetwork=true)");
}

TEST_F(PodSecurity, A_warning_lets_the_pod_in) {
  ASSERT_EQ(label(R"({"pod-security.kubernetes.io/warn":"baseline"})").first, 200);
  EXPECT_EQ(world.run("p", std::string(kOneContainer) + R"(,"hostPID":true)").first, 201);
  ASSERT_EQ(world.warnings().size(), 1u);
  EXPECT_EQ(world.warnings()[0],
            R"(299 - "would violate PodSecurity \"baseline:latest\": host namespaces )"
            "(hostPID=true)\"");
}

TEST_F(PodSecurity, A_label_that_means_nothing_is_refused) {
  const auto answer = label(R"({"pod-security.kubernetes.io/enforce":"tight"})");
  EXPECT_EQ(answer.first, 422);
  EXPECT_EQ(world.message(answer),
            "Namespace \"default\" is invalid: "
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"tight\": must "
            "be one of privileged, baseline, restricted");
}

TEST_F(PodSecurity, A_stricter_namespace_warns_of_the_pods_it_already_has) {
  ASSERT_EQ(world.run("a", kOneContainer).first, 201);
  ASSERT_EQ(world.run("b", std::string(kOneContainer) + R"(,"hostPID":true)").first, 201);
  ASSERT_EQ(world.run("d", std::string(kOneContainer) + R"(,"hostPID":true)").first, 201);
  ASSERT_EQ(label(R"({"pod-security.kubernetes.io/enforce":"baseline"})").first, 200);
  EXPECT_EQ(world.warnings(),
            (std::vector<std::string>{
                R"(299 - "existing pods in namespace \"default\" violate the new PodSecurity )"
                R"(enforce level \"baseline:latest\"")",
                R"(299 - "b (and 1 other pod): host namespaces")"}));
}

TEST_F(PodSecurity, A_change_that_is_no_new_image_is_not_judged_again) {
  ASSERT_EQ(world.run("p", std::string(kOneContainer) + R"(,"hostPID":true)").first, 201);
  ASSERT_EQ(label(R"({"pod-security.kubernetes.io/enforce":"baseline"})").first, 200);
  const auto patch = [&](std::string_view body) {
    return world.call("PATCH", World::pods("/p"), std::string(body),
                      "application/strategic-merge-patch+json");
  };
  EXPECT_EQ(patch(R"({"metadata":{"labels":{"a":"b"}}})").first, 200);
  EXPECT_EQ(patch(R"({"spec":{"containers":[{"name":"c","image":"x:z"}]}})").first, 403);
}

}  // namespace
}  // namespace skiff::apiserver
