"""A user's day with kubectl, the oldest that Debian has and the newest."""
import json
import subprocess

import pytest

from skiff import ROOT, Skiff, wait_for

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: skiff.dev/host, command: [sleep, "60"], resources: {limits: {cpu: 100m}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: hello}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: skiff.dev/host, command: [sh, -c, "echo hello; sleep 0.2"]}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.org}
spec:
  group: sea.example.org
  scope: Namespaced
  names: {plural: boats, kind: Boat, shortNames: [bt]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Crew, type: integer, jsonPath: .spec.crew}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [crew]
            properties: {crew: {type: integer, minimum: 1, description: How many sail.}}
          status: {type: object, properties: {crew: {type: integer}}}
"""
BOAT = """
apiVersion: sea.example.org/v1
kind: Boat
metadata: {name: argo}
spec: {crew: 50}
"""


def tool(*command):
    return subprocess.run(list(command), stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module", params=["1.20", "1.34"])
def day(request):
    if request.param == "1.20":
        binary = tool(ROOT / "tools" / "kubectl-old")
    else:
        binary = tool(ROOT / "tools" / "cluster", "kubectl") + "/kubectl"
    skiff = Skiff("--images=host").start()

    def kubectl(*arguments, check=True, stdin=None):
        done = subprocess.run([binary, *arguments], env=skiff.environment(), input=stdin, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
        return done
    kubectl.version = request.param
    yield kubectl
    skiff.stop()


def test_looking_around(day):
    assert day.version in day("version").stdout + day("version", "--client", "-o", "json").stdout
    assert "Deployment" in day("api-resources").stdout
    assert "apps/v1" in day("api-versions").stdout
    assert "Ready" in day("get", "nodes", "-o", "wide").stdout
    assert "is running at" in day("cluster-info").stdout
    assert day("auth", "can-i", "create", "pods").stdout.strip() == "yes"
    assert "default" in day("get", "namespaces").stdout
    assert "containers" in day("explain", "pod.spec").stdout
    assert "replicas" in day("explain", "deployment.spec", "--recursive").stdout


def test_a_pod_and_its_log(day):
    day("apply", "-f", "-", stdin=POD)
    day("wait", "pod/hello", "--for=condition=PodScheduled", "--timeout=20s")
    wait_for(lambda: "hello" in day("logs", "hello", check=False).stdout)
    wait_for(lambda: "Completed" in day("get", "pod", "hello").stdout)
    assert "Image:" in day("describe", "pod", "hello").stdout
    day("delete", "pod", "hello")


def test_a_deployment_is_changed_in_every_way(day):
    day("create", "namespace", "team")
    n = ("-n", "team")
    assert "created" in day("apply", *n, "-f", "-", stdin=DEPLOYMENT).stdout
    assert "unchanged" in day("apply", *n, "-f", "-", stdin=DEPLOYMENT).stdout
    assert "configured" in day("apply", *n, "-f", "-", stdin=DEPLOYMENT.replace("100m", "200m")).stdout
    assert day("diff", *n, "-f", "-", stdin=DEPLOYMENT, check=False).returncode == 1
    day("scale", *n, "deployment/web", "--replicas=5")
    day("label", *n, "deployment/web", "tier=front")
    day("annotate", *n, "deployment/web", "note=x")
    day("set", "image", *n, "deployment/web", "main=skiff.dev/other")
    day("patch", *n, "deployment/web", "-p", '{"spec":{"minReadySeconds":3}}')
    day("patch", *n, "deployment/web", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/a","value":"b"}]')
    got = json.loads(day("get", *n, "deployment/web", "-o", "json").stdout)
    assert got["spec"]["replicas"] == 5 and got["spec"]["minReadySeconds"] == 3
    assert got["metadata"]["labels"] == {"app": "web", "tier": "front", "a": "b"}
    assert got["spec"]["template"]["spec"]["containers"][0]["image"] == "skiff.dev/other"
    assert "web" in day("get", *n, "deploy", "-l", "tier=front", "-o", "name").stdout
    assert "successfully rolled out" in day("rollout", "status", *n, "deployment/web", "--timeout=60s").stdout
    assert "5/5" in day("get", *n, "deployment").stdout
    day("create", *n, "configmap", "settings", "--from-literal=a=b")
    day("create", *n, "secret", "generic", "keys", "--from-literal=k=v")
    day("create", *n, "serviceaccount", "robot")
    day("create", *n, "role", "reader", "--verb=get", "--resource=pods")
    day("create", *n, "rolebinding", "reader", "--role=reader", "--serviceaccount=team:robot")
    day("create", *n, "quota", "small", "--hard=pods=10")
    day("create", *n, "job", "once", "--image=skiff.dev/host", "--", "true")
    if day.version != "1.20":  # it makes them in batch/v1beta1, which Kubernetes itself gave up in 1.25
        day("create", *n, "cronjob", "often", "--image=skiff.dev/host", "--schedule=*/5 * * * *", "--", "true")
    day("expose", *n, "deployment/web", "--port=80")
    everything = day("get", *n, "all,configmaps,secrets,serviceaccounts,roles,rolebindings,resourcequotas").stdout
    for name in ("deployment.apps/web", "service/web", "job.batch/once", "configmap/settings", "secret/keys", "serviceaccount/robot"):
        assert name in everything, everything
    who = ("--as=system:serviceaccount:team:robot", *n)
    assert day("auth", "can-i", "get", "pods", *who, check=False).stdout.strip() == "yes"
    assert day("auth", "can-i", "delete", "pods", *who, check=False).stdout.strip() == "no"
    assert day("get", "secrets", *who, check=False).stderr.startswith("Error from server (Forbidden)")
    day("delete", "namespace", "team")
    assert "NotFound" in day("get", "namespace", "team", check=False).stderr


def test_a_custom_kind(day):
    day("apply", "-f", "-", stdin=CRD)
    day("wait", "crd/boats.sea.example.org", "--for=condition=Established", "--timeout=10s")
    wait_for(lambda: day("apply", "-f", "-", stdin=BOAT, check=False).returncode == 0)
    assert "50" in day("get", "bt").stdout
    day("scale", "boat/argo", "--replicas=7")
    assert "7" in day("get", "boats", "argo", "-o", "jsonpath={.spec.crew}").stdout
    wait_for(lambda: "How many sail" in day("explain", "boat.spec.crew", check=False).stdout)
    refused = day("apply", "-f", "-", stdin=BOAT.replace("50", "0"), check=False)
    assert refused.returncode == 1 and "greater than or equal to 1" in refused.stderr
    day("delete", "-f", "-", stdin=CRD)


def test_mistakes_are_told(day):
    typo = day("apply", "-f", "-", stdin=POD.replace("restartPolicy", "restartPolice"), check=False)
    assert typo.returncode == 1 and "restartPolice" in typo.stderr
    assert "NotFound" in day("get", "pod", "none", check=False).stderr
    assert "doesn't have a resource type" in day("get", "nothings", check=False).stderr
    bad = day("create", "configmap", "Upper", check=False)
    assert bad.returncode == 1 and "RFC 1123" in bad.stderr


def test_server_side_apply(day):
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: '1'}\n"
    day("apply", "--server-side", "--field-manager=ann", "-f", "-", stdin=config)
    conflict = day("apply", "--server-side", "--field-manager=bob", "-f", "-", stdin=config.replace("'1'", "'2'"), check=False)
    assert conflict.returncode == 1 and "conflict" in conflict.stderr
    day("apply", "--server-side", "--force-conflicts", "--field-manager=bob", "-f", "-", stdin=config.replace("'1'", "'2'"))
    assert day("get", "configmap", "shared", "-o", "jsonpath={.data.a}").stdout == "2"
    day("delete", "configmap", "shared")
