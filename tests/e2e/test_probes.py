"""Probes of running containers, with real processes."""
import json
import sys
import time

from skiff import pod_manifest, wait_for


def events(skiff, name, reason):
    listed = json.loads(skiff.kubectl("get", "events", "-o", "json", "--field-selector",
                                      f"involvedObject.name={name},reason={reason}").stdout)
    return [e["message"] for e in listed["items"]]


def condition(pod, kind):
    return next((c["status"] for c in pod["status"].get("conditions", []) if c["type"] == kind), "absent")


def main(pod):
    return pod["status"]["containerStatuses"][0]


def start(skiff, manifest, name, command, policy="Always", **probes):
    pod = pod_manifest(name, command)
    pod["spec"]["restartPolicy"] = policy
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    pod["spec"]["containers"][0].update(probes)
    skiff.kubectl("apply", "-f", manifest(pod))


def test_readiness_by_a_command_follows_the_container(skiff, manifest):
    start(skiff, manifest, "ready", ["sleep", "600"],
          readinessProbe={"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1, "timeoutSeconds": 10,
                          "failureThreshold": 1})
    skiff.wait_phase("ready", "Running")
    assert condition(skiff.pod("ready"), "Ready") == "False"
    wait_for(lambda: events(skiff, "ready", "Unhealthy"))
    skiff.kubectl("exec", "ready", "--", "touch", "/tmp/ready")
    wait_for(lambda: condition(skiff.pod("ready"), "Ready") == "True")
    skiff.kubectl("exec", "ready", "--", "rm", "/tmp/ready")
    wait_for(lambda: condition(skiff.pod("ready"), "Ready") == "False")
    pod = skiff.pod("ready")
    assert main(pod)["restartCount"] == 0 and main(pod)["started"] and not main(pod)["ready"]
    assert any(m.startswith("Readiness probe failed: cat: ") for m in events(skiff, "ready", "Unhealthy"))
    skiff.kubectl("delete", "pod", "ready", "--now")


def test_liveness_by_http_kills_and_the_policy_restarts(skiff, manifest):
    # Serves its folder; the file that is asked for goes away.
    fine = {"httpGet": {"path": "/fine", "port": "web"}, "periodSeconds": 1, "timeoutSeconds": 10}
    start(skiff, manifest, "alive", ["sh", "-c", "mkdir -p /tmp/www; cd /tmp/www; touch fine; "
                                     "exec python3 -m http.server 8099"],
          ports=[{"name": "web", "containerPort": 8099}],
          startupProbe={**fine, "failureThreshold": 60},
          livenessProbe={**fine, "initialDelaySeconds": 1, "failureThreshold": 2})
    wait_for(lambda: condition(skiff.pod("alive"), "Ready") == "True")
    skiff.kubectl("exec", "alive", "--", "rm", "/tmp/www/fine")
    wait_for(lambda: main(skiff.pod("alive"))["restartCount"] >= 1)
    assert "Liveness probe failed: HTTP probe failed with statuscode: 404" in events(skiff, "alive", "Unhealthy")
    assert "Container main failed liveness probe, will be restarted" in events(skiff, "alive", "Killing")
    assert main(skiff.pod("alive"))["lastState"]["terminated"]["exitCode"] in (143, 137)
    skiff.kubectl("delete", "pod", "alive", "--now")


def test_startup_by_tcp_holds_back_the_others(skiff, manifest):
    start(skiff, manifest, "slow", ["sh", "-c", "until test -e /tmp/go; do sleep 0.1; done; exec python3 -m http.server 8098"],
          startupProbe={"tcpSocket": {"port": 8098}, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 100},
          livenessProbe={"tcpSocket": {"port": 8098}, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 1})
    skiff.wait_phase("slow", "Running")
    wait_for(lambda: any("connect: connection refused" in m for m in events(skiff, "slow", "Unhealthy")))
    assert main(skiff.pod("slow"))["started"] is False
    skiff.kubectl("exec", "slow", "--", "touch", "/tmp/go")
    wait_for(lambda: main(skiff.pod("slow"))["ready"])
    time.sleep(2)  # it is asked now and then, and answers
    assert main(skiff.pod("slow"))["restartCount"] == 0
    skiff.kubectl("delete", "pod", "slow", "--now")


def test_a_failed_startup_fails_a_pod_that_may_not_restart(skiff, manifest):
    start(skiff, manifest, "never", ["sleep", "600"], policy="Never",
          startupProbe={"exec": {"command": ["sh", "-c", "sleep 60"]}, "periodSeconds": 1, "failureThreshold": 1})
    skiff.wait_phase("never", "Failed")
    assert any("timed out after 1s" in m for m in events(skiff, "never", "Unhealthy"))
    assert "Container main failed startup probe" in events(skiff, "never", "Killing")
    skiff.kubectl("delete", "pod", "never")


# A real gRPC server that stops serving when a file appears.
GRPC_SERVER = """
import concurrent.futures, os, time
import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
states = health.HealthServicer()
health_pb2_grpc.add_HealthServicer_to_server(states, server)
states.set("db", health_pb2.HealthCheckResponse.SERVING)
assert server.add_insecure_port("0.0.0.0:8097") == 8097
server.start()
while not os.path.exists("/tmp/down"):
    time.sleep(0.1)
states.set("db", health_pb2.HealthCheckResponse.NOT_SERVING)
time.sleep(600)
"""


def test_readiness_by_grpc_follows_a_real_server(skiff, manifest):
    start(skiff, manifest, "grpc", [sys.executable, "-c", GRPC_SERVER],
          readinessProbe={"grpc": {"port": 8097, "service": "db"}, "periodSeconds": 1, "timeoutSeconds": 5,
                          "failureThreshold": 1})
    wait_for(lambda: condition(skiff.pod("grpc"), "Ready") == "True", 60)
    skiff.kubectl("exec", "grpc", "--", "touch", "/tmp/down")
    wait_for(lambda: condition(skiff.pod("grpc"), "Ready") == "False")
    wait_for(lambda: any('service unhealthy (responded with "NOT_SERVING")' in m
                         for m in events(skiff, "grpc", "Unhealthy")))
    skiff.kubectl("delete", "pod", "grpc", "--now")
