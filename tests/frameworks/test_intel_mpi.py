"""Intel MPI, from the wheels of its run-time: its Hydra starts ranks in workers by Skiff's own remote shell."""
import json

import pytest
from skiff import ROOT, Skiff
from training import PATIENCE, environment


@pytest.fixture(scope="module")
def skiff():
    server = Skiff("--images=host").start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def intel():
    """What an image with Intel MPI has in its environment."""
    folder = environment("intelmpi")
    return {"I_MPI_ROOT": folder, "PATH": f"{folder}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": f"{folder}/lib",
            "FI_PROVIDER_PATH": f"{folder}/lib"}


def mpijob(name, env, command, workers=2, **spec):
    def role(n, command=None):
        container = {"name": "main", "image": "host", "workingDir": str(ROOT / "examples"),
                     "env": [{"name": key, "value": value} for key, value in env.items()]}
        if command:
            container["command"] = command
        return {"replicas": n, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name},
            "spec": {"slotsPerWorker": 2, "mpiImplementation": "Intel",
                     "mpiReplicaSpecs": {"Launcher": role(1, command), "Worker": role(workers)}, **spec}}


def log_of(skiff, tmp_path, job, condition="Succeeded"):
    """The launcher's, when the job has come to this end."""
    name = job["metadata"]["name"]
    manifest = tmp_path / f"{name}.json"
    manifest.write_text(json.dumps(job))
    skiff.kubectl("apply", "-f", str(manifest))
    skiff.wait_job("mpijobs", name, condition, seconds=PATIENCE)
    return skiff.kubectl("logs", f"{name}-launcher").stdout


def test_all_reduce_over_two_workers(skiff, intel, tmp_path):
    log = log_of(skiff, tmp_path, mpijob(
        "train", intel, ["mpirun", "-np", "4", "python", "allreduce.py", "--steps=100"]))
    assert "4 processes on train-worker-0, train-worker-1" in log and "done" in log, log


def test_it_is_intel_mpi_and_the_launcher_may_work_too(skiff, intel, tmp_path):
    program = "from mpi4py import MPI; import socket; w = MPI.COMM_WORLD; " \
        "print(f'rank {w.rank} of {w.size} on {socket.gethostname()}:', MPI.Get_library_version().split(' for ')[0])"
    log = log_of(skiff, tmp_path, mpijob(
        "both", intel, ["mpirun", "-np", "4", "python", "-c", program], workers=1, runLauncherAsWorker=True))
    ranks = sorted(line for line in log.splitlines() if line.startswith("rank"))
    assert [line.split(":")[0] for line in ranks] == [
        "rank 0 of 4 on both-launcher", "rank 1 of 4 on both-launcher",
        "rank 2 of 4 on both-worker-0", "rank 3 of 4 on both-worker-0"], log
    assert all("Intel(R) MPI Library" in line for line in ranks), log


def test_a_rank_that_fails_fails_the_job(skiff, intel, tmp_path):
    program = "from mpi4py import MPI; import sys; sys.exit(7 if MPI.COMM_WORLD.rank == 3 else 0)"
    log_of(skiff, tmp_path, mpijob("fails", intel, ["mpirun", "-np", "4", "python", "-c", program]), "Failed")
    ended = skiff.pod("fails-launcher")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 7, ended


def test_a_job_of_v1_tells_intel_mpi_too(skiff, intel, tmp_path):
    """v1 does not name its MPI: the launcher names its hosts itself, as it had to under the training operator."""
    job = mpijob("old", intel, ["mpirun", "-np", "2", "-ppn", "1", "-hosts", "old-worker-0,old-worker-1", "hostname"])
    job["apiVersion"] = "kubeflow.org/v1"
    del job["spec"]["mpiImplementation"]
    log = log_of(skiff, tmp_path, job)
    assert sorted(line for line in log.splitlines() if line.startswith("old-")) == ["old-worker-0", "old-worker-1"], log
