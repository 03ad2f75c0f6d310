"""The built-in workload kinds, driven with kubectl as their users do."""
import json

from skiff import wait_for

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}},
                          "spec": {"terminationGracePeriodSeconds": 1,
                                   "containers": [{"name": "main", "image": "skiff.dev/host",
                                                   "command": ["sleep", "600"]}]}}}}


def running(skiff, selector):
    return [pod for pod in skiff.pods(selector=selector)
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]


def test_a_deployment_is_rolled_out_scaled_changed_and_taken_back(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(DEPLOYMENT))
    done = skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert 'deployment "web" successfully rolled out' in done.stdout
    assert len(running(skiff, "app=web")) == 2

    skiff.kubectl("scale", "deployment/web", "--replicas=3")
    skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert len(running(skiff, "app=web")) == 3

    skiff.kubectl("set", "env", "deployment/web", "COLOUR=green")
    skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = wait_for(lambda: (found := running(skiff, "app=web")) and len(found) == 3 and found)
    assert all(pod["spec"]["containers"][0]["env"][0]["value"] == "green" for pod in pods)
    history = skiff.kubectl("rollout", "history", "deployment/web").stdout
    assert "1 " in history and "2 " in history

    skiff.kubectl("rollout", "undo", "deployment/web")
    skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = wait_for(lambda: (found := running(skiff, "app=web")) and len(found) == 3 and found)
    assert not any("env" in pod["spec"]["containers"][0] for pod in pods)
    sets = json.loads(skiff.kubectl("get", "rs", "-o", "json").stdout)["items"]
    assert len(sets) == 2
    assert sorted(s["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for s in sets) == ["2", "3"]

    skiff.kubectl("delete", "deployment", "web")
    wait_for(lambda: not skiff.pods(selector="app=web"))


def job(name, script, **spec):
    template = {"spec": {"restartPolicy": "Never",
                         "containers": [{"name": "main", "image": "skiff.dev/host",
                                         "command": ["sh", "-c", script]}]}}
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
                       "spec": {"template": template, **spec}})


def test_an_indexed_job_runs_each_index_once_and_completes(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=job(
        "shards", "echo index $JOB_COMPLETION_INDEX", completions=3, parallelism=2, completionMode="Indexed"))
    skiff.kubectl("wait", "--for=condition=complete", "job/shards", "--timeout=60s")
    status = json.loads(skiff.kubectl("get", "job", "shards", "-o", "json").stdout)["status"]
    assert status["succeeded"] == 3
    assert status["completedIndexes"] == "0-2"
    assert [c["type"] for c in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    logs = [skiff.kubectl("logs", pod["metadata"]["name"]).stdout.strip()
            for pod in skiff.pods(selector="batch.kubernetes.io/job-name=shards")]
    assert sorted(logs) == ["index 0", "index 1", "index 2"]


def test_a_job_that_fails_says_so_and_one_with_a_time_to_live_goes(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=job("broken", "exit 3", backoffLimit=0))
    skiff.kubectl("wait", "--for=condition=failed", "job/broken", "--timeout=60s")
    status = json.loads(skiff.kubectl("get", "job", "broken", "-o", "json").stdout)["status"]
    assert status["failed"] == 1
    assert [c["type"] for c in status["conditions"]] == ["FailureTarget", "Failed"]
    assert status["conditions"][1]["reason"] == "BackoffLimitExceeded"
    skiff.kubectl("apply", "-f", "-", stdin=job("brief", "true", ttlSecondsAfterFinished=0))
    wait_for(lambda: skiff.get("/apis/batch/v1/namespaces/default/jobs/brief") is None)
    wait_for(lambda: not skiff.pods(selector="batch.kubernetes.io/job-name=brief"))
