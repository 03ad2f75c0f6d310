"""Cluster IPs and node ports lead to pods that are ready."""
import hashlib
import json
import os
import socket
import subprocess
import sys
import urllib.request

import pytest

from skiff import Skiff, pod_manifest, wait_for

# Without root and nft names lead to pods themselves, and cluster IPs nowhere.
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/usr/sbin/nft"), reason="needs root and nft")

SERVER = """
import http.server, os, socketserver
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ["ME"].encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
socketserver.ThreadingTCPServer(("", 8080), Answer).serve_forever()
"""


def deployment(replicas):
    container = {"name": "main", "image": "skiff.dev/host", "command": [sys.executable, "-c", SERVER],
                 "env": [{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                 "ports": [{"name": "web", "containerPort": 8080}],
                 "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}}
    return json.dumps({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}},
                              "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}}})


SERVICE = json.dumps({
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
    "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web"}]}})

def ask(address):
    try:
        return urllib.request.urlopen(f"http://{address}", timeout=5).read().decode()
    except OSError:
        return ""


def refused(host, port):
    try:
        socket.create_connection((host, port), 5).close()
        return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def apply(skiff, manifest):
    skiff.kubectl("apply", "-f", "-", stdin=manifest if isinstance(manifest, str) else json.dumps(manifest))


def service(name, **spec):
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def inside(skiff, pod, script):
    return skiff.kubectl("exec", pod, "--", sys.executable, "-c", script).stdout.strip()


def cluster_ip(skiff, name):
    return skiff.kubectl("get", "service", name, "-o", "jsonpath={.spec.clusterIP}").stdout


