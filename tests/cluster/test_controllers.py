"""The training controllers through client/remote: the same scenarios on a real kube-apiserver and on
Skiff's own API. `skiff up --kubeconfig` runs the controllers; the test plays the kubelet."""
import os
import signal
import time

import pytest

from control_plane import ControlPlane
from skiff import Skiff, alive, pytorchjob, tfjob, wait_for

MERGE = {"Content-Type": "application/merge-patch+json"}


class World:
    """An API server and a Skiff that runs its controllers against it."""

    def __init__(self, server, kubeconfig):
        self.server = server
        self.controllers = Skiff("--kubeconfig", kubeconfig)
        self.controllers.start()

    def call(self, method, path, body=None, headers=None, expect=(200, 201)):
        status, answer = self.server.request(method, path, body, headers=headers)
        assert status in expect, f"{method} {path}: {status} {answer}"
        return answer

    def make(self, plural, job, ns="default"):
        self.call("POST", f"/apis/kubeflow.org/v1/namespaces/{ns}/{plural}", job)

    def job(self, plural, name):
        return self.server.request("GET", f"/apis/kubeflow.org/v1/namespaces/default/{plural}/{name}")[1]

    def owned(self, plural, job):
        selector = f"training.kubeflow.org/job-name={job}"
        return self.call("GET", f"/api/v1/namespaces/default/{plural}?labelSelector={selector}")["items"]

    def pods(self, job):
        return {pod["metadata"]["name"]: pod for pod in self.owned("pods", job)}

    def wait_pods(self, job, names):
        return wait_for(lambda: set(self.pods(job)) == set(names) and self.pods(job), 30)

    def set_phase(self, pod, phase, code=None):
        status = {"phase": phase}
        if code is not None:
            container = self.call("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"]["containers"][0]
            status["containerStatuses"] = [{
                "name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0,
                "state": {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}}]
        self.call("PATCH", f"/api/v1/namespaces/default/pods/{pod}/status", {"status": status}, MERGE)

    def wait_state(self, plural, name, state):
        def reached():
            conditions = self.job(plural, name).get("status", {}).get("conditions", [])
            return any(c["type"] == state and c["status"] == "True" for c in conditions)
        wait_for(reached)

    def stop(self):
        self.controllers.stop()


@pytest.fixture(scope="module", params=["kube-apiserver", "skiff"])
def world(request):
    if request.param == "kube-apiserver":
        server = ControlPlane().start()
        kubeconfig = server.kubeconfig
    else:
        server = Skiff("--api-only").start()
        kubeconfig = f"{server.data}/kubeconfig"
    try:
        one = World(server, kubeconfig)
        yield one
        one.stop()
    finally:
        server.stop()


COMMAND = ["python3", "train.py"]


def test_a_job_runs_to_its_end(world):
    world.make("tfjobs", tfjob("ends", COMMAND, {"PS": 1, "Worker": 2}))
    names = ["ends-ps-0", "ends-worker-0", "ends-worker-1"]
    pods = world.wait_pods("ends", names)
    env = {e["name"]: e.get("value", "") for e in pods["ends-worker-1"]["spec"]["containers"][0]["env"]}
    assert '"index":1' in env["TF_CONFIG"].replace(" ", "")
    wait_for(lambda: {s["metadata"]["name"] for s in world.owned("services", "ends")} == set(names), 20)
    for name in names:
        world.set_phase(name, "Running")
    world.wait_state("tfjobs", "ends", "Running")
    for name in names[1:]:
        world.set_phase(name, "Succeeded", 0)
    world.wait_state("tfjobs", "ends", "Succeeded")
    assert world.job("tfjobs", "ends")["status"]["completionTime"]


