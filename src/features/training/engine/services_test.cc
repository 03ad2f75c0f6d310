#include "features/training/engine/services.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

json::value service_of(const json::value& root) {
  const Job job = read_job(tensorflow(), root);
  return render_service(job, job.roles[0], 1);
}

TEST(Service, GivesAReplicaItsName) {
  const json::value root = testing::tfjob().role("Worker", 2).build();
  EXPECT_EQ(service_of(root), testing::must_parse(R"({
    "apiVersion": "v1", "kind": "Service",
    "metadata": {
      "name": "mnist-worker-1", "namespace": "team",
      "labels": {"training.kubeflow.org/job-name": "mnist",
                 "training.kubeflow.org/operator-name": "tfjob-controller",
                 "training.kubeflow.org/replica-type": "worker",
                 "training.kubeflow.org/replica-index": "1"},
      "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist",
        "uid": "uid-mnist", "controller": true, "blockOwnerDeletion": true}]},
    "spec": {
      "clusterIP": "None", "publishNotReadyAddresses": true,
      "selector": {"training.kubeflow.org/job-name": "mnist",
                   "training.kubeflow.org/operator-name": "tfjob-controller",
                   "training.kubeflow.org/replica-type": "worker",
                   "training.kubeflow.org/replica-index": "1"},
      "ports": [{"name": "tfjob-port", "port": 2222, "targetPort": 2222, "protocol": "TCP"}]}})"));
}

struct PortCase {
  const char* sentence;
  const char* ports;
  const char* expected;  // name:port/protocol
};

class ServicePorts : public ::testing::TestWithParam<PortCase> {};

TEST_P(ServicePorts, FollowTheContainer) {
  json::value root = testing::tfjob().role("Worker", 2).build();
  json::set(root.at("spec")
                .at("tfReplicaSpecs")
                .at("Worker")
                .at("template")
                .at("spec")
                .at("containers")
                .at(0),
            {"ports"}, testing::must_parse(GetParam().ports));
  std::string found;
  const json::value service = service_of(root);
  for (const json::value& port : json::get_array(service, {"spec", "ports"})) {
    if (!found.empty()) found += ' ';
    found += fmt::format("{}:{}/{}", json::get_string(port, {"name"}),
                         *json::get_int(port, {"port"}), json::get_string(port, {"protocol"}));
  }
  EXPECT_EQ(found, GetParam().expected) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, ServicePorts,
    ::testing::Values(
        PortCase{"no ports give the framework's own", "[]", "tfjob-port:2222/TCP"},
        PortCase{"a port of the user's comes along", R"([{"name":"metrics","containerPort":9090}])",
                 "metrics:9090/TCP tfjob-port:2222/TCP"},
        PortCase{"the framework's port may be named by the user",
                 R"([{"name":"tfjob-port","containerPort":7777}])", "tfjob-port:7777/TCP"},
        PortCase{"the first of two ports of one name holds",
                 R"([{"name":"a","containerPort":1},{"name":"a","containerPort":2}])",
                 "a:1/TCP tfjob-port:2222/TCP"},
        PortCase{"the protocol is kept", R"([{"name":"d","containerPort":53,"protocol":"UDP"}])",
                 "d:53/UDP tfjob-port:2222/TCP"}));

}  // namespace
}  // namespace skiff::training
