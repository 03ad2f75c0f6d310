"""MPIJob with real MPIs: Open MPI and MPICH start programs in workers by Skiff's own remote shell."""
import json
import os
import subprocess

import pytest

from skiff import BINARY, ROOT, wait_for
from test_rootless import RootlessSkiff
from test_rootless import usable as rootless_usable

# Ranks outnumber cores here, and an idle rank must not take the core of a busy one. The launcher's kubectl is the
# binary under test: looking for leaks, a sanitized one may be refused to trace itself in a pod.
CALM = {"OMPI_MCA_mpi_yield_when_idle": "1", "ASAN_OPTIONS": "detect_leaks=0"}


def container(command=None, env=None):
    out = {"name": "main", "image": "host", "workingDir": str(ROOT / "examples")}
    if command:
        out["command"] = command
    out["env"] = [{"name": name, "value": value} for name, value in {**CALM, **(env or {})}.items()]
    return out


def mpijob(name, command, workers=2, **spec):
    def role(n, pod, **more):
        return {"replicas": n, "template": {"spec": {"containers": [pod], **more}}}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name},
            "spec": {"slotsPerWorker": 2, "mpiReplicaSpecs": {
                "Launcher": role(1, container(command)), "Worker": role(workers, container())},
                **spec}}


def launcher_log(skiff, name):
    return skiff.kubectl("logs", f"{name}-launcher").stdout


def test_mpirun_trains_over_two_workers(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest(mpijob(
        "train", ["mpirun", "-np", "4", "/usr/bin/python3", "allreduce.py", "--steps=100"])))
    skiff.wait_job("mpijobs", "train", "Succeeded", seconds=120)
    log = launcher_log(skiff, "train")
    assert "4 processes on train-worker-0, train-worker-1" in log and "done" in log, log
    # Workers that slept would hold their places; the launcher stays with the log.
    wait_for(lambda: [p["metadata"]["name"] for p in skiff.pods()] == ["train-launcher"])
    pod = skiff.pod("train-launcher")
    assert pod["metadata"]["labels"]["training.kubeflow.org/job-role"] == "launcher"
    table = skiff.kubectl("get", "mpijobs").stdout
    assert "train" in table and "Succeeded" in table
    told = skiff.kubectl("describe", "mpijob", "train").stdout
    assert "MPIJobSucceeded" in told and "Created pod: train-worker-1" in told
    kinds = "configmaps,serviceaccounts,roles,rolebindings,services,pods"
    assert "train-config" in skiff.kubectl("get", kinds, "-l", "app=train", "-o", "name").stdout
    skiff.kubectl("delete", "mpijob", "train")
    wait_for(lambda: not skiff.kubectl("get", kinds, "-l", "app=train", "-o", "name").stdout)
    wait_for(lambda: skiff.pods() == [])


def test_the_launcher_waits_for_its_workers(skiff, manifest, tmp_path):
    job = mpijob("early", ["mpirun", "-np", "2", "hostname"])
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    # No worker begins before the launcher was seen to wait.
    worker["volumes"] = [{"name": "marks", "hostPath": {"path": str(tmp_path)}}]
    worker["initContainers"] = [{"name": "slow", "image": "host",
                                 "command": ["sh", "-c", "until [ -e /marks/go ]; do sleep 0.05; done"],
                                 "volumeMounts": [{"name": "marks", "mountPath": "/marks"}]}]
    skiff.kubectl("apply", "-f", manifest(job))
    wait_for(lambda: "waiting for the pod early-worker-" in skiff.kubectl(
        "logs", "early-launcher", check=False).stdout, 60)
    (tmp_path / "go").touch()
    skiff.wait_job("mpijobs", "early", "Succeeded", seconds=120)
    log = launcher_log(skiff, "early")
    assert "\nearly-worker-0" in log, log
    launcher = skiff.pod("early-launcher")["status"]["containerStatuses"][0]
    assert launcher["restartCount"] == 0, "it waited, and did not fail and start again"
    skiff.kubectl("delete", "mpijob", "early")


def test_the_launcher_comes_last_where_the_job_says_so(skiff, manifest):
    job = mpijob("late", ["mpirun", "-np", "2", "hostname"],
                 launcherCreationPolicy="WaitForWorkersReady")
    skiff.kubectl("apply", "-f", manifest(job))
    skiff.wait_job("mpijobs", "late", "Succeeded", seconds=120)
    assert "waiting" not in launcher_log(skiff, "late")
    skiff.kubectl("delete", "mpijob", "late")


