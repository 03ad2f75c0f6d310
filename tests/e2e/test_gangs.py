"""Gangs: jobs that do not fit together, the order they start in, and restarts of a whole gang."""

from skiff import wait_for

ANNOTATION = "training.skiff.dev/restart"


def machine_cpus(skiff):
    # A node is told of before what it has is.
    node = wait_for(lambda: next((n for n in skiff.get("/api/v1/nodes")["items"] if "allocatable" in n["status"]), None))
    return int(node["status"]["allocatable"]["cpu"].removesuffix("m")) * (
        1 if node["status"]["allocatable"]["cpu"].endswith("m") else 1000)


def job(name, workers, command, milli=10, run_policy=None, notes=None, **annotations):
    """Workers may share the folder `notes`, at /notes."""
    container = {"name": "pytorch", "image": "host", "command": ["sh", "-c", command],
                 "resources": {"requests": {"cpu": f"{milli}m"}}}
    pod = {"containers": [container]}
    if notes:
        container["volumeMounts"] = [{"name": "notes", "mountPath": "/notes"}]
        pod["volumes"] = [{"name": "notes", "hostPath": {"path": str(notes)}}]
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"runPolicy": run_policy or {}, "pytorchReplicaSpecs": {"Worker": {
                "replicas": workers, "restartPolicy": "OnFailure",
                "template": {"spec": pod}}}}}


def pods_of(skiff, name):
    return skiff.pods(selector=f"training.kubeflow.org/job-name={name}")


def placed(skiff, name):
    return [p for p in pods_of(skiff, name) if p["spec"].get("nodeName")]


def test_two_jobs_that_do_not_fit_together_run_one_after_the_other(skiff, manifest, tmp_path):
    # Each job needs three fifths of the machine: half of each would fit, and neither could train.
    share = machine_cpus(skiff) // 5
    # A worker ends only when all three of its job are there.
    for name in ("left", "right"):
        meet = (f"touch /notes/$HOSTNAME; "
                f"until [ $(ls /notes | grep -c ^{name}-) = 3 ]; do sleep 0.05; done; sleep 1")
        skiff.kubectl("create", "-f", manifest(job(name, 3, meet, share, notes=tmp_path)))
    seen = set()

    def both_done():
        counts = {name: len(placed(skiff, name)) for name in ("left", "right")}
        seen.update(counts.items())
        return all(any(c["type"] == "Succeeded" and c["status"] == "True"
                       for c in skiff.job("pytorchjobs", name).get("status", {}).get("conditions", []))
                   for name in counts)

    wait_for(both_done, seconds=60)
    assert all(count in (0, 3) for _, count in seen), seen


def test_a_job_that_asks_for_more_than_it_has_waits_until_it_asks_for_less(skiff, manifest):
    value = job("waits", 2, "true", run_policy={"schedulingPolicy": {
        "minAvailable": 10, "queue": "research"}})
    skiff.kubectl("apply", "-f", manifest(value))

    def reason():
        for pod in pods_of(skiff, "waits"):
            for condition in pod["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and "10 pods together" in condition.get("message", ""):
                    return condition["message"]
        return None

    assert "2 exist so far" in wait_for(reason)
    wide = skiff.kubectl("get", "pytorchjob", "waits", "-o", "wide").stdout
    assert "QUEUE" in wide and "research" in wide
    assert "QUEUE" not in skiff.kubectl("get", "pytorchjob", "waits").stdout
    pod = pods_of(skiff, "waits")[0]
    assert pod["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "research"
    assert "research" in skiff.kubectl("describe", "pytorchjob", "waits").stdout
    value["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 2
    skiff.kubectl("apply", "-f", manifest(value))
    skiff.wait_job("pytorchjobs", "waits", "Succeeded")


def test_the_class_of_the_scheduling_policy_is_the_pods(skiff, manifest):
    skiff.kubectl("create", "priorityclass", "urgent", "--value=1000")
    skiff.kubectl("apply", "-f", manifest(job("urgent", 1, "true", run_policy={
        "schedulingPolicy": {"priorityClass": "urgent"}})))
    skiff.wait_job("pytorchjobs", "urgent", "Succeeded")
    assert pods_of(skiff, "urgent")[0]["spec"]["priority"] == 1000


def test_one_failure_starts_the_whole_gang_again(skiff, manifest, tmp_path):
    # Worker 1 fails once, the others run until they are stopped; the second time all succeed.
    command = ("echo $HOSTNAME >> /notes/starts; if [ -e /notes/failed ]; then exit 0; fi; "
               "case $HOSTNAME in *-1) until [ $(wc -l < /notes/starts) = 3 ]; do sleep 0.05; done; "
               "touch /notes/failed; exit 1;; esac; sleep 600")
    value = job("together", 3, command, run_policy={"backoffLimit": 1}, notes=tmp_path,
                **{ANNOTATION: "gang"})
    for each in value["spec"]["pytorchReplicaSpecs"].values():
        each["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    skiff.kubectl("create", "--validate=strict", "-f", manifest(value))
    skiff.wait_job("pytorchjobs", "together", "Succeeded")
    status = skiff.job("pytorchjobs", "together")["status"]
    assert status["restarts"] == 1, "all replicas together count once"
    starts = (tmp_path / "starts").read_text().split()
    assert sorted(starts) == sorted(2 * [f"together-worker-{i}" for i in range(3)])
    restarting = [e["message"] for e in skiff.get("/api/v1/namespaces/default/events")["items"]
                  if e["reason"] == "PyTorchJobRestarting" and e["involvedObject"]["name"] == "together"]
    assert restarting == ["PyTorchJob default/together is restarting all replicas because 1 Worker "
                          "replica(s) failed."]


def test_a_misspelt_restart_is_refused(skiff, manifest):
    said = skiff.kubectl("create", "-f", manifest(job("bad", 1, "true", **{ANNOTATION: "all"})),
                         check=False)
    assert said.returncode != 0
    assert f"metadata.annotations[{ANNOTATION}]: Unsupported value: \"all\"" in said.stderr


def test_the_deprecated_number_of_processes_is_warned_of(skiff, manifest):
    value = job("warned", 1, "true")
    value["spec"]["elasticPolicy"] = {"nProcPerNode": 1, "minReplicas": 1}
    said = skiff.kubectl("create", "-f", manifest(value))
    assert ("Warning: spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"
            in said.stderr)
