"""Pods on a disk that fills up: what they say may be lost, how they end may not."""
import os
import shutil

import pytest
from leaks import nothing_leaks
from skiff import Skiff, pod_manifest, wait_for
from test_disk import fill, small_disk, write_until_refused

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def server():
    with small_disk("48m") as disk:
        made = Skiff("--images=host")
        shutil.rmtree(made.data)
        made.data = str(disk / "data")
        made.start()
        made.ballast = disk / "ballast"
        yield made
        made.stop()


def state(server, name):
    return (server.pod(name)["status"].get("containerStatuses") or [{}])[0].get("state", {})


def test_pods_end_while_the_disk_is_full(server):
    """The pod's own writes fail, its log has a hole, and its end is told once there is room."""
    script = "echo ready; until test -e /dev/shm/go; do sleep 0.05; done; " \
             "head -c 200000 /dev/zero | tr '\\0' x > /tmp/file 2>/dev/null && echo written || echo refused >&2; exit {}"
    with nothing_leaks(server):
        for code in (0, 3):
            pod = pod_manifest(f"ends-{code}", ["sh", "-c", script.format(code)])
            assert server.request("POST", PODS, pod)[0] == 201
        for code in (0, 3):
            server.wait_phase(f"ends-{code}", "Running")
            wait_for(lambda: server.kubectl("logs", f"ends-{code}").stdout == "ready\n")
        fill(server.ballast)
        for code in (0, 3):
            server.kubectl("exec", f"ends-{code}", "--", "touch", "/dev/shm/go")
        write_until_refused(server)
        assert server.request("GET", "/livez")[0] == 200
        os.remove(server.ballast)
        for code in (0, 3):
            end = wait_for(lambda: state(server, f"ends-{code}").get("terminated"), 60)
            assert end["exitCode"] == code
        wait_for(lambda: server.request("POST", PODS, pod_manifest("after", ["true"]))[0] in (201, 409))
        server.wait_phase("after", "Succeeded", seconds=60)
        # And the ends are on the disk, not only in somebody's memory.
        server.kill()
        server.start()
        assert state(server, "ends-3")["terminated"]["exitCode"] == 3
        for name in ("ends-0", "ends-3", "after"):
            server.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        wait_for(lambda: not server.pods())


def test_a_pod_that_fills_its_volume_harms_itself_only(server):
    """In memory with a limit: the program is refused more, and its neighbour's volume has room."""
    volumes = [{"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    mounts = [{"name": "small", "mountPath": "/small"}]
    with nothing_leaks(server):
        for name in ("fills", "beside"):
            script = "cat /dev/zero > /small/all; df -k /small | tail -1; sleep 100" if name == "fills" else \
                "until test -e /dev/shm/go; do sleep 0.05; done; echo fine > /small/file && cat /small/file"
            pod = pod_manifest(name, ["sh", "-c", script], volumes=volumes)
            pod["spec"]["containers"][0]["volumeMounts"] = mounts
            assert server.request("POST", PODS, pod)[0] == 201
        wait_for(lambda: "100%" in server.kubectl("logs", "fills", check=False).stdout)
        assert "No space left on device" in server.kubectl("logs", "fills").stdout
        server.wait_phase("beside", "Running")
        server.kubectl("exec", "beside", "--", "touch", "/dev/shm/go")
        server.wait_phase("beside", "Succeeded")
        assert server.kubectl("logs", "beside").stdout == "fine\n"
        for name in ("fills", "beside"):
            server.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        wait_for(lambda: not server.pods())


def test_a_pod_that_fills_the_disk_is_evicted_or_refused(server):
    """Its emptyDir takes all the room: the limit it was given ends it, and the room comes back."""
    pod = pod_manifest("greedy", ["sh", "-c", "cat /dev/zero > /room/all; sleep 100"],
                       volumes=[{"name": "room", "emptyDir": {"sizeLimit": "1Mi"}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "room", "mountPath": "/room"}]
    with nothing_leaks(server):
        assert server.request("POST", PODS, pod)[0] == 201
        wait_for(lambda: server.pod("greedy")["status"].get("reason") == "Evicted", 60)
        told = server.pod("greedy")["status"]
        assert told["phase"] == "Failed" and "exceeds the limit \"1Mi\"" in told["message"], told
        wait_for(lambda: shutil.disk_usage(server.ballast.parent).free > 20 << 20)
        wait_for(lambda: server.request("POST", PODS, pod_manifest("after", ["true"]))[0] in (201, 409))
        server.wait_phase("after", "Succeeded", seconds=60)
        for name in ("greedy", "after"):
            server.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        wait_for(lambda: not server.pods())
