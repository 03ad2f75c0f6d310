#include "apiserver/access/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/access/coverage.h"

namespace skiff::apiserver {
namespace {

Rule rule(const char* text) { return rule_of(*json::parse(text)); }

struct RulesCase {
  const char* name;
  const char* rule;
  Action action;
  bool allowed;
};

TEST(Rules, AllowWhatTheySay) {
  const char* pods = R"({"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]})";
  const char* logs = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]})";
  const char* scale = R"({"verbs":["get"],"apiGroups":["apps"],"resources":["*/scale"]})";
  const char* all = R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})";
  const char* named =
      R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a","b"]})";
  const char* urls = R"({"verbs":["get"],"nonResourceURLs":["/metrics","/logs/*"]})";
  const char* every_url = R"({"verbs":["*"],"nonResourceURLs":["*"]})";
  const auto pod = [](const char* verb) { return Action{.verb = verb, .resource = "pods"}; };
  const auto path = [](const char* where) {
    return Action{.verb = "get", .on_path = true, .path = where};
  };
  const RulesCase cases[] = {
      {"its verb", pods, pod("get"), true},
      {"not another verb", pods, pod("delete"), false},
      {"not a part of a verb", pods, pod("ge"), false},
      {"not another group", pods, {.verb = "get", .group = "x", .resource = "pods"}, false},
      {"not a sub-resource",
       pods,
       {.verb = "get", .resource = "pods", .subresource = "log"},
       false},
      {"its sub-resource", logs, {.verb = "get", .resource = "pods", .subresource = "log"}, true},
      {"not what the sub-resource is of", logs, pod("get"), false},
      {"one sub-resource of everything",
       scale,
       {.verb = "get", .group = "apps", .resource = "deployments", .subresource = "scale"},
       true},
      {"not another sub-resource",
       scale,
       {.verb = "get", .group = "apps", .resource = "deployments", .subresource = "status"},
       false},
      {"not a sub-resource that only ends so",
       scale,
       {.verb = "get", .group = "apps", .resource = "deployments", .subresource = "upscale"},
       false},
      {"everything", all, {.verb = "fly", .group = "g", .resource = "r", .subresource = "s"}, true},
      {"everything but paths", all, path("/metrics"), false},
      {"a name", named, {.verb = "get", .resource = "pods", .name = "b"}, true},
      {"not another name", named, {.verb = "get", .resource = "pods", .name = "c"}, false},
      {"not all of a kind where names are given", named, pod("get"), false},
      {"a path", urls, path("/metrics"), true},
      {"not below a path", urls, path("/metrics/x"), false},
      {"below a path with a star", urls, path("/logs/a/b"), true},
      {"not the start of it", urls, path("/logs"), false},
      {"no resource by a path", urls, pod("get"), false},
      {"every path", every_url, path("/"), true},
  };
  for (const RulesCase& c : cases) EXPECT_EQ(allows(rule(c.rule), c.action), c.allowed) << c.name;
}

TEST(Rules, ReadTheWordsOfARoute) {
  const auto action = [](const char* target, const char* method) {
    const auto url = http::parse_url(target);
    return action_of(parse_route(*url, method).value_or(Route()), *url, method);
  };
  const Action log = action("/api/v1/namespaces/ns/pods/p/log", "GET");
  EXPECT_EQ(log.verb + " " + log.combined() + " " + log.ns + " " + log.name, "get pods/log ns p");
  EXPECT_EQ(action("/api/v1/pods?watch=1", "GET").verb, "watch");
  EXPECT_EQ(action("/apis/apps/v1/namespaces/ns/deployments", "DELETE").verb, "deletecollection");
  EXPECT_EQ(action("/api/v1/namespaces/ns", "GET").ns, "ns") << "a namespace is in itself";
  EXPECT_EQ(action("/api/v1/namespaces/ns/status", "PUT").ns, "ns");
  EXPECT_EQ(action("/api/v1/namespaces", "GET").ns, "");
  EXPECT_EQ(action("/api/v1/pods?fieldSelector=metadata.name%3Da", "GET").name, "a");
  EXPECT_EQ(action("/api/v1/pods?fieldSelector=metadata.name!%3Da", "GET").name, "");
  EXPECT_EQ(action("/api/v1/pods?fieldSelector=metadata.name%3Da", "DELETE").name, "");
  const Action path = action("/metrics", "GET");
  EXPECT_TRUE(path.on_path);
  EXPECT_EQ(path.verb + " " + path.path, "get /metrics");
}

std::vector<std::string> lacking(const char* held, const char* wanted) {
  std::vector<std::string> out;
  const Rule have = rule(held);
  for (const Rule& r : compact(missing({&have}, {rule(wanted)})->rights)) {
    out.push_back(describe(r));
  }
  return out;
}

TEST(Rules, CoverOthers) {
  const char* pods = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})";
  const char* a_pod =
      R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]})";
  const char* all = R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})";
  const char* logs = R"({"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]})";
  const char* any_log = R"({"verbs":["get"],"apiGroups":[""],"resources":["*/log"]})";
  const char* below = R"({"verbs":["get"],"nonResourceURLs":["/logs/*"]})";
  using List = std::vector<std::string>;
  EXPECT_EQ(lacking(pods, pods), List{});
  EXPECT_EQ(lacking(all, pods), List{});
  EXPECT_EQ(lacking(pods, a_pod), List{}) << "all pods are more than one";
  EXPECT_EQ(lacking(a_pod, pods), List{R"({APIGroups:[""], Resources:["pods"], Verbs:["get"]})"});
  EXPECT_EQ(lacking(any_log, logs), List{});
  EXPECT_EQ(lacking(pods, logs),
            List{R"({APIGroups:[""], Resources:["pods/log"], Verbs:["get"]})"});
  EXPECT_EQ(lacking(pods, all), List{R"({APIGroups:["*"], Resources:["*"], Verbs:["*"]})"})
      << "a star is not covered by its parts";
  EXPECT_EQ(lacking(below, R"({"verbs":["get"],"nonResourceURLs":["/logs/x"]})"), List{});
  EXPECT_EQ(lacking(below, R"({"verbs":["get"],"nonResourceURLs":["/logs"]})"),
            List{R"({NonResourceURLs:["/logs"], Verbs:["get"]})"});
  EXPECT_EQ(lacking(all, below), List{R"({NonResourceURLs:["/logs/*"], Verbs:["get"]})"})
      << "resources do not give paths";
}

Rule wide_rule(int size) {
  Rule wide;
  for (int i = 0; i < size; ++i) {
    wide.groups.push_back(fmt::format("g{}", i));
    wide.resources.push_back(fmt::format("r{}", i));
    wide.verbs.push_back(fmt::format("v{}", i));
  }
  return wide;
}

// 250 groups, resources and verbs are 15.6 million single rights.
TEST(Rules, SmallBodiesKillTheServerByRolesThatAreMultipliedOut) {
  const Rule wide = wide_rule(250);
  const auto none = missing({}, {wide});
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->more);
  EXPECT_LE(none->rights.size(), 1'000u);
  EXPECT_EQ(describe(none->rights.front()),
            R"({APIGroups:["g0"], Resources:["r0"], Verbs:["v0"]})");
  EXPECT_TRUE(missing({&wide}, {wide})->rights.empty()) << "who holds it may pass it on";
  // Several held rules together, none of which is enough alone.
  Rule left = wide, right = wide, middle = wide;
  left.verbs.resize(125);
  right.verbs.erase(right.verbs.begin(), right.verbs.begin() + 125);
  middle.verbs = {"v249"};
  middle.groups = {"g7"};
  EXPECT_TRUE(missing({&left, &right}, {wide})->rights.empty());
  right.verbs.pop_back();
  const auto lacked = missing({&left, &right, &middle}, {wide});
  EXPECT_TRUE(lacked->more) << "249 groups lack one verb on 250 resources";
  Rule rest = wide;
  rest.verbs = {"v249"};
  rest.resources.pop_back();
  const auto few = missing({&left, &right, &middle, &rest}, {wide});
  EXPECT_FALSE(few->more);
  EXPECT_EQ(few->rights.size(), 249u) << "one resource, all groups but one";
  EXPECT_EQ(describe(few->rights[7]), R"({APIGroups:["g8"], Resources:["r249"], Verbs:["v249"]})");
}

// Many rules on both sides, and words as long as a body.
TEST(Rules, AreComparedWithinABound) {
  std::vector<Rule> many;
  for (int i = 0; i < 20'000; ++i) {
    many.push_back({.verbs = {"get"},
                    .groups = {""},
                    .resources = {"pods"},
                    .names = {fmt::format("n{}", i)}});
  }
  const auto lacked = missing(pointers(many), many);
  ASSERT_FALSE(lacked);
  EXPECT_EQ(lacked.error().message,
            "the rules are too many to be compared with those that you hold; grant fewer in one "
            "role, or use \"*\"");
  Rule chatty{.verbs = {std::string(1'000'000, 'v')}, .groups = {""}};
  for (int i = 0; i < 1'000; ++i) chatty.resources.push_back(fmt::format("r{}", i));
  const auto shown = missing({}, {chatty});
  EXPECT_TRUE(shown->more);
  EXPECT_LE(shown->rights.size(), 2u) << "each of them is as long as a page";
}

TEST(Rules, TellWhatIsMissingInFewLines) {
  EXPECT_EQ(
      lacking(R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
              R"({"verbs":["get","list","watch"],"apiGroups":[""],
                        "resources":["pods","secrets"],"resourceNames":["a"]})"),
      (std::vector<std::string>{
          R"({APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["list" "watch"]})",
          R"({APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list" "watch"]})"}));
}

TEST(Rules, SurviveJunk) {
  for (const char* junk : {"null", "[]", "7", R"({"verbs":3,"resources":{"a":1}})"}) {
    EXPECT_FALSE(allows(rule(junk), {.verb = "get", .resource = "pods"})) << junk;
  }
  EXPECT_EQ(to_json(rule(R"({"verbs":["get"],"nonResourceURLs":["/x"]})")),
            json::parse(R"({"verbs":["get"],"nonResourceURLs":["/x"]})")->as_object());
}

}  // namespace
}  // namespace skiff::apiserver
