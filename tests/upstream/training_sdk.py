#!/usr/bin/env python3
"""Upstream's own end-to-end tests of the Training Operator, unmodified, on Skiff.

    tests/upstream/training_sdk.py [--gang none volcano scheduler-plugins] [--only WORD] [--json FILE]

They come with the operator's sources through the Go module proxy; what they import is `kubeflow-training`
from PyPI. Their images are mapped to tests/upstream/meet.py, which checks its place in the job and meets its
peers over the network; that real frameworks train is for `make test-frameworks`. One pytest runs for each of their
files, at the same time, because most of their time is spent asleep."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "e2e"))
from skiff import Skiff  # noqa: E402
from stand_ins import make_programs, map_images  # noqa: E402

MODULE, VERSION = "github.com/kubeflow/training-operator", "v1.9.4"
# Requests of their jobs add up to more than a small machine has; what runs here sleeps.
CAPACITY = ("--capacity", "cpu=32", "--capacity", f"memory={64 << 30}")
NAMESPACES = {"none": "default", "volcano": "with-volcano", "scheduler-plugins": "with-scheduler-plugins"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Result:
    def __init__(self, gang, file, case):
        self.name = f"{file}::{case.get('name')}" + ("" if gang == "none" else f" [{gang}]")
        self.seconds = float(case.get("time", 0))
        bad = [child for child in case if child.tag in ("failure", "error")]
        self.skipped = case.find("skipped") is not None
        self.passed = not bad and not self.skipped
        self.text = "\n".join(child.text or "" for child in bad)


def run_file(python, suite, kubeconfig, gang, file):
    report = suite / f"{gang}-{file}.xml"
    environment = dict(os.environ, KUBECONFIG=kubeconfig, GANG_SCHEDULER_NAME=gang, PYTHONDONTWRITEBYTECODE="1")
    environment.pop("JAX_JOB_IMAGE", None)
    done = subprocess.run([python, "-m", "pytest", f"test/e2e/{file}", f"--namespace={NAMESPACES[gang]}", "-q",
                           "-p", "no:cacheprovider", f"--junitxml={report}"], cwd=suite, env=environment,
                          capture_output=True, text=True, timeout=1200)
    if not report.exists():
        raise RuntimeError(f"{file}: pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
    results = [Result(gang, file, case) for case in xml.parse(report).getroot().iter("testcase")]
    return [result for result in results if not result.skipped]


def kind_of(file):
    return re.fullmatch(r"test_e2e_(\w+)\.py", file).group(1)


def served(server):
    return {resource["singularName"] for resource in server.get("/apis/kubeflow.org/v1")["resources"]}


def run(server, suite, gangs, files):
    python = output(ROOT / "tools/env", "e2e") + "/bin/python"
    kubeconfig = f"{server.data}/kubeconfig"
    for gang in gangs:
        if NAMESPACES[gang] != "default":
            server.kubectl("create", "namespace", NAMESPACES[gang])
    with concurrent.futures.ThreadPoolExecutor(len(files) * len(gangs)) as pool:
        jobs = [pool.submit(run_file, python, suite, kubeconfig, gang, file) for gang in gangs for file in files]
        return [result for job in jobs for result in job.result()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gang", nargs="+", default=list(NAMESPACES), choices=list(NAMESPACES))
    parser.add_argument("--only", default="", help="part of a file's name")
    parser.add_argument("--json")
    options = parser.parse_args()
    module = pathlib.Path(output(ROOT / "tools/module", MODULE, VERSION))
    with tempfile.TemporaryDirectory(prefix="skiff-upstream-") as scratch:
        suite, programs = pathlib.Path(scratch, "suite"), pathlib.Path(scratch, "programs")
        os.chmod(scratch, 0o755)
        # Only the tests: beside them lie the SDK's sources, which would hide the released package.
        suite.mkdir()
        output("cp", "-r", "--no-preserve=mode", module / "sdk/python/test", suite)
        make_programs(programs)
        files = sorted(path.name for path in (suite / "test/e2e").glob("test_*.py")
                       if options.only in path.name)
        server = Skiff(*CAPACITY).start()
        try:
            map_images(server, programs)
            kinds = served(server)
            results = run(server, suite, options.gang, [file for file in files if kind_of(file) in kinds])
        finally:
            server.stop()
    for result in sorted(results, key=lambda r: (r.passed, r.name)):
        if result.text:
            print(result.text)
        print(f"{'passed' if result.passed else 'FAILED'} {result.seconds:6.1f} s  {result.name}")
    for file in files:
        if kind_of(file) not in kinds:
            print(f"left out         {file}: this Skiff has no {kind_of(file)}")
    good = sum(result.passed for result in results)
    print(f"{good} of {len(results)} upstream tests passed")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({r.name: r.passed for r in results}, indent=1))
    return 0 if results and good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
