"""kill -9 of Skiff, again and again, while jobs run and clients write."""
import glob
import json
import os
import random
import subprocess
import threading
import time

import pytest

from skiff import BINARY, Skiff, pod_manifest, tfjob, wait_for

COUNTER = "i=0; while [ $i -lt {n} ]; do echo tick $i; i=$((i+1)); sleep 0.02; done"


class Writer(threading.Thread):
    """Creates ConfigMaps until told to stop; remembers those that were acknowledged."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number, self.acknowledged, self.stopping = server, number, [], False

    def run(self):
        n = 0
        while not self.stopping:
            name = f"w{self.number}-{n}"
            n += 1
            try:
                status, _ = self.server.request("POST", "/api/v1/namespaces/default/configmaps",
                                                {"metadata": {"name": name}, "data": {"n": str(n)}})
                if status == 201:
                    self.acknowledged.append(name)
            except OSError:
                time.sleep(0.01)


def names(server, plural):
    return {o["metadata"]["name"]: o for o in server.get(f"/api/v1/namespaces/default/{plural}")["items"]}


def run_rounds(rounds, seconds_between):
    rng = random.Random(rounds)
    server = Skiff("--images=host").start()
    try:
        ticks = rounds * 30 + 400  # the job outlives the rounds, but not by much
        job = tfjob("steady", ["sh", "-c", COUNTER.format(n=ticks)], {"Worker": 2}, successPolicy="AllWorkers")
        assert server.request("POST", "/apis/kubeflow.org/v1/namespaces/default/tfjobs", job)[0] == 201
        for i in range(2):
            server.wait_phase(f"steady-worker-{i}", "Running")
        before = {f"steady-worker-{i}": server.pod(f"steady-worker-{i}") for i in range(2)}
        writers = [Writer(server, i) for i in range(3)]
        for writer in writers:
            writer.start()
        short = 0
        for _ in range(rounds):
            # A job that is born, runs and dies around the crash.
            body = tfjob(f"short-{short}", ["sh", "-c", "echo once"], {"Worker": 2}, successPolicy="AllWorkers")
            try:
                server.request("POST", "/apis/kubeflow.org/v1/namespaces/default/tfjobs", body)
                short += 1
            except OSError:
                pass
            time.sleep(rng.random() * seconds_between)
            server.kill()
            server.start()
        # A slow machine may not have come to much between the crashes.
        wait_for(lambda: sum(len(w.acknowledged) for w in writers) > 100)
        for writer in writers:
            writer.stopping = True
        for writer in writers:
            writer.join()
        check(server, before, writers, short, ticks)
    finally:
        server.stop()


def check(server, before, writers, short, ticks):
    maps = names(server, "configmaps")
    lost = [n for w in writers for n in w.acknowledged if n not in maps]
    assert not lost, f"{len(lost)} acknowledged writes lost, e.g. {lost[:3]}"
    server.wait_job("tfjobs", "steady", "Succeeded", seconds=300)
    for name, old in before.items():
        pod = server.pod(name)
        assert pod["metadata"]["uid"] == old["metadata"]["uid"], "the pod was made anew"
        status = pod["status"]["containerStatuses"][0]
        assert status["restartCount"] == 0, "the container was restarted"
        assert status["containerID"] == old["status"]["containerStatuses"][0]["containerID"]
        log = server.kubectl("logs", name).stdout.splitlines()
        assert log == [f"tick {i}" for i in range(ticks)], f"{name}: {len(log)} of {ticks} lines"
    for n in range(short):
        server.wait_job("tfjobs", f"short-{n}", "Succeeded", seconds=120)
        pods = server.pods(selector=f"training.kubeflow.org/job-name=short-{n}")
        assert sorted(p["metadata"]["name"] for p in pods) == [f"short-{n}-worker-{i}" for i in range(2)]
        for pod in pods:
            assert server.kubectl("logs", pod["metadata"]["name"]).stdout == "once\n"


def test_a_few_crashes():
    run_rounds(5, 0.5)


@pytest.mark.crash
@pytest.mark.timeout(1200)
def test_a_hundred_crashes():
    run_rounds(100, 0.5)


def test_a_follower_goes_on_after_a_crash():
    server = Skiff("--images=host").start()
    try:
        server.kubectl("apply", "-f", "-", stdin=json.dumps(
            tfjob("told", ["sh", "-c", COUNTER.format(n=400)], {"Worker": 1})))
        server.wait_phase("told-worker-0", "Running")
        follower = subprocess.Popen([BINARY, "logs", "tfjob/told", "--all", "-f"], env=server.environment(),
                                    text=True, stdout=subprocess.PIPE)
        time.sleep(1.5)
        server.kill()
        server.start()
        said = follower.communicate(timeout=120)[0].splitlines()
        assert said == [f"[worker-0] tick {i}" for i in range(400)]
    finally:
        server.stop()


def test_pods_survive_a_planned_restart():
    server = Skiff("--images=host").start()
    try:
        server.kubectl("apply", "-f", "-", stdin=json.dumps(
            pod_manifest("stay", ["sh", "-c", COUNTER.format(n=150)])))
        old = server.wait_phase("stay", "Running")
        server.run("down", "--keep-pods")
        server.start()
        server.wait_phase("stay", "Succeeded")
        assert server.pod("stay")["status"]["containerStatuses"][0]["containerID"] == \
            old["status"]["containerStatuses"][0]["containerID"]
        assert len(server.kubectl("logs", "stay").stdout.splitlines()) == 150
    finally:
        server.stop()


def test_down_stops_pods_and_purge_leaves_nothing():
    server = Skiff("--images=host").start()
    try:
        server.kubectl("apply", "-f", "-", stdin=json.dumps(
            pod_manifest("bye", ["sleep", "98765"], terminationGracePeriodSeconds=1)))
        server.wait_phase("bye", "Running")
        assert sleepers(), "the test cannot see the pod's process"
        server.run("down", "--purge")
        wait_for(lambda: not sleepers())
        assert not os.path.exists(server.data)
    finally:
        server.stop()


def sleepers():
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                if f.read() == b"sleep\x0098765\x00":
                    found.append(path)
        except OSError:
            pass
    return found
