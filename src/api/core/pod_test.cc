#include "api/core/pod.h"

#include <gtest/gtest.h>

#include "api/test_kind.h"

namespace skiff::api {
namespace {

using testing::parsed;

using testing::Lines;

// What a real server answered to the same pod, but for what its admission plug-ins add.
TEST(PodDefaults, AreThoseOfKubernetes) {
  json::value pod = parsed(R"({"spec":{"containers":[{"command":["true"],
    "env":[{"name":"A","value":"1"}],"image":"x:y","name":"c"}],"restartPolicy":"Never"}})");
  pod_kind().set_defaults(pod);
  EXPECT_EQ(pod, parsed(R"({"spec":{"containers":[{"name":"c","image":"x:y","command":["true"],
    "env":[{"name":"A","value":"1"}],
    "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
    "imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Never","terminationGracePeriodSeconds":30,
    "dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler",
    "enableServiceLinks":true},"status":{"phase":"Pending","qosClass":"BestEffort"}})"));
}

TEST(PodDefaults, OfContainersAndVolumes) {
  json::value pod = parsed(R"({"spec":{"hostNetwork":true,"serviceAccountName":"sa","containers":[{
    "name":"c","image":"a","ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":1}},
    "resources":{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"memory":"512Mi"}}}],
    "volumes":[{"name":"a"},{"name":"b","secret":{"secretName":"s"}}]}})");
  pod_kind().set_defaults(pod);
  const json::value& c = pod.at("spec").at("containers").at(0);
  EXPECT_EQ(
      json::serialize(c.at("resources")),
      R"({"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"memory":"512Mi","cpu":"500m"}})");
  EXPECT_EQ(json::serialize(c.at("ports")),
            R"([{"containerPort":80,"protocol":"TCP","hostPort":80}])");
  EXPECT_EQ(json::serialize(c.at("livenessProbe")),
            R"({"httpGet":{"port":1,"path":"/","scheme":"HTTP"},"timeoutSeconds":1,)"
            R"("periodSeconds":10,"successThreshold":1,"failureThreshold":3})");
  EXPECT_EQ(json::get_string(c, {"imagePullPolicy"}), "Always");
  EXPECT_EQ(
      json::serialize(pod.at("spec").at("volumes")),
      R"([{"name":"a","emptyDir":{}},{"name":"b","secret":{"secretName":"s","defaultMode":420}}])");
  EXPECT_EQ(json::get_string(pod, {"spec", "serviceAccount"}), "sa");
  EXPECT_EQ(json::get_string(pod, {"status", "qosClass"}), "Burstable");
}

TEST(PodDefaults, PullPolicyFollowsTheTag) {
  EXPECT_EQ(default_pull_policy("a"), "Always");
  EXPECT_EQ(default_pull_policy("a:latest"), "Always");
  EXPECT_EQ(default_pull_policy("a:1"), "IfNotPresent");
  EXPECT_EQ(default_pull_policy("host:5000/a"), "Always");
  EXPECT_EQ(default_pull_policy("host:5000/a:1"), "IfNotPresent");
  EXPECT_EQ(default_pull_policy("a@sha256:00"), "IfNotPresent");
  EXPECT_EQ(default_pull_policy("Host.example/a_b/c--d"), "Always");
  EXPECT_EQ(default_pull_policy("[::1]:5000/a"), "Always");
  for (const char* none : {" x", "x ", "A", "a//b", "a:", "a/-b", "-a"}) {
    EXPECT_EQ(default_pull_policy(none), "IfNotPresent") << none << " names no image";
  }
}

TEST(PodDefaults, OnlyAnInitContainerMayAlwaysRestart) {
  json::object spec = parsed(R"({"containers":[{"name":"a","restartPolicy":"Never"}],
    "initContainers":[{"name":"i","restartPolicy":"Never"},
                      {"name":"s","restartPolicy":"Always"}]})")
                          .get_object();
  default_pod_spec(spec);
  const json::value pod = spec;
  EXPECT_EQ(json::find(json::get_array(pod, {"containers"})[0], {"restartPolicy"}), nullptr);
  const json::array& init = json::get_array(pod, {"initContainers"});
  EXPECT_EQ(json::find(init[0], {"restartPolicy"}), nullptr);
  EXPECT_EQ(json::get_string(init[1], {"restartPolicy"}), "Always");
}

