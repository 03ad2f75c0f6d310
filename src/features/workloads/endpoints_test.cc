#include "features/workloads/endpoints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "control/testing/laws.h"
#include "features/workloads/service_pods.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using testing::Cluster;

json::value service(json::value ports = json::array{
                        json::object{{"name", "http"}, {"port", 80}, {"targetPort", "web"}}}) {
  return {
      {"metadata", {{"name", "web"}, {"labels", {{"team", "a"}}}}},
      {"spec",
       {{"clusterIP", "10.96.0.9"}, {"selector", {{"app", "web"}}}, {"ports", std::move(ports)}}}};
}

json::value endpoints_pod(std::string_view name, std::int64_t port = 8080) {
  json::object container{
      {"name", "main"},
      {"ports", json::array{json::object{{"name", "web"}, {"containerPort", port}}}}};
  return {{"metadata", {{"name", json::string(name)}, {"labels", {{"app", "web"}, {"x", "y"}}}}},
          {"spec", {{"nodeName", "n1"}, {"containers", json::array{std::move(container)}}}}};
}

json::value status(std::string_view ip, bool is_ready) {
  return {{"status",
           {{"phase", "Running"},
            {"podIP", json::string(ip)},
            {"podIPs", json::array{json::object{{"ip", json::string(ip)}}}},
            {"conditions", json::array{json::object{{"type", "Ready"},
                                                    {"status", is_ready ? "True" : "False"}}}}}}};
}

std::vector<std::string> ips(const json::value& endpoints, std::string_view list) {
  std::vector<std::string> out;
  for (const json::value& subset : json::get_array(endpoints, {"subsets"})) {
    for (const json::value& a : json::get_array(subset, {list})) {
      out.emplace_back(json::get_string(a, {"ip"}));
    }
  }
  return out;
}

using Strings = std::vector<std::string>;

struct EndpointsOfServices : ::testing::Test {
  Cluster cluster{{endpoints_controller()}};

  void make(json::value object) {
    testing::create(cluster.client(), service_resource(), std::move(object));
    cluster.settle();
  }
  void add(std::string_view name, std::string_view ip, bool is_ready = true, json::value p = {}) {
    testing::create(cluster.client(), pod_resource(),
                    p.is_null() ? endpoints_pod(name) : std::move(p));
    testing::change(cluster.client(), pod_resource(), name, status(ip, is_ready), "status");
    cluster.settle();
  }
  json::value endpoints() { return cluster.get(endpoints_resource(), "web"); }
  std::vector<Object> slices() { return cluster.of(endpoint_slice_resource()); }
  // name of the pod -> "ready serving terminating" and its slice
  std::map<std::string, std::string> conditions() {
    std::map<std::string, std::string> out;
    for (const Object& slice : slices()) {
      for (const json::value& e : json::get_array(*slice, {"endpoints"})) {
        std::string text;
        for (const std::string_view field : {"ready", "serving", "terminating"}) {
          if (json::get_bool(e, {"conditions", field}).value_or(false)) text += field[0];
        }
        out[std::string(json::get_string(e, {"targetRef", "name"}))] = text;
      }
    }
    return out;
  }
};

TEST_F(EndpointsOfServices, are_there_before_any_pod_is) {
  make(service());
  EXPECT_EQ(api::name(endpoints()), "web");
  EXPECT_TRUE(json::get_array(endpoints(), {"subsets"}).empty());
  EXPECT_EQ(api::label(endpoints(), "endpoints.kubernetes.io/managed-by"), "endpoint-controller");
  EXPECT_EQ(api::label(endpoints(), "team"), "a");
  ASSERT_EQ(slices().size(), 1U);
  const json::value& slice = *slices()[0];
  EXPECT_TRUE(api::name(slice).starts_with("web-"));
  EXPECT_EQ(json::get_string(slice, {"metadata", "generateName"}), "web-");
  EXPECT_EQ(json::get_string(slice, {"addressType"}), "IPv4");
  EXPECT_TRUE(json::get_array(slice, {"endpoints"}).empty());
  EXPECT_TRUE(json::get_array(slice, {"ports"}).empty());
  EXPECT_EQ(api::label(slice, "kubernetes.io/service-name"), "web");
  EXPECT_EQ(api::label(slice, "endpointslice.kubernetes.io/managed-by"),
            "endpointslice-controller.k8s.io");
  EXPECT_EQ(api::label(slice, "team"), "a");
  EXPECT_TRUE(api::controlled_by(slice, api::uid(cluster.get(service_resource(), "web"))));
}

