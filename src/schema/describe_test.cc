#include "schema/describe.h"

#include <gtest/gtest.h>

namespace skiff::schema {

struct Policy {
  std::string clean = "None";
  std::optional<std::int32_t> backoff = {};
};

template <class V>
void describe(V& v, Policy& x) {
  v.field("clean", x.clean).one_of({"None", "All"}).fallback("None").doc("What to remove.");
  v.field("backoff", x.backoff).min(0);
}

struct Replica {
  std::int64_t replicas = 1;
  json::value pod = {};
};

template <class V>
void describe(V& v, Replica& x) {
  v.field("replicas", x.replicas).min(1);
  v.field("template", x.pod).required().definition("io.k8s.api.core.v1.PodTemplateSpec");
}

struct Job {
  Policy policy = {};
  std::map<std::string, Replica> replicas = {};
  std::vector<std::string> hosts = {};
  std::optional<Time> started = {};
  bool suspend = false;
  double weight = 0;
  json::value port = {};
};

template <class V>
void describe(V& v, Job& x) {
  v.field("policy", x.policy);
  v.field("replicas", x.replicas).required();
  v.field("hosts", x.hosts).list_set();
  v.field("started", x.started);
  v.field("suspend", x.suspend);
  v.field("weight", x.weight);
  v.field("port", x.port).int_or_string();
}

namespace {

TEST(Describe, ReadsAStruct) {
  const auto job = read<Job>(*json::parse(R"({"policy":{"clean":"All","backoff":3},
    "replicas":{"Worker":{"replicas":2,"template":{"spec":{}}}},"hosts":["a","b"],
    "started":"2026-11-15T20:02:55Z","suspend":true,"weight":2,"port":"http","stranger":1})"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->policy.clean, "All");
  EXPECT_EQ(job->policy.backoff, 3);
  EXPECT_EQ(job->replicas.at("Worker").replicas, 2);
  EXPECT_EQ(json::serialize(job->replicas.at("Worker").pod), R"({"spec":{}})");
  EXPECT_EQ(job->hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rfc3339(*job->started), "2026-11-15T20:02:55Z");
  EXPECT_TRUE(job->suspend);
  EXPECT_EQ(job->weight, 2.0);
}

TEST(Describe, WrongTypesNameTheirFields) {
  const json::value v = *json::parse(R"({"policy":{"backoff":99999999999},"hosts":["a",2],
    "replicas":{"Worker":{"replicas":"two"}},"started":"soon","suspend":"yes","weight":null})");
  const auto job = read<Job>(v, "spec");
  ASSERT_FALSE(job);
  std::vector<std::string> fields;
  for (const Cause& cause : job.error().causes) fields.push_back(cause.field);
  EXPECT_EQ(fields,
            (std::vector<std::string>{"spec.policy.backoff", "spec.replicas.Worker.replicas",
                                      "spec.hosts[1]", "spec.started", "spec.suspend"}));
  EXPECT_NE(
      job.error().message.find(R"(spec.suspend: Invalid value: "yes": must be of type boolean)"),
      std::string::npos);
  EXPECT_EQ(view<Job>(v).policy.clean, "None");
  EXPECT_FALSE(view<Job>(v).started);
}

TEST(Describe, BuildsASchema) {
  const Schema s = build<Job>();
  EXPECT_EQ(s.required, std::vector<std::string>{"replicas"});
  const Schema* clean = s.property("policy")->property("clean");
  EXPECT_EQ(clean->enumeration.size(), 2u);
  EXPECT_EQ(clean->fallback, json::value("None"));
  EXPECT_EQ(clean->description, "What to remove.");
  EXPECT_EQ(s.property("policy")->property("backoff")->minimum, 0.0);
  EXPECT_EQ(s.property("policy")->property("backoff")->format, "int32");
  const Schema& replica = *s.property("replicas")->additional;
  EXPECT_EQ(replica.property("template")->ref, "io.k8s.api.core.v1.PodTemplateSpec");
  EXPECT_EQ(s.property("hosts")->items->type, Type::kString);
  EXPECT_EQ(s.property("hosts")->list_type, ListType::kSet);
  EXPECT_EQ(s.property("started")->format, "date-time");
  EXPECT_TRUE(s.property("port")->int_or_string);
  EXPECT_EQ(s.property("stranger"), nullptr);
}

TEST(Describe, WholeObjects) {
  const Schema s = object_schema(build<Job>(), build<Policy>());
  EXPECT_NE(s.property("metadata"), nullptr);
  EXPECT_EQ(s.property("spec")->property("suspend")->type, Type::kBoolean);
  EXPECT_EQ(s.property("status")->property("clean")->type, Type::kString);
}

}  // namespace
}  // namespace skiff::schema
