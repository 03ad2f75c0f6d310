"""The SDK of the Training Operator (`kubeflow-training` from PyPI), unmodified, with every kind of job."""
import pathlib
import re
import sys

import pytest
from kubeflow.training import (KubeflowOrgV1JAXJob, KubeflowOrgV1JAXJobSpec, KubeflowOrgV1MPIJob,
                               KubeflowOrgV1MPIJobSpec, KubeflowOrgV1PaddleJob, KubeflowOrgV1PaddleJobSpec,
                               KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec, KubeflowOrgV1ReplicaSpec,
                               KubeflowOrgV1RunPolicy, KubeflowOrgV1TFJob, KubeflowOrgV1TFJobSpec, KubeflowOrgV1XGBoostJob,
                               KubeflowOrgV1XGBoostJobSpec, TrainingClient)
from kubernetes.client import (V1Container, V1DeleteOptions, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec,
                               V1ResourceRequirements)

from skiff import Skiff, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "upstream"))
from stand_ins import make_programs, map_images  # noqa: E402

# Kind: its classes, the field of its replicas, the container that trains, its roles, and the pod whose log is the job's.
KINDS = {
    "TFJob": (KubeflowOrgV1TFJob, KubeflowOrgV1TFJobSpec, "tf_replica_specs", "tensorflow",
              {"Chief": 1, "PS": 1, "Worker": 1}, "chief-0"),
    "PyTorchJob": (KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec, "pytorch_replica_specs", "pytorch",
                   {"Master": 1, "Worker": 1}, "master-0"),
    "XGBoostJob": (KubeflowOrgV1XGBoostJob, KubeflowOrgV1XGBoostJobSpec, "xgb_replica_specs", "xgboost",
                   {"Master": 1, "Worker": 1}, "master-0"),
    "PaddleJob": (KubeflowOrgV1PaddleJob, KubeflowOrgV1PaddleJobSpec, "paddle_replica_specs", "paddle",
                  {"Master": 1, "Worker": 1}, "master-0"),
    "JAXJob": (KubeflowOrgV1JAXJob, KubeflowOrgV1JAXJobSpec, "jax_replica_specs", "jax", {"Worker": 2}, "worker-0"),
}
HELLO = "echo I am $(hostname)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs") / "programs"
    server = Skiff().start()
    make_programs(folder)
    map_images(server, folder)
    server.run("image", "map", "local/*", "--host")
    yield server
    server.stop()


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


def client(server, kind):
    return TrainingClient(config_file=f"{server.data}/kubeconfig", namespace="default", job_kind=kind)


