"""Lifecycle hooks and the order in which containers end, with real processes."""
import json

from skiff import pod_manifest, wait_for


def events(skiff, name, reason):
    listed = json.loads(skiff.kubectl("get", "events", "-o", "json", "--field-selector",
                                      f"involvedObject.name={name},reason={reason}").stdout)
    return [e["message"] for e in listed["items"]]


def main(pod):
    return pod["status"]["containerStatuses"][0]


def shell(text):
    return {"exec": {"command": ["sh", "-c", text]}}


def build(name, command, tmp_path, policy="Always", grace=20, **container):
    """A pod that shares /notes with the test."""
    tmp_path.chmod(0o777)
    pod = pod_manifest(name, command)
    pod["spec"].update(restartPolicy=policy, terminationGracePeriodSeconds=grace,
                       volumes=[{"name": "notes", "hostPath": {"path": str(tmp_path)}}])
    pod["spec"]["containers"][0].update(container, volumeMounts=[{"name": "notes", "mountPath": "/notes"}])
    return pod


def test_a_pod_is_not_ready_before_its_post_start_hook_ended(skiff, manifest, tmp_path):
    hook = "until [ -e /notes/go ]; do sleep 0.1; done; echo hook >> /notes/said"
    skiff.kubectl("apply", "-f", manifest(build("greets", ["sleep", "600"], tmp_path,
                                                lifecycle={"postStart": shell(hook)})))
    wait_for(lambda: events(skiff, "greets", "Started"))
    pod = skiff.pod("greets")
    assert pod["status"]["phase"] == "Pending"
    assert not main(pod)["started"] and not main(pod)["ready"]
    assert main(pod)["state"]["waiting"]["reason"] == "ContainerCreating"
    (tmp_path / "go").touch()
    skiff.wait_phase("greets", "Running")
    wait_for(lambda: main(skiff.pod("greets"))["ready"])
    assert (tmp_path / "said").read_text() == "hook\n"
    skiff.kubectl("delete", "pod", "greets", "--now")


def test_a_failed_post_start_hook_kills_and_the_policy_restarts(skiff, manifest, tmp_path):
    skiff.kubectl("apply", "-f", manifest(build(
        "stumbles", ["sleep", "600"], tmp_path, grace=1,
        lifecycle={"postStart": shell("[ -e /notes/again ] || { touch /notes/again; exit 7; }")})))
    skiff.wait_phase("stumbles", "Running")
    # The phase does not say it: a pod whose container has ended and is to run again is Running, too.
    wait_for(lambda: main(skiff.pod("stumbles"))["ready"])
    assert main(skiff.pod("stumbles"))["restartCount"] == 1
    assert events(skiff, "stumbles", "FailedPostStartHook") == ["PostStartHook failed"]
    assert "FailedPostStartHook" in events(skiff, "stumbles", "Killing")
    skiff.kubectl("delete", "pod", "stumbles", "--now")


def test_pre_stop_runs_before_the_signal(skiff, manifest, tmp_path):
    program = "trap 'echo term >> /notes/said; exit 0' TERM; touch /notes/up; while :; do sleep 0.1; done"
    skiff.kubectl("apply", "-f", manifest(build(
        "leaves", ["sh", "-c", program], tmp_path,
        lifecycle={"preStop": shell("sleep 1; echo hook >> /notes/said")})))
    skiff.wait_phase("leaves", "Running")
    wait_for((tmp_path / "up").exists)
    skiff.kubectl("delete", "pod", "leaves")
    assert (tmp_path / "said").read_text() == "hook\nterm\n"


def test_a_pre_stop_hook_that_fails_or_never_ends_does_not_keep_the_pod(skiff, manifest, tmp_path):
    skiff.kubectl("apply", "-f", manifest(build("fails", ["sleep", "600"], tmp_path,
                                                lifecycle={"preStop": shell("exit 1")})))
    skiff.kubectl("apply", "-f", manifest(build("hangs", ["sleep", "600"], tmp_path, grace=2,
                                                lifecycle={"preStop": {"sleep": {"seconds": 2}}})))
    for name in ("fails", "hangs"):
        skiff.wait_phase(name, "Running")
        skiff.kubectl("delete", "pod", name)
    assert events(skiff, "fails", "FailedPreStopHook") == ["PreStopHook failed"]


