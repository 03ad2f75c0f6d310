#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

class ServiceAccounts : public ::testing::Test {
 protected:
  const json::value& container(const json::value& pod) {
    return json::get_array(pod, {"spec", "containers"})[0];
  }
  AdmissionWorld world;
};

TEST_F(ServiceAccounts, A_pod_runs_as_the_default_account_with_a_token_for_it) {
  const auto [code, pod] = world.run("p", kOneContainer);
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::get_string(pod, {"spec", "serviceAccountName"}), "default");
  EXPECT_EQ(json::get_string(pod, {"spec", "serviceAccount"}), "default");
  const json::array& volumes = json::get_array(pod, {"spec", "volumes"});
  ASSERT_EQ(volumes.size(), 1u);
  const std::string name(json::get_string(volumes[0], {"name"}));
  EXPECT_TRUE(name.starts_with("kube-api-access-"));
  EXPECT_EQ(name.size(), std::string("kube-api-access-").size() + 5);
  EXPECT_EQ(json::serialize(json::value(json::get_object(volumes[0], {"projected"}))),
            R"({"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,)"
            R"("path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt",)"
            R"("path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":)"
            R"({"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]})");
  const json::array& mounts = json::get_array(container(pod), {"volumeMounts"});
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_EQ(json::get_string(mounts[0], {"name"}), name);
  EXPECT_EQ(json::get_string(mounts[0], {"mountPath"}),
            "/var/run/secrets/kubernetes.io/serviceaccount");
  EXPECT_EQ(json::get_bool(mounts[0], {"readOnly"}), true);
  // The account exists from now on, whoever was to make it.
  EXPECT_FALSE(api::uid(world.get("serviceaccounts", "default", "default")).empty());
}

TEST_F(ServiceAccounts, An_account_that_does_not_exist_is_refused) {
  const auto answer =
      world.run("p", std::string(kOneContainer) + R"(,"serviceAccountName":"robot")");
  EXPECT_EQ(answer.first, 403);
  EXPECT_EQ(world.message(answer),
            "pods \"p\" is forbidden: error looking up service account default/robot: "
            "serviceaccount \"robot\" not found");
}

TEST_F(ServiceAccounts, A_refusal_shows_what_a_name_would_have_been_generated_from) {
  const auto answer =
      world.call("POST", World::pods(),
                 R"({"metadata":{"generateName":"web-"},"spec":{"serviceAccountName":"robot",)" +
                     std::string(kOneContainer) + "}}");
  EXPECT_TRUE(world.message(answer).starts_with("pods \"web-\" is forbidden: error looking up"))
      << world.message(answer);
}

TEST_F(ServiceAccounts, The_pod_then_the_account_say_whether_a_token_is_mounted) {
  world.put("serviceaccounts", "default", "quiet", R"({"automountServiceAccountToken":false})");
  const std::string quiet = std::string(kOneContainer) + R"(,"serviceAccountName":"quiet")";
  const auto [code, without] = world.run("a", quiet);
  ASSERT_EQ(code, 201);
  EXPECT_TRUE(json::get_array(without, {"spec", "volumes"}).empty());
  const auto [code2, with] = world.run("b", quiet + R"(,"automountServiceAccountToken":true)");
  ASSERT_EQ(code2, 201);
  EXPECT_EQ(json::get_array(with, {"spec", "volumes"}).size(), 1u);
  const auto [code3, off] =
      world.run("d", std::string(kOneContainer) + R"(,"automountServiceAccountToken":false)");
  ASSERT_EQ(code3, 201);
  EXPECT_TRUE(json::get_array(off, {"spec", "volumes"}).empty());
  EXPECT_TRUE(json::get_array(container(off), {"volumeMounts"}).empty());
}

TEST_F(ServiceAccounts, A_container_with_a_mount_of_its_own_there_keeps_it) {
  const auto [code, pod] =
      world.run("p", R"("containers":[{"name":"c","image":"x:y","volumeMounts":[{"name":"mine",)"
                     R"("mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}],)"
                     R"("volumes":[{"name":"mine","emptyDir":{}}])");
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::get_array(pod, {"spec", "volumes"}).size(), 1u);
  EXPECT_EQ(json::get_array(container(pod), {"volumeMounts"}).size(), 1u);
}

TEST_F(ServiceAccounts, Pull_secrets_come_from_the_account_where_the_pod_names_none) {
  world.put("serviceaccounts", "default", "puller", R"({"imagePullSecrets":[{"name":"reg"}]})");
  const std::string spec = std::string(kOneContainer) + R"(,"serviceAccountName":"puller")";
  const auto [code, pod] = world.run("a", spec);
  ASSERT_EQ(code, 201);
  EXPECT_EQ(json::serialize(json::value(json::get_array(pod, {"spec", "imagePullSecrets"}))),
            R"([{"name":"reg"}])");
  const auto [code2, own] = world.run("b", spec + R"(,"imagePullSecrets":[{"name":"own"}])");
  ASSERT_EQ(code2, 201);
  EXPECT_EQ(json::serialize(json::value(json::get_array(own, {"spec", "imagePullSecrets"}))),
            R"([{"name":"own"}])");
}

TEST_F(ServiceAccounts, An_account_may_say_which_secrets_its_pods_may_use) {
  world.put("serviceaccounts", "default", "strict",
            R"({"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},
                "secrets":[{"name":"mine"}]})");
  const std::string as = R"("serviceAccountName":"strict",)";
  const auto with_volume = [&](std::string secret) {
    return as + std::string(kOneContainer) + R"(,"volumes":[{"name":"v","secret":{"secretName":")" +
           secret + R"("}}])";
  };
  EXPECT_EQ(world.run("a", with_volume("mine")).first, 201);
  EXPECT_EQ(world.message(world.run("b", with_volume("other"))),
            "pods \"b\" is forbidden: volume with secret.secretName=\"other\" is not allowed "
            "because service account strict does not reference that secret");
  EXPECT_EQ(world.message(world.run(
                "d", as + R"("containers":[{"name":"c","image":"x:y","env":[{"name":"E",)"
                          R"("valueFrom":{"secretKeyRef":{"name":"other","key":"k"}}}]}])")),
            "pods \"d\" is forbidden: container c with envVar E referencing "
            "secret.secretName=\"other\" is not allowed because service account strict does not "
            "reference that secret");
  EXPECT_EQ(world.message(world.run(
                "e", as + std::string(kOneContainer) + R"(,"imagePullSecrets":[{"name":"reg"}])")),
            "pods \"e\" is forbidden: imagePullSecrets[0].name=\"reg\" is not allowed because "
            "service account strict does not reference that imagePullSecret");
}

TEST_F(ServiceAccounts, The_same_seed_gives_the_same_volume_name) {
  AdmissionWorld other;
  const auto first = world.run("p", kOneContainer), second = other.run("p", kOneContainer);
  EXPECT_EQ(json::get_string(json::get_array(first.second, {"spec", "volumes"})[0], {"name"}),
            json::get_string(json::get_array(second.second, {"spec", "volumes"})[0], {"name"}));
}

TEST_F(ServiceAccounts, A_dry_run_leaves_no_account_behind) {
  world.call("DELETE", "/api/v1/namespaces/default/serviceaccounts/default");
  const auto answer = world.call("POST", World::pods("?dryRun=All"), world.pod("p"));
  EXPECT_EQ(answer.first, 201);
  EXPECT_TRUE(world.get("serviceaccounts", "default", "default").is_null());
}

}  // namespace
}  // namespace skiff::apiserver
