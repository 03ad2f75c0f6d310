#include "apiserver/access/rules.h"

#include <gtest/gtest.h>

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
  for (const Rule& r : compact(missing({rule(held)}, {rule(wanted)}))) out.push_back(describe(r));
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
