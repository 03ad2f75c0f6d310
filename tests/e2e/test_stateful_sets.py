"""StatefulSets, driven with kubectl as their users do."""
import json

from skiff import wait_for


def stateful_set(replicas, claims=False, **spec):
    pod = {"terminationGracePeriodSeconds": 1,
           "containers": [{"name": "main", "image": "skiff.dev/host", "command": ["sleep", "600"]}]}
    out = {"replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
           "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod}, **spec}
    if claims:
        out["volumeClaimTemplates"] = [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}]
    return json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": out})


def get(skiff, *what):
    return json.loads(skiff.kubectl("get", *what, "-o", "json").stdout)


def names(skiff):
    return sorted(pod["metadata"]["name"] for pod in skiff.pods(selector="app=db")
                  if "deletionTimestamp" not in pod["metadata"])


def test_a_stateful_set_is_rolled_out_in_order_changed_taken_back_and_scaled(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=stateful_set(2))
    done = skiff.kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
    assert "roll out complete: 2 new pods have been updated" in done.stdout
    assert names(skiff) == ["db-0", "db-1"]
    first, second = (get(skiff, "pod", name) for name in ("db-0", "db-1"))
    assert first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    assert first["spec"]["hostname"] == "db-0" and first["spec"]["subdomain"] == "db"
    ready = next(c for c in first["status"]["conditions"] if c["type"] == "Ready")
    assert second["metadata"]["creationTimestamp"] >= ready["lastTransitionTime"]

    skiff.kubectl("set", "env", "statefulset/db", "COLOUR=green")
    skiff.kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
    assert all(pod["spec"]["containers"][0]["env"][0]["value"] == "green"
               for pod in skiff.pods(selector="app=db"))
    history = skiff.kubectl("rollout", "history", "statefulset/db").stdout
    assert "1 " in history and "2 " in history

    skiff.kubectl("rollout", "undo", "statefulset/db")
    skiff.kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
    assert not any("env" in pod["spec"]["containers"][0] for pod in skiff.pods(selector="app=db"))
    status = get(skiff, "statefulset", "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["readyReplicas"] == status["currentReplicas"] == status["updatedReplicas"] == 2

    skiff.kubectl("scale", "statefulset/db", "--replicas=1")
    wait_for(lambda: names(skiff) == ["db-0"])
    skiff.kubectl("delete", "statefulset", "db")
    wait_for(lambda: not skiff.pods(selector="app=db"))


def test_claims_stay_or_go_as_the_set_says(skiff):
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    skiff.kubectl("apply", "-f", "-", stdin=stateful_set(
        2, claims=True, podManagementPolicy="Parallel", persistentVolumeClaimRetentionPolicy=policy))

    def claims():
        return sorted(c["metadata"]["name"] for c in get(skiff, "pvc")["items"])

    wait_for(lambda: names(skiff) == ["db-0", "db-1"])
    wait_for(lambda: claims() == ["data-db-0", "data-db-1"])
    volume = get(skiff, "pod", "db-1")["spec"]["volumes"][0]
    assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    owner = get(skiff, "pvc", "data-db-0")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("StatefulSet", "db", True)

    skiff.kubectl("scale", "statefulset/db", "--replicas=0")
    wait_for(lambda: not skiff.pods(selector="app=db"))
    assert claims() == ["data-db-0", "data-db-1"]
    skiff.kubectl("delete", "statefulset", "db")
    wait_for(lambda: claims() == [])
