"""What pods and nodes use: metrics.k8s.io, `kubectl top` of both versions and `skiff top`."""
import json
import re
import subprocess

import pytest

from skiff import BINARY, ROOT, Skiff, wait_for

METRICS = "/apis/metrics.k8s.io/v1beta1"


def pod(name, containers, labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": each, "image": "any", "command": ["sh", "-c", script]}
                for each, script in containers.items()]}}


@pytest.fixture(scope="module")
def busy(skiff):
    """A pod that works, with a second container that holds 40 MB, beside one that sleeps."""
    hold = "exec python3 -c 'import time; x = bytearray(40 << 20); time.sleep(600)'"
    for each in (pod("busy", {"spin": "while :; do :; done", "hold": hold}, {"app": "busy"}),
                 pod("idle", {"main": "sleep 600"}, {"app": "idle"})):
        skiff.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    skiff.kubectl("wait", "--for=condition=Ready", "pod/busy", "pod/idle", "--timeout=60s")

    def measured():
        items = json.loads(skiff.kubectl("get", "--raw", METRICS + "/pods").stdout)["items"]
        found = {item["metadata"]["name"]: item for item in items}
        if not {"busy", "idle"} <= found.keys():
            return None
        used = {c["name"]: c for c in found["busy"]["containers"]}
        # Until what it took to start is no longer in the window.
        settled = nano(used["spin"]) > 20 * nano(found["idle"]["containers"][0])
        return found if settled and memory(used["hold"]) > 40 << 20 else None

    yield wait_for(measured, 60, 0.5)
    skiff.kubectl("delete", "pod", "busy", "idle", "--now", check=False)


@pytest.fixture(scope="module", params=["1.20", "1.34"])
def kubectl(request, skiff):
    old = request.param == "1.20"
    words = [ROOT / "tools" / "kubectl-old"] if old else [ROOT / "tools" / "cluster", "kubectl"]
    path = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    path = path if old else path + "/kubectl"

    def run(*arguments):
        done = subprocess.run([path, *arguments], env=skiff.environment(), capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout
    return run


def nano(container):
    return int(container["usage"]["cpu"].removesuffix("n"))


def memory(container):
    return int(container["usage"]["memory"].removesuffix("Ki")) * 1024


def rows(text):
    return [line.split() for line in text.splitlines()[1:]]


def test_measurements_tell_who_works(busy):
    used = {c["name"]: c for c in busy["busy"]["containers"]}
    assert nano(used["spin"]) > 20 * nano(busy["idle"]["containers"][0])
    assert nano(used["spin"]) > 10_000_000, "a hundredth of a CPU, however slow the machine"
    assert 40 << 20 < memory(used["hold"]) < 200 << 20
    assert memory(busy["idle"]["containers"][0]) < memory(used["hold"])
    assert re.fullmatch(r"(\d+m)?\d+(\.\d+)?s", busy["busy"]["window"])
    assert busy["busy"]["metadata"]["labels"] == {"app": "busy"}


def test_kubectl_top_pods(busy, kubectl):
    by_cpu = rows(kubectl("top", "pods", "--sort-by=cpu"))
    assert by_cpu[0][0] == "busy" and {"busy", "idle"} <= {row[0] for row in by_cpu}
    assert rows(kubectl("top", "pods", "--sort-by=memory"))[0][0] == "busy"
    each = kubectl("top", "pod", "busy", "--containers")
    assert sorted(row[1] for row in rows(each)) == ["hold", "spin"]
    everywhere = kubectl("top", "pods", "-A")
    assert everywhere.splitlines()[0].split()[0] == "NAMESPACE"
    assert [row[0] for row in rows(kubectl("top", "pods", "-l", "app=idle"))] == ["idle"]


def test_kubectl_top_nodes(busy, kubectl):
    (node,) = rows(kubectl("top", "nodes"))
    assert re.fullmatch(r"\d+m", node[1]) and node[2].endswith("%")
    assert re.fullmatch(r"\d+Mi", node[3]) and int(node[3][:-2]) > 0


def test_skiff_top(busy, skiff):
    assert rows(skiff.run("top", "pods", "--sort-by", "cpu").stdout)[0][0] == "busy"
    each = skiff.run("top", "pods", "busy", "--containers", "-n", "default").stdout
    assert [row[:2] for row in rows(each)] == [["busy", "hold"], ["busy", "spin"]]
    (node,) = rows(skiff.run("top", "nodes").stdout)
    assert node[2].endswith("%") and node[4].endswith("%")
    refused = skiff.run("top", "pods", "nobody", check=False)
    assert refused.returncode == 1 and 'pods "default/nobody" not found' in refused.stderr
    empty = skiff.run("top", "pods", "-n", "kube-public").stdout
    assert "No pods are measured in namespace kube-public" in empty


def test_skiff_top_goes_on(busy, skiff):
    watch = subprocess.Popen([BINARY, "top", "pods", "--watch", "--interval", "0.2",
                              "--no-headers", "-l", "app=idle"], env=skiff.environment(), text=True,
                             stdout=subprocess.PIPE)
    seen = [watch.stdout.readline() for _ in range(3)]
    watch.kill()
    watch.wait()
    assert all(line.startswith("idle ") for line in seen), seen


def test_view_is_enough_and_nothing_is_too_little(busy, skiff):
    def who(user, *more):
        return skiff.kubectl("top", "pods", "--as", user, *more, check=False)
    assert "pods.metrics.k8s.io is forbidden" in who("anna").stderr
    skiff.kubectl("create", "rolebinding", "sees", "--clusterrole=view", "--user=anna")
    wait_for(lambda: who("anna").returncode == 0)
    assert who("anna", "-A").returncode != 0


def test_a_pod_that_ended_is_not_measured(busy, skiff):
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod("short", {"main": "sleep 600"}, {})))
    wait_for(lambda: "short" in skiff.run("top", "pods").stdout, 60, 0.3)
    skiff.kubectl("delete", "pod", "short", "--now")
    assert "short" not in skiff.run("top", "pods").stdout


def test_measurements_survive_a_restart(busy, skiff):
    skiff.kill()
    skiff.start()

    def spins():
        done = skiff.run("top", "pods", "busy", "--no-headers", check=False)
        return done.returncode == 0 and int(done.stdout.split()[1].removesuffix("m")) >= 10
    wait_for(spins, every=0.3)


def test_a_server_without_measurements_is_told_as_such():
    server = Skiff("--api-only")
    server.start()
    try:
        refused = server.run("top", "pods", check=False)
        assert refused.returncode == 1
        assert "it has no metrics.k8s.io (a cluster needs metrics-server for it" in refused.stderr
    finally:
        server.stop()
