"""Every kind of training job, and the versions of the API from before v1, with the real kubectl."""
import pytest

from skiff import wait_for

SAY = ["sh", "-c", "env | grep -E '^({})=' | sort"]


def job(kind, field, container, roles, names):
    command = [*SAY[:2], SAY[2].format("|".join(names))]
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": kind.lower()},
            "spec": {"runPolicy": {"cleanPodPolicy": "None"}, field: {role: {"replicas": n, "template": {"spec": {"containers": [
                {"name": container, "image": "host", "command": command}]}}}
                for role, n in roles.items()}}}


@pytest.mark.parametrize("kind,field,container,roles,pod,expected", [
    ("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 2}, "worker-1",
     {"MASTER_ADDR": "xgboostjob-master-0", "MASTER_PORT": "9999", "RANK": "2", "WORLD_SIZE": "3",
      "WORKER_ADDRS": "xgboostjob-worker-0,xgboostjob-worker-1"}),
    ("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 2}, "worker-1",
     {"COORDINATOR_ADDRESS": "jaxjob-worker-0", "COORDINATOR_PORT": "6666", "NUM_PROCESSES": "2",
      "PROCESS_ID": "1"}),
    ("PaddleJob", "paddleReplicaSpecs", "paddle", {"Worker": 2}, "worker-1",
     {"PADDLE_MASTER": "paddlejob-worker-0:36543", "PADDLE_NNODES": "2"}),
])
def test_replicas_are_told_their_place(skiff, manifest, kind, field, container, roles, pod, expected):
    name = kind.lower()
    skiff.kubectl("apply", "-f", manifest(job(kind, field, container, roles, expected)))
    skiff.wait_job(name + "s", name, "Succeeded")
    skiff.wait_phase(f"{name}-{pod}", "Succeeded")  # the job may be over before it
    log = skiff.kubectl("logs", f"{name}-{pod}").stdout
    assert dict(line.split("=", 1) for line in log.splitlines()) == expected
    assert "Succeeded" in skiff.kubectl("get", name, name).stdout


def test_a_paddle_job_meets_at_the_address_of_its_first_worker(skiff, manifest):
    value = job("PaddleJob", "paddleReplicaSpecs", "paddle", {"Worker": 1}, ["PADDLE_MASTER"])
    value["metadata"]["name"] = "alone"
    skiff.kubectl("apply", "-f", manifest(value))
    skiff.wait_job("paddlejobs", "alone", "Succeeded")
    address = skiff.pod("alone-worker-0")["status"]["podIP"]
    assert skiff.kubectl("logs", "alone-worker-0").stdout == f"PADDLE_MASTER={address}:36543\n"