def rules():
    return subprocess.run(["/usr/sbin/nft", "list", "tables"], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def web(skiff):
    """Two pods that answer with their names; (cluster IP, node port, names)."""
    apply(skiff, SERVICE)
    apply(skiff, deployment(2))
    skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    spec = json.loads(skiff.kubectl("get", "service", "web", "-o", "json").stdout)["spec"]
    names = {pod["metadata"]["name"] for pod in skiff.pods(selector="app=web")}
    wait_for(lambda: ask(spec["clusterIP"]) in names)
    yield spec["clusterIP"], spec["ports"][0]["nodePort"], names
    skiff.kubectl("delete", "service/web", "deployment/web")


def test_both_pods_answer_this_machine(web):
    ip, node_port, pods = web
    for address in (ip, f"127.0.0.1:{node_port}"):
        seen = set()
        wait_for(lambda: seen.add(ask(address)) or seen >= pods)
        assert seen == pods


def test_pods_are_led_to_each_other_and_to_themselves(skiff, web):
    ip, node_port, pods = web
    one = sorted(pods)[0]
    gateway = inside(skiff, one, "import os; print(os.environ['KUBERNETES_SERVICE_HOST'])")
    for address in ("web", "web.default.svc.cluster.local", ip, f"{gateway}:{node_port}"):
        asked = f"import urllib.request as u\nfor _ in range(16): print(u.urlopen('http://{address}', timeout=10).read().decode())"
        assert set(inside(skiff, one, asked).split()) == pods, address


def test_a_client_with_affinity_stays_with_its_pod(skiff, web):
    _, _, pods = web
    apply(skiff, dict(service("sticky", selector={"app": "web"}, sessionAffinity="ClientIP")))
    ip = cluster_ip(skiff, "sticky")
    wait_for(lambda: ask(ip) in pods)
    one = sorted(pods)[0]
    asked = f"import urllib.request as u\nfor _ in range(12): print(u.urlopen('http://{ip}', timeout=10).read().decode())"
    assert len(set(inside(skiff, one, asked).split())) == 1
    skiff.kubectl("delete", "service/sticky")


def test_the_api_is_found_by_its_service(skiff, web):
    one = sorted(web[2])[0]
    script = ("import json, ssl, urllib.request as u\n"
              "c = ssl.create_default_context(cafile='/var/run/secrets/kubernetes.io/serviceaccount/ca.crt')\n"
              "for h in ('10.96.0.1', 'kubernetes.default.svc'): print(json.load(u.urlopen(f'https://{h}/version', context=c, timeout=10))['major'])")
    assert inside(skiff, one, script).split() == ["1", "1"]


def test_udp(skiff, web):
    echo = ("import socket\ns = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5300))\n"
            "while True:\n    data, who = s.recvfrom(100); s.sendto(data.upper(), who)")
    pod = pod_manifest("echo", [sys.executable, "-c", echo], terminationGracePeriodSeconds=1)
    pod["metadata"]["labels"] = {"app": "echo"}
    apply(skiff, pod)
    apply(skiff, service("echo", ports=[{"port": 53, "targetPort": 5300, "protocol": "UDP"}]))
    skiff.wait_phase("echo", "Running")
    ip = cluster_ip(skiff, "echo")
    one = sorted(web[2])[0]
    script = ("import socket, time\nfor _ in range(50):\n"
              "    s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(1)\n"
              f"    try:\n        s.connect(('{ip}', 53)); s.send(b'hi'); print(s.recv(9).decode()); break\n"
              "    except OSError: time.sleep(0.1)")
    assert inside(skiff, one, script) == "HI"
    skiff.kubectl("delete", "pod/echo", "service/echo")


def test_who_is_not_ready_is_left_out_and_nobody_is_a_refusal(skiff, web):
    container = {"name": "main", "image": "skiff.dev/host", "command": [sys.executable, "-c", SERVER],
                 "env": [{"name": "ME", "value": "moody"}],
                 "readinessProbe": {"exec": {"command": ["test", "!", "-e", "/tmp/sulks"]}, "periodSeconds": 1, "failureThreshold": 1}}
    apply(skiff, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "moody", "labels": {"app": "moody"}},
                  "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}})
    apply(skiff, service("moody"))
    ip = cluster_ip(skiff, "moody")
    wait_for(lambda: ask(ip) == "moody")
    skiff.kubectl("exec", "moody", "--", "touch", "/tmp/sulks")
    wait_for(lambda: refused(ip, 80))
    one = sorted(web[2])[0]
    script = f"import socket\ntry: socket.create_connection(('{ip}', 80), 5)\nexcept OSError as e: print(type(e).__name__)"
    assert inside(skiff, one, script) == "ConnectionRefusedError"
    skiff.kubectl("exec", "moody", "--", "rm", "/tmp/sulks")
    wait_for(lambda: ask(ip) == "moody")
    skiff.kubectl("delete", "pod/moody", "service/moody")


def test_a_killed_skiff_loses_nothing_and_knows_what_changed(skiff, web):
    ip, _, pods = web
    skiff.kill()
    assert ask(ip) in pods, "rules stay while Skiff is away"
    skiff.start()
    wait_for(lambda: ask(ip) in pods)
    skiff.kubectl("scale", "deployment/web", "--replicas=0")
    wait_for(lambda: refused(ip, 80))
    skiff.kubectl("scale", "deployment/web", "--replicas=1")
    wait_for(lambda: ask(ip), 60)


def test_two_skiffs_do_not_meet_and_down_leaves_no_rules(skiff, web):
    """Both have a service at one cluster IP: the pods of each reach their own."""
    ip, _, _ = web
    other = Skiff("--images=host")
    # By its name: other programs of the machine come and go with tables of their own.
    table = "skiff" + hashlib.sha256(os.path.realpath(other.data).encode()).hexdigest()[:6]
    try:
        other.start()
        apply(other, service("web", clusterIP=ip))
        container = {"name": "main", "image": "skiff.dev/host", "command": [sys.executable, "-c", SERVER],
                     "env": [{"name": "ME", "value": "the other"}]}
        apply(other, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "labels": {"app": "web"}},
                      "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}})
        other.wait_phase("pod", "Running")
        script = ("import time, urllib.request as u\nfor _ in range(100):\n"
                  f"    try: print(u.urlopen('http://{ip}', timeout=5).read().decode()); break\n"
                  "    except OSError: time.sleep(0.1)")
        assert inside(other, "pod", script) == "the other"
        mine = {pod["metadata"]["name"] for pod in skiff.pods(selector="app=web")}
        assert inside(skiff, sorted(mine)[0], script) in mine
        assert f"{table}_services" in rules()
    finally:
        other.stop()
    assert table not in rules()
