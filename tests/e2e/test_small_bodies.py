"""Small bodies that once took gigabytes, minutes or the whole process: each is answered in a sentence, at once."""
import http.client
import json
import os
import threading
import time

import pytest
from skiff import Skiff, wait_for

NS = "/api/v1/namespaces/tenant"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/tenant"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MOST_MEGABYTES = 400
# Of the processor, because a busy machine gives a server little of it: these bodies need at most 1.5 and once took
# minutes. A sanitized one needs several times as much.
PROCESSOR_SECONDS = 15
# That somebody else may have to wait meanwhile.
PATIENCE_SECONDS = 5


def peak_megabytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Tenants:
    """A server with service accounts that have no role (nobody), `edit` (editor) and `admin` (admin) in a namespace."""

    def __init__(self):
        self.skiff = Skiff("--images=host").start()
        ask = self.skiff.request
        assert ask("POST", "/api/v1/namespaces", {"metadata": {"name": "tenant"}})[0] == 201
        for name in ("nobody", "editor", "admin"):
            assert ask("POST", f"{NS}/serviceaccounts", {"metadata": {"name": name}})[0] == 201
        for name, role in (("editor", "edit"), ("admin", "admin")):
            binding = {"metadata": {"name": name},
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                       "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "tenant"}]}
            assert ask("POST", f"{RBAC}/rolebindings", binding)[0] == 201
        self.tokens = {name: ask("POST", f"{NS}/serviceaccounts/{name}/token", {"spec": {}})[1]["status"]["token"]
                       for name in ("nobody", "editor", "admin")}

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.skiff.http, timeout=60)

    def send(self, who, method, path, body, kind="application/json"):
        """(status, message) of the answer, during and after which the server is well."""
        text = body if isinstance(body, str) else json.dumps(body)
        assert len(text) < 3 * 1024 * 1024, "not a body that would be read at all"
        done = threading.Event()
        slowest = [0.0]

        def look():
            while not done.is_set():
                begun = time.monotonic()
                connection = self.connect()
                connection.request("GET", "/readyz")
                assert connection.getresponse().status == 200
                slowest[0] = max(slowest[0], time.monotonic() - begun)
                done.wait(0.05)
        looker = threading.Thread(target=look)
        looker.start()
        pid = self.skiff.pid()
        before = processor_seconds(pid)
        try:
            connection = self.connect()
            connection.request(method, path, text.encode(),
                               {"Content-Type": kind, "Authorization": f"Bearer {self.tokens[who]}"})
            answer = connection.getresponse()
            answered = json.loads(answer.read())
        finally:
            done.set()
            looker.join()
        assert processor_seconds(pid) - before < PROCESSOR_SECONDS
        assert slowest[0] < PATIENCE_SECONDS, "others had to wait"
        self.is_well()
        return answer.status, answered.get("message", "")

    def is_well(self):
        assert peak_megabytes(self.skiff.pid()) < MOST_MEGABYTES

    def waiting(self, pod):
        """The sentence with which the first container of a pod waits."""
        def told():
            statuses = (self.skiff.pod(pod, "tenant") or {}).get("status", {}).get("containerStatuses") or [{}]
            state = statuses[0].get("state", {}).get("waiting", {})
            return state if state.get("message") else None
        state = wait_for(told)
        self.is_well()
        return state["reason"], state["message"]

    def crash(self):
        self.skiff.kill()
        self.skiff.start()


@pytest.fixture(scope="module")
def tenants():
    made = Tenants()
    yield made
    made.skiff.stop()


def pod(name, volumes=(), **container):
    return {"metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "volumes": list(volumes),
                     "containers": [{"name": "main", "image": "x", "command": ["true"], **container}]}}


