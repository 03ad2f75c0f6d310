"""Attacks of a tenant who may `edit` one namespace, against a running Skiff; each test is named after its attack."""
import base64
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import threading

import pytest

from skiff import Skiff, alive, free_port, pod_manifest, wait_for

TENANT = "--as=mallory"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture
def tenant(skiff):
    skiff.kubectl("create", "rolebinding", "mallory-edits", "--clusterrole=edit", "--user=mallory")
    yield skiff
    skiff.kubectl("delete", "rolebinding", "mallory-edits")


def events(skiff, name, reason):
    items = skiff.get("/api/v1/namespaces/default/events")["items"]
    return [e["message"] for e in items if e["involvedObject"]["name"] == name and e["reason"] == reason]


def apply(skiff, value):
    skiff.kubectl("apply", TENANT, "-f", "-", stdin=json.dumps(value))


def smuggled(port):
    """A path that ends its own request and holds a second one, which makes the tenant an administrator."""
    binding = json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                          "metadata": {"generateName": "mallory-rules-"},
                          "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                      "name": "cluster-admin"},
                          "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}]})
    return (f"/healthz HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"
            f"POST {BINDINGS} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(binding)}\r\n\r\n{binding}")


def bindings(skiff):
    return [b["metadata"]["name"] for b in skiff.get(BINDINGS)["items"] if b["metadata"]["name"].startswith("mallory-rules")]


@pytest.mark.parametrize("host_network", [False, True])
def test_probe_to_cluster_admin(tenant, host_network):
    """Skiff itself connected to the host of a probe, and its own listener trusted it."""
    name = f"smuggler-{host_network}".lower()
    here = {"host": "127.0.0.1", "port": tenant.http}
    pod = pod_manifest(name, ["sleep", "600"], hostNetwork=host_network, terminationGracePeriodSeconds=1)
    pod["spec"]["containers"][0].update(
        readinessProbe={"httpGet": {**here, "path": smuggled(tenant.http)}, "periodSeconds": 1, "timeoutSeconds": 10},
        # Any answer of the list says that Skiff was taken for its user.
        livenessProbe={"httpGet": {**here, "path": "/api/v1/secrets"}, "periodSeconds": 1, "timeoutSeconds": 10,
                       "failureThreshold": 1000},
        lifecycle={"postStart": {"httpGet": {**here, "path": smuggled(tenant.http)}}})
    apply(tenant, pod)
    # On the machine's network the listener is reached, and takes Skiff for nobody. Elsewhere 127.0.0.1 is the pod, where
    # nobody listens; so its hook fails, and it never gets to its probes.
    refused = lambda: [m for m in events(tenant, name, "Unhealthy") if m.startswith("Liveness")]  # noqa: E731
    wait_for(lambda: bindings(tenant) or (refused() if host_network else events(tenant, name, "FailedPostStartHook")))
    assert bindings(tenant) == []
    assert all("HTTP probe failed with statuscode: 40" in m for m in refused()), refused()
    assert tenant.kubectl("auth", "can-i", "get", "nodes", TENANT, check=False).stdout.strip() == "no"
    tenant.kubectl("delete", "pod", name, "--now")


@pytest.mark.parametrize("host_network", [False, True])
def test_probes_still_reach_their_pods(tenant, host_network):
    port = free_port()
    name = f"served-{host_network}".lower()
    pod = pod_manifest(name, [sys.executable, "-m", "http.server", str(port), "-d", "/tmp"], hostNetwork=host_network,
                       terminationGracePeriodSeconds=1)
    pod["spec"]["containers"][0].update(
        readinessProbe={"httpGet": {"port": port, "path": "/?a b"}, "periodSeconds": 1, "timeoutSeconds": 10},
        startupProbe={"tcpSocket": {"host": "localhost", "port": port}, "periodSeconds": 1, "timeoutSeconds": 10,
                      "failureThreshold": 60},
        livenessProbe={"httpGet": {"host": "127.0.0.1", "port": port, "path": "/"}, "periodSeconds": 1,
                       "timeoutSeconds": 10})
    apply(tenant, pod)
    wait_for(lambda: any(c["type"] == "Ready" and c["status"] == "True"
                         for c in tenant.pod(name)["status"].get("conditions", [])))
    tenant.kubectl("delete", "pod", name, "--now")