TEST_F(EndpointsOfServices, say_where_each_pod_is_and_which_one) {
  make(service());
  add("a", "10.0.0.1");
  const json::value subset = json::get_array(endpoints(), {"subsets"}).at(0);
  const std::string uid(api::uid(*cluster.pods()[0]));
  const json::value target = {
      {"kind", "Pod"}, {"namespace", "team"}, {"name", "a"}, {"uid", json::string(uid)}};
  EXPECT_EQ(subset.at("addresses"),
            (json::array{{{"ip", "10.0.0.1"}, {"nodeName", "n1"}, {"targetRef", target}}}));
  EXPECT_EQ(subset.at("ports"),
            (json::array{{{"name", "http"}, {"port", 8080}, {"protocol", "TCP"}}}));
  ASSERT_EQ(slices().size(), 1U) << "the empty one is used";
  const json::value& slice = *slices()[0];
  EXPECT_EQ(
      json::get_array(slice, {"endpoints"})[0],
      (json::object{{"addresses", json::array{"10.0.0.1"}},
                    {"nodeName", "n1"},
                    {"targetRef", target},
                    {"conditions", {{"ready", true}, {"serving", true}, {"terminating", false}}}}));
  EXPECT_EQ(slice.at("ports"),
            (json::array{{{"name", "http"}, {"port", 8080}, {"protocol", "TCP"}}}));
}

TEST_F(EndpointsOfServices, follow_readiness) {
  make(service());
  add("a", "10.0.0.1", false);
  add("b", "10.0.0.2");
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{"10.0.0.2"});
  EXPECT_EQ(ips(endpoints(), "notReadyAddresses"), Strings{"10.0.0.1"});
  EXPECT_EQ(conditions(), (std::map<std::string, std::string>{{"a", ""}, {"b", "rs"}}));
  testing::change(cluster.client(), pod_resource(), "a", status("10.0.0.1", true), "status");
  cluster.settle();
  EXPECT_EQ(ips(endpoints(), "addresses"), (Strings{"10.0.0.1", "10.0.0.2"}));
  cluster.end_pod("b", 0);
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{"10.0.0.1"});
  EXPECT_EQ(conditions(), (std::map<std::string, std::string>{{"a", "rs"}}));
}

TEST_F(EndpointsOfServices, keep_a_pod_that_goes_only_in_slices_and_not_as_ready) {
  make(service());
  add("a", "10.0.0.1");
  testing::remove(cluster.client(), pod_resource(), "a");  // bound, so it lingers
  cluster.settle();
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{});
  EXPECT_EQ(conditions(), (std::map<std::string, std::string>{{"a", "st"}}));
  cluster.patch(service_resource(), "web", {{"spec", {{"publishNotReadyAddresses", true}}}});
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{"10.0.0.1"});
  EXPECT_EQ(conditions(), (std::map<std::string, std::string>{{"a", "rst"}}));
}

TEST_F(EndpointsOfServices, publish_pods_that_are_not_ready_where_the_service_says_so) {
  json::value eager = service();
  json::set(eager, {"spec", "publishNotReadyAddresses"}, true);
  make(std::move(eager));
  add("a", "10.0.0.1", false);
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{"10.0.0.1"});
  EXPECT_EQ(conditions(), (std::map<std::string, std::string>{{"a", "r"}}));
}

TEST_F(EndpointsOfServices, group_pods_by_the_number_behind_a_named_port) {
  make(service());
  add("a", "10.0.0.1");
  add("b", "10.0.0.2", true, endpoints_pod("b", 9090));
  const json::value object = endpoints();
  const json::array& subsets = json::get_array(object, {"subsets"});
  ASSERT_EQ(subsets.size(), 2U);
  std::map<std::int64_t, std::string> by_port;
  for (const json::value& subset : subsets) {
    by_port[json::get_array(subset, {"ports"})[0].at("port").as_int64()] =
        json::get_string(json::get_array(subset, {"addresses"})[0], {"ip"});
  }
  EXPECT_EQ(by_port, (std::map<std::int64_t, std::string>{{8080, "10.0.0.1"}, {9090, "10.0.0.2"}}));
  EXPECT_EQ(slices().size(), 2U);
}