def test_workers_are_scaled(skiff, manifest):
    value = job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", {"Worker": 1}, [])
    value["metadata"]["name"] = "grows"
    value["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    pod = value["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    pod["command"] = ["sleep", "600"]
    skiff.kubectl("apply", "-f", manifest(value))
    skiff.wait_phase("grows-worker-0", "Running")
    skiff.kubectl("scale", "pytorchjob", "grows", "--replicas=3")
    skiff.wait_phase("grows-worker-2", "Running")
    scale = skiff.get("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/grows/scale")
    wait_for(lambda: skiff.get("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/grows/scale")
             ["status"]["replicas"] == 3)
    assert "replica-type=worker" in scale["status"]["selector"]
    skiff.kubectl("scale", "pytorchjob", "grows", "--replicas=1")
    wait_for(lambda: len(skiff.pods(selector="training.kubeflow.org/job-name=grows")) == 1)
    skiff.kubectl("delete", "pytorchjob", "grows")


def kept(skiff, version, plural, name):
    return skiff.get(f"/apis/kubeflow.org/{version}/namespaces/default/{plural}/{name}")


ENTRY = {"replicas": 1, "template": {"spec": {"restartPolicy": "OnFailure", "containers": [
    {"name": "tensorflow", "image": "host", "command": ["true"]}]}}}


def test_a_job_of_the_first_version_runs_and_is_read_back_in_any(skiff, manifest):
    spec = {"RuntimeId": "a1b2", "replicaSpecs": [dict(ENTRY, tfReplicaType="MASTER"),
                                                  dict(ENTRY, tfReplicaType="WORKER", tfPort=2300)]}
    old = {"apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "old"}, "spec": spec}
    skiff.kubectl("apply", "-f", manifest(old))
    skiff.wait_job("tfjobs", "old", "Succeeded")
    shown = kept(skiff, "v1alpha1", "tfjobs", "old")
    assert shown["apiVersion"] == "kubeflow.org/v1alpha1"
    assert shown["spec"]["RuntimeId"] == "a1b2"
    assert [entry["tfReplicaType"] for entry in shown["spec"]["replicaSpecs"]] == ["MASTER", "WORKER"]
    assert shown["spec"]["replicaSpecs"][1]["tfPort"] == 2300
    assert shown["status"]["phase"] == "Done" and shown["status"]["state"] == "Succeeded"
    today = kept(skiff, "v1", "tfjobs", "old")
    assert sorted(today["spec"]["tfReplicaSpecs"]) == ["Master", "Worker"]
    assert kept(skiff, "v1beta1", "tfjobs", "old")["spec"]["cleanPodPolicy"] == "Running"
    # Applied again nothing changes, and no pod is made anew.
    uid = skiff.pod("old-master-0")["metadata"]["uid"]
    assert "unchanged" in skiff.kubectl("apply", "-f", manifest(old)).stdout
    assert skiff.pod("old-master-0")["metadata"]["uid"] == uid


def test_a_job_of_a_beta_version_keeps_its_policies(skiff, manifest):
    beta = {"apiVersion": "kubeflow.org/v1beta1", "kind": "TFJob", "metadata": {"name": "beta"},
            "spec": {"ttlSecondsAfterFinished": 100000,
                     "tfReplicaSpecs": {"Worker": dict(ENTRY, replicas=2)}}}
    skiff.kubectl("apply", "-f", manifest(beta))
    skiff.wait_job("tfjobs", "beta", "Succeeded")
    policy = kept(skiff, "v1", "tfjobs", "beta")["spec"]["runPolicy"]
    assert policy["ttlSecondsAfterFinished"] == 100000 and policy["cleanPodPolicy"] == "Running"
    patch = {"spec": {"ttlSecondsAfterFinished": 5000}}
    status, _ = skiff.request("PATCH", "/apis/kubeflow.org/v1beta1/namespaces/default/tfjobs/beta", patch,
                              headers={"Content-Type": "application/merge-patch+json"})
    assert status == 200
    assert kept(skiff, "v1", "tfjobs", "beta")["spec"]["runPolicy"]["ttlSecondsAfterFinished"] == 5000


def test_an_old_version_tells_what_is_wrong(skiff, manifest):
    bad = {"apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob", "metadata": {"name": "bad"},
           "spec": {"replicaSpecs": [dict(ENTRY, tfReplicaType="HELPER")]}}
    answer = skiff.kubectl("apply", "-f", manifest(bad), check=False)
    assert answer.returncode != 0
    assert "spec.replicaSpecs[0].tfReplicaType" in answer.stderr and '"WORKER"' in answer.stderr


def test_the_counters_of_upstreams_operators_are_kept(skiff, manifest):
    def counter(name):
        told = skiff.request("GET", "/metrics")[1]
        return dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#")).get(name, "0")

    jobs = 'training_operator_jobs_{}_total{{job_namespace="default",framework="jax"}}'
    before = int(counter(jobs.format("successful")))
    value = job("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 1}, ["PROCESS_ID"])
    value["metadata"]["name"] = "counted"
    skiff.kubectl("apply", "-f", manifest(value))
    skiff.wait_job("jaxjobs", "counted", "Succeeded")
    wait_for(lambda: int(counter(jobs.format("successful"))) == before + 1)
    skiff.kubectl("delete", "jaxjob", "counted")
    wait_for(lambda: int(counter(jobs.format("deleted"))) >= 1)
    assert int(counter('controller_runtime_reconcile_time_seconds_count{controller="jaxjob-controller"}')) > 0
