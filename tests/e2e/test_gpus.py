"""NVIDIA GPUs with a library that only pretends (src/node/gpu/testing/fake_nvml.cc): no hardware."""
import json
import os
import shutil
import stat
import subprocess

import pytest

from skiff import ROOT, Skiff, wait_for

# Numbers that no machine has, so that nothing real is in the way.
MINORS = (1240, 1241)
FILES = [f"/dev/nvidia{minor}" for minor in MINORS]
GPUS = "GPU-aa:1240:24576:1024:75,GPU-bb:1241:24576:0:50"


@pytest.fixture(scope="module")
def devices():
    """Files that look like GPUs; where none can be made, the tests about files are left out."""
    made = []
    try:
        for path in FILES:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            made.append(path)
    except PermissionError:
        pass
    yield len(made) == len(FILES) and os.geteuid() == 0
    for path in made:
        os.unlink(path)


@pytest.fixture(scope="module")
def server(devices, tmp_path_factory):
    library = tmp_path_factory.mktemp("nvml") / "libfake_nvml.so"
    compiler = next(filter(shutil.which, ("clang++-19", "clang++", "g++", "c++")))
    subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-o", library,
                    ROOT / "src/node/gpu/testing/fake_nvml.cc"], check=True)
    os.environ.update(SKIFF_NVML=str(library), FAKE_NVML=GPUS)
    server = Skiff("--images=host")
    try:
        server.start()
        yield server
    finally:
        server.stop()
        del os.environ["SKIFF_NVML"], os.environ["FAKE_NVML"]


def pod(name, gpus=0, command="sleep 600"):
    container = {"name": "main", "image": "any", "command": ["sh", "-c", command]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                     "containers": [container]}}


def create(server, *pods):
    for each in pods:
        server.kubectl("apply", "-f", "-", stdin=json.dumps(each))


def seen(server, name):
    """(GPUs by environment, device files) as the container sees them."""
    script = "echo $CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES; ls -d /dev/nvidia* 2>/dev/null; true"
    first, *files = server.kubectl("exec", name, "--", "sh", "-c", script).stdout.splitlines()
    return first, files


def remove(server, *names):
    server.kubectl("delete", "pod", *names, "--now")


def test_the_node_shows_its_gpus(server):
    # A node is told of before what it has is.
    node = wait_for(lambda: next((n for n in server.get("/api/v1/nodes")["items"] if "allocatable" in n["status"]), None))
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    described = server.kubectl("describe", "node", node["metadata"]["name"]).stdout
    assert "nvidia.com/gpu.product=Fake-GPU-9000" in described
    assert "nvidia.com/gpu.memory=24576" in described
    assert "nvidia.com/gpu:  2" in described or "nvidia.com/gpu:     2" in described


def test_use_of_gpus_is_shown(server):
    wait_for(lambda: "125%" in server.run("top", "nodes", check=False).stdout, every=0.3)
    assert "1024Mi" in server.run("top", "nodes").stdout


def test_each_pod_has_its_own_and_the_others_none(server, devices):
    create(server, pod("one", 1), pod("two", 1), pod("none"))
    for name in ("one", "two", "none"):
        server.wait_phase(name, "Running")
    (one, one_files), (two, two_files) = seen(server, "one"), seen(server, "two")
    assert {one, two} == {"GPU-aa/GPU-aa", "GPU-bb/GPU-bb"}
    none, none_files = seen(server, "none")
    assert none == "/void"
    if devices:
        assert sorted(one_files + two_files) == FILES
        assert one_files == [FILES[0] if one.startswith("GPU-aa") else FILES[1]]
        assert none_files == []
    remove(server, "one", "two", "none")


def test_a_third_waits_for_its_turn(server):
    create(server, pod("first", 2), pod("next", 1))
    server.wait_phase("first", "Running")

    def told():
        conditions = server.pod("next")["status"].get("conditions", [])
        return [c["message"] for c in conditions if "nvidia.com/gpu" in c.get("message", "")]
    assert wait_for(told)
    remove(server, "first")
    server.wait_phase("next", "Running")
    assert seen(server, "next")[0] == "GPU-aa/GPU-aa"
    remove(server, "next")


def test_who_has_which_survives_kill_9(server):
    create(server, pod("keeps", 1))
    server.wait_phase("keeps", "Running")
    had = seen(server, "keeps")[0]
    server.kill()
    server.start()
    create(server, pod("later", 1))
    server.wait_phase("later", "Running")
    assert seen(server, "keeps")[0] == had
    assert {had, seen(server, "later")[0]} == {"GPU-aa/GPU-aa", "GPU-bb/GPU-bb"}
    remove(server, "keeps", "later")


def test_resources_that_somebody_else_patched_are_counted_too(server):
    name = json.loads(server.kubectl("get", "nodes", "-o", "json").stdout)["items"][0]["metadata"]["name"]
    patch = json.dumps([{"op": "add", "path": "/status/capacity/example.com~1dongle", "value": "1"},
                        {"op": "add", "path": "/status/allocatable/example.com~1dongle", "value": "1"}])
    server.kubectl("patch", "node", name, "--subresource=status", "--type=json", "-p", patch)
    wants = pod("dongle-1")
    wants["spec"]["containers"][0]["resources"] = {"limits": {"example.com/dongle": "1"}}
    create(server, wants, {**wants, "metadata": {"name": "dongle-2"}})
    wait_for(lambda: sorted(server.pod(n)["status"]["phase"] for n in ("dongle-1", "dongle-2"))
             == ["Pending", "Running"])
    remove(server, "dongle-1", "dongle-2")


def test_nothing_of_them_is_left(server):
    folder = os.path.join(server.data, "pods")
    wait_for(lambda: os.listdir(folder) == [])


def test_top_tells_the_gpus_of_each_replica(server):
    container = {"name": "pytorch", "image": "any", "command": ["sleep", "600"],
                 "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "uses"},
           "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": {
               "terminationGracePeriodSeconds": 0, "containers": [container]}}}}}}
    create(server, job)
    shown = lambda: server.run("top", "job", "uses", check=False).stdout  # noqa: E731
    wait_for(lambda: (told := shown()) and "GPU(%)" in told and any(busy in told for busy in ("75%", "50%")))
    assert "GPU(%)" in server.run("describe", "pytorchjob", "uses").stdout
    server.run("delete", "pytorchjob", "uses")
