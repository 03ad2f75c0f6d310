"""The skiff command: bad input in clear sentences, training from a script, reasons."""
import json

import pytest

from skiff import ROOT, pod_manifest, tfjob, wait_for


def failing(done, *parts):
    text = done.stdout + done.stderr
    assert done.returncode not in (0, None), text
    for part in parts:
        assert part in text, f"{part!r} not in: {text}"
    assert "terminate called" not in text and "bug at" not in text


@pytest.mark.parametrize("text,parts", [
    ("apiVersion: v1\nkind: Boat\nmetadata: {name: x}\n", ["Boat"]),
    ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: [unclosed\n", ["line"]),
    ("just a string\n", ["apiVersion and kind"]),
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: notalist}\n", ["spec.containers"]),
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n", ["spec.containers"]),
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: Not_A_Name}\nspec: {containers: [{name: a, image: b}]}\n", ["metadata.name"]),
    ("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: {Worker: {replicas: many}}}\n", ["replicas"]),
    ("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {}\n", ["tfReplicaSpecs"]),
    ("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: wrong, image: b}]}}}}}\n", ["tensorflow"]),
    ("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec: {pytorchReplicaSpecs: {Driver: {replicas: 1}}}\n", ["Driver"]),
])
def test_bad_manifests_are_refused_with_a_sentence(skiff, manifest, text, parts):
    path = manifest(text, "bad.yaml")
    failing(skiff.run("apply", "-f", path, check=False), *parts)
    assert skiff.kubectl("apply", "-f", path, check=False).returncode != 0
    assert skiff.pod("x") is None and skiff.job("tfjobs", "x") is None


def test_name_clash_keeps_the_first(skiff, manifest):
    skiff.kubectl("create", "-f", manifest(pod_manifest("clash", ["sleep", "30"])))
    uid = skiff.pod("clash")["metadata"]["uid"]
    failing(skiff.kubectl("create", "-f", manifest(pod_manifest("clash", ["true"])), check=False), "already exists")
    assert skiff.pod("clash")["metadata"]["uid"] == uid
    skiff.run("delete", "pod", "clash", "--grace-period", "1")


def test_missing_command_says_what_to_do(skiff, manifest):
    pod = pod_manifest("nocommand", [])
    del pod["spec"]["containers"][0]["command"]
    skiff.kubectl("apply", "-f", manifest(pod))
    wait_for(lambda: "CreateContainerError" in skiff.run("why", "pod/nocommand").stdout)
    skiff.run("delete", "pod", "nocommand", "--force")


def test_program_that_does_not_exist(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest(pod_manifest("noprogram", ["no-such-program"])))
    wait_for(lambda: "no-such-program" in json.dumps(skiff.pod("noprogram")["status"]) and
             "containerStatuses" in skiff.pod("noprogram")["status"])
    skiff.run("delete", "pod", "noprogram", "--force")


def test_impossible_request_is_explained(skiff, manifest):
    pod = pod_manifest("giant", ["true"])
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}, "limits": {"example.com/unicorn": "1"}}
    skiff.kubectl("apply", "-f", manifest(pod))
    wait_for(lambda: "Insufficient" in skiff.run("why", "pod/giant").stdout)
    assert "cpu" in skiff.run("why", "pod/giant").stdout
    assert "Unschedulable" in json.dumps(skiff.pod("giant")["status"])
    skiff.run("delete", "pod", "giant")


def test_gang_that_does_not_fit_starts_nothing(skiff, manifest):
    job = tfjob("toolarge", ["sleep", "1"], {"Worker": 3})
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "900m"}}
    skiff.kubectl("apply", "-f", manifest(job))
    wait_for(lambda: len(skiff.pods(selector="training.kubeflow.org/job-name=toolarge")) == 3)
    wait_for(lambda: "Insufficient cpu" in skiff.run("why", "tfjob/toolarge").stdout)
    assert all(not p["spec"].get("nodeName") for p in skiff.pods(selector="training.kubeflow.org/job-name=toolarge"))
    skiff.run("delete", "tfjob", "toolarge")


def test_wrong_usage(skiff):
    failing(skiff.run("fly", check=False))
    failing(skiff.run("get", "boats", check=False), "boats")
    failing(skiff.run("get", "pod", "nosuchpod", check=False), "not found")
    failing(skiff.run("train", "/no/such/script.py", "--framework", "pytorch", check=False), "no such script")
    failing(skiff.run("apply", "-f", "/no/such.yaml", check=False), "no such file")
    failing(skiff.run("logs", "nosuchpod", check=False), "not found")


@pytest.mark.parametrize("framework,more,replicas", [
    ("tensorflow", ["--workers", "2", "--ps", "1"], ["[worker-0]", "[worker-1]", "[ps-0]"]),
    ("pytorch", ["--workers", "3"], ["[master-0]", "[worker-0]", "[worker-1]"]),
])
def test_train_a_script(skiff, framework, more, replicas):
    done = skiff.run("train", str(ROOT / "examples" / "spiral.py"), "--framework", framework, *more,
                     "--name", f"spiral-{framework}", "--", "--steps", "120", "--points", "60", "--goal", "0.5")
    for replica in replicas:
        assert replica in done.stdout
    assert "step 120/120" in done.stdout and "Succeeded" in done.stdout
    skiff.run("delete", "tfjob" if framework == "tensorflow" else "pytorchjob", f"spiral-{framework}")


def test_train_passes_the_exit_code_on(skiff, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("import sys; print('oh no'); sys.exit(7)\n")
    done = skiff.run("train", str(script), "--framework", "pytorch", "--workers", "1", "--retries", "0", check=False)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "exit code 7" in skiff.run("why", "pytorchjob/fails").stdout
    skiff.run("delete", "pytorchjob", "fails")


def test_what_training_writes_beside_the_script_stays(skiff, tmp_path):
    script = tmp_path / "saves.py"
    script.write_text("open('model.txt', 'w').write('weights')\n")
    skiff.run("train", str(script), "--framework", "pytorch", "--workers", "1", "--workdir", str(tmp_path))
    assert (tmp_path / "model.txt").read_text() == "weights"
    skiff.run("delete", "pytorchjob", "saves")


def test_purge_removes_only_what_is_skiffs(skiff, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    failing(skiff.run("down", "--purge", "--data", str(tmp_path), check=False), "no data folder")
    failing(skiff.run("up", "-d", "--data", str(tmp_path), "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", check=False), "not empty")
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_logs_of_all_replicas(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest(tfjob("loud", ["sh", "-c", "echo $HOSTNAME; sleep 1"], {"Worker": 2}, successPolicy="AllWorkers")))
    skiff.wait_job("tfjobs", "loud", "Succeeded")
    out = skiff.run("logs", "tfjob/loud", "--all", "-f").stdout
    assert "[worker-0] loud-worker-0" in out and "[worker-1] loud-worker-1" in out
    assert skiff.run("logs", "tfjob/loud").stdout == "loud-worker-0\n"
    described = skiff.run("describe", "tfjob/loud").stdout
    assert "SUCCEEDED" in described and "loud-worker-1" in described
    skiff.run("delete", "tfjob/loud")


def test_status_env_kubeconfig_doctor(skiff):
    status = json.loads(skiff.run("status", "--json").stdout)
    assert status["objects"] is not None
    assert "export KUBECONFIG=" in skiff.run("env").stdout
    assert "client-certificate-data" in skiff.run("kubeconfig").stdout
    assert "disk sync" in skiff.run("doctor", check=False).stdout
