"""kubectl as installed: what a user does in a day, for pods and both job kinds."""
import json
import threading

from skiff import pod_manifest, pytorchjob, tfjob, wait_for


def lines_of(process, sink):
    for line in process.stdout:
        sink.append(line)


def test_api_resources_lists_our_kinds(skiff):
    out = skiff.kubectl("api-resources").stdout
    for kind in ("TFJob", "PyTorchJob", "Pod", "ConfigMap", "Lease", "CustomResourceDefinition"):
        assert kind in out


def test_pod_from_apply_to_delete(skiff, manifest):
    path = manifest(pod_manifest("life", ["sh", "-c", "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done"]))
    watch = skiff.kubectl_popen("get", "pods", "-w")
    seen = []
    threading.Thread(target=lines_of, args=(watch, seen), daemon=True).start()
    assert "pod/life created" in skiff.kubectl("apply", "-f", path).stdout
    skiff.wait_phase("life", "Running")
    logs = skiff.kubectl("logs", "-f", "life").stdout.splitlines()
    assert logs == [f"line {i}" for i in range(1, 6)]
    skiff.wait_phase("life", "Succeeded")
    wait_for(lambda: any("Completed" in line for line in seen))
    assert any("Running" in line for line in seen)
    watch.kill()
    watch.wait()
    described = skiff.kubectl("describe", "pod", "life").stdout
    assert "Exit Code:    0" in described and "Started" in described
    assert "life" in skiff.kubectl("get", "pods", "-o", "wide").stdout
    assert skiff.kubectl("get", "pod", "life", "-o", "jsonpath={.status.phase}").stdout == "Succeeded"
    assert 'pod "life" deleted' in skiff.kubectl("delete", "pod", "life").stdout
    assert skiff.kubectl("get", "pod", "life", check=False).returncode != 0


def test_apply_again_changes_only_what_changed(skiff, manifest):
    first = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}
    assert "created" in skiff.kubectl("apply", "-f", manifest(first)).stdout
    assert "unchanged" in skiff.kubectl("apply", "-f", manifest(first)).stdout
    first["data"] = {"a": "3"}
    assert "configured" in skiff.kubectl("apply", "-f", manifest(first)).stdout
    assert json.loads(skiff.kubectl("get", "cm", "conf", "-o", "json").stdout)["data"] == {"a": "3"}
    skiff.kubectl("delete", "cm", "conf")


def test_label_annotate_and_patch(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest(pod_manifest("tags", ["sleep", "60"])))
    skiff.kubectl("label", "pod", "tags", "team=red")
    assert "tags" in skiff.kubectl("get", "pods", "-l", "team=red", "-o", "name").stdout
    assert "tags" not in skiff.kubectl("get", "pods", "-l", "team!=red", "-o", "name").stdout
    skiff.kubectl("patch", "pod", "tags", "--type=merge", "-p", '{"metadata":{"labels":{"team":"blue"}}}')
    skiff.kubectl("patch", "pod", "tags", "--type=json", "-p",
                  '[{"op":"add","path":"/metadata/labels/extra","value":"x"}]')
    labels = skiff.pod("tags")["metadata"]["labels"]
    assert labels["team"] == "blue" and labels["extra"] == "x"
    skiff.kubectl("delete", "pod", "tags", "--grace-period=1")


def test_tfjob_from_apply_to_delete(skiff, manifest):
    job = tfjob("tf-day", ["sh", "-c", "echo $TF_CONFIG; sleep 1"], {"PS": 1, "Worker": 2},
                successPolicy="AllWorkers")
    assert "tfjob.kubeflow.org/tf-day created" in skiff.kubectl("apply", "-f", manifest(job)).stdout
    watch = skiff.kubectl_popen("get", "tfjobs", "-w")
    seen = []
    threading.Thread(target=lines_of, args=(watch, seen), daemon=True).start()
    skiff.wait_job("tfjobs", "tf-day", "Succeeded")
    wait_for(lambda: any("Succeeded" in line for line in seen))
    watch.kill()
    watch.wait()
    config = json.loads(skiff.kubectl("logs", "-f", "tf-day-worker-1").stdout.splitlines()[0])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["worker"] == [f"tf-day-worker-{i}.default.svc:2222" for i in (0, 1)]
    described = skiff.kubectl("describe", "tfjob", "tf-day").stdout
    assert "SuccessfulCreatePod" in described and "TFJobSucceeded" in described
    assert "Succeeded" in skiff.kubectl("get", "tfjob", "tf-day").stdout
    skiff.kubectl("delete", "tfjob", "tf-day")
    wait_for(lambda: not skiff.pods(selector="training.kubeflow.org/job-name=tf-day"))


def test_pytorchjob_from_apply_to_delete(skiff, manifest):
    job = pytorchjob("torch-day", ["sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR; sleep 0.5"], 2)
    skiff.kubectl("apply", "-f", manifest(job))
    skiff.wait_job("pytorchjobs", "torch-day", "Succeeded")
    assert skiff.kubectl("logs", "torch-day-worker-1").stdout == "2 of 3 at torch-day-master-0\n"
    assert "PyTorchJobSucceeded" in skiff.kubectl("describe", "pytorchjob", "torch-day").stdout
    skiff.kubectl("delete", "pytorchjob", "torch-day")
    wait_for(lambda: not skiff.pods(selector="training.kubeflow.org/job-name=torch-day"))


def test_wait_and_generate_name(skiff, manifest):
    pod = pod_manifest("x", ["true"])
    pod["metadata"] = {"generateName": "gen-"}
    name = skiff.kubectl("create", "-f", manifest(pod), "-o", "name").stdout.strip()
    assert name.startswith("pod/gen-") and len(name) == len("pod/gen-") + 5
    skiff.kubectl("wait", name, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=20s")
    skiff.kubectl("delete", name)


def test_namespaces_hold_and_release_their_objects(skiff, manifest):
    skiff.kubectl("create", "namespace", "harbour")
    skiff.kubectl("-n", "harbour", "apply", "-f", manifest(pod_manifest("boat", ["sleep", "60"], terminationGracePeriodSeconds=1)))
    skiff.wait_phase("boat", "Running", ns="harbour")
    skiff.kubectl("delete", "namespace", "harbour", timeout=60)
    assert skiff.pod("boat", "harbour") is None


def test_crd_and_its_objects(skiff, manifest):
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "boats.example.com"},
           "spec": {"group": "example.com", "scope": "Namespaced",
                    "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "shortNames": ["bt"]},
                    "versions": [{"name": "v1", "served": True, "storage": True,
                                  "additionalPrinterColumns": [{"name": "Sails", "type": "integer", "jsonPath": ".spec.sails"}],
                                  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    skiff.kubectl("apply", "-f", manifest(crd))
    skiff.kubectl("wait", "crd/boats.example.com", "--for=condition=Established", "--timeout=10s")
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "sloop"}, "spec": {"sails": 2}}
    assert "boat.example.com/sloop created" in skiff.kubectl("apply", "-f", manifest(boat)).stdout
    out = skiff.kubectl("get", "bt").stdout
    assert "SAILS" in out and "sloop" in out and "2" in out
    skiff.kubectl("delete", "crd", "boats.example.com")
    assert skiff.kubectl("get", "boats", check=False).returncode != 0