def test_mpich_starts_ranks_on_workers_and_on_the_launcher(skiff, manifest):
    job = mpijob("hydra", ["mpiexec.hydra", "-np", "4", "sh", "-c",
                           'echo "rank $PMI_RANK of $PMI_SIZE on $(hostname)"'], workers=1,
                 mpiImplementation="MPICH", runLauncherAsWorker=True)
    skiff.kubectl("apply", "-f", manifest(job))
    skiff.wait_job("mpijobs", "hydra", "Succeeded", seconds=120)
    ranks = sorted(line for line in launcher_log(skiff, "hydra").splitlines() if line.startswith("rank"))
    assert ranks == ["rank 0 of 4 on hydra-launcher", "rank 1 of 4 on hydra-launcher",
                     "rank 2 of 4 on hydra-worker-0", "rank 3 of 4 on hydra-worker-0"]
    skiff.kubectl("delete", "mpijob", "hydra")


def test_a_worker_that_dies_is_restarted_and_the_training_begins_anew(skiff, manifest, tmp_path):
    mark = tmp_path / "mark"
    job = mpijob("mortal", ["mpirun", "-np", "2", "--map-by", "node", "sh", "-c",
                            f"test -e {mark} || {{ touch {mark}.$(hostname); sleep 600; }}; hostname"])
    for role in job["spec"]["mpiReplicaSpecs"].values():
        role["restartPolicy"] = "OnFailure"
        pod = role["template"]["spec"]
        pod["volumes"] = [{"name": "marks", "hostPath": {"path": str(tmp_path)}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "marks", "mountPath": str(tmp_path)}]
    skiff.kubectl("apply", "-f", manifest(job))
    wait_for(lambda: (tmp_path / "mark.mortal-worker-0").exists() and
             (tmp_path / "mark.mortal-worker-1").exists(), 60)
    mark.touch()
    # The container ends at once, and whoever does it with it.
    skiff.kubectl("exec", "mortal-worker-1", "--", "sh", "-c", "kill -9 1; kill -TERM 1", check=False)
    skiff.wait_job("mpijobs", "mortal", "Succeeded", seconds=120)
    assert skiff.pod("mortal-launcher")["status"]["containerStatuses"][0]["restartCount"] >= 1
    assert "mortal-worker-1" in launcher_log(skiff, "mortal")
    skiff.kubectl("delete", "mpijob", "mortal")


