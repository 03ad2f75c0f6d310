"""Pods that cannot run as they are written: what is told, by whom, and that it names the culprit."""
import json
import os

import pytest
from skiff import Skiff, pod_manifest, wait_for

NS = "/api/v1/namespaces/default"


def pod(name, command=("true",), image="skiff.dev/host", policy=None, volumes=(), mounts=(), context=None, **container):
    made = pod_manifest(name, list(command), volumes=list(volumes))
    made["spec"]["containers"][0] |= {"image": image, "volumeMounts": list(mounts), **container}
    if policy:
        made["spec"]["containers"][0]["imagePullPolicy"] = policy
    if context:
        made["spec"]["containers"][0]["securityContext"] = context
    return made


def volume(**source):
    return {"volumes": [{"name": "v", **source}], "mounts": [{"name": "v", "mountPath": "/v"}]}


def env(**source):
    return {"env": [{"name": "A", "valueFrom": source}]}


# name: (pod, reason of the waiting or ended container, words of its message, reason of the event, its words)
CASES = {
    "missing-image": (
        dict(image="localhost:1/no/such:1", policy="IfNotPresent"),
        {"ErrImagePull", "ImagePullBackOff"}, ["localhost:1/no/such:1"], "Failed", ["localhost:1/no/such:1"]),
    "never-pull": (
        dict(image="localhost:1/no/such:1", policy="Never"),
        {"ErrImageNeverPull"}, ["localhost:1/no/such:1", "not present", "pull policy of Never"], "Failed",
        ["ErrImageNeverPull"]),
    "bad-image-name": (
        dict(image="Not A Name"), {"InvalidImageName"}, ["Not A Name"], "InspectFailed", ["Not A Name"]),
    "missing-config-map": (
        env(configMapKeyRef={"name": "nowhere", "key": "k"}),
        {"CreateContainerConfigError"}, ["configmap \"nowhere\" not found"], "Failed", ["nowhere"]),
    "missing-secret": (
        env(secretKeyRef={"name": "nowhere", "key": "k"}),
        {"CreateContainerConfigError"}, ["secret \"nowhere\" not found"], "Failed", ["nowhere"]),
    "missing-key": (
        env(configMapKeyRef={"name": "present", "key": "nokey"}),
        {"CreateContainerConfigError"}, ["couldn't find key nokey in ConfigMap default/present"], "Failed", ["nokey"]),
    "missing-env-from": (
        dict(envFrom=[{"secretRef": {"name": "nowhere"}}]),
        {"CreateContainerConfigError"}, ["secret \"nowhere\" not found"], "Failed", ["nowhere"]),
    "missing-command": (
        dict(command=["/no/such/program"]),
        {"StartError"}, ["/no/such/program", "no such file"], "Failed", ["/no/such/program"]),
    "missing-command-in-path": (
        dict(command=["no-such-program"]), {"StartError"}, ["no-such-program", "PATH"], "Failed", ["no-such-program"]),
    "missing-working-dir": (
        dict(workingDir="/no/such/folder"), {"StartError"}, ["/no/such/folder"], "Failed", ["/no/such/folder"]),
    "not-a-program": (
        dict(command=["/etc/passwd"]), {"StartError"}, ["/etc/passwd", "Permission denied"], "Failed", ["/etc/passwd"]),
    "missing-host-path": (
        volume(hostPath={"path": "/no/such/folder", "type": "Directory"}),
        {"ContainerCreating"}, [], "FailedMount", ["there is no folder /no/such/folder on this machine"]),
    "host-path-of-another-type": (
        volume(hostPath={"path": "/etc", "type": "File"}),
        {"ContainerCreating"}, [], "FailedMount", ["there is no file /etc on this machine"]),
    "missing-volume-secret": (
        volume(secret={"secretName": "nowhere"}),
        {"ContainerCreating"}, [], "FailedMount", ["secret \"nowhere\" not found"]),
    "missing-volume-map": (
        volume(configMap={"name": "nowhere"}),
        {"ContainerCreating"}, [], "FailedMount", ["configmap \"nowhere\" not found"]),
    "missing-volume-key": (
        volume(configMap={"name": "present", "items": [{"key": "nokey", "path": "p"}]}),
        {"ContainerCreating"}, [], "FailedMount", ["nokey"]),
    "root-refused": (
        dict(context={"runAsNonRoot": True}),
        {"CreateContainerConfigError"}, ["container has runAsNonRoot and image will run as root"], "Failed",
        ["runAsNonRoot"]),
}


