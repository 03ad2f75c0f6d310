"""JobSets with the real kubectl: order, names, restarts as a whole, suspension."""
import json

from skiff import wait_for

SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"


def part(name, script, replicas=1, pods=1, **more):
    return {"name": name, "replicas": replicas, "template": {"spec": {
        "parallelism": pods, "completions": pods, "backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": "host", "command": ["sh", "-c", script]}]}}}}, **more}


def jobset(name, *parts, **spec):
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": list(parts), **spec}}


def status(skiff, name):
    return skiff.get(f"{SETS}/{name}").get("status", {})


def wait_end(skiff, name, state):
    try:
        wait_for(lambda: status(skiff, name).get("terminalState") == state, 60)
    except AssertionError as late:
        shown = skiff.kubectl("describe", f"jobset/{name}", check=False).stdout
        raise AssertionError(f"{late}\n{shown}{skiff.kubectl('get', 'jobs,pods', '-o', 'wide').stdout}") from late


def test_parts_start_in_their_order_and_find_each_other_by_name(skiff, manifest, tmp_path):
    # A pod has a name from when it has an address until it ends, so that all stay until each has found it.
    meet = ("until getent hosts ordered-worker-1-0.ordered; do sleep 0.1; done; hostname; touch /notes/$(hostname); "
            "until [ $(ls /notes | grep -c ^ordered-) = 4 ]; do sleep 0.1; done")
    worker = part("worker", meet, 2, 2,
                  dependsOn=[{"name": "first", "status": "Complete"}])
    pod = worker["template"]["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "notes", "hostPath": {"path": str(tmp_path)}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "notes", "mountPath": "/notes"}]
    skiff.kubectl("apply", "-f", manifest(jobset("ordered", part("first", "true"), worker)))
    wait_end(skiff, "ordered", "Completed")
    first = skiff.get("/apis/batch/v1/namespaces/default/jobs/ordered-first-0")
    later = skiff.get("/apis/batch/v1/namespaces/default/jobs/ordered-worker-1")
    assert later["metadata"]["creationTimestamp"] >= first["status"]["completionTime"]
    pods = skiff.pods(selector="jobset.sigs.k8s.io/jobset-name=ordered,jobset.sigs.k8s.io/job-index=1")
    assert sorted(pod["spec"]["hostname"] for pod in pods) == ["ordered-worker-1-0", "ordered-worker-1-1"]
    log = skiff.kubectl("logs", pods[0]["metadata"]["name"]).stdout
    assert log.splitlines()[-1] == pods[0]["spec"]["hostname"]
    shown = skiff.kubectl("get", "jobset", "ordered").stdout.split()
    assert shown[:6] == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"]
    assert shown[6:10] == ["ordered", "Completed", "0", "True"]


def test_a_set_starts_anew_as_a_whole_until_its_limit(skiff, manifest):
    # The label of the pod tells the attempt: the first fails, the second does not.
    script = "test $ATTEMPT = 1"
    worker = part("worker", script, 2)
    worker["template"]["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "ATTEMPT", "valueFrom": {"fieldRef": {
            "fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}}}]
    skiff.kubectl("apply", "-f", manifest(jobset("again", worker, failurePolicy={"maxRestarts": 3})))
    wait_end(skiff, "again", "Completed")
    now = status(skiff, "again")
    assert (now["restarts"], now["restartsCountTowardsMax"]) == (1, 1)
    skiff.kubectl("apply", "-f", manifest(jobset("over", part("worker", "exit 3"),
                                                 failurePolicy={"maxRestarts": 1})))
    wait_end(skiff, "over", "Failed")
    failed = next(c for c in status(skiff, "over")["conditions"] if c["type"] == "Failed")
    assert failed["reason"] == "ReachedMaxRestarts"
    assert failed["message"].endswith("(first failed job: over-worker-0)")


def test_a_suspended_set_has_no_pods_and_takes_a_new_place_when_resumed(skiff, manifest):
    skiff.kubectl("apply", "-f", manifest(jobset("rests", part("worker", "sleep 600"))))
    selector = "jobset.sigs.k8s.io/jobset-name=rests"
    wait_for(lambda: [p["status"]["phase"] for p in skiff.pods(selector=selector)] == ["Running"])
    skiff.kubectl("patch", "jobset", "rests", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    wait_for(lambda: not skiff.pods(selector=selector))
    spec = skiff.get(f"{SETS}/rests")["spec"]["replicatedJobs"]
    spec[0]["template"]["spec"]["template"]["metadata"] = {"labels": {"queue": "night"}}
    skiff.kubectl("patch", "jobset", "rests", "--type=merge", "-p",
                  json.dumps({"spec": {"suspend": False, "replicatedJobs": spec}}))
    wait_for(lambda: [p["metadata"]["labels"].get("queue") for p in skiff.pods(selector=selector)] == ["night"])
    conditions = {c["type"]: c["reason"] for c in status(skiff, "rests")["conditions"]}
    assert conditions["Suspended"] == "ResumeJobs"
    skiff.kubectl("delete", "jobset", "rests")
    wait_for(lambda: not skiff.pods(selector=selector))


def test_parts_share_a_claim_that_goes_with_the_set(skiff, manifest):
    parts = [part("writes", "echo shared > /data/word"),
             part("reads", "cat /data/word", dependsOn=[{"name": "writes", "status": "Complete"}])]
    for one in parts:
        one["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [
            {"name": "words", "mountPath": "/data"}]
    claims = [{"templates": [{"metadata": {"name": "words"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}]}]
    skiff.kubectl("apply", "-f", manifest(jobset("shares", *parts, volumeClaimPolicies=claims)))
    wait_end(skiff, "shares", "Completed")
    pod = skiff.pods(selector="jobset.sigs.k8s.io/jobset-name=shares,"
                     "jobset.sigs.k8s.io/replicatedjob-name=reads")[0]["metadata"]["name"]
    assert skiff.kubectl("logs", pod).stdout == "shared\n"
    claim = "/api/v1/namespaces/default/persistentvolumeclaims/words-shares"
    assert skiff.get(claim)["status"]["phase"] == "Bound"
    skiff.kubectl("delete", "jobset", "shares")
    wait_for(lambda: skiff.get(claim) is None)


def test_what_is_wrong_with_a_set_is_said_with_its_field(skiff, manifest):
    bad = jobset("bad", part("a", "true"), successPolicy={"operator": "All", "targetReplicatedJobs": ["ghost"]})
    refused = skiff.kubectl("apply", "-f", manifest(bad), check=False)
    assert "spec.successPolicy.targetReplicatedJobs[0]: Invalid value: \"ghost\"" in refused.stderr
