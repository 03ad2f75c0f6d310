#!/usr/bin/env python3
"""Skiff's training controllers beside the Go training-operator 1.8.1, same machine, same kube-apiserver and etcd.

    bench/beside_operator.py [JOBS]     how many of the long run, 1,000 where it is not given

Each side gets a fresh API server, the same jobs and the same stand-in for eight nodes (bench/operator_load.cc); neither
is counted. CPU is that of the controllers' process alone, from the first job until it rests after the last; memory is
the most it ever had resident."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from control_plane import TOKEN, ControlPlane, free_port  # noqa: E402
from skiff import Skiff  # noqa: E402

LOAD = ROOT / "build" / "release" / "bench" / "skiff_operator_load"
# Where the operator looks for them; it has no option for it.
CERTIFICATES = pathlib.Path("/tmp/k8s-webhook-server/serving-certs")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
FEW = 100


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def wait_for(what, ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class GoOperator:
    """The operator as a process of this machine. Its validating webhooks are not registered: an API server on loopback
    cannot find its service, and they would only cost it more."""

    def __init__(self, plane, program):
        self.plane = plane
        self.folder = pathlib.Path(subprocess.run([ROOT / "tools" / "operator"], stdout=subprocess.PIPE, text=True,
                                                  check=True).stdout.strip())
        self.program = self.folder / program

    def make(self, path, body):
        status, answer = self.plane.request("POST", path, body)
        if status != 201:
            raise SystemExit(f"POST {path}: {status} {answer}")

    def start(self):
        kubectl = subprocess.run([ROOT / "tools" / "kubectl"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.strip()
        subprocess.run([kubectl, "--kubeconfig", self.plane.kubeconfig, "create", "-k", self.folder / "crds"],
                       stdout=subprocess.DEVNULL, check=True)
        self.make("/api/v1/namespaces", {"metadata": {"name": "kubeflow"}})
        self.make("/api/v1/namespaces/kubeflow/secrets", {"metadata": {"name": "training-operator-webhook-cert"}})
        # It puts its certificate here before it starts; the rule matches nothing.
        self.make(WEBHOOKS, {"metadata": {"name": "validator.training-operator.kubeflow.org"}, "webhooks": [
            {"name": "none.training-operator.kubeflow.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
             "failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/"},
             "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nones"],
                        "operations": ["CREATE"]}]}]})
        health = free_port()
        self.log = open(self.plane.folder / "operator.log", "wb")
        self.process = subprocess.Popen(
            [self.program, "--kubeconfig", self.plane.kubeconfig, "--metrics-bind-address", "0",
             "--health-probe-bind-address", f"127.0.0.1:{health}", "--webhook-server-port", str(free_port())],
            stdout=self.log, stderr=self.log)
        self.mount_certificates()
        wait_for("the operator watches TFJobs", self.watching, 120)
        return self

    def mount_certificates(self):
        """As a kubelet would from the secret that the operator fills."""
        import base64
        path = "/api/v1/namespaces/kubeflow/secrets/training-operator-webhook-cert"
        wait_for("the operator's certificates", lambda: self.plane.request("GET", path)[1].get("data"))
        CERTIFICATES.mkdir(parents=True, exist_ok=True)
        for name, text in self.plane.request("GET", path)[1]["data"].items():
            (CERTIFICATES / name).write_bytes(base64.b64decode(text))

    def watching(self):
        if self.process.poll() is not None:
            raise SystemExit("the operator ended: " + pathlib.Path(self.log.name).read_text()[-3000:])
        return "tfjob-controller\", \"worker count\"" in pathlib.Path(self.log.name).read_text(errors="replace")

    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(CERTIFICATES.parent, ignore_errors=True)


class OurControllers:
    def __init__(self, plane):
        self.skiff = Skiff("--kubeconfig", plane.kubeconfig)

    def start(self):
        self.skiff.start()
        return self

    def pid(self):
        return self.skiff.pid()

    def stop(self):
        self.skiff.stop()


def events_in(plane, namespace):
    """How many Events the namespace has."""
    listed = plane.request("GET", f"/api/v1/namespaces/{namespace}/events?limit=1")[1]
    return len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)


def rest(plane, namespace):
    """Waits for what is still to be done when the jobs have ended: events. How many there are, and the seconds until
    the last of them."""
    start = last = time.monotonic()
    count = events_in(plane, namespace)
    while time.monotonic() - last < 3:
        time.sleep(0.25)
        now = events_in(plane, namespace)
        if now != count:
            count, last = now, time.monotonic()
    return count, last - start


def load(plane, controllers, namespace, jobs):
    """Seconds and CPU seconds of these jobs, and the most memory since the start."""
    before = cpu_seconds(controllers.pid())
    done = subprocess.run([LOAD, str(plane.port), TOKEN, namespace, str(jobs)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("the load did not come to its end")
    times = json.loads(done.stdout)
    events, late = rest(plane, namespace)
    return {**times, "events": events, "events_s": times["all_s"] + late, "cpu_s": cpu_seconds(controllers.pid()) - before,
            "peak_mb": peak_mb(controllers.pid())}


def side(make, runs):
    """What each run of [(name, jobs)] gave, one after another on one fresh server."""
    plane = ControlPlane().start()
    try:
        controllers = make(plane).start()
        try:
            time.sleep(2)
            return {name: load(plane, controllers, name, jobs) for name, jobs in runs}
        finally:
            controllers.stop()
    finally:
        plane.stop()


def row(what, ours, theirs, ratio, goal="", met=True):
    print(f"{what:<56} {ours:>10} {theirs:>12} {ratio:>8}   {goal}{'' if met else '  MISSED'}", flush=True)


def main():
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    limited = side(lambda plane: GoOperator(plane, "training-operator"), [("few", FEW)])["few"]
    raised = side(lambda plane: GoOperator(plane, "training-operator-unlimited"), [("few", FEW), ("many", many)])
    ours = side(OurControllers, [("few", FEW), ("many", many)])
    scale = 1000 / many

    print("The Go operator's client limits itself to 20 requests/s (30 at once), and 1.8.1 has no option for it. "
          "\"Raised\" is\nthe same source built with 5,000 instead. Eight connections stand in for the nodes of both.")
    row("what", "Skiff", "Go operator", "ratio", "goal")
    few = ours["few"]
    ratio = limited["all_s"] / few["all_s"]
    row(f"{FEW} TFJobs of 2 workers until all have succeeded, s", f"{few['all_s']:.2f}", f"{limited['all_s']:.2f}",
        f"{ratio:.1f}x", "10x", ratio >= 10)
    row("  its limit raised", "", f"{raised['few']['all_s']:.2f}", f"{raised['few']['all_s'] / few['all_s']:.1f}x")
    row("  and until the last of their events is written, s", f"{few['events_s']:.2f}", f"{limited['events_s']:.2f}",
        f"{limited['events_s'] / few['events_s']:.1f}x")
    row("    events", few["events"], limited["events"], "")
    row("  until all pods exist, s", f"{few['pods_s']:.2f}", f"{limited['pods_s']:.2f}",
        f"{limited['pods_s'] / few['pods_s']:.1f}x")
    row("    its limit raised", "", f"{raised['few']['pods_s']:.2f}",
        f"{raised['few']['pods_s'] / few['pods_s']:.1f}x")
    a, b = ours["many"], raised["many"]
    row(f"CPU s for 1,000 TFJobs (from {many}; its limit raised)", f"{a['cpu_s'] * scale:.2f}",
        f"{b['cpu_s'] * scale:.2f}", f"{a['cpu_s'] / b['cpu_s']:.2f}", "1/3", a["cpu_s"] * 3 <= b["cpu_s"])
    row(f"  as it is released (from {FEW})", f"{few['cpu_s'] * 1000 / FEW:.2f}", f"{limited['cpu_s'] * 1000 / FEW:.2f}",
        f"{few['cpu_s'] / limited['cpu_s']:.2f}", "1/3", few["cpu_s"] * 3 <= limited["cpu_s"])
    row(f"memory at most, MB, after {FEW + many} TFJobs", f"{a['peak_mb']:.0f}", f"{b['peak_mb']:.0f}",
        f"{a['peak_mb'] / b['peak_mb']:.2f}", "1/2", a["peak_mb"] * 2 <= b["peak_mb"])
    row(f"  after {FEW}, as it is released", f"{few['peak_mb']:.0f}", f"{limited['peak_mb']:.0f}",
        f"{few['peak_mb'] / limited['peak_mb']:.2f}", "1/2", few["peak_mb"] * 2 <= limited["peak_mb"])
    row(f"{many} TFJobs until all have succeeded, s (its limit raised)", f"{a['all_s']:.2f}", f"{b['all_s']:.2f}",
        f"{b['all_s'] / a['all_s']:.1f}x")


if __name__ == "__main__":
    main()