TEST(PodDefaults, QosClass) {
  const auto qos = [](const char* resources) {
    return std::string(
        qos_class(parsed(std::string(R"({"containers":[{"resources":)") + resources + "}]}")));
  };
  EXPECT_EQ(qos("{}"), "BestEffort");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(
      qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m","memory":"1Gi"}})"),
      "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"nvidia.com/gpu":"1"}})"), "BestEffort");
}

TEST(PodValidation, SaysWhatKubernetesSays) {
  struct Case {
    const char* name;
    const char* spec;
    Lines causes;
  };
  const Case cases[] = {
      {"a good pod", R"({"containers":[{"name":"c","image":"x"}],"restartPolicy":"Never"})", {}},
      {"no containers", R"({})", {"spec.containers: Required value"}},
      {"no image",
       R"({"containers":[{"name":"c"}]})",
       {"spec.containers[0].image: Required value"}},
      {"no name", R"({"containers":[{"image":"x"}]})", {"spec.containers[0].name: Required value"}},
      {"one name twice",
       R"({"containers":[{"name":"c","image":"x"}],"initContainers":[{"name":"c","image":"x"}]})",
       {R"(spec.initContainers[0].name: Duplicate value: "c")"}},
      {"an unknown restart policy",
       R"({"containers":[{"name":"c","image":"x"}],"restartPolicy":"Sometimes"})",
       {R"(spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never")"}},
      {"a port out of range",
       R"({"containers":[{"name":"c","image":"x","ports":[{"containerPort":70000},{}]}]})",
       {"spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
        "65535, inclusive",
        "spec.containers[0].ports[1].containerPort: Required value"}},
      {"a mount without its volume",
       R"({"containers":[{"name":"c","image":"x","volumeMounts":[{"name":"v","mountPath":"/a"}]}]})",
       {R"(spec.containers[0].volumeMounts[0].name: Not found: "v")"}},
      {"two mounts at one place",
       R"({"containers":[{"name":"c","image":"x","volumeMounts":[{"name":"v","mountPath":"/a"},
          {"name":"v","mountPath":"/a"}]}],"volumes":[{"name":"v","emptyDir":{}}]})",
       {R"(spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique)"}},
      {"a mount that climbs out",
       R"({"containers":[{"name":"c","image":"x","volumeMounts":[{"name":"v","mountPath":"/a",
          "subPath":"../x"}]}],"volumes":[{"name":"v","emptyDir":{}}]})",
       {R"(spec.containers[0].volumeMounts.subPath: Invalid value: "../x": must not contain '..')"}},
      {"volumes",
       R"({"containers":[{"name":"c","image":"x"}],"volumes":[{"name":"v","emptyDir":{}},
          {"name":"v","emptyDir":{}},{"name":"w","emptyDir":{},"hostPath":{"path":"/"}}]})",
       {R"(spec.volumes[1].name: Duplicate value: "v")",
        "spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type"}},
      {"more wanted than allowed",
       R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"2"},
          "limits":{"cpu":"1"}}}]})",
       {R"(spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1)"}},
      {"a device without a limit",
       R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"nvidia.com/gpu":"1"}}}]})",
       {"spec.containers[0].resources.limits: Required value: Limit must be set for non "
        "overcommitable resources"}},
      {"half a device",
       R"({"containers":[{"name":"c","image":"x","resources":{"limits":{"nvidia.com/gpu":"500m"}}}]})",
       {R"(spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer)"}},
      {"less than nothing",
       R"({"containers":[{"name":"c","image":"x","resources":{"limits":{"cpu":"-1"}}}]})",
       {R"(spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0)"}},
      {"environment names",
       R"({"containers":[{"name":"c","image":"x","env":[{"name":"A=B"},{"value":"x"},
          {"name":"C","value":"1","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}]})",
       {R"(spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '=')",
        "spec.containers[0].env[1].name: Required value",
        R"(spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Invalid value: "x": error converting fieldPath: field label not supported: x)",
        R"(spec.containers[0].env[2].valueFrom: Invalid value: "": may not be specified when `value` is not empty)"}},
      {"probes",
       R"({"containers":[{"name":"c","image":"x","livenessProbe":{},
          "readinessProbe":{"exec":{},"tcpSocket":{"port":1},"periodSeconds":-1},
          "startupProbe":{"httpGet":{"port":0,"scheme":"FTP"},"successThreshold":2}}]})",
       {"spec.containers[0].livenessProbe: Required value: must specify a handler type",
        "spec.containers[0].readinessProbe.exec.command: Required value",
        "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 "
        "handler type",
        "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than "
        "or equal to 0",
        "spec.containers[0].startupProbe.httpGet.port: Invalid value: 0: must be between 1 and "
        "65535, inclusive",
        R"(spec.containers[0].startupProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS")",
        "spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1"}},
      {"a probe of what must end",
       R"({"containers":[{"name":"c","image":"x"}],"initContainers":[{"name":"i","image":"x",
          "livenessProbe":{"exec":{"command":["a"]}}}]})",
       {"spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
        "without restartPolicy=Always"}},
      {"security",
       R"({"containers":[{"name":"c","image":"x","securityContext":{"runAsUser":-1,
          "privileged":true,"allowPrivilegeEscalation":false}}],
          "securityContext":{"fsGroup":-2,"seccompProfile":{"type":"Localhost"}}})",
       {"spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and "
        "2147483647, inclusive",
        R"(spec.containers[0].securityContext: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":-1,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true)",
        "spec.securityContext.fsGroup: Invalid value: -2: must be between 0 and 2147483647, "
        "inclusive",
        "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when "
        "seccomp type is Localhost"}},
      {"placement",
       R"({"containers":[{"name":"c","image":"x"}],"tolerations":[{"operator":"Equal"},
          {"key":"a","operator":"Exists","value":"v"}],"affinity":{"nodeAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":{}}},
          "topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"z"}]})",
       {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms: Required value: must have at least one node selector term",
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        R"(spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway")",
        R"(spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys")",
        R"(spec.tolerations[1].operator: Invalid value: "v": value must be empty when `operator` is 'Exists')"}},
      {"names to search",
       R"({"containers":[{"name":"c","image":"x"}],"dnsConfig":{"searches":[".","a.","_b.c","a b"]}})",
       {R"(spec.dnsConfig.searches[3]: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*'))"}},
      {"a deadline of nothing",
       R"({"containers":[{"name":"c","image":"x"}],"activeDeadlineSeconds":0})",
       {"spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
        "inclusive"}},
  };
  for (const Case& c : cases) {
    Lines got;
    for (const Cause& cause : validate_pod_spec(parsed(c.spec), "spec")) {
      got.push_back(cause.field + ": " + cause.message);
    }
    EXPECT_EQ(got, c.causes) << c.name;
  }
}

