#include "apiserver/admission/service_addresses.h"

#include "apiserver/admission/test_admission.h"

namespace skiff::apiserver {
namespace {

class ServiceAddresses : public ::testing::Test {
 protected:
  static std::string path(std::string_view name = "") {
    return "/api/v1/namespaces/default/services" + std::string(name);
  }
  std::pair<int, json::value> make(std::string name, std::string_view spec) {
    return world.call(
        "POST", path(),
        R"({"metadata":{"name":")" + name + R"("},"spec":)" + std::string(spec) + "}");
  }
  std::pair<int, json::value> patch(std::string name, std::string_view body) {
    return world.call("PATCH", path("/" + name), std::string(body), "application/merge-patch+json");
  }
  static std::string ip(const json::value& service) {
    return std::string(json::get_string(service, {"spec", "clusterIP"}));
  }
  static std::int64_t port(const json::value& service, std::size_t i = 0) {
    return json::get_int(json::get_array(service, {"spec", "ports"})[i], {"nodePort"}).value_or(0);
  }
  AdmissionWorld world;
};

constexpr std::string_view kPlain = R"({"ports":[{"port":80}]})";

TEST_F(ServiceAddresses, The_kubernetes_service_has_the_first_address) {
  const auto [code, service] = world.call("GET", path("/kubernetes"));
  EXPECT_EQ(ip(service), "10.96.0.1");
}

TEST_F(ServiceAddresses, A_service_gets_an_address_of_the_range_that_nobody_else_has) {
  const auto [code, a] = make("a", kPlain);
  ASSERT_EQ(code, 201) << json::serialize(a);
  const auto [code2, b] = make("b", kPlain);
  ASSERT_EQ(code2, 201);
  EXPECT_TRUE(ip(a).starts_with("10.96."));
  EXPECT_NE(ip(a), ip(b));
  EXPECT_EQ(json::serialize(json::value(json::get_array(a, {"spec", "clusterIPs"}))),
            "[\"" + ip(a) + "\"]");
  EXPECT_EQ(json::serialize(json::value(json::get_array(a, {"spec", "ipFamilies"}))),
            R"(["IPv4"])");
  EXPECT_EQ(json::get_string(a, {"spec", "ipFamilyPolicy"}), "SingleStack");
  const json::value held = world.get("ipaddresses.networking.k8s.io", "", ip(a));
  EXPECT_EQ(json::get_string(held, {"spec", "parentRef", "name"}), "a");
}

TEST_F(ServiceAddresses, Headless_and_external_services_have_none) {
  const auto [code, headless] = make("h", R"({"clusterIP":"None"})");
  ASSERT_EQ(code, 201) << json::serialize(headless);
  EXPECT_EQ(ip(headless), "None");
  const auto [code2, external] =
      make("e", R"({"type":"ExternalName","externalName":"example.com"})");
  ASSERT_EQ(code2, 201) << json::serialize(external);
  EXPECT_EQ(json::find(external, {"spec", "clusterIP"}), nullptr);
  EXPECT_EQ(json::find(external, {"spec", "ipFamilies"}), nullptr);
}

TEST_F(ServiceAddresses, An_address_can_be_asked_for_once) {
  ASSERT_EQ(make("a", R"({"clusterIP":"10.96.0.77","ports":[{"port":80}]})").first, 201);
  const auto taken = make("b", R"({"clusterIP":"10.96.0.77","ports":[{"port":80}]})");
  EXPECT_EQ(taken.first, 422);
  EXPECT_EQ(world.message(taken),
            "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.0.77\"]: failed to "
            "allocate IP 10.96.0.77: provided IP is already allocated");
  EXPECT_EQ(world.message(make("b", R"({"clusterIP":"10.1.1.1","ports":[{"port":80}]})")),
            "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"10.1.1.1\"]: failed to "
            "allocate IP 10.1.1.1: the provided IP (10.1.1.1) is not in the valid range. The range "
            "of valid IPs is 10.96.0.0/16");
  ASSERT_EQ(world.call("DELETE", path("/a")).first, 200);
  EXPECT_EQ(make("b", R"({"clusterIP":"10.96.0.77","ports":[{"port":80}]})").first, 201);
}

TEST_F(ServiceAddresses, A_service_takes_its_endpoints_with_it) {
  ASSERT_EQ(make("a", kPlain).first, 201);
  for (const std::string name : {"a", "b"}) {
    ASSERT_EQ(world
                  .call("POST", "/api/v1/namespaces/default/endpoints",
                        R"({"metadata":{"name":")" + name + R"("}})")
                  .first,
              201);
  }
  ASSERT_EQ(world.call("DELETE", path("/a")).first, 200);
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/default/endpoints/a").first, 404);
  EXPECT_EQ(world.call("GET", "/api/v1/namespaces/default/endpoints/b").first, 200);
}

TEST_F(ServiceAddresses, Node_ports_are_given_and_taken_likewise) {
  const auto [code, a] =
      make("a", R"({"type":"NodePort","ports":[{"name":"x","port":80},{"name":"y","port":81}]})");
  ASSERT_EQ(code, 201) << json::serialize(a);
  EXPECT_GE(port(a), 30000);
  EXPECT_LE(port(a), 32767);
  EXPECT_NE(port(a, 0), port(a, 1));
  const std::string same =
      R"({"type":"NodePort","ports":[{"port":80,"nodePort":)" + std::to_string(port(a)) + "}]}";
  EXPECT_EQ(world.message(make("b", same)),
            "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: " +
                std::to_string(port(a)) + ": provided port is already allocated");
  EXPECT_EQ(world.message(make("b", R"({"type":"NodePort","ports":[{"port":80,"nodePort":80}]})")),
            "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is "
            "not in the valid range. The range of valid ports is 30000-32767");
  ASSERT_EQ(world.call("DELETE", path("/a")).first, 200);
  EXPECT_EQ(make("b", same).first, 201);
}

TEST_F(ServiceAddresses, An_update_that_leaves_them_out_keeps_them) {
  const auto [code, a] = make("a", R"({"type":"NodePort","ports":[{"port":80}]})");
  ASSERT_EQ(code, 201);
  const auto [code2, b] =
      world.call("PUT", path("/a"),
                 R"({"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80}],
                     "selector":{"x":"y"}}})");
  ASSERT_EQ(code2, 200) << json::serialize(b);
  EXPECT_EQ(ip(a), ip(b));
  EXPECT_EQ(port(a), port(b));
}