def test_a_failed_worker_is_replaced(world):
    job = tfjob("again", COMMAND, {"Worker": 1})
    job["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    world.make("tfjobs", job)
    first = world.wait_pods("again", ["again-worker-0"])["again-worker-0"]["metadata"]["uid"]
    world.set_phase("again-worker-0", "Failed", 137)

    def replaced():
        pod = world.pods("again").get("again-worker-0")
        return pod and pod["metadata"]["uid"] != first
    wait_for(replaced)
    world.set_phase("again-worker-0", "Succeeded", 0)
    world.wait_state("tfjobs", "again", "Succeeded")


def test_a_permanent_failure_fails_the_job(world):
    job = tfjob("fails", COMMAND, {"Worker": 2})
    job["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    world.make("tfjobs", job)
    world.wait_pods("fails", ["fails-worker-0", "fails-worker-1"])
    world.set_phase("fails-worker-0", "Failed", 1)
    world.wait_state("tfjobs", "fails", "Failed")


def test_pytorch_ranks(world):
    world.make("pytorchjobs", pytorchjob("ranks", COMMAND, 2))
    pods = world.wait_pods("ranks", ["ranks-master-0", "ranks-worker-0", "ranks-worker-1"])
    ranks = {name: {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}["RANK"] for name, pod in pods.items()}
    assert ranks == {"ranks-master-0": "0", "ranks-worker-0": "1", "ranks-worker-1": "2"}
    for name in pods:
        world.set_phase(name, "Succeeded", 0)
    world.wait_state("pytorchjobs", "ranks", "Succeeded")


def test_an_mpi_job_brings_what_its_launcher_needs(world):
    pod = {"spec": {"containers": [{"name": "mpi", "image": "skiff.dev/host", "command": COMMAND}]}}
    world.call("POST", "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs", {
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "mpi"},
        "spec": {"mpiReplicaSpecs": {role: {"replicas": n, "template": pod}
                                     for role, n in {"Launcher": 1, "Worker": 2}.items()}}})
    names = ["mpi-launcher", "mpi-worker-0", "mpi-worker-1"]
    pods = world.wait_pods("mpi", names)
    assert pods["mpi-launcher"]["spec"]["serviceAccountName"] == "mpi-launcher"
    config = "/api/v1/namespaces/default/configmaps/mpi-config"
    for name in names:
        world.set_phase(name, "Running")
    hosts = "".join(f"echo mpi-worker-{i}.mpi.default.svc\n" for i in range(2))
    wait_for(lambda: hosts in world.call("GET", config)["data"]["discover_hosts.sh"], 30)
    world.call("PATCH", config, {"data": {"hostfile": "nonsense"}}, MERGE)
    wait_for(lambda: "mpi-worker-1" in world.call("GET", config)["data"]["hostfile"], 30)
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = world.call("GET", f"{rbac}/roles/mpi-launcher")["rules"]
    assert rules[1]["resourceNames"] == ["mpi-worker-0", "mpi-worker-1"]
    version = world.call("GET", f"{rbac}/rolebindings/mpi-launcher")["metadata"]["resourceVersion"]
    world.set_phase("mpi-launcher", "Succeeded", 0)

    def ended():
        job = world.call("GET", "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/mpi")
        return any(c["type"] == "Succeeded" for c in job["status"].get("conditions", []))
    wait_for(ended)
    # What nobody changed was written once: the server's own defaults are no reason to write again.
    assert world.call("GET", f"{rbac}/rolebindings/mpi-launcher")["metadata"]["resourceVersion"] == version


def test_suspended_and_resumed(world):
    world.make("tfjobs", tfjob("sleeps", COMMAND, {"Worker": 1}, runPolicy={"suspend": True}))
    world.wait_state("tfjobs", "sleeps", "Suspended")
    assert world.pods("sleeps") == {}
    path = "/apis/kubeflow.org/v1/namespaces/default/tfjobs/sleeps"
    world.call("PATCH", path, {"spec": {"runPolicy": {"suspend": False}}}, MERGE)
    world.wait_pods("sleeps", ["sleeps-worker-0"])
    world.call("PATCH", path, {"spec": {"runPolicy": {"suspend": True}}}, MERGE)
    wait_for(lambda: all(p["metadata"].get("deletionTimestamp") for p in world.pods("sleeps").values()), 30)


def test_a_deleted_job_takes_its_pods_along(world):
    world.make("tfjobs", tfjob("goes", COMMAND, {"Worker": 2}))
    world.wait_pods("goes", ["goes-worker-0", "goes-worker-1"])
    world.call("DELETE", "/apis/kubeflow.org/v1/namespaces/default/tfjobs/goes?propagationPolicy=Background")
    wait_for(lambda: world.pods("goes") == {} and world.owned("services", "goes") == [], 60)


def test_finished_jobs_are_removed_after_their_time(world):
    world.make("tfjobs", tfjob("brief", COMMAND, {"Worker": 1}, runPolicy={"ttlSecondsAfterFinished": 1}))
    world.wait_pods("brief", ["brief-worker-0"])
    world.set_phase("brief-worker-0", "Succeeded", 0)
    wait_for(lambda: world.job("tfjobs", "brief").get("code") == 404, 30)


def test_a_killed_controller_goes_on(world):
    """kill -9 while many jobs start: each job ends with its pods, no more and no fewer."""
    jobs = [f"many-{i}" for i in range(10)]
    for name in jobs[:5]:
        world.make("tfjobs", tfjob(name, COMMAND, {"Worker": 2}))
    pid = world.controllers.pid()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid))
    for name in jobs[5:]:
        world.make("tfjobs", tfjob(name, COMMAND, {"Worker": 2}))
    world.controllers.start()
    for name in jobs:
        world.wait_pods(name, [f"{name}-worker-0", f"{name}-worker-1"])
    time.sleep(1)
    for name in jobs:
        assert set(world.pods(name)) == {f"{name}-worker-0", f"{name}-worker-1"}
        for pod in world.pods(name):
            world.set_phase(pod, "Succeeded", 0)
    for name in jobs:
        world.wait_state("tfjobs", name, "Succeeded")