TEST(PodValidation, OnlySomeFieldsMayChange) {
  const json::value old = parsed(R"({"containers":[{"name":"c","image":"a"}],"nodeName":"n",
    "tolerations":[{"key":"x"}],"schedulingGates":[{"name":"g"}]})");
  struct Case {
    const char* name;
    const char* spec;
    bool allowed;
    const char* why = "Forbidden: pod updates may not change fields other than";
  };
  const Case cases[] = {
      {"nothing", R"({"containers":[{"name":"c","image":"a"}],"nodeName":"n",
        "tolerations":[{"key":"x"}],"schedulingGates":[{"name":"g"}]})",
       true},
      {"an image and a deadline", R"({"containers":[{"name":"c","image":"b"}],"nodeName":"n",
        "tolerations":[{"key":"x"}],"schedulingGates":[{"name":"g"}],"activeDeadlineSeconds":3})",
       true},
      {"one toleration more", R"({"containers":[{"name":"c","image":"a"}],"nodeName":"n",
        "tolerations":[{"key":"x"},{"key":"y"}],"schedulingGates":[{"name":"g"}]})",
       true},
      {"one toleration less", R"({"containers":[{"name":"c","image":"a"}],"nodeName":"n",
        "schedulingGates":[{"name":"g"}]})",
       false, "Forbidden: existing toleration can not be modified"},
      {"a gate less", R"({"containers":[{"name":"c","image":"a"}],"nodeName":"n",
        "tolerations":[{"key":"x"}]})",
       true},
      {"the node", R"({"containers":[{"name":"c","image":"a"}],"nodeName":"m",
        "tolerations":[{"key":"x"}],"schedulingGates":[{"name":"g"}]})",
       false},
      {"a container more", R"({"containers":[{"name":"c","image":"a"},{"name":"d","image":"a"}],
        "nodeName":"n","tolerations":[{"key":"x"}],"schedulingGates":[{"name":"g"}]})",
       false, "Forbidden: pod updates may not add or remove containers"},
  };
  for (const Case& c : cases) {
    const std::vector<Cause> got = validate_pod_update(parsed(c.spec), old);
    EXPECT_EQ(got.empty(), c.allowed) << c.name;
    if (!got.empty()) {
      EXPECT_TRUE(got[0].message.starts_with(c.why)) << got[0].message;
    }
  }
}

