"""Cluster IPs and node ports lead to pods that are ready."""
import json
import socket
import urllib.request

from skiff import wait_for

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
    container = {"name": "main", "image": "skiff.dev/host", "command": ["python3", "-c", SERVER],
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

ASK = "import urllib.request as u; print(u.urlopen('http://%s', timeout=10).read().decode())"


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


def test_services_lead_to_ready_pods(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=SERVICE)
    skiff.kubectl("apply", "-f", "-", stdin=deployment(2))
    skiff.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    spec = json.loads(skiff.kubectl("get", "service", "web", "-o", "json").stdout)["spec"]
    ip, node_port = spec["clusterIP"], spec["ports"][0]["nodePort"]
    pods = {pod["metadata"]["name"] for pod in skiff.pods(selector="app=web")}

    # From this machine: both pods answer in turn, by the cluster IP and by the node's port.
    for address in (ip, f"127.0.0.1:{node_port}"):
        seen = set()
        wait_for(lambda: seen.add(ask(address)) or seen >= pods, 30)
        assert seen - {""} == pods

    # From a pod by its name, and from one of its own pods (which may come out at itself).
    one = sorted(pods)[0]
    for _ in range(4):
        assert skiff.kubectl("exec", one, "--", "python3", "-c", ASK % "web.default.svc.cluster.local").stdout.strip() in pods
        assert skiff.kubectl("exec", one, "--", "python3", "-c", ASK % ip).stdout.strip() in pods

    # Nobody behind it: refused at once, not waited for; and back again.
    skiff.kubectl("scale", "deployment/web", "--replicas=0")
    wait_for(lambda: refused(ip, 80), 30)
    skiff.kubectl("scale", "deployment/web", "--replicas=1")
    wait_for(lambda: ask(ip), 60)
    skiff.kubectl("delete", "service/web", "deployment/web")
