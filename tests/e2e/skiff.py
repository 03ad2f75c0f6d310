"""Starts and drives a real Skiff for the tests."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("SKIFF_BIN", str(ROOT / "build" / "skiff"))
KUBECTL = None


def kubectl_path():
    global KUBECTL
    if KUBECTL is None:
        KUBECTL = subprocess.run([ROOT / "tools" / "kubectl"], capture_output=True, text=True,
                                 check=True).stdout.strip()
    return KUBECTL


GIVEN = set()


def free_port():
    """One that nobody listens on and that was not given before. Below those that the kernel gives to connections: one
    of these could take it before its server listens, or while that is being restarted. And below node ports."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in GIVEN:
            GIVEN.add(port)
            return port


def wait_for(what, seconds=60, every=0.05):
    """The first true value of `what()`; fails with its last value after `seconds`, which cost nothing otherwise and
    are meant for the slowest machine."""
    end = time.monotonic() + seconds
    value = what()
    while not value:
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what.__name__ if hasattr(what, '__name__') else what}; last: {value!r}")
        time.sleep(every)
        value = what()
    return value


class Skiff:
    """One Skiff with its own data folder and ports."""

    def __init__(self, *up_options):
        self.data = tempfile.mkdtemp(prefix="skiff-e2e-")
        self.binary = BINARY
        self.https, self.http = free_port(), free_port()
        self.up_options = list(up_options)
        self.home = tempfile.mkdtemp(prefix="skiff-e2e-home-")
        self.reports = tempfile.mkdtemp(prefix="skiff-e2e-reports-")

    def environment(self):
        env = dict(os.environ, SKIFF_HOME=self.data, KUBECONFIG=f"{self.data}/kubeconfig",
                   HOME=self.home, NO_COLOR="1")
        # The shims of pods have no stderr, so a sanitized binary writes its reports to files.
        for options in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            given = env.get(options)
            env[options] = f"{given + ':' if given else ''}log_path={self.reports}/report"
        # What a sanitizer keeps of freed memory, 256 MB else, is none of Skiff's, and tests measure that.
        env["ASAN_OPTIONS"] += ":quarantine_size_mb=32"
        return env

    def sanitizer_reports(self):
        """What sanitizers said of the server, its shims and the commands; empty is good."""
        files = [pathlib.Path(self.data) / "skiff.log", *pathlib.Path(self.reports).iterdir()]
        texts = [file.read_text(errors="replace") for file in files if file.is_file()]
        return [text[-20000:] for text in texts
                if re.search(r"(ERROR|WARNING): \w+Sanitizer|runtime error:", text)]

    def start(self):
        self.run("up", "-d", "--https", f"127.0.0.1:{self.https}", "--http", f"127.0.0.1:{self.http}",
                 *self.up_options)
        return self

    def pid(self):
        return int((pathlib.Path(self.data) / "lock").read_text())

    def kill(self):
        """kill -9, and wait until the process is really gone."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), every=0.002)

    def stop(self):
        self.run("down", check=False)
        reports = self.sanitizer_reports()
        for folder in (self.data, self.home, self.reports):
            shutil.rmtree(folder, ignore_errors=True)
        assert not reports, "\n".join(reports)

    def run(self, *arguments, check=True, stdin=None, timeout=120):
        done = subprocess.run([self.binary, *arguments], env=self.environment(), input=stdin,
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode:
            raise AssertionError(f"skiff {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *arguments, check=True, stdin=None, timeout=120):
        done = subprocess.run([kubectl_path(), *arguments], env=self.environment(), input=stdin,
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kubectl_popen(self, *arguments):
        return subprocess.Popen([kubectl_path(), *arguments], env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def token(self):
        return self.run("token").stdout.strip()

    def request(self, method, path, body=None, token=None, headers=None):
        """(status, JSON or text) over the plain listener."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def get(self, path):
        status, body = self.request("GET", path)
        return body if status == 200 else None

    def pod(self, name, ns="default"):
        return self.get(f"/api/v1/namespaces/{ns}/pods/{name}")

    def pods(self, ns="default", selector=""):
        query = f"?labelSelector={selector}" if selector else ""
        return self.get(f"/api/v1/namespaces/{ns}/pods{query}")["items"]

    def job(self, plural, name, ns="default"):
        return self.get(f"/apis/kubeflow.org/v1/namespaces/{ns}/{plural}/{name}")

    def wait_phase(self, name, phase, ns="default", seconds=60):
        def reached():
            pod = self.pod(name, ns)
            return pod and pod["status"].get("phase") == phase and pod
        return wait_for(reached, seconds)

    def wait_job(self, plural, name, state, ns="default", seconds=60):
        def reached():
            job = self.job(plural, name, ns)
            conditions = (job or {}).get("status", {}).get("conditions", [])
            return any(c["type"] == state and c["status"] == "True" for c in conditions) and job
        return wait_for(reached, seconds)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pod_manifest(name, command, **more):
    spec = {"containers": [{"name": "main", "image": "skiff.dev/host", "command": command}],
            "restartPolicy": "Never"}
    spec.update(more)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def tfjob(name, command, roles, **spec):
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "skiff.dev/host", "command": command}]}}
    replicas = {role: {"replicas": n, "restartPolicy": "OnFailure", "template": template}
                for role, n in roles.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"tfReplicaSpecs": replicas, **spec}}


def pytorchjob(name, command, workers, **spec):
    template = {"spec": {"containers": [{"name": "pytorch", "image": "skiff.dev/host", "command": command}]}}
    replicas = {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "restartPolicy": "OnFailure", "template": template}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"pytorchReplicaSpecs": replicas, **spec}}