def test_a_pre_stop_hook_over_http_is_asked_on_a_liveness_restart(skiff, manifest, tmp_path):
    # Serves its folder and writes down what it was asked.
    program = "mkdir -p /tmp/w; cd /tmp/w; exec python3 -m http.server 8097 2>>/notes/asked"
    skiff.kubectl("apply", "-f", manifest(build(
        "restarts", ["sh", "-c", program], tmp_path, grace=5,
        livenessProbe={**shell("! [ -e /notes/sick ]"), "periodSeconds": 1, "failureThreshold": 1},
        startupProbe={"tcpSocket": {"port": 8097}, "periodSeconds": 1, "failureThreshold": 60},
        lifecycle={"postStart": shell("true"), "preStop": {"httpGet": {"path": "/bye", "port": 8097}}})))
    skiff.wait_phase("restarts", "Running")
    wait_for(lambda: main(skiff.pod("restarts"))["ready"])
    (tmp_path / "sick").touch()
    wait_for(lambda: main(skiff.pod("restarts"))["restartCount"] >= 1)
    (tmp_path / "sick").unlink()
    assert "GET /bye" in (tmp_path / "asked").read_text()
    skiff.kubectl("delete", "pod", "restarts", "--now")


def test_sidecars_end_after_the_others_in_reverse_order(skiff, manifest, tmp_path):
    def program(name):
        return ["sh", "-c", f"trap 'echo {name} >> /notes/said; exit 0' TERM; touch /notes/{name}; "
                            "while :; do sleep 0.1; done"]

    pod = build("together", program("main"), tmp_path)
    mount = pod["spec"]["containers"][0]["volumeMounts"]
    image = pod["spec"]["containers"][0].get("image", "host")
    pod["spec"]["initContainers"] = [
        {"name": name, "image": image, "command": program(name), "restartPolicy": "Always", "volumeMounts": mount}
        for name in ("first", "second")]
    # The one after it waits for the first one's startup probe.
    pod["spec"]["initContainers"][0]["startupProbe"] = {**shell("[ -e /notes/go ]"), "periodSeconds": 1,
                                                        "failureThreshold": 60}
    skiff.kubectl("apply", "-f", manifest(pod))
    wait_for(lambda: any("first" in m for m in events(skiff, "together", "Started")))
    assert not any("second" in m for m in events(skiff, "together", "Started"))
    (tmp_path / "go").touch()
    skiff.wait_phase("together", "Running")
    wait_for(lambda: main(skiff.pod("together"))["ready"])
    wait_for(lambda: all((tmp_path / name).exists() for name in ("main", "second", "first")))
    skiff.kubectl("delete", "pod", "together")
    assert (tmp_path / "said").read_text() == "main\nsecond\nfirst\n"


def test_a_pod_whose_main_container_ended_ends_its_sidecars(skiff, manifest, tmp_path):
    pod = build("done", ["sh", "-c", "until [ -e /notes/up ]; do sleep 0.1; done"], tmp_path, policy="Never")
    mount = pod["spec"]["containers"][0]["volumeMounts"]
    pod["spec"]["initContainers"] = [
        {"name": "side", "image": pod["spec"]["containers"][0].get("image", "host"), "restartPolicy": "Always",
         "command": ["sh", "-c", "trap 'echo side > /notes/said; exit 3' TERM; touch /notes/up; while :; do sleep 0.1; done"],
         "volumeMounts": mount}]
    skiff.kubectl("apply", "-f", manifest(pod))
    skiff.wait_phase("done", "Succeeded")
    assert (tmp_path / "said").read_text() == "side\n"
    side = skiff.pod("done")["status"]["initContainerStatuses"][0]
    assert side["state"]["terminated"]["exitCode"] == 3
    skiff.kubectl("delete", "pod", "done")
