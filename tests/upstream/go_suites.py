#!/usr/bin/env python3
"""Upstream's own end-to-end tests in Go, unmodified, on Skiff: those of the MPI Operator and of Kubeflow Trainer.

    tests/upstream/go_suites.py [--only NAME] [--focus REGEX] [--verbose]

They are built from what upstream released, fetched through the Go module proxy (tools/module-test). Their images are
mapped to this machine: to its Open MPI and MPICH, and to programs of the same names that end well at once. What mpirun
starts is tests/upstream/meet.py, which fails unless it is one of the processes that mpirun speaks of. What is left out
stands in `left_out` of each suite with the reason, and is printed."""
import argparse
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "e2e"))
from skiff import Skiff  # noqa: E402

PATIENCE_SECONDS = 240


class Suite:
    name, module, version, package = "", "", "", "test/e2e"
    left_out = {}  # part of a test's name -> why
    environment = {}
    plain = "-ginkgo.no-color"
    least = 0  # tests that pass where all are run: a suite that runs fewer has lost some

    def __init__(self, folder):
        self.folder = folder
        self.server = Skiff()

    def map(self, image, *more, path=""):
        self.server.run("image", "map", image, "--host", "--mount", f"{self.folder}:{self.folder}:ro", "--env",
                        f"PATH={path}{os.environ['PATH']}", *more)

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def prepare(self):
        """Programs, and the mappings that name them."""

    def beside(self, stop):
        """What goes on while the tests run."""

    def run(self, focus):
        """What the tests say, and the exit code of their program."""
        binary = subprocess.run([ROOT / "tools/module-test", self.module, self.version, self.package], check=True,
                                stdout=subprocess.PIPE, text=True).stdout.strip()
        self.server.start()
        stop = threading.Event()
        helper = threading.Thread(target=self.beside, args=(stop,))
        try:
            self.prepare()
            helper.start()
            environment = dict(os.environ, KUBECONFIG=f"{self.server.data}/kubeconfig", **self.environment)
            done = subprocess.run([binary, "-ginkgo.v", self.plain, f"-ginkgo.focus={focus}",
                                   f"-ginkgo.skip={'|'.join(self.left_out) or '^$'}"], cwd=self.folder,
                                  env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=PATIENCE_SECONDS)
            return done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            there = self.server.kubectl("get", "pods,events", "-A", check=False).stdout
            return f"{(late.stdout or b'').decode(errors='replace')}\n{there}\nnot done in {PATIENCE_SECONDS} s", 1
        finally:
            stop.set()
            if helper.ident:
                helper.join()
            self.server.stop()


class MpiOperator(Suite):
    name, module, version = "mpi-operator", "github.com/kubeflow/mpi-operator", "v0.8.2"
    environment = {"USE_EXISTING_CLUSTER": "true", "USE_EXISTING_OPERATOR": "true"}
    plain = "-ginkgo.noColor"  # it uses Ginkgo 1
    least = 7
    left_out = {
        "with Intel Implementation": "Debian has no Intel MPI",
        "with scheduler-plugins|with volcano-scheduler|with custom cluster-domain":
            "they restart the operator's Deployment with other flags; here the operator is part of Skiff",
        "has malformed command":
            "it wants mpirun to refuse to run as root; root of a pod may run it here (docs/differences.md)",
        "suspended on creation":
            "it updates the job that it created without reading it again, and the job has its first status by then",
    }

    def prepare(self):
        shutil.copy(HERE / "meet.py", self.folder)
        self.program(self.folder / "home/pi", f"exec python3 -u {self.folder}/meet.py mpi")
        for implementation in ("openmpi", "mpich"):
            programs = self.folder / implementation
            self.program(programs / "mpirun", f'exec mpirun.{implementation} "$@"')
            self.map(f"mpioperator/mpi-pi:{implementation}", "--mount", f"{self.folder}/home:/home/mpiuser:ro",
                     "--", "env", path=f"{programs}:")


class Trainer(Suite):
    name, module, version = "trainer", "github.com/kubeflow/trainer/v2", "v2.3.0"
    least = 10
    left_out = {
        "Flux runtime reference": "Skiff does not run Flux",
        "runtime status endpoint": "Skiff has no status server",
    }

    def prepare(self):
        for image in ("pytorch/pytorch:*", "nvcr.io/nvidia/jax:*", "ghcr.io/kubeflow/trainer/xgboost-runtime*"):
            self.map(image, "--entrypoint", "true")
        self.program(self.folder / "bin/mpirun", 'exec mpirun.openmpi "$@"')
        self.map("ghcr.io/kubeflow/trainer/deepspeed-runtime*", path=f"{self.folder}/bin:")
        self.map("busybox")
        self.program(self.folder / "pause/pause", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")
        self.map("registry.k8s.io/pause:*", "--mount", f"{self.folder}/pause/pause:/pause:ro")
        self.set_closed(True)

    def beside(self, stop):
        """Upstream's tests look for jobs whose pods are there and not ready, as they are while large images are
        pulled. Nothing is pulled here, so the node is open to pods only once they have waited for a while."""
        while not stop.wait(0.2):
            # Times of creation are whole seconds: these have waited for two at least.
            late = [pod for pod in self.unplaced() if self.age(pod) > 3]
            if not late:
                continue
            self.set_closed(False)
            names = {pod["metadata"]["uid"] for pod in late}
            # Closed again at once: the next test may begin as soon as these pods have ended.
            while names & {pod["metadata"]["uid"] for pod in self.unplaced()} and not stop.wait(0.01):
                pass
            self.set_closed(True)

    def unplaced(self):
        return [pod for pod in self.server.get("/api/v1/pods")["items"] if not pod["spec"].get("nodeName")]

    @staticmethod
    def age(pod):
        born = datetime.datetime.fromisoformat(pod["metadata"]["creationTimestamp"].replace("Z", "+00:00"))
        return (datetime.datetime.now(datetime.timezone.utc) - born).total_seconds()

    def set_closed(self, closed):
        node = self.server.get("/api/v1/nodes")["items"][0]["metadata"]["name"]
        status, answer = self.server.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": closed}},
                                             headers={"Content-Type": "application/merge-patch+json"})
        assert status == 200, answer


SUITES = {suite.name: suite for suite in (MpiOperator, Trainer)}


def run(suite, focus):
    with tempfile.TemporaryDirectory(prefix="skiff-upstream-") as scratch:
        os.chmod(scratch, 0o755)
        return suite(pathlib.Path(scratch)).run(focus)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=list(SUITES))
    parser.add_argument("--focus", default="", help="part of a test's name")
    parser.add_argument("--verbose", action="store_true", help="show what the tests say also when they pass")
    options = parser.parse_args()
    good = bad = 0
    chosen = [suite for suite in SUITES.values() if options.only in (None, suite.name)]
    for suite in chosen:
        output, code = run(suite, options.focus)
        counts = re.search(r"(\d+) Passed \| (\d+) Failed", output)
        passed, failed = (int(n) for n in counts.groups()) if counts else (0, 1)
        if code and not failed:
            failed = 1
            output += f"\nthe test program ended with code {code}"
        if not options.focus and passed + failed < suite.least:
            output += f"\n{passed + failed} tests ran, and there are {suite.least}"
            failed += suite.least - passed - failed
        if options.verbose or failed or not passed:
            print(output)
        for what, why in suite.left_out.items():
            print(f"left out of {suite.name}: {what}: {why}")
        print(f"{suite.name} {suite.version}: {passed} passed, {failed} failed", flush=True)
        good, bad = good + passed, bad + failed
    print(f"{good} of {good + bad} upstream tests passed")
    return 0 if good and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
