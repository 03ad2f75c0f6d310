"""The Python `kubernetes` client, unmodified."""
import pytest
from kubernetes import client, config, watch

from skiff import pod_manifest, pytorchjob, tfjob, wait_for


@pytest.fixture
def api(skiff):
    config.load_kube_config(f"{skiff.data}/kubeconfig")
    return client


def test_pod_from_create_to_delete(skiff, api):
    core = api.CoreV1Api()
    core.create_namespaced_pod("default", pod_manifest("py", ["sh", "-c", "echo hello; sleep 0.5; echo bye"]))
    phases = []
    for event in watch.Watch().stream(core.list_namespaced_pod, "default",
                                      field_selector="metadata.name=py", timeout_seconds=30):
        phases.append(event["object"].status.phase)
        if phases[-1] == "Succeeded":
            break
    assert phases[0] == "Pending" and phases[-1] == "Succeeded"
    assert core.read_namespaced_pod_log("py", "default") == "hello\nbye\n"
    pod = core.read_namespaced_pod("py", "default")
    assert pod.status.container_statuses[0].state.terminated.exit_code == 0
    core.delete_namespaced_pod("py", "default")
    wait_for(lambda: skiff.pod("py") is None)
    with pytest.raises(api.ApiException) as error:
        core.read_namespaced_pod("py", "default")
    assert error.value.status == 404


def test_log_follow(skiff, api):
    core = api.CoreV1Api()
    core.create_namespaced_pod("default", pod_manifest("py-follow", ["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done"]))
    skiff.wait_phase("py-follow", "Running")
    lines = list(watch.Watch().stream(core.read_namespaced_pod_log, "py-follow", "default"))
    assert lines == ["1", "2", "3"]
    core.delete_namespaced_pod("py-follow", "default")


@pytest.mark.parametrize("plural,body", [
    ("tfjobs", tfjob("py-tf", ["sleep", "0.5"], {"Worker": 2}, successPolicy="AllWorkers")),
    ("pytorchjobs", pytorchjob("py-torch", ["sleep", "0.5"], 1)),
])
def test_jobs(skiff, api, plural, body):
    custom = api.CustomObjectsApi()
    where = ("kubeflow.org", "v1", "default", plural)
    name = body["metadata"]["name"]
    custom.create_namespaced_custom_object(*where, body)
    for event in watch.Watch().stream(custom.list_namespaced_custom_object, *where,
                                      field_selector=f"metadata.name={name}", timeout_seconds=60):
        conditions = event["object"].get("status", {}).get("conditions", [])
        if conditions and conditions[-1]["type"] == "Succeeded":
            break
    states = {c["type"]: c["status"] for c in custom.get_namespaced_custom_object(*where, name)["status"]["conditions"]}
    assert states["Created"] == "True" and states["Succeeded"] == "True" and states.get("Running") != "True"
    custom.delete_namespaced_custom_object(*where, name)
    wait_for(lambda: not skiff.pods(selector=f"training.kubeflow.org/job-name={name}"))


def test_patch_and_conflict(skiff, api):
    core = api.CoreV1Api()
    core.create_namespaced_config_map("default", {"metadata": {"name": "py-map"}, "data": {"a": "1"}})
    first = core.read_namespaced_config_map("py-map", "default")
    core.patch_namespaced_config_map("py-map", "default", {"data": {"b": "2"}})
    first.data["a"] = "9"
    with pytest.raises(api.ApiException) as error:
        core.replace_namespaced_config_map("py-map", "default", first)
    assert error.value.status == 409
    assert core.read_namespaced_config_map("py-map", "default").data == {"a": "1", "b": "2"}
    core.delete_namespaced_config_map("py-map", "default")