TEST_F(EndpointsOfServices, put_ports_with_the_same_addresses_together) {
  make(service(json::array{json::object{{"name", "a"}, {"port", 80}, {"appProtocol", "http"}},
                           json::object{{"name", "b"}, {"port", 81}, {"targetPort", 8081}},
                           json::object{{"name", "c"}, {"port", 82}, {"targetPort", "nobody"}}}));
  add("a", "10.0.0.1");
  const json::value object = endpoints();
  const json::array& subsets = json::get_array(object, {"subsets"});
  ASSERT_EQ(subsets.size(), 1U);
  EXPECT_EQ(
      subsets[0].at("ports"),
      (json::array{{{"name", "a"}, {"port", 80}, {"protocol", "TCP"}, {"appProtocol", "http"}},
                   {{"name", "b"}, {"port", 8081}, {"protocol", "TCP"}}}));
}

TEST_F(EndpointsOfServices, know_the_ports_of_sidecars) {
  json::value p = endpoints_pod("a");
  json::set(p, {"spec", "initContainers"},
            json::array{json::object{
                {"restartPolicy", "Always"},
                {"ports", json::array{json::object{{"name", "side"}, {"containerPort", 7}}}}}});
  make(service(json::array{json::object{{"port", 80}, {"targetPort", "side"}}}));
  add("a", "10.0.0.1", true, std::move(p));
  const json::value subset = json::get_array(endpoints(), {"subsets"}).at(0);
  EXPECT_EQ(subset.at("ports"), (json::array{{{"port", 7}, {"protocol", "TCP"}}}));
}

TEST_F(EndpointsOfServices, that_are_headless_need_no_ports_and_give_host_names) {
  json::value headless = service(json::array{});
  json::set(headless, {"spec", "clusterIP"}, "None");
  make(std::move(headless));
  json::value named = endpoints_pod("a");
  json::set(named, {"spec", "hostname"}, "a");
  json::set(named, {"spec", "subdomain"}, "web");
  add("a", "10.0.0.1", true, std::move(named));
  EXPECT_NE(json::find(endpoints(), {"metadata", "labels", "service.kubernetes.io/headless"}),
            nullptr);
  const json::value subset = json::get_array(endpoints(), {"subsets"}).at(0);
  EXPECT_EQ(json::get_string(subset.at("addresses").at(0), {"hostname"}), "a");
  EXPECT_FALSE(subset.as_object().contains("ports"));
  EXPECT_EQ(json::get_string(json::get_array(*slices()[0], {"endpoints"})[0], {"hostname"}), "a");
}

TEST_F(EndpointsOfServices, without_selector_or_of_another_place_are_left_alone) {
  json::value bare = service();
  json::set(bare, {"spec", "selector"}, json::object());
  make(std::move(bare));
  json::value away = service();
  json::set(away, {"metadata", "name"}, "away");
  json::set(away, {"spec", "type"}, "ExternalName");
  make(std::move(away));
  add("a", "10.0.0.1");
  EXPECT_TRUE(endpoints().is_null());
  EXPECT_TRUE(slices().empty());
}

TEST_F(EndpointsOfServices, leave_out_what_nobody_else_can_reach_and_what_is_of_the_other_family) {
  make(service());
  add("a", "127.0.0.1");
  add("b", "fd00::1");
  add("c", "127.128.0.1");
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{});
  add("d", "127.64.0.1");
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{"127.64.0.1"}) << "a pod without a network";
  cluster.patch(service_resource(), "web", {{"spec", {{"ipFamilies", json::array{"IPv6"}}}}});
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{"fd00::1"});
  ASSERT_EQ(slices().size(), 1U) << "the slice of the other family is gone";
  EXPECT_EQ(json::get_string(*slices()[0], {"addressType"}), "IPv6");
}

TEST_F(EndpointsOfServices, take_over_an_object_that_somebody_made) {
  testing::create(
      cluster.client(), endpoints_resource(),
      {{"metadata", {{"name", "web"}, {"annotations", {{"note", "mine"}}}}},
       {"subsets",
        json::array{json::object{{"addresses", json::array{json::object{{"ip", "1.2.3.4"}}}}}}}});
  make(service());
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{});
  EXPECT_EQ(api::annotation(endpoints(), "note"), "mine");
}

TEST_F(EndpointsOfServices, follow_the_labels_of_the_service_and_of_pods) {
  make(service());
  add("a", "10.0.0.1");
  cluster.patch(service_resource(), "web", {{"metadata", {{"labels", {{"team", "b"}}}}}});
  EXPECT_EQ(api::label(endpoints(), "team"), "b");
  EXPECT_EQ(api::label(*slices()[0], "team"), "b");
  cluster.patch(pod_resource(), "a", {{"metadata", {{"labels", {{"app", "other"}}}}}});
  EXPECT_EQ(ips(endpoints(), "addresses"), Strings{});
}