TEST(PodCells, StatusText) {
  struct Case {
    const char* status;  // the cell
    const char* pod;
  };
  const Case cases[] = {
      {"Pending", R"({"status":{"phase":"Pending"}})"},
      {"Evicted", R"({"status":{"phase":"Failed","reason":"Evicted"}})"},
      {"SchedulingGated", R"({"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",
        "reason":"SchedulingGated"}]}})"},
      {"ContainerCreating", R"({"status":{"phase":"Pending","containerStatuses":[
        {"state":{"waiting":{"reason":"ContainerCreating"}}}]}})"},
      {"CrashLoopBackOff", R"({"status":{"phase":"Running","containerStatuses":[
        {"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})"},
      {"Running", R"({"status":{"phase":"Running","containerStatuses":[
        {"ready":true,"state":{"running":{}}}]}})"},
      {"Completed", R"({"status":{"phase":"Succeeded","containerStatuses":[
        {"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}})"},
      {"Error", R"({"status":{"phase":"Failed","containerStatuses":[
        {"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}})"},
      {"ExitCode:3", R"({"status":{"phase":"Failed","containerStatuses":[
        {"state":{"terminated":{"exitCode":3}}}]}})"},
      {"Signal:9", R"({"status":{"phase":"Failed","containerStatuses":[
        {"state":{"terminated":{"exitCode":137,"signal":9}}}]}})"},
      {"NotReady", R"({"status":{"phase":"Running","containerStatuses":[
        {"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
        {"ready":true,"state":{"running":{}}}]}})"},
      {"OOMKilled", R"({"status":{"phase":"Failed","containerStatuses":[
        {"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
        {"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}})"},
      {"Init:0/2", R"({"spec":{"initContainers":[{"name":"a"},{"name":"b"}]},"status":{
        "phase":"Pending","initContainerStatuses":[{"name":"a","state":{"running":{}}}]}})"},
      {"Init:1/2", R"({"spec":{"initContainers":[{"name":"a"},{"name":"b"}]},"status":{
        "phase":"Pending",
        "initContainerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0}}},
        {"name":"b","state":{"waiting":{"reason":"PodInitializing"}}}]}})"},
      {"Init:Error", R"({"spec":{"initContainers":[{"name":"a"}]},"status":{
        "phase":"Pending","initContainerStatuses":[{"name":"a","state":{"terminated":{"exitCode":1,
        "reason":"Error"}}}]}})"},
      {"Init:CrashLoopBackOff", R"({"spec":{"initContainers":[{"name":"a"}]},"status":{
        "phase":"Pending","initContainerStatuses":[{"name":"a","state":{"waiting":{
        "reason":"CrashLoopBackOff"}}}]}})"},
      {"Terminating", R"({"metadata":{"deletionTimestamp":"2023-11-14T22:17:20Z"},
        "status":{"phase":"Running"}})"},
      {"Succeeded", R"({"metadata":{"deletionTimestamp":"2023-11-14T22:17:20Z"},
        "status":{"phase":"Succeeded"}})"},
      {"Unknown", R"({"metadata":{"deletionTimestamp":"2023-11-14T22:17:20Z"},
        "status":{"phase":"Running","reason":"NodeLost"}})"},
  };
  for (const Case& c : cases) EXPECT_EQ(pod_status_text(parsed(c.pod)), c.status) << c.pod;
}

