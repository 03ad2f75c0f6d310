"""TrainJobs and JobSets through client/remote: Skiff's controllers on a real kube-apiserver, whose own
controllers run the Jobs. The test plays the kubelet."""
import pytest

from control_plane import CONTROLLERS, ControlPlane
from skiff import Skiff, wait_for

MERGE = {"Content-Type": "application/merge-patch+json"}
JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
BATCH = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture(scope="module")
def server():
    plane = ControlPlane(controllers=CONTROLLERS + ",job-controller").start()
    try:
        controllers = Skiff("--kubeconfig", plane.kubeconfig).start()
        yield plane
        controllers.stop()
    finally:
        plane.stop()


def get(server, path):
    status, answer = server.request("GET", path)
    return answer if status == 200 else None


def patch(server, path, body):
    status, answer = server.request("PATCH", path, body, headers=MERGE)
    assert status == 200, answer


def make(server, name, **spec):
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
           "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}, **spec}}
    status, answer = server.request("POST", JOBS, job)
    assert status == 201, answer


def pods(server, name):
    return get(server, "/api/v1/namespaces/default/pods?labelSelector="
               f"jobset.sigs.k8s.io/jobset-name={name}")["items"]


def end_pods(server, name, phase, code):
    found = wait_for(lambda: len(pods(server, name)) == 2 and pods(server, name))
    for pod in found:
        container = pod["spec"]["containers"][0]
        patch(server, f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status", {"status": {
            "phase": phase, "containerStatuses": [{
                "name": container["name"], "image": container["image"], "imageID": "", "ready": False,
                "restartCount": 0, "state": {"terminated": {"exitCode": code}}}]}})


def reason(server, path, kind):
    conditions = (get(server, path) or {}).get("status", {}).get("conditions", [])
    return next((c["reason"] for c in conditions if c["type"] == kind and c["status"] == "True"), None)


def test_a_job_becomes_jobs_of_the_cluster_and_ends_with_them(server):
    make(server, "ends")
    job = wait_for(lambda: get(server, f"{BATCH}/ends-node-0"))
    assert (job["spec"]["completions"], job["spec"]["completionMode"]) == (2, "Indexed")
    env = {e["name"]: e.get("value") for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert (env["PET_NNODES"], env["PET_MASTER_ADDR"]) == ("2", "ends-node-0-0.ends")
    service = wait_for(lambda: get(server, "/api/v1/namespaces/default/services/ends"))
    assert service["spec"]["clusterIP"] == "None"
    end_pods(server, "ends", "Succeeded", 0)
    wait_for(lambda: reason(server, f"{JOBS}/ends", "Complete") == "AllJobsCompleted", 60)
    parts = get(server, f"{JOBS}/ends")["status"]["jobsStatus"]
    assert [(part["name"], part["succeeded"]) for part in parts] == [("node", 1)]


def test_a_job_is_suspended_and_takes_its_new_place_when_resumed(server):
    make(server, "rests")
    wait_for(lambda: len(pods(server, "rests")) == 2)
    patch(server, f"{JOBS}/rests", {"spec": {"suspend": True}})
    wait_for(lambda: not pods(server, "rests"))
    wait_for(lambda: reason(server, f"{JOBS}/rests", "Suspended"))
    place = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"pool": "night"}}}}}}
    patch(server, f"{JOBS}/rests", {"spec": {"suspend": False, "runtimePatches": [
        {"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {
            "replicatedJobs": [place]}}}}]}})
    wait_for(lambda: [pod["spec"].get("nodeSelector") for pod in pods(server, "rests")]
             == [{"pool": "night"}] * 2, 60)
    assert server.request("DELETE", f"{JOBS}/rests")[0] == 200
    wait_for(lambda: get(server, f"{SETS}/rests") is None, 60)
