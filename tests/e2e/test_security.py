"""Users, capabilities and files of pods by their securityContext, with real processes."""
import os

import pytest
from skiff import pod_manifest, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give pods other users")


def said(skiff, manifest, name, script, pod_context=None, context=None, **spec):
    """What a container with this securityContext prints."""
    pod = pod_manifest(name, ["sh", "-c", script], **spec)
    pod["spec"]["securityContext"] = pod_context or {}
    pod["spec"]["containers"][0]["securityContext"] = context or {}
    if "volumes" in spec:
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": v["name"], "mountPath": "/" + v["name"]}
                                                        for v in spec["volumes"]]
    skiff.kubectl("apply", "-f", manifest(pod))
    skiff.wait_phase(name, "Succeeded")
    text = skiff.kubectl("logs", name).stdout
    skiff.kubectl("delete", "pod", name, "--now")
    return text


def test_users_and_groups(skiff, manifest):
    text = said(skiff, manifest, "users", "id -u; id -g; id -G; touch /shared/made; stat -c %g /shared/made; "
                "cat /secret/key; touch /etc/no 2>/dev/null || echo refused",
                {"runAsUser": 4000, "runAsGroup": 4001, "fsGroup": 4002, "supplementalGroups": [4003]},
                volumes=[{"name": "shared", "emptyDir": {}},
                         {"name": "secret", "downwardAPI": {"defaultMode": 0o400, "items": [
                             {"path": "key", "fieldRef": {"fieldPath": "metadata.name"}}]}}])
    assert text == "4000\n4001\n4001 4002 4003\n4002\nusersrefused\n"


def test_root_is_refused_where_the_pod_says_so(skiff, manifest):
    pod = pod_manifest("noroot", ["id", "-u"], securityContext={"runAsNonRoot": True})
    skiff.kubectl("apply", "-f", manifest(pod))
    waiting = wait_for(lambda: next((c["state"].get("waiting") for c in
                                     skiff.pod("noroot")["status"].get("containerStatuses", [])
                                     if c["state"].get("waiting", {}).get("message")), None))
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"].startswith("container has runAsNonRoot and image will run as root (pod: \"noroot_default(")
    skiff.kubectl("delete", "pod", "noroot", "--now")
    assert said(skiff, manifest, "noroot", "id -u", {"runAsNonRoot": True, "runAsUser": 4000}) == "4000\n"


def test_a_read_only_root_and_its_volumes(skiff, manifest):
    text = said(skiff, manifest, "fixed", "touch /etc/x || echo no; touch /tmp/x || echo no; touch /data/x && echo yes",
                context={"readOnlyRootFilesystem": True}, volumes=[{"name": "data", "emptyDir": {}}])
    assert [line for line in text.splitlines() if not line.startswith("touch")] == ["no", "no", "yes"]


def test_capabilities_and_escalation(skiff, manifest):
    look = "grep -E 'CapEff|NoNewPrivs' /proc/self/status"

    def rights(context):
        text = said(skiff, manifest, "rights", look, context=context)
        words = dict(line.split(":") for line in text.splitlines())
        return int(words["CapEff"], 16), words["NoNewPrivs"].strip()

    chown, net_admin = 1 << 0, 1 << 12
    usual, free = rights({})
    assert usual & chown and not usual & net_admin and free == "0"
    assert rights({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}) == (net_admin, "0")
    assert rights({"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}) == (0, "1")
    assert rights({"privileged": True})[0] & net_admin


def test_the_kernel_is_told_which_pod_goes_first(skiff, manifest):
    assert said(skiff, manifest, "anyhow", "cat /proc/self/oom_score_adj") == "1000\n"