TEST_F(EndpointsOfServices, share_a_thousand_pods_among_slices_and_move_none_that_stays) {
  make(service());
  for (int i = 0; i < 1005; ++i) {
    testing::create(cluster.client(), pod_resource(), endpoints_pod(fmt::format("p{:04}", i)));
    testing::change(cluster.client(), pod_resource(), fmt::format("p{:04}", i),
                    status(fmt::format("10.0.{}.{}", i / 250, i % 250 + 1), i % 10 != 0), "status");
  }
  cluster.settle();
  ASSERT_EQ(slices().size(), 11U);
  EXPECT_EQ(conditions().size(), 1005U);
  EXPECT_EQ(ips(endpoints(), "addresses").size(), 904U);
  EXPECT_EQ(ips(endpoints(), "notReadyAddresses").size(), 96U) << "what is ready comes first";
  EXPECT_EQ(api::annotation(endpoints(), "endpoints.kubernetes.io/over-capacity"), "truncated");

  std::map<std::string, std::string> before;
  for (const Object& s : slices()) {
    EXPECT_LE(json::get_array(*s, {"endpoints"}).size(), kEndpointsPerSlice);
    before[std::string(api::name(*s))] = api::resource_version(*s);
  }
  cluster.end_pod("p0500", 0);
  add("q", "10.0.9.9");
  int touched = 0;
  for (const Object& s : slices())
    touched += before[std::string(api::name(*s))] != api::resource_version(*s);
  EXPECT_LE(touched, 2);
  for (int i = 0; i < 10; ++i) cluster.end_pod(fmt::format("p{:04}", i), 0);
  EXPECT_EQ(api::annotation(endpoints(), "endpoints.kubernetes.io/over-capacity"), "");
}

TEST_F(EndpointsOfServices, are_not_written_again_where_nothing_changed_for_them) {
  make(service());
  add("a", "10.0.0.1");
  const std::string at(api::resource_version(endpoints()));
  const std::string slice_at(api::resource_version(*slices()[0]));
  cluster.patch(pod_resource(), "a", {{"metadata", {{"annotations", {{"note", "x"}}}}}});
  EXPECT_EQ(api::resource_version(endpoints()), at);
  EXPECT_EQ(api::resource_version(*slices()[0]), slice_at);
}

// As the services of a training job: each selects one pod by labels that many pods share.
TEST(Endpoints, a_pod_that_changes_costs_only_the_services_that_select_it) {
  constexpr int kMany = 200;
  control::Controller counted = endpoints_controller();
  int plans = 0;
  std::size_t looked_at = 0;
  counted.plan = [&](const control::Observed& observed, Time now) {
    ++plans;
    looked_at += observed.seen[0].size();
    return plan_endpoints(observed, now);
  };
  Cluster cluster{{counted}};
  const auto labels = [](int i) {
    return json::object{{"job", "j"}, {"index", std::to_string(i)}, {"role", "worker"}};
  };
  for (int i = 0; i < kMany; ++i) {
    json::value s = service();
    json::set(s, {"metadata", "name"}, json::string(fmt::format("s{}", i)));
    json::set(s, {"spec", "selector"}, labels(i));
    testing::create(cluster.client(), service_resource(), std::move(s));
    json::value p = endpoints_pod(fmt::format("p{}", i));
    json::set(p, {"metadata", "labels"}, labels(i));
    testing::create(cluster.client(), pod_resource(), std::move(p));
  }
  cluster.settle();
  plans = 0;
  looked_at = 0;
  for (int i = 0; i < kMany; ++i) {
    testing::change(cluster.client(), pod_resource(), fmt::format("p{}", i),
                    status(fmt::format("10.0.0.{}", i + 1), true), "status");
  }
  cluster.settle();
  // Once for the pod, and once more for what that wrote.
  EXPECT_LE(plans, 3 * kMany);
  EXPECT_EQ(looked_at, static_cast<std::size_t>(plans));
}

// Pods come, get an address, change their readiness and go.
bool endpoints_step(client::Client& client, Random& random, int& steps) {
  if (++steps > 20) return false;
  const std::string name = fmt::format("p{}", random.below(6));
  const auto there = client.get(pod_resource(), testing::kNamespace, name);
  if (!there) {
    testing::create(client, pod_resource(),
                    endpoints_pod(name, 8080 + static_cast<int>(random.below(2))));
  } else if (random.chance(20)) {
    testing::must_write(client,
                        {.verb = client::Verb::kDelete,
                         .resource = pod_resource(),
                         .ns = std::string(testing::kNamespace),
                         .name = name,
                         .body = json::object{{"gracePeriodSeconds", random.chance(50) ? 0 : 9}}});
  } else if (random.chance(10)) {
    testing::change(client, service_resource(), "web",
                    {{"spec", {{"publishNotReadyAddresses", random.chance(50)}}}});
  } else {
    testing::change(client, pod_resource(), name,
                    status("10.0.0." + name.substr(1), random.chance(60)), "status");
  }
  return true;
}

