"""PodDisruptionBudgets, as those meet them who evict pods."""
import json

from skiff import wait_for

POD = {"terminationGracePeriodSeconds": 1,
       "containers": [{"name": "main", "image": "skiff.dev/host", "command": ["sleep", "600"]}]}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kept"},
              "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "kept"}},
                       "template": {"metadata": {"labels": {"app": "kept"}}, "spec": POD}}}


def status(skiff):
    return json.loads(skiff.kubectl("get", "pdb", "kept", "-o", "json").stdout)["status"]


def evict(skiff, pod):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    return skiff.kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{pod}/eviction", "-f", "-",
                         stdin=json.dumps(body), check=False)


def test_a_budget_lets_go_what_it_can_spare(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(DEPLOYMENT))
    skiff.kubectl("create", "pdb", "kept", "--selector=app=kept", "--max-unavailable=1")
    skiff.kubectl("rollout", "status", "deployment/kept", "--timeout=60s")
    now = wait_for(lambda: (s := status(skiff)) and s.get("disruptionsAllowed") == 1 and s)
    assert (now["expectedPods"], now["desiredHealthy"], now["currentHealthy"]) == (2, 1, 2)

    skiff.kubectl("patch", "pdb", "kept", "--type=merge", "-p",
                  '{"spec":{"maxUnavailable":null,"minAvailable":2}}')
    wait_for(lambda: status(skiff)["disruptionsAllowed"] == 0)
    pod = skiff.pods(selector="app=kept")[0]["metadata"]["name"]
    refused = evict(skiff, pod)
    assert refused.returncode != 0 and "disruption budget" in refused.stderr

    skiff.kubectl("patch", "pdb", "kept", "-p", '{"spec":{"minAvailable":1}}')
    wait_for(lambda: status(skiff)["disruptionsAllowed"] == 1)
    assert evict(skiff, pod).returncode == 0
    wait_for(lambda: skiff.get(f"/api/v1/namespaces/default/pods/{pod}") is None)
    wait_for(lambda: status(skiff)["currentHealthy"] == 2 and status(skiff)["disruptionsAllowed"] == 1)
    skiff.kubectl("delete", "deployment/kept", "pdb/kept")