@pytest.fixture(scope="module")
def host(skiff):
    skiff.kubectl("create", "configmap", "present", "--from-literal=key=value")
    return skiff


@pytest.fixture(scope="module")
def strict():
    """One in which images are what they are called."""
    server = Skiff().start()
    yield server
    server.stop()


def state(skiff, name):
    statuses = (skiff.pod(name) or {}).get("status", {}).get("containerStatuses") or [{}]
    value = statuses[0].get("state", {})
    return value.get("waiting") or value.get("terminated") or {}


def events(skiff, name):
    return [e for e in skiff.get(f"{NS}/events")["items"] if e["involvedObject"]["name"] == name]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.skipif(os.geteuid() != 0, reason="without root there are no mounts and users to be refused")
def test_what_is_told(request, name):
    spec, reasons, words, event, event_words = CASES[name]
    skiff = request.getfixturevalue("strict" if "image" in spec else "host")
    status, answer = skiff.request("POST", f"{NS}/pods", pod(name, **spec))
    assert status == 201, answer

    def told():
        now = state(skiff, name)
        return now.get("reason") in reasons and all(w in now.get("message", "") for w in words)
    try:
        wait_for(told)
        wait_for(lambda: any(e["reason"] == event and all(w in e["message"] for w in event_words)
                             for e in events(skiff, name)))
        why = skiff.run("why", f"pod/{name}").stdout
        assert all(w in why for w in (words or event_words)), why
        assert all(w in skiff.kubectl("describe", "pod", name).stdout for w in event_words)
    except AssertionError:
        raise AssertionError(json.dumps({"state": state(skiff, name), "events": [
            (e["reason"], e["message"]) for e in events(skiff, name)],
            "why": skiff.run("why", f"pod/{name}", check=False).stdout}, indent=1)) from None
    finally:
        skiff.request("DELETE", f"{NS}/pods/{name}?gracePeriodSeconds=0")


def unscheduled(skiff, name):
    def told():
        conditions = skiff.pod(name)["status"].get("conditions", [])
        return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None)
    message = wait_for(told)
    wait_for(lambda: any(e["reason"] == "FailedScheduling" and e["message"] == message for e in events(skiff, name)))
    assert message in skiff.run("why", f"pod/{name}").stdout
    return message


def test_an_unknown_claim(skiff):
    made = pod("claims", **volume(persistentVolumeClaim={"claimName": "nowhere"}))
    assert skiff.request("POST", f"{NS}/pods", made)[0] == 201
    assert "persistentvolumeclaim \"nowhere\" not found" in unscheduled(skiff, "claims")
    assert skiff.pod("claims")["status"]["phase"] == "Pending"
    skiff.request("DELETE", f"{NS}/pods/claims?gracePeriodSeconds=0")


def test_a_port_of_the_machine_that_another_pod_has(skiff):
    for name in ("first", "second"):
        made = pod(name, ["sleep", "1000"], ports=[{"containerPort": 80, "hostPort": 34567}])
        assert skiff.request("POST", f"{NS}/pods", made)[0] == 201
    skiff.wait_phase("first", "Running")
    assert "didn't have free ports for the requested pod ports" in unscheduled(skiff, "second")
    skiff.request("DELETE", f"{NS}/pods/first?gracePeriodSeconds=0")
    skiff.wait_phase("second", "Running")
    skiff.request("DELETE", f"{NS}/pods/second?gracePeriodSeconds=0")


def test_a_port_in_use_is_the_programs_own_trouble_and_told_in_its_words(skiff):
    made = pod("binds", ["python3", "-m", "http.server", str(skiff.http), "--bind", "127.0.0.1"],
               terminationMessagePolicy="FallbackToLogsOnError")
    made["spec"]["hostNetwork"] = True
    assert skiff.request("POST", f"{NS}/pods", made)[0] == 201
    wait_for(lambda: "Address already in use" in state(skiff, "binds").get("message", ""))
    assert "Address already in use" in skiff.run("why", "pod/binds").stdout
    skiff.request("DELETE", f"{NS}/pods/binds?gracePeriodSeconds=0")
