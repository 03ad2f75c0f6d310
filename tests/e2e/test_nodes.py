"""Daemons, cordoned and drained nodes, and what a controller that was deleted leaves to the next, with kubectl."""
import json

import pytest

from skiff import wait_for


def workload(kind, name, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"terminationGracePeriodSeconds": 1,
                                           "containers": [{"name": "main", "image": "skiff.dev/host",
                                                           "command": ["sleep", "600"]}]}}, **spec}}


def apply(skiff, thing):
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(thing))


def running(skiff, name):
    return [pod for pod in skiff.pods(selector=f"app={name}")
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]


def scheduled(pod):
    return next((c["status"] for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), None)


def node(skiff):
    return json.loads(skiff.kubectl("get", "nodes", "-o", "json").stdout)["items"][0]


def taints(skiff):
    return sorted(f"{t['key']}:{t['effect']}" for t in node(skiff)["spec"].get("taints", []))


@pytest.fixture
def name(skiff):
    found = node(skiff)["metadata"]["name"]
    yield found
    skiff.kubectl("uncordon", found)
    wait_for(lambda: not taints(skiff))


def test_a_daemon_set_runs_on_the_node_and_is_rolled_out_anew(skiff):
    apply(skiff, workload("DaemonSet", "logs"))
    done = skiff.kubectl("rollout", "status", "ds/logs", "--timeout=60s")
    assert 'daemon set "logs" successfully rolled out' in done.stdout
    first = wait_for(lambda: running(skiff, "logs"))
    assert len(first) == 1
    row = skiff.kubectl("get", "ds", "logs", "--no-headers").stdout.split()
    assert row[1:6] == ["1"] * 5, row

    skiff.kubectl("set", "env", "ds/logs", "COLOUR=green")
    assert "successfully rolled out" in skiff.run("rollout", "status", "ds/logs", "--timeout", "60s").stdout
    second = wait_for(lambda: (found := running(skiff, "logs")) and found)
    assert second[0]["metadata"]["uid"] != first[0]["metadata"]["uid"]
    assert len(skiff.kubectl("get", "controllerrevisions", "-l", "app=logs", "--no-headers").stdout.splitlines()) == 2
    skiff.kubectl("rollout", "undo", "ds/logs")
    skiff.kubectl("rollout", "status", "ds/logs", "--timeout=60s")
    wait_for(lambda: (found := running(skiff, "logs")) and "env" not in found[0]["spec"]["containers"][0])
    skiff.kubectl("delete", "ds", "logs")
    wait_for(lambda: not skiff.pods(selector="app=logs"))


def test_a_cordoned_node_gets_no_pods_but_daemons(skiff, name):
    skiff.kubectl("cordon", name)
    wait_for(lambda: taints(skiff) == ["node.kubernetes.io/unschedulable:NoSchedule"])
    apply(skiff, workload("Deployment", "later", replicas=1))
    apply(skiff, workload("DaemonSet", "always"))
    skiff.kubectl("rollout", "status", "ds/always", "--timeout=60s")
    wait_for(lambda: [scheduled(pod) for pod in skiff.pods(selector="app=later")] == ["False"])
    skiff.kubectl("uncordon", name)
    skiff.kubectl("rollout", "status", "deployment/later", "--timeout=60s")
    skiff.kubectl("delete", "deployment/later", "ds/always")


def test_a_drained_node_is_left_by_all_pods_that_the_budget_lets_go(skiff, name):
    apply(skiff, workload("Deployment", "drained", replicas=2))
    apply(skiff, workload("DaemonSet", "stays"))
    apply(skiff, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "one"},
                  "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "drained"}}}})
    skiff.kubectl("rollout", "status", "deployment/drained", "--timeout=60s")
    skiff.kubectl("rollout", "status", "ds/stays", "--timeout=60s")
    budget = ("get", "pdb", "one", "-o", "jsonpath={.status.disruptionsAllowed}")
    wait_for(lambda: skiff.kubectl(*budget).stdout == "1")
    drain = ("drain", name, "--ignore-daemonsets", "--force", "--delete-emptydir-data",
             "--pod-selector=app in (drained,stays)")
    done = skiff.kubectl(*drain, "--timeout=7s", check=False)
    assert done.returncode == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in done.stderr
    assert len(running(skiff, "drained")) == 1
    skiff.kubectl("delete", "pdb", "one")
    done = skiff.kubectl(*drain, "--timeout=60s")
    assert "drained" in done.stdout
    assert not running(skiff, "drained") and running(skiff, "stays")
    skiff.kubectl("delete", "deployment/drained", "ds/stays")


def test_a_taint_drives_away_who_does_not_tolerate_it(skiff, name):
    thing = workload("Deployment", "tough", replicas=1)
    thing["spec"]["template"]["spec"]["tolerations"] = [{"key": "sick", "operator": "Exists"}]
    apply(skiff, thing)
    apply(skiff, workload("Deployment", "tender", replicas=1))
    for each in ("tough", "tender"):
        skiff.kubectl("rollout", "status", f"deployment/{each}", "--timeout=60s")
    skiff.kubectl("taint", "node", name, "sick=yes:NoExecute")
    wait_for(lambda: not running(skiff, "tender"))
    assert running(skiff, "tough")
    skiff.kubectl("taint", "node", name, "sick-")
    wait_for(lambda: running(skiff, "tender"))
    skiff.kubectl("delete", "deployment/tough", "deployment/tender")


@pytest.mark.parametrize("kind,short", [("StatefulSet", "sts"), ("Deployment", "deploy"), ("ReplicaSet", "rs")])
def test_what_is_left_to_the_next_of_its_name_runs_on(skiff, kind, short):
    thing = workload(kind, "heir", replicas=2, **({"serviceName": "heir"} if kind == "StatefulSet" else {}))
    apply(skiff, thing)
    wait_for(lambda: len(running(skiff, "heir")) == 2)
    before = {pod["metadata"]["uid"] for pod in running(skiff, "heir")}
    skiff.kubectl("delete", short, "heir", "--cascade=orphan")
    assert {pod["metadata"]["uid"] for pod in running(skiff, "heir")} == before
    apply(skiff, thing)
    wait_for(lambda: skiff.kubectl("get", short, "heir", "-o", "jsonpath={.status.readyReplicas}").stdout == "2")
    assert {pod["metadata"]["uid"] for pod in running(skiff, "heir")} == before
    skiff.kubectl("delete", short, "heir")
    wait_for(lambda: not skiff.pods(selector="app=heir"))