std::optional<std::string> wrong_endpoints(client::Client& client) {
  const json::value s = *client.get(service_resource(), testing::kNamespace, "web");
  const bool eager = json::get_bool(s, {"spec", "publishNotReadyAddresses"}).value_or(false);
  std::set<std::string> ready_ones, all_ones;
  for (const Object& p : testing::all(client, pod_resource())) {
    const std::string ip(json::get_string(*p, {"status", "podIP"}));
    if (ip.empty()) continue;
    all_ones.insert(ip);
    if (eager || (ready(*p) && !api::deleting(*p))) ready_ones.insert(ip);
  }
  const json::value object = *client.get(endpoints_resource(), testing::kNamespace, "web");
  const Strings listed = ips(object, "addresses");
  if (std::set<std::string>(listed.begin(), listed.end()) != ready_ones) {
    return "the Endpoints do not list what is ready";
  }
  std::multiset<std::string> in_slices;
  bool stranger = false;
  for (const Object& slice : testing::all(client, endpoint_slice_resource())) {
    stranger = stranger || api::name(*slice) == "stranger";
    for (const json::value& e : json::get_array(*slice, {"endpoints"})) {
      in_slices.emplace(json::view(json::get_array(e, {"addresses"})[0].as_string()));
    }
  }
  if (!stranger) return "the slice of somebody else is gone";
  if (in_slices != std::multiset<std::string>(all_ones.begin(), all_ones.end())) {
    return "the slices do not list each pod once";
  }
  return std::nullopt;
}

TEST(Endpoints, are_not_planned_for_what_services_do_not_tell) {
  const auto with = [](json::value object, std::initializer_list<std::string_view> path,
                       json::value value) {
    json::set(object, path, std::move(value));
    return object;
  };
  json::value before = endpoints_pod("a");
  const json::value waiting = before;
  before.as_object()["status"] = status("10.0.0.1", true).at("status");
  const auto alike = [&](const json::value& after) { return alike_to_services(before, after); };
  EXPECT_TRUE(alike(with(before, {"status", "startTime"}, "now")));
  EXPECT_TRUE(alike(with(before, {"metadata", "resourceVersion"}, "8")));
  EXPECT_TRUE(alike(with(before, {"metadata", "annotations"}, json::object{{"a", "b"}})));
  EXPECT_FALSE(alike(waiting));
  EXPECT_FALSE(alike_to_services(waiting, before));
  EXPECT_FALSE(alike(with(before, {"status", "phase"}, "Succeeded")));
  EXPECT_FALSE(alike(with(before, {"status", "conditions"}, json::array{})));
  EXPECT_FALSE(alike(with(before, {"status", "podIP"}, "10.0.0.2")));
  EXPECT_FALSE(alike(with(before, {"status", "podIPs"}, json::array{})));
  EXPECT_FALSE(alike(with(before, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z")));
  EXPECT_FALSE(alike(with(before, {"metadata", "labels"}, json::object{{"app", "web"}})));
  EXPECT_FALSE(alike(with(before, {"metadata", "uid"}, "another")));
  EXPECT_FALSE(alike(with(before, {"spec", "nodeName"}, "n2")));
  EXPECT_FALSE(alike(with(before, {"spec", "hostname"}, "h")));
  EXPECT_TRUE(alike_to_services(waiting, with(waiting, {"spec", "nodeName"}, "n2")))
      << "it has no address either way";
  EXPECT_TRUE(alike_to_services(with(before, {"status", "phase"}, "Failed"),
                                with(before, {"status", "phase"}, "Succeeded")));
}

TEST(Endpoints, keep_the_five_laws) {
  int steps = 0;
  control::testing::LawCase laws;
  laws.controller = endpoints_controller();
  laws.arrange = [&](client::Client& client, Random&) {
    steps = 0;
    testing::create(client, service_resource(), service());
    testing::create(
        client, endpoint_slice_resource(),
        {{"metadata", {{"name", "stranger"}, {"labels", {{"kubernetes.io/service-name", "web"}}}}},
         {"addressType", "IPv4"}});
  };
  laws.step = [&](client::Client& client, Time, Random& random) {
    return endpoints_step(client, random, steps);
  };
  laws.wrong = wrong_endpoints;
  laws.cuts_max = 10;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
