"""skiff rollout, as users of kubectl rollout know it."""
import json

from skiff import wait_for
from test_cli import failing


def deployment():
    pod = {"terminationGracePeriodSeconds": 1,
           "containers": [{"name": "main", "image": "skiff.dev/host", "command": ["sleep", "600"]}]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "roll"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "roll"}},
                     "template": {"metadata": {"labels": {"app": "roll"}}, "spec": pod}}}


def template(skiff):
    return skiff.get("/apis/apps/v1/namespaces/default/deployments/roll")["spec"]["template"]


def test_a_rollout_is_followed_listed_taken_back_restarted_and_paused(skiff, manifest):
    skiff.run("apply", "-f", manifest(deployment()))
    done = skiff.run("rollout", "status", "deployment/roll", "--timeout", "60s")
    assert 'deployment "roll" successfully rolled out' in done.stdout
    failing(skiff.run("rollout", "undo", "deployment/roll", check=False), "no rollout history found")

    skiff.run("patch", "deployment", "roll", "-p", json.dumps(
        {"spec": {"template": {"metadata": {"annotations": {"colour": "green"}}}}}))
    skiff.run("rollout", "status", "deployment", "roll", "--timeout", "60s")
    wait_for(lambda: "2         <none>" in skiff.run("rollout", "history", "deployment/roll").stdout)
    assert "colour: green" in skiff.run("rollout", "history", "deployment/roll", "--revision", "2").stdout
    failing(skiff.run("rollout", "history", "deployment/roll", "--revision", "7", check=False), "revision 7")

    assert "deployment/roll rolled back" in skiff.run("rollout", "undo", "deployment/roll").stdout
    assert "annotations" not in template(skiff)["metadata"]
    skiff.run("rollout", "status", "deployment/roll", "--timeout", "60s")
    wait_for(lambda: "3         <none>" in skiff.run("rollout", "history", "deployment/roll").stdout)
    again = skiff.run("rollout", "undo", "deployment/roll", "--to-revision", "3").stdout
    assert "skipped rollback (current template already matches revision 3)" in again

    assert "deployment/roll restarted" in skiff.run("rollout", "restart", "deployment/roll").stdout
    assert "kubectl.kubernetes.io/restartedAt" in template(skiff)["metadata"]["annotations"]
    skiff.run("rollout", "status", "deployment/roll", "--timeout", "60s")

    assert "deployment/roll paused" in skiff.run("rollout", "pause", "deployment/roll").stdout
    failing(skiff.run("rollout", "pause", "deployment/roll", check=False), "is already paused")
    failing(skiff.run("rollout", "undo", "deployment/roll", check=False), "paused deployment")
    assert "deployment/roll resumed" in skiff.run("rollout", "resume", "deployment/roll").stdout
    failing(skiff.run("rollout", "restart", "namespace/default", check=False), "restarting is not supported")
    skiff.run("delete", "deployment", "roll")