ASK = """
import time, urllib.request, urllib.error
while True:
    try:
        print(urllib.request.urlopen("http://127.0.0.1:{port}/api/v1/secrets").status, flush=True)
    except urllib.error.HTTPError as e:
        print(e.code, flush=True)
    except OSError as e:
        print("none", flush=True)
    time.sleep(0.2)
"""


def test_a_pod_on_the_machines_network_is_not_the_user(tenant):
    """Root in such a pod is the user whom Skiff runs as, and reaches the loopback that Skiff trusts."""
    apply(tenant, pod_manifest("near", [sys.executable, "-c", ASK.format(port=tenant.http)], hostNetwork=True,
                               terminationGracePeriodSeconds=1))
    said = lambda: tenant.kubectl("logs", "near", check=False).stdout.split()  # noqa: E731
    wait_for(lambda: len(said()) > 2)
    # The pod is older than the Skiff that is asked now, and none of its children.
    tenant.kill()
    tenant.start()
    before = len(said())
    wait_for(lambda: len(said()) > before + 10)
    assert not {"200"} & set(said()), said()
    assert {"401", "403"} & set(said()[before + 5:]), said()
    # The user himself still is.
    assert tenant.request("GET", "/api/v1/secrets")[0] == 200
    tenant.kubectl("delete", "pod", "near", "--now")


class EvilRegistry:
    """Answers everything with a challenge that names Skiff's own door, or with a redirect to it."""

    def __init__(self, target, address="127.0.0.1", certificate=None, redirects=False):
        registry, self.asked = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.asked.append(self.path)
                self.send_response(307 if redirects else 401)
                if redirects:
                    self.send_header("Location", target)
                else:
                    self.send_header("WWW-Authenticate", f'Bearer realm="{target}",service="evil"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.name = f"{address}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def outer_address():
    """An address of this machine that is not its loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return s.getsockname()[0]


class Believing(Skiff):
    """Takes the certificate of a registry for good."""

    def environment(self):
        return dict(super().environment(), **({"SSL_CERT_FILE": self.authority} if self.authority else {}))


def pull(server, registry, name):
    pid = server.pid()
    auths = {"auths": {registry.name: {"auth": base64.b64encode(b"mallory:").decode(), "identitytoken": "mine"}}}
    apply(server, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
                   "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": json.dumps(auths)}})
    apply(server, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                   "spec": {"containers": [{"name": "main", "image": f"{registry.name}/a/b"}],
                            "imagePullSecrets": [{"name": name}]}})

    def ended():
        try:
            return events(server, name, "Failed")
        except OSError:
            return not alive(pid) and ["Skiff is gone"]
    why = wait_for(ended)
    assert alive(pid), "the registry has stopped Skiff"
    assert registry.asked
    return why


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to pull images")
@pytest.mark.parametrize("far", [False, True])
def test_registry_stops_skiff(far, tmp_path):
    """The realm of a registry's challenge was asked, by POST, in Skiff's own name: its own /skiff/v1/stop."""
    server = Believing()
    server.authority = None
    address, certificate = "127.0.0.1", None
    if far:
        address = outer_address()
        if not address or address.startswith("127."):
            pytest.skip("this machine has no address but its loopback")
        certificate = server.authority = str(tmp_path / "registry.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=evil", "-addext", f"subjectAltName=IP:{address}", "-out",
                        certificate, "-keyout", str(tmp_path / "key.pem")], check=True, capture_output=True)
        with open(certificate, "a") as out:
            out.write((tmp_path / "key.pem").read_text())
    server.start()
    try:
        server.kubectl("create", "rolebinding", "mallory-edits", "--clusterrole=edit", "--user=mallory")
        pid = server.pid()
        stop = f"http://127.0.0.1:{server.http}/skiff/v1/stop"
        for number, redirects in enumerate((False, True)):
            registry = EvilRegistry(stop, address, certificate, redirects)
            try:
                why = pull(server, registry, f"pull-{number}")
            finally:
                registry.stop()
            if far and redirects:
                assert any("redirects to plain HTTP" in m for m in why), why
            elif far:
                assert any("127.0.0.1" in m and "address of this machine's own" in m for m in why), why
            else:
                assert any("pull access denied" in m for m in why), why
        assert server.pid() == pid and alive(pid)
        assert server.kubectl("get", "nodes").stdout
    finally:
        server.stop()
