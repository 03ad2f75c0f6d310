// Jobs and runtimes for tests.
#pragma once

#include <string_view>

#include "base/check.h"
#include "base/json.h"

namespace skiff::trainer::testing {

inline json::value must_parse(std::string_view text) {
  Result<json::value> parsed = json::parse(text);
  SKIFF_CHECK(parsed.has_value(), parsed ? "" : parsed.error().message);
  return *std::move(parsed);
}

// A runtime of one part, `node`, and the policy given.
inline json::value runtime(std::string_view policy = R"({"numNodes": 2, "torch": {}})") {
  json::value out = must_parse(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"},
    "spec": {"template": {"spec": {"replicatedJobs": [
      {"name": "node", "replicas": 1, "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": [
          {"name": "node", "image": "base", "env": [{"name": "LOG", "value": "info"}]},
          {"name": "side", "image": "side"}]}}}}}]}}}})");
  json::set(out, {"spec", "mlPolicy"}, must_parse(policy));
  return out;
}

// The same with a part before it that fetches the data.
inline json::value runtime_with_initializer() {
  json::value out = runtime();
  json::array& parts =
      json::make_object(out, {"spec", "template", "spec"})["replicatedJobs"].as_array();
  parts[0].as_object()["dependsOn"] =
      must_parse(R"([{"name": "dataset-initializer", "status": "Complete"}])");
  parts.insert(parts.begin(), must_parse(R"({"name": "dataset-initializer", "template": {
      "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step":
                              "dataset-initializer"}},
      "spec": {"template": {"spec": {"containers": [{"name": "dataset-initializer",
        "image": "fetch", "volumeMounts": [
          {"name": "initializer", "mountPath": "/workspace"}]}]}}}}})"));
  return out;
}

inline json::value trainjob(std::string_view spec = "{}") {
  json::value out = must_parse(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob", "metadata": {"name": "mnist", "namespace": "team"},
    "spec": {"runtimeRef": {"name": "torch", "apiGroup": "trainer.kubeflow.org",
                            "kind": "ClusterTrainingRuntime"}}})");
  const json::value more = must_parse(spec);
  for (const auto& [key, value] : more.get_object()) json::set(out, {"spec", key}, value);
  return out;
}

}  // namespace skiff::trainer::testing