def test_discover_hosts_follows_the_workers(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest(mpijob("elastic", ["sleep", "600"], workers=1)))

    def hosts():
        done = skiff.kubectl("exec", "elastic-launcher", "--", "/etc/mpi/discover_hosts.sh",
                             check=False)
        return done.stdout.split()

    def scale(n):
        skiff.kubectl("patch", "mpijob", "elastic", "--type=merge", "-p", json.dumps(
            {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": n}}}}))
    name = "elastic-worker-{}.elastic.default.svc"
    wait_for(lambda: hosts() == [name.format(0)], 60)
    scale(3)
    wait_for(lambda: hosts() == [name.format(i) for i in range(3)], 60)
    scale(2)
    wait_for(lambda: hosts() == [name.format(i) for i in range(2)], 60)
    # Names of workers are known to the launcher, with the job's service and without.
    for host in ("elastic-worker-1", name.format(1)):
        skiff.kubectl("exec", "elastic-launcher", "--", "getent", "hosts", host)
    # The launcher's account may start programs in its workers, and look no further.
    inside = ["exec", "elastic-launcher", "--", "/opt/kube/kubectl"]
    assert skiff.kubectl(*inside, "exec", "elastic-worker-0", "--", "hostname").stdout == \
        "elastic-worker-0\n"
    for refused in (["exec", "elastic-launcher", "--", "true"], ["get", "secrets"],
                    ["delete", "pod", "elastic-worker-0"]):
        done = skiff.kubectl(*inside, *refused, check=False)
        assert done.returncode and "forbidden" in done.stderr, (refused, done)
    skiff.kubectl("patch", "mpijob", "elastic", "--type=merge", "-p",
                  '{"spec":{"runPolicy":{"suspend":true}}}')
    wait_for(lambda: skiff.pods(selector="training.kubeflow.org/job-name=elastic") == [])
    skiff.kubectl("delete", "mpijob", "elastic")


def test_a_worker_that_failed_is_said_plainly(skiff, manifest):
    job = mpijob("lost", ["mpirun", "-np", "1", "hostname"], workers=1,
                 runPolicy={"backoffLimit": 1})
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"] = ["false"]
    skiff.kubectl("apply", "-f", manifest(job))
    skiff.wait_job("mpijobs", "lost", "Failed", seconds=60)
    log = launcher_log(skiff, "lost") + skiff.kubectl("logs", "-p", "lost-launcher", check=False).stdout
    assert "the pod lost-worker-0 has ended (Failed)" in log, log
    skiff.kubectl("delete", "mpijob", "lost")


def test_versions_show_the_same_job(skiff, manifest):
    job = mpijob("views", ["true"], workers=1)
    job["apiVersion"] = "kubeflow.org/v1"
    job["spec"].update(cleanPodPolicy="All", mainContainer="main",
                       runPolicy={"suspend": True})
    skiff.kubectl("create", "-f", manifest(job))

    def spec(version):
        return json.loads(skiff.kubectl("get", f"mpijobs.{version}.kubeflow.org", "views",
                                        "-o", "json").stdout)["spec"]
    first = spec("v1")
    assert first["cleanPodPolicy"] == "All" and first["mainContainer"] == "main"
    assert first["runPolicy"] == {"suspend": True}
    kept = spec("v2beta1")
    assert kept["runPolicy"] == {"suspend": True, "cleanPodPolicy": "All"}
    assert "cleanPodPolicy" not in kept and "mainContainer" not in kept
    assert spec("v1alpha2")["slotsPerWorker"] == 2
    skiff.kubectl("delete", "mpijob", "views")


@pytest.mark.parametrize("change,said", [
    (lambda spec: spec["mpiReplicaSpecs"].pop("Launcher"),
     "spec.mpiReplicaSpecs[Launcher]: Required value: must have Launcher replica spec"),
    (lambda spec: spec["mpiReplicaSpecs"]["Launcher"].update(replicas=2),
     "spec.mpiReplicaSpecs[Launcher].replicas: Invalid value: 2: must be 1"),
    (lambda spec: spec["mpiReplicaSpecs"]["Worker"].update(restartPolicy="ExitCode"),
     'spec.mpiReplicaSpecs[Worker].restartPolicy: Unsupported value: "ExitCode"'),
    (lambda spec: spec.update(slotsPerWorker=-1), "spec.slotsPerWorker"),
    (lambda spec: spec.update(mpiImplementation="LAM"), "spec.mpiImplementation"),
])
def test_what_is_wrong_is_said_with_its_place(skiff, manifest, change, said):
    job = mpijob("wrong", ["true"])
    change(job["spec"])
    refused = skiff.kubectl("create", "-f", manifest(job), check=False)
    assert refused.returncode == 1 and said in refused.stderr, refused.stderr


def test_the_binary_is_a_kubectl_by_that_name(skiff, tmp_path):
    os.symlink(BINARY, tmp_path / "kubectl")
    env = dict(skiff.environment(), KUBERNETES_SERVICE_HOST="192.0.2.1", KUBERNETES_SERVICE_PORT="1")
    done = subprocess.run([tmp_path / "kubectl", "get", "nodes"], env=env, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, "KUBECONFIG goes before the pod's own account: " + done.stderr
    del env["KUBECONFIG"]
    done = subprocess.run([tmp_path / "kubectl", "get", "nodes"], env=env, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and "serviceaccount" in done.stderr, \
        "a data folder that the pod can see is not its own: " + done.stderr


@pytest.mark.skipif(not rootless_usable(), reason="needs root to become an ordinary user, and a way out")
def test_an_ordinary_users_skiff_runs_mpi_jobs_too(manifest):
    server = RootlessSkiff("--images=host")
    try:
        server.start()
        job = mpijob("mine", ["mpirun", "-np", "2", "--map-by", "node", "hostname"])
        for role in job["spec"]["mpiReplicaSpecs"].values():
            role["template"]["spec"]["containers"][0]["workingDir"] = "/tmp"
        server.run("apply", "-f", "-", stdin=json.dumps(job))
        server.wait_phase("mine-launcher", "Succeeded", seconds=60)
        log = server.run("logs", "mine-launcher").stdout
        assert sorted(log.split())[-2:] == ["mine-worker-0", "mine-worker-1"], log
    finally:
        server.stop()