def make_job(kind, name, script, **policy):
    job, spec, field, container, roles, _ = KINDS[kind]
    template = V1PodTemplateSpec(
        metadata=V1ObjectMeta(annotations={"sidecar.istio.io/inject": "false"}),
        spec=V1PodSpec(containers=[V1Container(
            name=container, image="local/training:1", command=["sh", "-c", script],
            resources=V1ResourceRequirements(limits={"memory": "128Mi", "cpu": "0.2"}))]))
    replicas = {role: KubeflowOrgV1ReplicaSpec(replicas=n, restart_policy="Never", template=template)
                for role, n in roles.items()}
    return job(api_version="kubeflow.org/v1", kind=kind, metadata=V1ObjectMeta(name=name, namespace="default"),
               spec=spec(run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None", **policy), **{field: replicas}))


def wait(sdk, name, *conditions):
    return sdk.wait_for_job_conditions(name, expected_conditions=set(conditions) or {"Succeeded"}, wait_timeout=60,
                                       polling_interval=1)


def gone(server, kind, name):
    plural = kind.lower() + "s"
    wait_for(lambda: server.job(plural, name) is None)
    wait_for(lambda: not server.pods(selector=f"training.kubeflow.org/job-name={name}"))


def test_a_job_from_create_to_delete(server, kind):
    sdk, name = client(server, kind), f"{kind.lower()}-life"
    roles, first = KINDS[kind][4], f"{name}-{KINDS[kind][5]}"
    sdk.create_job(make_job(kind, name, HELLO), labels={"team": "red"})
    seen = []
    job = sdk.wait_for_job_conditions(name, wait_timeout=60, polling_interval=1, callback=seen.append)
    assert type(job) is KINDS[kind][0] and job.metadata.name == name and seen
    assert name in [j.metadata.name for j in sdk.list_jobs()]
    assert sdk.is_job_created(name) and sdk.is_job_succeeded(name)
    assert not sdk.is_job_running(name) and not sdk.is_job_restarting(name) and not sdk.is_job_failed(name)
    conditions = sdk.get_job_conditions(name)
    assert conditions[0].type == "Created" and conditions[-1].type == "Succeeded"
    assert conditions[-1].reason == f"{kind}Succeeded" and conditions[-1].last_transition_time
    assert job.status.start_time <= job.status.completion_time

    names = {f"{name}-{role.lower()}-{i}" for role, n in roles.items() for i in range(n)}
    assert set(sdk.get_job_pod_names(name)) == names
    assert sdk.get_job_pod_names(name, is_master=True) == [first]
    assert f"{name}-worker-0" in sdk.get_job_pod_names(name, replica_type="worker", replica_index=0)
    logs, events = sdk.get_job_logs(name)
    assert logs == {first: f"I am {first}\n"} and events == {}
    # The job is done with its first replica; the others may have just begun.
    wait_for(lambda: sdk.get_job_logs(name, is_master=False)[0] == {pod: f"I am {pod}\n" for pod in names})

    def told(about, words):
        events = sdk.get_job_logs(name, is_master=False, verbose=True)[1]
        return any(words in line for line in events.get(about, []))
    wait_for(lambda: told(f"{kind.lower()}/{name}", f"Created pod: {first}"))
    wait_for(lambda: told(f"pod/{first}", "Started container"))

    sdk.delete_job(name, delete_options=V1DeleteOptions(propagation_policy="Foreground"))
    gone(server, kind, name)
    with pytest.raises(RuntimeError, match="Failed to get"):
        sdk.get_job(name)


def test_a_job_that_fails_is_told(server, kind):
    sdk, name = client(server, kind), f"{kind.lower()}-bad"
    sdk.create_job(make_job(kind, name, "echo broken; exit 3"))
    with pytest.raises(RuntimeError, match=f"{kind} default/{name} is Failed"):
        wait(sdk, name)
    assert sdk.is_job_failed(name) and not sdk.is_job_succeeded(name)
    # Another replica than the one that is asked may have failed first.
    wait_for(lambda: list(sdk.get_job_logs(name)[0].values()) == ["broken\n"])
    sdk.delete_job(name)
    gone(server, kind, name)


def test_a_job_is_changed(server, kind):
    sdk, name = client(server, kind), f"{kind.lower()}-later"
    sdk.create_job(make_job(kind, name, HELLO, suspend=True))
    wait_for(lambda: sdk.get_job_conditions(name) and sdk.get_job_conditions(name)[-1].type == "Suspended")
    assert sdk.get_job_pod_names(name) == []
    sdk.update_job(make_job(kind, name, HELLO, suspend=False), name)
    wait(sdk, name)
    assert sdk.get_job(name).spec.run_policy.suspend is False
    sdk.delete_job(name)
    gone(server, kind, name)


def test_a_bad_job_is_refused_with_a_reason(server, kind):
    sdk, name = client(server, kind), f"{kind.lower()}-refused"
    with pytest.raises(RuntimeError, match=re.escape(f"Failed to create {kind}: default/{name}. Error: (422)")) as error:
        sdk.create_job(make_job(kind, name, HELLO, managed_by="kueue.x-k8s.io/other-controller"))
    assert "spec.runPolicy.managedBy" in str(error.value)
    assert name not in [j.metadata.name for j in sdk.list_jobs()]


def test_a_job_of_another_manager_is_left_alone(server):
    sdk = client(server, "PyTorchJob")
    sdk.create_job(make_job("PyTorchJob", "abroad", HELLO, managed_by="kueue.x-k8s.io/multikueue"))
    sdk.create_job(make_job("PyTorchJob", "at-home", HELLO, managed_by="kubeflow.org/training-operator"))
    wait(sdk, "at-home")
    assert sdk.get_job_conditions("abroad") == [] and sdk.get_job_pod_names("abroad") == []
    for name in ("abroad", "at-home"):
        sdk.delete_job(name)


def test_logs_are_followed_to_their_end(server, capsys):
    sdk = client(server, "PyTorchJob")
    script = "for i in 1 2 3 4 5; do echo epoch $i; sleep 0.2; done"
    sdk.create_job(make_job("PyTorchJob", "talks", script))
    for pod in ("talks-master-0", "talks-worker-0"):
        wait_for(lambda: server.pod(pod) and server.pod(pod)["status"].get("phase") != "Pending")
    logs, _ = sdk.get_job_logs("talks", is_master=False, follow=True)
    expected = "".join(f"epoch {i}" for i in range(1, 6))  # the SDK joins lines without their ends
    wait_for(lambda: sdk.is_job_succeeded("talks"))
    assert logs == {"talks-master-0": expected, "talks-worker-0": expected}
    assert "[Pod talks-master-0]: epoch 5" in capsys.readouterr().out
    sdk.delete_job("talks")


def test_a_function_is_trained(server):
    def train(parameters):
        import os
        print(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}, rate {parameters['rate']}")

    sdk = client(server, "PyTorchJob")
    sdk.create_job(name="from-func", train_func=train, parameters={"rate": 0.1}, num_workers=3,
                   resources_per_worker={"cpu": "0.1", "memory": "64Mi"}, env_vars={"COLOUR": "red"},
                   labels={"team": "red"})
    job = wait(sdk, "from-func")
    assert job.metadata.labels == {"team": "red"}
    assert sorted(sdk.get_job_pod_names("from-func")) == [
        "from-func-master-0", "from-func-worker-0", "from-func-worker-1"]
    logs, _ = sdk.get_job_logs("from-func")
    assert "3 of 3 have met\n" in logs["from-func-master-0"]
    assert "rank 0 of 3, rate 0.1" in logs["from-func-master-0"]
    sdk.delete_job("from-func")


def test_a_function_is_trained_by_chief_workers_and_servers(server):
    def train():
        import json
        import os
        config = json.loads(os.environ["TF_CONFIG"])
        print("roles", sorted(config["cluster"]), config["task"]["type"])

    sdk = client(server, "TFJob")
    sdk.create_job(name="tf-func", train_func=train, num_workers=2, num_chief_replicas=1, num_ps_replicas=1)
    wait(sdk, "tf-func")
    logs, _ = sdk.get_job_logs("tf-func")
    assert logs == {"tf-func-chief-0": "roles ['chief', 'ps', 'worker'] chief\n"}
    assert sdk.get_job_pod_names("tf-func", replica_type="ps") == ["tf-func-ps-0"]
    sdk.delete_job("tf-func")


def test_an_image_is_trained(server):
    sdk = client(server, "PyTorchJob")
    sdk.create_job(name="from-image", base_image="kubeflow/pytorch-dist-mnist:latest", num_workers=2)
    wait(sdk, "from-image")
    met = {f"from-image-{pod}-0": "2 of 2 have met\n" for pod in ("master", "worker")}
    wait_for(lambda: sdk.get_job_logs("from-image", is_master=False)[0] == met)
    sdk.delete_job("from-image")


def test_an_mpi_job_from_create_to_delete(server):
    sdk = client(server, "MPIJob")

    def replicas(n, **container):
        container = V1Container(name="mpi", image="local/training:1", **container)
        return KubeflowOrgV1ReplicaSpec(replicas=n, restart_policy="Never",
                                        template=V1PodTemplateSpec(spec=V1PodSpec(containers=[container])))
    launcher = replicas(1, command=["sh", "-c", "echo $(grep -c slots=3 $OMPI_MCA_orte_default_hostfile) hosts"])
    sdk.create_job(KubeflowOrgV1MPIJob(
        api_version="kubeflow.org/v1", kind="MPIJob", metadata=V1ObjectMeta(name="mpi", namespace="default"),
        spec=KubeflowOrgV1MPIJobSpec(slots_per_worker=3, run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="Running"),
                                     mpi_replica_specs={"Launcher": launcher, "Worker": replicas(2)})))
    assert wait(sdk, "mpi").spec.slots_per_worker == 3
    assert [j.metadata.name for j in sdk.list_jobs()] == ["mpi"]
    assert sdk.is_job_succeeded("mpi") and not sdk.is_job_running("mpi")
    # Workers never end by themselves: the policy takes them away.
    wait_for(lambda: sdk.get_job_pod_names("mpi") == ["mpi-launcher"])
    assert sdk.get_job_logs("mpi")[0] == {"mpi-launcher": "2 hosts\n"}
    sdk.delete_job("mpi")
    gone(server, "MPIJob", "mpi")
