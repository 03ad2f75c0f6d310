"""Programs run inside pods: kubectl of both ages, and the Python client."""
import subprocess

import pytest
from kubernetes import client, config
from kubernetes.stream import stream

from skiff import kubectl_path, pod_manifest, wait_for  # noqa: F401
from test_kubectl_day import kubectl_of  # noqa: F401


@pytest.fixture(scope="module")
def box(skiff):
    config.load_kube_config(f"{skiff.data}/kubeconfig")
    client.CoreV1Api().create_namespaced_pod("default", pod_manifest("box", ["sleep", "600"]))
    skiff.wait_phase("box", "Running")
    yield skiff
    skiff.kubectl("delete", "pod", "box", "--grace-period=0", "--force")


def test_output_errors_and_exit_code(box):
    done = box.kubectl("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (done.stdout, done.returncode) == ("out\n", 7)
    assert done.stderr.startswith("err\n")
    assert "command terminated with exit code 7" in done.stderr


def test_input_is_passed_on_and_ends(box):
    text = "line\n" * 20_000
    assert box.kubectl("exec", "-i", "box", "--", "cat", stdin=text).stdout == text
    assert box.kubectl("exec", "-i", "box", "--", "wc", "-l", stdin=text).stdout.strip() == "20000"


def test_python_client(box):
    api = client.CoreV1Api()
    got = stream(api.connect_get_namespaced_pod_exec, "box", "default", command=["sh", "-c", "echo $((6*7))"],
                 stdout=True, stderr=True, stdin=False, tty=False)
    assert got == "42\n"


def test_what_cannot_be(box):
    no = box.kubectl("exec", "nobody", "--", "true", check=False)
    assert no.returncode == 1 and 'pods "nobody" not found' in no.stderr
    no = box.kubectl("exec", "box", "-c", "other", "--", "true", check=False)
    assert no.returncode == 1 and "container other is not valid for pod box" in no.stderr
    no = box.kubectl("exec", "box", "--", "/no/such/program", check=False)
    assert no.returncode != 0 and "no such file" in no.stderr.lower()