TEST(PodCells, TheWholeLine) {
  const json::value pod = parsed(R"({"metadata":{"creationTimestamp":"2023-11-14T22:17:20Z"},
    "spec":{"nodeName":"n","containers":[{"name":"c"}],"initContainers":[{"name":"s",
      "restartPolicy":"Always"}],"readinessGates":[{"conditionType":"G"}]},
    "status":{"phase":"Running","podIP":"10.1.0.2","conditions":[{"type":"G","status":"True"}],
      "initContainerStatuses":[{"name":"s","started":true,"ready":true,"restartCount":1,
        "state":{"running":{}}}],
      "containerStatuses":[{"name":"c","ready":false,"restartCount":2,"state":{"running":{}},
        "lastState":{"terminated":{"finishedAt":"2023-11-14T22:18:00Z"}}}]}})");
  EXPECT_EQ(json::serialize(pod_cells(pod, 1'700'000'300)),
            R"line(["1/2","Running","3 (20s ago)","60s","10.1.0.2","n","<none>","1/1"])line");
}

// What is wrong with a container that somebody puts into a pod that runs.
Lines ephemeral_causes(const std::string& containers) {
  const json::value old = parsed(R"({"spec":{"containers":[{"name":"c","image":"x"}],
    "initContainers":[{"name":"i","image":"x"}],"volumes":[{"name":"v","emptyDir":{}}]}})");
  json::value pod = old;
  pod.at("spec").get_object()["ephemeralContainers"] = parsed(containers);
  Lines out;
  for (const Cause& cause :
       pod_kind().validate(pod, {.old = &old, .subresource = "ephemeralcontainers"})) {
    out.push_back(cause.field + ": " + cause.message);
  }
  return out;
}

TEST(EphemeralContainers, AreCheckedAsKubernetesDoes) {
  const std::string at = "spec.ephemeralContainers[0].";
  const std::string not_here = ": Forbidden: cannot be set for an Ephemeral Container";
  const auto with = [](const std::string& more) {
    return ephemeral_causes(R"([{"name":"d","image":"x",)" + more + "}]");
  };
  EXPECT_EQ(with(R"("resources":{},"targetContainerName":"i","stdin":true,
                    "volumeMounts":[{"name":"v","mountPath":"/v"}])"),
            Lines{});
  EXPECT_EQ(ephemeral_causes(R"([{"name":"c","image":"x"}])"),
            Lines{at + R"(name: Duplicate value: "c")"});
  EXPECT_EQ(ephemeral_causes(R"([{"name":"i","image":"x"}])"),
            Lines{at + R"(name: Duplicate value: "i")"});
  EXPECT_EQ(ephemeral_causes(R"([{"name":"d","image":"x"},{"name":"d","image":"x"}])"),
            Lines{R"(spec.ephemeralContainers[1].name: Duplicate value: "d")"});
  EXPECT_EQ(ephemeral_causes(R"([{"name":"d"}])"), Lines{at + "image: Required value"});
  EXPECT_EQ(ephemeral_causes(R"([{"name":"../d","image":"x"}])").size(), 1u);
  EXPECT_EQ(with(R"("targetContainerName":"d")"),
            Lines{at + R"(targetContainerName: Not found: "d")"});
  EXPECT_EQ(with(R"("resources":{"limits":{"nvidia.com/gpu":"1"}},"ports":[{"containerPort":80}])"),
            (Lines{at + "ports" + not_here, at + "resources" + not_here}));
  EXPECT_EQ(with(R"("volumeMounts":[{"name":"v","mountPath":"/v","subPath":"a"}])"),
            Lines{at + "volumeMounts[0].subPath" + not_here});
  for (const std::string field :
       {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "restartPolicy"}) {
    EXPECT_EQ(with("\"" + field + "\":" + (field == "restartPolicy" ? "\"Always\"" : "{}")),
              Lines{at + field + not_here});
  }
}

}  // namespace
}  // namespace skiff::api