LONG = "x" * 1_000_000
ALIASES = {
    "aliases": f'a: &a "{LONG}"\nb:\n' + "- *a\n" * 2_500,
    "merges": f'a: &a {{k: "{LONG}"}}\nb:\n' + "- {<<: *a}\n" * 1_500,
    "nested-anchors": "".join(f"&a{i} [" for i in range(120)) + f'"{LONG}"' + "]" * 120,
    "documents": f'a: &a "{LONG}"\nb: [*a, *a]\n---\n' * 2,
}


@pytest.mark.parametrize("name", ALIASES)
def test_yaml_aliases(tenants, name):
    status, message = tenants.send("nobody", "POST", REVIEWS, ALIASES[name], "application/yaml")
    assert status == 400, message
    assert "document contains excessive aliasing" in message and "write it with fewer aliases" in message


def test_yaml_aliases_in_an_apply_patch(tenants):
    status, message = tenants.send("editor", "PATCH", f"{NS}/configmaps/c?fieldManager=me", ALIASES["aliases"],
                                   "application/apply-patch+yaml")
    assert status == 400 and "document contains excessive aliasing" in message, message


def test_fields_given_twice_below_a_long_key(tenants):
    text = '{"spec":{"' + "k" * 1_000_000 + '":{' + ",".join(['"a":1'] * 200_000) + "}}}"
    status, message = tenants.send("nobody", "POST", REVIEWS, text)
    assert status == 422, message
    status, message = tenants.send("nobody", "POST", REVIEWS + "?fieldValidation=Strict", text)
    assert len(message) < 1_000_000


def test_a_quarter_of_a_million_unknown_fields(tenants):
    status, message = tenants.send("nobody", "POST", REVIEWS, {f"{i:x}": 1 for i in range(250_000)})
    assert status == 422, message


