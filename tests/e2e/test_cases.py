"""Manifests of users, unchanged, with their images mapped to this machine."""
import os
import shutil

import pytest

from skiff import ROOT, Skiff, wait_for

CASES = ROOT / "tests" / "cases"


@pytest.fixture
def bare():
    """A Skiff that maps no image by itself, on a machine that says it has accelerators."""
    server = Skiff("--capacity", "nvidia.com/gpu=16").start()
    yield server
    server.stop()


@pytest.fixture
def bin_with_python(tmp_path):
    """The manifest says `python`; Debian has only python3."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.symlink(shutil.which("python3"), folder / "python")
    return folder


@pytest.mark.timeout(600)
def test_tfjob_v1_runs_unchanged(bare, bin_with_python):
    bare.kubectl("create", "namespace", "your-user-namespace")
    bare.kubectl("create", "-f", str(CASES / "tfjob-v1.yaml"))

    def jobs():
        return bare.get("/apis/kubeflow.org/v1/namespaces/your-user-namespace/tfjobs")["items"]
    name = wait_for(jobs)[0]["metadata"]["name"]
    assert name.startswith("tfjob") and len(name) == 10
    # Before anybody says what the image is, the pods wait and say what to do.
    wait_for(lambda: "image map" in bare.run("why", f"tfjob/{name}", "-n", "your-user-namespace").stdout)
    bare.run("image", "map", "gcr.io/your-project/*", "--host", "--workdir", str(CASES),
             "--mount", f"{ROOT}:{ROOT}:ro", "--mount", f"{bin_with_python}:/opt/python:ro",
             "--env", f"PATH=/opt/python:{os.environ['PATH']}")
    bare.wait_job("tfjobs", name, "Succeeded", ns="your-user-namespace", seconds=400)
    log = bare.run("logs", f"tfjob/{name}", "-n", "your-user-namespace").stdout
    assert "step 1000/1000" in log and "done" in log


@pytest.mark.timeout(600)
def test_tfjob_v1alpha1_runs_unchanged(bare):
    bare.run("image", "map", "tf_sample:*", "--host", "--workdir", str(ROOT / "examples"),
             "--mount", f"{ROOT}:{ROOT}:ro",
             "--", "python3", "spiral.py", "--steps=300", "--every=100", "--goal=0.6")
    bare.kubectl("create", "-f", str(CASES / "tfjob-v1alpha1.yaml"))
    bare.wait_job("tfjobs", "example-job", "Succeeded", seconds=400)
    assert "step 300/300" in bare.kubectl("logs", "example-job-master-0").stdout


@pytest.mark.timeout(600)
def test_tfjob_v1beta1_runs_unchanged(bare, bin_with_python, tmp_path):
    shutil.copy(ROOT / "examples" / "spiral.py", tmp_path / "tf_benchmarks.py")
    bare.run("image", "map", "distributed_training_tf:latest", "--host", "--workdir", str(tmp_path),
             "--mount", f"{tmp_path}:{tmp_path}:ro", "--mount", f"{bin_with_python}:/opt/python:ro",
             "--env", f"PATH=/opt/python:{os.environ['PATH']}")
    bare.kubectl("create", "-f", str(CASES / "tfjob-v1beta1.yaml"))
    bare.wait_job("tfjobs", "distributed-training", "Succeeded", seconds=400)
    assert "step 300/300" in bare.kubectl("logs", "distributed-training-worker-0").stdout


@pytest.mark.timeout(600)
def test_pytorchjob_v1alpha1_runs_unchanged(bare):
    bare.kubectl("create", "configmap", "dist-train",
                 f"--from-file=dist_train.py={ROOT / 'examples' / 'spiral.py'}")
    bare.run("image", "map", "pytorch/pytorch:latest", "--host")
    bare.kubectl("create", "-f", str(CASES / "pytorchjob-v1alpha1.yaml"))
    bare.wait_job("pytorchjobs", "example-job", "Succeeded", seconds=400)
    assert "step 300/300" in bare.kubectl("logs", "example-job-master-0").stdout


@pytest.mark.timeout(600)
def test_mpijob_v1alpha2_runs_unchanged(bare, tmp_path):
    shutil.copy(ROOT / "examples" / "allreduce.py", tmp_path / "horovod_benchmarks.py")
    os.symlink("/usr/bin/python3", tmp_path / "python")  # Debian's, to which mpi4py belongs
    # Sixteen ranks share this machine's few cores: an idle one must not take the core of a busy one.
    bare.run("image", "map", "distributed_training_horovod:latest", "--host", "--workdir", str(tmp_path),
             "--mount", f"{tmp_path}:{tmp_path}:ro", "--env", f"PATH={tmp_path}:{os.environ['PATH']}",
             "--env", "OMPI_MCA_mpi_yield_when_idle=1", "--env", "ASAN_OPTIONS=detect_leaks=0")
    bare.kubectl("create", "-f", str(CASES / "mpijob-v1alpha2.yaml"))
    bare.wait_job("mpijobs", "distributed-training", "Succeeded", seconds=400)
    log = bare.kubectl("logs", "distributed-training-launcher").stdout
    hosts = ", ".join(f"distributed-training-worker-{i}" for i in range(4))
    assert f"16 processes on {hosts}" in log and "step 200/200" in log and "done" in log
    kept = bare.get("/apis/kubeflow.org/v1alpha2/namespaces/default/mpijobs/distributed-training")
    assert kept["spec"]["slotsPerWorker"] == 4


@pytest.mark.timeout(600)
def test_mpijob_v1alpha1_runs_unchanged(bare, tmp_path):
    shutil.copy(ROOT / "examples" / "allreduce.py", tmp_path / "horovod_benchmarks.py")
    os.symlink("/usr/bin/python3", tmp_path / "python")  # Debian's, to which mpi4py belongs
    bare.run("image", "map", "horovod_benchmarks:latest", "--host", "--workdir", str(tmp_path),
             "--mount", f"{tmp_path}:{tmp_path}:ro", "--env", f"PATH={tmp_path}:{os.environ['PATH']}",
             "--env", "OMPI_MCA_mpi_yield_when_idle=1", "--env", "ASAN_OPTIONS=detect_leaks=0")
    name = "horovod-benchmarks-16"
    created = bare.kubectl("create", "-f", str(CASES / "mpijob-v1alpha1.yaml"))
    assert "kubeflow.org/v1alpha1 MPIJob is deprecated; use kubeflow.org/v2beta1 MPIJob" in created.stderr
    # By the labels of its time; a worker has its accelerators, and the launcher none.
    workers = wait_for(lambda: (found := bare.pods(selector=f"mpi_job_name={name},mpi_role_type=worker")) and
                       len(found) == 2 and found)
    assert [p["spec"]["containers"][0]["resources"]["limits"] for p in workers] == [{"nvidia.com/gpu": "8"}] * 2
    launcher = wait_for(lambda: bare.pods(selector=f"mpi_job_name={name},mpi_role_type=launcher"))[0]
    assert not launcher["spec"]["containers"][0].get("resources")
    bare.wait_job("mpijobs", name, "Succeeded", seconds=400)
    log = bare.kubectl("logs", launcher["metadata"]["name"]).stdout
    assert f"4 processes on {name}-worker-0, {name}-worker-1" in log and "done" in log, log
    path = f"/apis/kubeflow.org/{{}}/namespaces/default/mpijobs/{name}"
    first = bare.get(path.format("v1alpha1"))
    assert first["status"]["launcherStatus"] == "Succeeded"
    assert first["status"]["startTime"] and first["status"]["completionTime"]
    spec = first["spec"]
    assert {key: spec[key] for key in spec if key != "template"} == {"gpus": 16, "gpusPerNode": 8, "slotsPerWorker": 2}
    assert spec["template"]["spec"]["containers"][0]["command"][0] == "mpirun"
    # The same job in the words of today, and a change in these seen in those of then.
    kept = bare.get(path.format("v2beta1"))["spec"]
    assert kept["mpiReplicaSpecs"]["Worker"]["replicas"] == 2 and kept["slotsPerWorker"] == 2
    bare.kubectl("patch", f"mpijobs.v2beta1.kubeflow.org/{name}", "--type=merge", "-p",
                 '{"spec":{"runPolicy":{"backoffLimit":3,"ttlSecondsAfterFinished":3600}}}')
    spec = bare.get(path.format("v1alpha1"))["spec"]
    assert spec["gpus"] == 16 and spec["backoffLimit"] == 3
    bare.kubectl("patch", f"mpijobs.v1alpha1.kubeflow.org/{name}", "--type=merge", "-p", '{"spec":{"backoffLimit":4}}')
    policy = bare.get(path.format("v2beta1"))["spec"]["runPolicy"]
    assert policy == {"backoffLimit": 4, "ttlSecondsAfterFinished": 3600, "suspend": False}


@pytest.mark.parametrize("change,said", [
    ({"replicas": 2}, "spec.replicas: Forbidden: may not be given beside gpus: exactly one of gpus, processingUnits and "
     "replicas says how large the job is"),
    ({"gpus": None}, "spec.replicas: Required value: exactly one of gpus, processingUnits and replicas must be given"),
    ({"gpus": 12}, "spec.gpus: Invalid value: 12: must be less than gpusPerNode, which is 8, or a multiple of it"),
    ({"processingResourceType": "tpu"}, "spec.processingResourceType: Unsupported value: \"tpu\""),
    ({"slotsPerWorker": 0}, "spec.slotsPerWorker: Invalid value: 0"),
])
def test_what_is_wrong_with_an_mpijob_v1alpha1_is_said_in_its_own_words(skiff, manifest, change, said):
    spec = {"gpus": 16, "template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}, **change}
    refused = skiff.kubectl("create", "-f", manifest({
        "apiVersion": "kubeflow.org/v1alpha1", "kind": "MPIJob", "metadata": {"name": "wrong"},
        "spec": {key: value for key, value in spec.items() if value is not None}}), check=False)
    assert refused.returncode == 1 and said in refused.stderr, refused.stderr
