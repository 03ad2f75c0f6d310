"""Every example is what it says: manifests apply without a word of warning, and plain ones train to their goal."""
import re
import subprocess

import pytest

from skiff import ROOT, Skiff

PLAIN = ROOT / "examples" / "plain"
MANIFESTS = sorted((ROOT / "examples").rglob("*.yaml"))
# What a page shows as a whole object, by page and position.
SHOWN = {f"{page.relative_to(ROOT)}#{i}": text
         for page in sorted((ROOT / "docs").rglob("*.md"))
         for i, text in enumerate(re.findall(r"```yaml\n(apiVersion:.*?)```", page.read_text(), re.S))}
# Kind, name, the pod that tells, what its last line of progress says.
JOBS = {
    "tfjob": ("plain-tf", "chief-0", "step 100/100"),
    "pytorchjob": ("plain-pytorch", "master-0", "step 100/100"),
    "jaxjob": ("plain-jax", "worker-0", "step 100/100"),
    "paddlejob": ("plain-paddle", "worker-0", "step 100/100"),
    "xgboostjob": ("plain-xgboost", "master-0", "round 60/60"),
}


@pytest.fixture(scope="module")
def server():
    server = Skiff().start()
    server.run("image", "map", "example/*", "--host", "--mount", f"{PLAIN}:/programs:ro")
    yield server
    server.stop()


def applies(server, path):
    done = server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", path)
    assert done.stderr == "" and "dry run" in done.stdout


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_a_manifest_applies(server, path):
    applies(server, str(path))


@pytest.mark.parametrize("page", list(SHOWN))
def test_what_a_page_shows_applies(server, manifest, page):
    applies(server, manifest(SHOWN[page], "shown.yaml"))


@pytest.mark.parametrize("kind", list(JOBS))
def test_a_plain_example_trains(server, kind):
    name, pod, said = JOBS[kind]
    server.run("apply", "-f", str(PLAIN / f"{kind}.yaml"))
    # At once, as its page says: the pods have not started yet.
    assert said in server.run("logs", f"{kind}/{name}", "-f").stdout
    server.run("wait", f"{kind}/{name}", "--for=condition=Succeeded", "--timeout=60s")
    assert said in server.run("logs", f"{name}-{pod}").stdout
    server.run("delete", kind, name)


def test_logs_of_a_pod_without_a_place_are_waited_for(server, manifest):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"},
           "spec": {"restartPolicy": "Never", "schedulingGates": [{"name": "example.com/not-yet"}],
                    "containers": [{"name": "main", "image": "example/plain:1", "command": ["echo", "at last"]}]}}
    server.kubectl("create", "-f", manifest(pod))
    follower = subprocess.Popen([server.binary, "logs", "late", "-f"], env=server.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        # The hint comes while it waits, so that it did wait.
        assert "late has not started yet" in follower.stderr.readline()
        server.kubectl("patch", "pod", "late", "--type=json",
                       "-p", '[{"op": "remove", "path": "/spec/schedulingGates"}]')
        assert follower.communicate(timeout=60)[0] == "at last\n"
        assert follower.returncode == 0
    finally:
        if follower.poll() is None:
            follower.kill()
            follower.wait()


def test_every_plain_manifest_is_run():
    assert sorted(path.stem for path in PLAIN.glob("*.yaml")) == sorted(JOBS)
