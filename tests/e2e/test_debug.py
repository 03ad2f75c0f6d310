"""Ephemeral containers: kubectl debug into a pod that runs."""
import json
import os
import pty
import subprocess

import pytest

from skiff import ROOT, wait_for


@pytest.fixture(scope="module")
def kubectl():
    folder = subprocess.run([ROOT / "tools" / "cluster", "kubectl"], capture_output=True, text=True,
                            check=True).stdout.strip()
    return folder + "/kubectl"


@pytest.fixture
def box(skiff):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "box"},
           "spec": {"terminationGracePeriodSeconds": 0, "containers": [
               {"name": "main", "image": "any", "command": ["sleep", "600"],
                "ports": [{"containerPort": 80}]}]}}
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    skiff.wait_phase("box", "Running")
    yield "box"
    skiff.kubectl("delete", "pod", "box", "--now")


def state(skiff, name):
    statuses = skiff.pod("box")["status"].get("ephemeralContainerStatuses", [])
    return next((s["state"] for s in statuses if s["name"] == name), {})


def debug(skiff, kubectl, *words):
    return subprocess.run([kubectl, "debug", *words], env=skiff.environment(), capture_output=True,
                          text=True, timeout=60, check=True)


def test_it_runs_beside_the_others_and_ends_alone(skiff, kubectl, box):
    debug(skiff, kubectl, "box", "--image=any", "--container=look", "--target=main", "--", "sh", "-c",
          "echo looked; exit 3")
    ended = wait_for(lambda: state(skiff, "look").get("terminated"))
    assert ended["exitCode"] == 3
    assert skiff.kubectl("logs", "box", "-c", "look").stdout == "looked\n"
    pod = skiff.pod("box")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert len(pod["status"]["containerStatuses"]) == 1


def test_it_shares_the_pods_network_and_can_be_entered(skiff, kubectl, box):
    debug(skiff, kubectl, "box", "--image=any", "--container=stay", "--", "sleep", "600")
    wait_for(lambda: state(skiff, "stay").get("running"))
    said = skiff.kubectl("exec", "box", "-c", "stay", "--", "sh", "-c", "hostname; cat /proc/net/fib_trie").stdout
    assert said.splitlines()[0] == "box"
    assert said == skiff.kubectl("exec", "box", "-c", "main", "--", "sh", "-c",
                                 "hostname; cat /proc/net/fib_trie").stdout


def test_debug_with_a_terminal(skiff, kubectl, box):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([kubectl, "debug", "-it", "box", "--image=any", "--container=term",
                                "--", "sh", "-c", "read line; echo got $line"],
                               env=skiff.environment(), stdin=theirs, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    wait_for(lambda: state(skiff, "term").get("running"))
    os.write(ours, b"hello\n")
    out, _ = process.communicate(timeout=60)
    assert b"got hello" in out, out
    assert process.returncode == 0
    os.close(ours)
    os.close(theirs)
    assert wait_for(lambda: state(skiff, "term").get("terminated"))["exitCode"] == 0