TEST_F(ServiceAddresses, A_change_of_type_gives_and_takes_what_belongs_to_it) {
  const auto [code, a] = make("a", kPlain);
  ASSERT_EQ(code, 201);
  const auto [code2, b] = patch("a", R"({"spec":{"type":"NodePort"}})");
  ASSERT_EQ(code2, 200);
  const std::int64_t given = port(b);
  EXPECT_GE(given, 30000);
  const auto [code3, c] = patch("a", R"({"spec":{"type":"ClusterIP"}})");
  ASSERT_EQ(code3, 200);
  EXPECT_EQ(port(c), 0);
  EXPECT_TRUE(world.get("nodeports.skiff.internal", "", std::to_string(given)).is_null());
  const auto [code4, d] = patch("a", R"({"spec":{"type":"ExternalName","externalName":"x.org"}})");
  ASSERT_EQ(code4, 200) << json::serialize(d);
  EXPECT_EQ(json::find(d, {"spec", "clusterIP"}), nullptr);
  EXPECT_TRUE(world.get("ipaddresses.networking.k8s.io", "", ip(a)).is_null());
}

TEST_F(ServiceAddresses, Here_is_one_family_of_addresses) {
  const auto why = [&](std::string_view spec) {
    return std::string(json::get_string(make("a", spec).second, {"message"}));
  };
  EXPECT_EQ(why(R"({"ports":[{"port":80}],"ipFamilyPolicy":"RequireDualStack"})"),
            "Service \"a\" is invalid: spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": "
            "this cluster is not configured for dual-stack services");
  EXPECT_EQ(why(R"({"ports":[{"port":80}],"ipFamilies":["IPv6"]})"),
            "Service \"a\" is invalid: spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured "
            "on this cluster");
  EXPECT_EQ(make("b", R"({"ports":[{"port":80}],"ipFamilyPolicy":"PreferDualStack"})").first, 201);
  EXPECT_EQ(make("c", R"({"clusterIP":"None","ipFamilyPolicy":"RequireDualStack"})").first, 201)
      << "whose endpoints are somebody else's";
}

TEST_F(ServiceAddresses, A_dry_run_does_not_ask_for_the_range_of_a_port) {
  const char* body = R"({"metadata":{"name":"a"},"spec":{"type":"NodePort",
    "ports":[{"port":80,"nodePort":5}]}})";
  EXPECT_EQ(world.call("POST", path("?dryRun=All"), body).first, 201);
  EXPECT_EQ(world.call("POST", path(), body).first, 422);
}

TEST_F(ServiceAddresses, A_dry_run_takes_nothing) {
  ASSERT_EQ(world
                .call("POST", path("?dryRun=All"),
                      R"({"metadata":{"name":"a"},"spec":{"clusterIP":"10.96.0.9",
                          "ports":[{"port":80}]}})")
                .first,
            201);
  EXPECT_EQ(make("a", R"({"clusterIP":"10.96.0.9","ports":[{"port":80}]})").first, 201);
}

}  // namespace
}  // namespace skiff::apiserver
