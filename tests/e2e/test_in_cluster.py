"""Clients inside pods: the files and variables that tell them where the API is and who they are."""
import json
import os
import sys

from skiff import pod_manifest, wait_for

# What a user's program does in any pod of any cluster.
LIST_PODS = """
from kubernetes import client, config
config.load_incluster_config()
try:
    print("sees", [p.metadata.name for p in client.CoreV1Api().list_namespaced_pod("inside").items])
except client.ApiException as e:
    print("refused", e.status, e.body)
"""
# By name, with the authority from the pod's files: the certificate must name what DNS names.
BY_NAME = """
import json, os, ssl, urllib.request
files = "/var/run/secrets/kubernetes.io/serviceaccount/"
for host in ("kubernetes.default", "kubernetes.default.svc.cluster.local", "skiff.skiff-system.svc"):
    url = "https://%s:%s/version" % (host, os.environ["KUBERNETES_SERVICE_PORT"])
    print(host, json.load(urllib.request.urlopen(url, context=ssl.create_default_context(cafile=files + "ca.crt")))["major"])
print(open(files + "namespace").read())
"""


def run(skiff, name, script):
    pod = pod_manifest(name, [sys.executable, "-c", script])
    pod["metadata"]["namespace"] = "inside"
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    wait_for(lambda: skiff.kubectl("get", "pod", name, "-n", "inside", "-o", "jsonpath={.status.phase}").stdout
             in ("Succeeded", "Failed"), 60)
    return skiff.kubectl("logs", name, "-n", "inside").stdout


def test_a_program_in_a_pod_finds_the_api_and_is_its_service_account(skiff):
    skiff.kubectl("create", "namespace", "inside")
    refused = run(skiff, "before", LIST_PODS)
    assert refused.startswith("refused 403")
    assert "system:serviceaccount:inside:default" in refused
    skiff.kubectl("create", "rolebinding", "reader", "-n", "inside", "--clusterrole=view",
                  "--serviceaccount=inside:default")
    assert "'after'" in run(skiff, "after", LIST_PODS)
    by_name = run(skiff, "by-name", BY_NAME).split("\n")
    if os.geteuid() == 0:
        assert by_name[:3] == ["kubernetes.default 1", "kubernetes.default.svc.cluster.local 1",
                               "skiff.skiff-system.svc 1"]
    assert by_name[3] == "inside"
    skiff.kubectl("delete", "namespace", "inside")
