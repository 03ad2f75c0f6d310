"""Runs one of examples/ on a real Skiff and follows what it prints.

All examples speak alike: `begins after step N`, `step N/M`, `checkpoint at step N`, `accuracy A`."""
import calendar
import glob
import os
import pathlib
import re
import signal
import subprocess
import time

from goodput import Wait
from replicas import Replicas
from skiff import ROOT, wait_for

PATIENCE = 600  # seconds; machines are busy, and only order and content are judged


def environment(name):
    """The Python environment of tools/envs/NAME.txt; the first time it is downloaded."""
    made = subprocess.run([ROOT / "tools" / "env", name], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def when(stamp):
    """Seconds since 1970 of 2026-01-31T12:00:00.123456789Z."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{part or 0}")


class Training:
    """The job of examples/FRAMEWORK/NAME.yaml, in the Python environment of tools/envs/FRAMEWORK.txt."""

    def __init__(self, skiff, framework, name, plural, leader, stride=1):
        self.skiff, self.name, self.plural = skiff, name, plural
        self.stride = stride  # how many steps there are from a beginning to the first that is told
        folder = ROOT / "examples" / framework
        self.manifest = str(folder / f"{name}.yaml")
        self.leader = f"{name}-{leader}"  # the replica that tells of steps and accuracy
        self.heard = {}
        skiff.run("image", "map", f"examples/{framework}:*", "--venv", environment(framework),
                  "--mount", f"{folder}:/app:ro")
        self.replicas = Replicas(name, skiff.https)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.replicas.stop()
        if error[0]:
            print(self.skiff.run("get", "pods", check=False).stdout)
            for pod in sorted(p["metadata"]["name"] for p in self.skiff.pods()):
                print(f"--- {pod}", *(text for _, text in self.lines(pod)), sep="\n")

    def apply(self):
        self.applied = time.time()
        self.skiff.run("apply", "-f", self.manifest)

    def lines(self, pod):
        """(time, text) of all that a replica has said, before its restarts, too."""
        heard = self.heard.setdefault(pod, {})
        for previous in ("true", "false"):
            status, text = self.skiff.request(
                "GET", f"/api/v1/namespaces/default/pods/{pod}/log?timestamps=true&previous={previous}")
            if status == 200 and isinstance(text, str):
                heard.update({line: None for line in text.splitlines()})
        return [(when(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in sorted(heard) if " " in line]

    def told(self, pattern, pod=None, since=0.0):
        """[(time, number)] of the lines with `pattern`, whose first group is a number."""
        found = [(at, re.search(pattern, text)) for at, text in self.lines(pod or self.leader) if at >= since]
        return [(at, float(m.group(1))) for at, m in found if m]

    def steps(self, since=0.0):
        return self.told(r"\bstep (\d+)/\d+", since=since)

    def checkpoints(self, since=0.0):
        return self.told(r"checkpoint at step (\d+)", since=since)

    def begins(self, since=0.0):
        return self.told(r"begins after step (\d+)", since=since)

    def wait_for(self, what):
        """Waits like skiff.wait_for(), but not for a job that has ended."""
        def reached():
            value = what()
            if not value and self.state() in ("Failed", "Succeeded"):
                value = what()
                assert value, f"the job has {self.state()} too early"
            return value
        return wait_for(reached, PATIENCE, 0.1)

    def state(self):
        conditions = (self.skiff.job(self.plural, self.name) or {}).get("status", {}).get("conditions", [])
        return next((c["type"] for c in reversed(conditions) if c["status"] == "True"), "")

    def wait_first_step(self):
        """How long the user waits from apply to the first step."""
        step = self.wait_for(self.steps)[0]
        assert self.begins()[0][1] == 0 and step[1] == self.stride
        return Wait(self.applied, step[0], self.replicas.last_start(self.applied) - self.applied)

    def wait_recovery(self, killed):
        """How long the user waits from the death of a replica to the next step of a new beginning."""
        began = self.wait_for(lambda: self.begins(since=killed))[-1][0]
        step = self.wait_for(lambda: self.steps(since=began))[0]
        return Wait(killed, step[0], self.replicas.downtime(killed - 0.1))

    def kill_replica(self, name):
        """kill -9 of the replica's process; when that was."""
        process, = self.replicas.alive(f"{self.name}-{name}")
        now = time.time()
        os.kill(process.pid, signal.SIGKILL)
        return now

    def containers(self):
        """Which containers there are, so that one that was started anew shows."""
        return {pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["phase"],
                                          [c["containerID"] for c in pod["status"]["containerStatuses"]])
                for pod in self.skiff.pods()}

    def log_bytes(self):
        """Of all log files, read without Skiff."""
        return sum(os.path.getsize(f) for f in glob.glob(f"{self.skiff.data}/pods/*/logs/**", recursive=True)
                   if pathlib.Path(f).is_file())

    def crash_skiff(self):
        """kill -9 of Skiff in the middle: replicas go on without it, and it finds them again."""
        self.wait_for(self.checkpoints)
        before, begun = self.containers(), len(self.begins())
        processes = {p.pid for p in self.replicas.alive()}
        self.skiff.kill()
        size = self.log_bytes()
        wait_for(lambda: self.log_bytes() > size, PATIENCE)  # the training goes on alone
        self.skiff.start()
        assert self.containers() == before
        assert {p.pid for p in self.replicas.alive()} == processes
        after = time.time()
        self.wait_for(lambda: self.steps(since=after))
        assert len(self.begins()) == begun, "the training began anew"

    def succeed(self, goal):
        self.skiff.wait_job(self.plural, self.name, "Succeeded", seconds=PATIENCE)
        (_, accuracy), = self.told(r"accuracy ([\d.]+)")
        assert accuracy >= goal

    def check_went_on(self, killed, checkpoint):
        """After the kill the training began once more, and from no earlier than `checkpoint`."""
        (_, began), = self.begins(since=killed)[-1:]
        assert began >= checkpoint > 0
        again = [number for _, number in self.steps(since=killed)]
        assert began + self.stride in again, f"it began after step {began} and then did {again[:3]}"
        assert self.stride not in again
