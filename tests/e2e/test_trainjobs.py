"""TrainJobs with upstream's own SDK (`kubeflow` 0.5, unmodified) and the real kubectl."""
import os

import pytest
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import kubernetes as options

from skiff import Skiff, wait_for

GROUP = "/apis/trainer.kubeflow.org/v1alpha1"
JOBS = f"{GROUP}/namespaces/default/trainjobs"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A Skiff where the images of the runtimes are this machine, with a torchrun that runs Python."""
    folder, notes = tmp_path_factory.mktemp("bin"), tmp_path_factory.mktemp("notes")
    for name in ("python", "torchrun"):
        (folder / name).write_text('#!/bin/sh\nexec python3 "$@"\n')
        (folder / name).chmod(0o755)
    skiff = Skiff("--capacity", "example.com/chip=2").start()
    for image in ("pytorch/pytorch:*", "nvcr.io/nvidia/jax:*", "python:*"):
        skiff.run("image", "map", image, "--host", "--workdir", "/tmp",
                  "--mount", f"{folder}:/opt/runs:ro",
                  "--mount", f"{notes}:/notes", "--env", f"PATH=/opt/runs:{os.environ['PATH']}")
    mpi = tmp_path_factory.mktemp("mpibin")
    mpi.chmod(0o755)  # they run as another user
    (mpi / "python").symlink_to("/usr/bin/python3")
    skiff.run("image", "map", "ghcr.io/kubeflow/trainer/deepspeed-runtime*", "--host", "--workdir", "/tmp",
              "--mount", f"{mpi}:/opt/mpi:ro",
              "--env", f"PATH=/opt/mpi:{os.environ['PATH']}", "--env", "HOME=/tmp")
    yield skiff
    skiff.stop()


@pytest.fixture(scope="module")
def trainer(server):
    return TrainerClient(KubernetesBackendConfig(namespace="default",
                                                 config_file=f"{server.data}/kubeconfig"))


def job(name, command, runtime="plain", nodes=1, **spec):
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": runtime}, "trainer": {
                "numNodes": nodes, "command": ["sh", "-c", command]}, **spec}}


def condition(server, name, kind):
    conditions = server.get(f"{JOBS}/{name}").get("status", {}).get("conditions", [])
    return next((c["reason"] for c in conditions if c["type"] == kind and c["status"] == "True"), None)


def say_place(greeting):
    import os
    import socket
    import time
    here, first = socket.gethostname(), None
    while first is None:  # as torchrun does: the first node may start after this one
        try:
            first = socket.gethostbyname(os.environ["PET_MASTER_ADDR"])
        except OSError:
            time.sleep(0.1)
    print(greeting, here, "rank", os.environ["PET_NODE_RANK"], "of", os.environ["PET_NNODES"], flush=True)
    # Whose name is asked for must not have ended: it waits for the other.
    if os.environ["PET_NODE_RANK"] == "0":
        with socket.create_server(("", 29501)) as meeting:
            meeting.accept()[0].close()
    else:
        while True:
            try:
                socket.create_connection((first, 29501), timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
    print("first at", first, os.environ["PET_MASTER_PORT"], os.environ["PET_NPROC_PER_NODE"], flush=True)


def test_the_sdk_finds_the_runtimes(trainer, caplog):
    found = {runtime.name: runtime for runtime in trainer.list_runtimes()}
    assert {"torch-distributed", "jax-distributed", "xgboost-distributed", "deepspeed-distributed", "plain"} <= set(found)
    assert found["torch-distributed"].trainer.framework == "torch"
    assert trainer.get_runtime("jax-distributed").trainer.num_nodes == 1
    caplog.clear()
    trainer.backend.verify_backend()
    assert not caplog.records, "it asks for the version and is told"


def test_the_sdk_trains_waits_reads_logs_and_deletes(server, trainer):
    name = trainer.train(runtime="torch-distributed", trainer=CustomTrainer(
        func=say_place, func_args={"greeting": "hello from"}, num_nodes=2,
        resources_per_node={"cpu": "100m"}))
    done = trainer.wait_for_job_status(name, timeout=60, polling_interval=1)
    assert (done.status, done.num_nodes) == ("Complete", 2)
    assert sorted(step.name for step in done.steps) == ["node-0", "node-1"]
    for rank in (0, 1):
        lines = list(trainer.get_job_logs(name, step=f"node-{rank}"))
        assert lines[0] == f"hello from {name}-node-0-{rank} rank {rank} of 2"
        assert lines[1].endswith(" 29500 1")
    assert list(trainer.get_job_logs(name, follow=True)) == list(trainer.get_job_logs(name))
    assert name in [listed.name for listed in trainer.list_jobs()]
    assert any(event.reason == "Scheduled" for event in trainer.get_job_events(name))
    trainer.delete_job(name)
    wait_for(lambda: not server.pods(selector=f"jobset.sigs.k8s.io/jobset-name={name}"))
    assert server.get(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/{name}") is None


def add_up():
    import socket
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    total = world.allreduce(world.Get_rank() + 1)
    hosts = sorted(world.allgather(socket.gethostname()))
    if world.Get_rank() == 0:
        print("sum", total, "on", *hosts, flush=True)


def test_the_sdk_trains_by_mpirun(server, trainer, manifest):
    # Upstream's images have this home, which the SDK writes its files to; here each pod gets an empty one.
    runtime = server.get(f"{GROUP}/clustertrainingruntimes/deepspeed-distributed")
    runtime["metadata"] = {"name": "with-home", "labels": runtime["metadata"]["labels"]}
    for part in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = part["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "home", "emptyDir": {}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "home", "mountPath": "/home/mpiuser"}]
    server.kubectl("apply", "-f", manifest(runtime))
    name = trainer.train(runtime="with-home", trainer=CustomTrainer(
        func=add_up, num_nodes=3, env={"OMPI_MCA_mpi_yield_when_idle": "1", "ASAN_OPTIONS": "detect_leaks=0"}))
    done = trainer.wait_for_job_status(name, timeout=90, polling_interval=1)
    assert done.status == "Complete"
    # The launcher is one of the three nodes.
    log = "\n".join(trainer.get_job_logs(name, step="node-0"))
    assert f"sum 6 on {name}-launcher-0-0 {name}-node-0-0 {name}-node-0-1" in log, log
    wait_for(lambda: not [p for p in server.pods(selector=f"jobset.sigs.k8s.io/jobset-name={name}")
                          if p["status"]["phase"] == "Running"])
    trainer.delete_job(name)
    kinds = "configmaps,serviceaccounts,roles,rolebindings"
    wait_for(lambda: f"{name}-" not in server.kubectl("get", kinds, "-o", "name").stdout)


def test_a_launcher_starts_programs_in_its_own_nodes_only(server, manifest):
    value = job("hosts", "sleep 600", runtime="deepspeed-distributed", nodes=3)
    server.kubectl("apply", "-f", manifest(value))
    server.kubectl("apply", "-f", manifest({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"},
        "spec": {"containers": [{"name": "node", "image": "python:3", "command": ["sleep", "600"]}]}}, "stranger.json"))

    def launcher():
        pods = server.pods(selector="jobset.sigs.k8s.io/jobset-name=hosts")
        return [p["metadata"]["name"] for p in pods if p["metadata"]["name"].startswith("hosts-launcher")
                and p["status"]["phase"] == "Running"]
    inside = ["exec", wait_for(launcher)[0], "--"]
    hosts = server.kubectl(*inside, "cat", "/etc/mpi/hostfile").stdout
    assert hosts == "hosts-node-0-0.hosts slots=1\nhosts-node-0-1.hosts slots=1\nhosts-launcher-0-0.hosts slots=1\n"
    shell = [*inside, "/etc/mpi/kubexec.sh", "-o", "ConnectionAttempts=10"]
    assert server.kubectl(*shell, "hosts-node-0-1.hosts", "hostname; id -u").stdout == "hosts-node-0-1\n1000\n"
    for refused in (["exec", "stranger", "--", "true"], ["get", "pods"], ["get", "secrets"]):
        done = server.kubectl(*inside, "/opt/kube/kubectl", *refused, check=False)
        assert done.returncode and "forbidden" in done.stderr, (refused, done)
    server.kubectl("delete", "trainjob/hosts", "pod/stranger", "--now")


def copy_of_plain(server, name):
    plain = server.get(f"{GROUP}/clustertrainingruntimes/plain")
    return {"apiVersion": plain["apiVersion"], "kind": plain["kind"], "spec": plain["spec"],
            "metadata": {"name": name, "labels": plain["metadata"]["labels"]}}


def fails():
    import sys
    sys.exit(3)


def test_the_sdk_is_told_that_a_job_failed(server, trainer, manifest):
    strict = copy_of_plain(server, "strict")
    pods = strict["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    pods["backoffLimit"] = 0
    pods["template"]["spec"]["restartPolicy"] = "Never"
    server.kubectl("apply", "-f", manifest(strict))
    name = trainer.train(runtime="strict", trainer=CustomTrainer(func=fails), options=[
        options.Labels({"team": "ml"}),
        options.RuntimePatch(training_runtime_spec=options.TrainingRuntimeSpecPatch(
            template=options.JobSetTemplatePatch(spec=options.JobSetSpecPatch(replicated_jobs=[
                options.ReplicatedJobPatch(name="node", template=options.JobTemplatePatch(
                    spec=options.JobSpecPatch(template=options.PodTemplatePatch(
                        metadata={"labels": {"patched": "yes"}}))))]))))])
    failed = trainer.wait_for_job_status(name, status={"Failed"}, timeout=60, polling_interval=1)
    assert failed.status == "Failed"
    assert server.get(f"{JOBS}/{name}")["metadata"]["labels"] == {"team": "ml"}
    pods = server.pods(selector=f"jobset.sigs.k8s.io/jobset-name={name}")
    assert [pod["metadata"]["labels"]["patched"] for pod in pods] == ["yes"]
    trainer.delete_job(name)


def test_a_job_is_shown_and_explained(server, manifest):
    server.kubectl("apply", "-f", manifest(job("shown", "echo out")))
    wait_for(lambda: condition(server, "shown", "Complete") == "AllJobsCompleted")
    assert server.kubectl("get", "trainjob", "shown").stdout.split()[:5] == [
        "NAME", "STATE", "AGE", "shown", "Complete"]
    parts = server.get(f"{JOBS}/shown")["status"]["jobsStatus"]
    assert parts == [{"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}]
    assert server.run("logs", "trainjob/shown").stdout == "out\n"
    assert "torchrun" in server.kubectl("explain", "clustertrainingruntime.spec.mlPolicy").stdout
    assert "numNodes" in server.kubectl("explain", "trainjob.spec.trainer").stdout


def test_a_job_may_come_before_its_runtime_which_is_kept_for_it(server, manifest):
    server.kubectl("apply", "-f", manifest(job("early", "echo $SAY", runtime="later", suspend=True)))
    wait_for(lambda: "later" in server.kubectl("get", "events", "--field-selector=involvedObject.name=early").stdout)
    later = copy_of_plain(server, "later")
    node = later["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    node["containers"][0]["env"] = [{"name": "SAY", "value": "first"}]
    server.kubectl("apply", "-f", manifest(later))
    wait_for(lambda: server.get(
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/early"))
    node["containers"][0]["env"] = [{"name": "SAY", "value": "second"}]
    server.kubectl("apply", "-f", manifest(later))
    server.kubectl("patch", "trainjob", "early", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    wait_for(lambda: condition(server, "early", "Complete"))
    pod = server.pods(selector="jobset.sigs.k8s.io/jobset-name=early")[0]["metadata"]["name"]
    assert server.kubectl("logs", pod).stdout == "first\n"


def test_two_jobs_that_do_not_fit_together_run_one_after_the_other(server, manifest):
    needs = {"resourcesPerNode": {"limits": {"example.com/chip": 1}, "requests": {"example.com/chip": 1}}}
    for name in ("one", "two"):
        # A node ends only when both of its job are there: half of each job would wait for ever.
        value = job(name, f"touch /notes/{name}.$(hostname); "
                    f"until [ $(ls /notes | grep -c '^{name}[.]') = 2 ]; do sleep 0.05; done; sleep 1", nodes=2)
        value["spec"]["trainer"].update(needs)
        server.kubectl("apply", "-f", manifest(value, f"{name}.json"))
    for name in ("one", "two"):
        wait_for(lambda name=name: condition(server, name, "Complete"))


def test_launchers_of_two_jobs_do_not_wait_for_room_that_the_others_nodes_hold(server, manifest):
    needs = {"limits": {"example.com/chip": 1}, "requests": {"example.com/chip": 1}}
    names = ("left", "right")
    jobs = []
    for name in names:
        # A node and a launcher, a chip each; the node of each job would leave none for the launchers.
        value = job(name, f"/etc/mpi/kubexec.sh {name}-node-0-0.{name} hostname", runtime="deepspeed-distributed", nodes=2)
        value["spec"]["trainer"]["resourcesPerNode"] = needs
        jobs.append(value)
    server.kubectl("apply", "-f", manifest({"apiVersion": "v1", "kind": "List", "items": jobs}))
    for name in names:
        wait_for(lambda name=name: condition(server, name, "Complete"), 60)
        logs = server.run("logs", f"trainjob/{name}").stdout
        assert f"{name}-node-0-0\n" in logs, logs
    pods = {name: server.pods(selector=f"jobset.sigs.k8s.io/jobset-name={name}") for name in names}
    told = {p["metadata"]["annotations"]["scheduling.skiff.dev/gang-min"] for name in names for p in pods[name]}
    assert told == {"2"}


def test_how_far_a_job_is_stands_in_its_status(server, manifest):
    value = job("steps", "for i in 1 2 3 4 5; do echo step $i/20 loss=0.$i; done; sleep 600")
    server.kubectl("apply", "-f", manifest(value))

    def at_a_quarter():  # earlier steps may be told first
        told = server.get(f"{JOBS}/steps").get("status", {}).get("trainerStatus", {})
        return told if told.get("progressPercentage") == 25 else None
    told = wait_for(at_a_quarter)
    assert told["lastUpdatedTime"]
    metrics = {metric["name"]: metric["value"] for metric in told["metrics"]}
    assert (metrics["step"], metrics["totalSteps"], metrics["loss"]) == ("5", "20", "0.5")
    assert "step 5/20 (25 %), loss 0.5" in server.run("describe", "trainjob", "steps").stdout
    server.kubectl("delete", "trainjob", "steps", "--now")


def test_a_deadline_ends_a_job(server, manifest):
    server.kubectl("apply", "-f", manifest(job("slow", "sleep 600", activeDeadlineSeconds=2)))
    wait_for(lambda: condition(server, "slow", "Failed") == "DeadlineExceeded")
    wait_for(lambda: not server.pods(selector="jobset.sigs.k8s.io/jobset-name=slow"))


def test_what_a_user_changed_of_a_runtime_stays(server):
    server.kubectl("label", "clustertrainingruntime", "plain", "mine=yes")
    server.run("down")
    server.start()
    labels = server.get(f"{GROUP}/clustertrainingruntimes/plain")["metadata"]["labels"]
    assert labels["mine"] == "yes"


def test_what_is_wrong_with_a_job_is_said_with_its_field(server, manifest):
    bad = job("bad", "true", managedBy="me")
    refused = server.kubectl("apply", "-f", manifest(bad), check=False)
    assert "spec.managedBy: Invalid value: \"me\"" in refused.stderr
