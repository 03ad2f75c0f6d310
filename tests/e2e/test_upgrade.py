"""Another binary takes over while jobs run: no pod is restarted, no line is lost.

The one before is a copy of this one under another name, which is removed when it is no longer
needed, as an upgrade does; $SKIFF_OLD_BIN names a real older one."""
import json
import os
import shutil
import signal

import pytest
from leaks import left_behind, look
from skiff import BINARY, Skiff, alive, pod_manifest, tfjob, wait_for

LINES = 400
COUNT = f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); sleep 0.02; done"
PODS = ("train-worker-0", "train-worker-1", "serve")


def serving_pod():
    pod = pod_manifest("serve", ["sh", "-c", "echo up; echo kept > /kept/file; while true; do sleep 0.1; done"],
                       restartPolicy="Always",
                       volumes=[{"name": "work", "emptyDir": {}},
                                {"name": "settings", "configMap": {"name": "settings"}}])
    pod["spec"]["containers"][0] |= {
        "env": [{"name": "COLOUR", "value": "blue"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/kept/file"]}, "periodSeconds": 1},
        "volumeMounts": [{"name": "work", "mountPath": "/kept"}, {"name": "settings", "mountPath": "/settings"}]}
    return pod


def said(server, name):
    return server.kubectl("logs", name).stdout.splitlines()


def identity(server, name):
    pod = server.pod(name)
    status = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["uid"], pod["status"]["podIP"], status["containerID"], status["restartCount"]


@pytest.fixture
def old(tmp_path):
    """The binary before this one."""
    given = os.environ.get("SKIFF_OLD_BIN")
    path = str(tmp_path / "skiff-before")
    shutil.copy(given or BINARY, path)
    return path


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["asked", "killed"])
def test_a_new_binary_takes_over_running_pods(old, how):
    server = Skiff("--images=host")
    server.binary = old
    server.start()
    try:
        pid, empty = server.pid(), look(server)
        server.kubectl("create", "configmap", "settings", "--from-literal=key=old")
        server.kubectl("apply", "-f", "-", stdin=json.dumps(serving_pod()))
        wait_for(lambda: any(c["type"] == "Ready" and c["status"] == "True"
                             for c in server.pod("serve")["status"].get("conditions", [])))
        job = tfjob("train", ["sh", "-c", COUNT], {"Worker": 2}, successPolicy="AllWorkers")
        assert server.request("POST", "/apis/kubeflow.org/v1/namespaces/default/tfjobs", job)[0] == 201
        for name in PODS:
            server.wait_phase(name, "Running")
        before = {name: identity(server, name) for name in PODS}
        if how == signal.SIGTERM:
            server.run("down", "--keep-pods")
        else:
            os.kill(pid, how)
        wait_for(lambda: not alive(pid))
        os.remove(old)
        server.binary = BINARY
        server.start()
        assert {name: identity(server, name) for name in PODS} == before
        # What the old one started does all that it can do under the new one.
        shell = ("exec", "serve", "--", "sh", "-c")
        assert server.kubectl(*shell, "cat /kept/file; echo $COLOUR").stdout == "kept\nblue\n"
        server.kubectl("patch", "configmap", "settings", "-p", '{"data":{"key":"new"}}')
        wait_for(lambda: server.kubectl(*shell, "cat /settings/key").stdout == "new")
        server.wait_job("tfjobs", "train", "Succeeded")
        for name in PODS[:2]:
            assert said(server, name) == [f"line {i}" for i in range(LINES)]
        assert {name: identity(server, name) for name in PODS} == before, "something was restarted"
        # A run that the new one starts in the old one's sandbox.
        # By number, not by letter: the shell that looks is there as well, and may be 104 where the other is 2.
        server.kubectl("exec", "serve", "--", "sh", "-c", "kill -9 $(cat /proc/*/stat | grep '(sh)' | "
                       "cut -d' ' -f1 | sort -n | head -1)", check=False)
        wait_for(lambda: identity(server, "serve")[3] == 1)
        server.wait_phase("serve", "Running")
        assert server.kubectl("logs", "serve", "--previous").stdout == "up\n"
        pods = [p["metadata"]["name"] for p in server.pods()]
        for name in pods:
            server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
        wait_for(lambda: not server.pods())
        # Other binaries may have other files and rules.
        held = {what: empty[what] for what in ("processes", "mounts", "control groups", "links")}
        wait_for(lambda: not left_behind(held, look(server)))
    finally:
        server.stop()