@pytest.mark.parametrize("value", ["[]", "[0]", '{"a":1}', '""', "1"])
def test_many_small_values(tenants, value):
    text = '{"x":[' + ",".join([value] * (3_000_000 // (len(value) + 1))) + "]}"
    status, message = tenants.send("nobody", "POST", REVIEWS, text)
    assert status == 422, message


def test_a_pod_of_which_nothing_is_valid(tenants):
    status, message = tenants.send("editor", "POST", f"{NS}/pods", {"metadata": {"name": "bad"}, "spec": {
        "containers": [{"name": "A", "ports": [{}]} for _ in range(80_000)]}})
    assert status == 422 and "and others, too many to be listed" in message, message[:1000]


def test_json_patches_that_copy_or_build_towers(tenants):
    assert tenants.skiff.request("POST", f"{NS}/configmaps", {"metadata": {"name": "patched"}})[0] == 201
    kind = "application/json-patch+json"
    copies = [{"op": "add", "path": "/x", "value": {"a": "x"}}] + [
        {"op": "copy", "from": "/x", "path": f"/x/{i}"} for i in range(60)]
    status, message = tenants.send("editor", "PATCH", f"{NS}/configmaps/patched", copies, kind)
    assert status in (413, 422), message
    tower = '{"a":' * 110 + "{}" + "}" * 110
    moves = [f'{{"op":"add","path":"/z{i}","value":{tower}}}' for i in range(3_000)]
    moves += [f'{{"op":"move","from":"/z{i}","path":"/z{i + 1}{"/a" * 110}/a"}}' for i in range(2_999)]
    status, message = tenants.send("editor", "PATCH", f"{NS}/configmaps/patched", f"[{','.join(moves)}]", kind)
    assert status == 422 and "nested too deeply" in message, message


def test_a_role_of_millions_of_rights(tenants):
    words = {"apiGroups": "g", "resources": "r", "verbs": "v"}
    wide = {field: [f"{letter}{i}" for i in range(250)] for field, letter in words.items()}
    status, message = tenants.send("admin", "POST", f"{RBAC}/roles", {"metadata": {"name": "wide"}, "rules": [wide]})
    assert status == 403, message
    assert "attempting to grant RBAC permissions not currently held" in message
    assert message.endswith("and others, too many to be listed") and len(message) < 200_000
    # One that an administrator made is looked through as it is, and nobody else may bind it.
    assert tenants.skiff.request("POST", f"{RBAC}/roles", {"metadata": {"name": "wide"}, "rules": [wide]})[0] == 201
    binding = {"metadata": {"name": "wide"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                                                         "name": "wide"},
               "subjects": [{"kind": "ServiceAccount", "name": "editor", "namespace": "tenant"}]}
    assert tenants.send("admin", "POST", f"{RBAC}/rolebindings", binding)[0] == 403
    assert tenants.skiff.request("POST", f"{RBAC}/rolebindings", binding)[0] == 201
    status, _ = tenants.send("editor", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                             {"spec": {"namespace": "tenant"}})
    assert status == 201
    tenants.crash()
    tenants.is_well()


def doubling():
    return [{"name": "A0", "value": "xxx"}] + [{"name": f"A{i}", "value": f"$(A{i - 1})$(A{i - 1})"}
                                              for i in range(1, 40)]


# A real kube-apiserver takes these pods, and so does this one: it is the node that must not fall.
PODS = {
    "variables-that-double": (
        dict(env=doubling()), "CreateContainerConfigError", "expands to more than 131072 bytes"),
    "arguments-that-grow": (
        dict(env=[{"name": "A", "value": "x" * 100_000}], args=["$(A)"] * 3_000), "CreateContainerConfigError",
        "command and args expand to more than 2097152 bytes"),
    "a-path-that-grows": (
        dict(env=[{"name": "A", "value": "x" * 100}], volumes=[{"name": "v", "emptyDir": {}}],
             volumeMounts=[{"name": "v", "mountPath": "/v", "subPathExpr": "$(A)" * 100}]),
        "CreateContainerConfigError", "expands to more than 4096 bytes"),
    "variables-of-a-large-map": (
        dict(envFrom=[{"prefix": f"P{i}_", "configMapRef": {"name": "large"}} for i in range(3_000)]),
        "CreateContainerConfigError", "a program can be started with"),
    "files-of-one-large-key": (
        dict(volumes=[{"name": "v", "projected": {"sources": [{"configMap": {"name": "large", "items": [
            {"key": "k", "path": str(i)} for i in range(20_000)]}}]}}],
             volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        "CreateContainerError", "the files of the pod's volumes have more than 33554432 bytes"),
}


def test_pods_that_grow_are_refused_by_the_node_also_after_a_crash(tenants):
    large = {"metadata": {"name": "large"}, "data": {"k": LONG}}
    assert tenants.skiff.request("POST", f"{NS}/configmaps", large)[0] == 201
    for name, (container, _, _) in PODS.items():
        status, message = tenants.send("editor", "POST", f"{NS}/pods", pod(name, **container))
        assert status == 201, message

    def all_are_told():
        for name, (_, reason, words) in PODS.items():
            told = tenants.waiting(name)
            assert told[0] == reason and words in told[1], (name, told)
    all_are_told()
    # They are in the store now: the next start meets them again.
    tenants.crash()
    all_are_told()
    assert tenants.skiff.request("POST", f"{NS}/pods", pod("fine"))[0] == 201
    tenants.skiff.wait_phase("fine", "Succeeded", "tenant")
    tenants.is_well()


def test_a_pod_of_many_containers_that_each_take_a_large_map(tenants):
    """Each alone is small enough, all together are not: they are started a few at a time."""
    data = {f"K{i}": "x" * 100_000 for i in range(10)}
    assert tenants.skiff.request("POST", f"{NS}/configmaps", {"metadata": {"name": "shared"}, "data": data})[0] == 201
    many = pod("many")
    many["spec"]["containers"] = [{"name": f"c{i}", "image": "x", "command": ["true"],
                                   "envFrom": [{"configMapRef": {"name": "shared"}}]} for i in range(150)]
    status, message = tenants.send("editor", "POST", f"{NS}/pods", many)
    assert status == 201, message
    tenants.skiff.wait_phase("many", "Succeeded", "tenant", seconds=180)
    tenants.is_well()
