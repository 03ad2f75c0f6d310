"""Talking to pods: exec, attach, cp and port-forward with kubectl of both ages, and the Python client."""
import json
import os
import pty
import select
import socket
import subprocess
import threading
import time

import pytest
from kubernetes import client, config
from kubernetes.stream import portforward, stream

from skiff import ROOT, Skiff, free_port, pod_manifest, wait_for

# Port 7000 answers when its client has said everything, port 7002 at once.
ECHO = """
import socket, threading
def serve(port, at_once):
    server = socket.create_server(("127.0.0.1", port))
    print("listening", flush=True)
    while True:
        peer, _ = server.accept()
        whole = b""
        while piece := peer.recv(65536):
            if at_once: peer.sendall(piece.upper())
            else: whole += piece
        peer.sendall(whole.upper()); peer.close()
threading.Thread(target=serve, args=(7002, True)).start()
serve(7000, False)
"""


def tool(*command):
    return subprocess.run(list(command), stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def server():
    skiff = Skiff("--images=host").start()
    pods = [pod_manifest("box", ["sleep", "3600"]), pod_manifest("echo", ["python3", "-c", ECHO])]
    for pod in pods:
        assert skiff.request("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201
    for pod in pods:
        skiff.wait_phase(pod["metadata"]["name"], "Running")
    wait_for(lambda: skiff.kubectl("logs", "echo").stdout.count("listening") == 2)
    yield skiff
    skiff.stop()


class Kubectl:
    def __init__(self, binary, skiff, old):
        self.binary, self.skiff, self.old = binary, skiff, old

    def __call__(self, *arguments, stdin=None, check=True, text=True):
        done = subprocess.run([self.binary, *arguments], env=self.skiff.environment(), input=stdin,
                              capture_output=True, text=text, timeout=60)
        assert not check or done.returncode == 0, f"kubectl {arguments}:\n{done.stdout}{done.stderr}"
        return done

    def start(self, *arguments, **more):
        return subprocess.Popen([self.binary, *arguments], env=self.skiff.environment(), **more)


@pytest.fixture(scope="module", params=["1.20", "1.34"])
def kubectl(request, server):
    old = request.param == "1.20"
    binary = tool(ROOT / "tools" / "kubectl-old") if old else tool(ROOT / "tools" / "cluster", "kubectl") + "/kubectl"
    return Kubectl(binary, server, old)


def test_exec_tells_output_errors_and_exit_code(kubectl):
    done = kubectl("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (done.stdout, done.returncode) == ("out\n", 7)
    assert done.stderr.startswith("err\n")
    assert "command terminated with exit code 7" in done.stderr
    assert kubectl("exec", "box", "--", "true").stdout == ""


def test_exec_passes_input_on_and_ends_it(kubectl):
    text = "".join(f"line {i}\n" for i in range(50_000))
    assert kubectl("exec", "-i", "box", "--", "cat", stdin=text).stdout == text
    assert kubectl("exec", "-i", "box", "--", "wc", "-l", stdin=text).stdout.strip() == "50000"


def test_exec_of_much_output_that_is_read_slowly(kubectl):
    process = kubectl.start("exec", "box", "--", "sh", "-c", "head -c 20000000 /dev/zero", stdout=subprocess.PIPE)
    time.sleep(1)
    with process.stdout as out:
        assert sum(len(piece) for piece in iter(lambda: out.read(1 << 20), b"")) == 20_000_000
    assert process.wait(60) == 0


def read_until(fd, wanted, seconds=60):
    got, end = b"", time.monotonic() + seconds
    while wanted not in got and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                got += os.read(fd, 65536)
            except OSError:
                break
    assert wanted in got, got
    return got


def test_exec_with_a_terminal(kubectl):
    ours, theirs = pty.openpty()
    process = kubectl.start("exec", "-it", "box", "--", "sh", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"test -t 0 && test -t 1 && echo ter''minal\n")
    read_until(ours, b"terminal")
    # ^C reaches what runs in front, not the shell.
    os.write(ours, b"sleep 1000\n")
    time.sleep(0.5)
    os.write(ours, b"\x03")
    os.write(ours, b"echo al''ive\nexit 3\n")
    read_until(ours, b"alive")
    # What the terminal still says must be taken, or kubectl waits with it.
    while process.poll() is None:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                os.read(ours, 65536)
            except OSError:  # nobody holds its other end any more
                break
    assert process.wait(60) == 3
    os.close(ours)


def test_exec_says_what_is_wrong(kubectl):
    no = kubectl("exec", "nobody", "--", "true", check=False)
    assert no.returncode == 1 and 'pods "nobody" not found' in no.stderr
    no = kubectl("exec", "box", "-c", "other", "--", "true", check=False)
    assert no.returncode == 1 and "container other is not valid for pod box" in no.stderr
    no = kubectl("exec", "box", "--", "/no/such/program", check=False)
    assert no.returncode != 0 and "there is no such file" in no.stderr


def test_a_program_ends_with_its_client(kubectl, server):
    process = kubectl.start("exec", "box", "--", "sleep", "4321", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    runs = lambda: "4321" in kubectl("exec", "box", "--", "ps", "ax").stdout
    wait_for(runs)
    process.kill()
    process.communicate()
    wait_for(lambda: not runs())


def test_cp_there_and_back(kubectl, tmp_path):
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "data").write_bytes(os.urandom(3_000_000))
    (folder / "empty").write_text("")
    there = "/tmp/copy-old" if kubectl.old else "/tmp/copy-new"
    kubectl("cp", str(folder), f"box:{there}")
    back = tmp_path / "back"
    kubectl("cp", f"box:{there}", str(back))
    assert (back / "deep" / "data").read_bytes() == (folder / "deep" / "data").read_bytes()
    assert (back / "empty").read_text() == ""


def talk(port, text):
    with socket.create_connection(("127.0.0.1", port), 20) as peer:
        peer.sendall(text)
        peer.shutdown(socket.SHUT_WR)
        got = b""
        while piece := peer.recv(65536):
            got += piece
        return got


def test_port_forward_of_many_connections(kubectl):
    port = free_port()
    process = kubectl.start("port-forward", "pod/echo", f"{port}:7000", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert b"Forwarding from" in process.stdout.readline()
        assert talk(port, b"hello") == b"HELLO"
        large = b"abc" * 700_000
        assert talk(port, large) == large.upper()
        answers = [None] * 16
        threads = [threading.Thread(target=lambda i=i: answers.__setitem__(i, talk(port, b"n%d" % i))) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert answers == [b"N%d" % i for i in range(16)]
    finally:
        process.kill()
        process.communicate()


def test_port_forward_to_nobody(kubectl):
    port = free_port()
    process = kubectl.start("port-forward", "box", f"{port}:7001", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        process.stdout.readline()
        try:
            assert talk(port, b"hello") == b""
        except ConnectionError:
            pass
        lines = iter(process.stdout.readline, b"")
        assert any(b"Connection refused" in line for line in lines)
    finally:
        process.kill()
        process.communicate()


def interactive(name, command, tty=False):
    pod = pod_manifest(name, command)
    pod["spec"]["containers"][0].update(stdin=True, stdinOnce=True, tty=tty)
    return pod


def test_attach_to_what_runs(kubectl, server):
    name = f"talker-{'old' if kubectl.old else 'new'}"
    server.request("POST", "/api/v1/namespaces/default/pods", interactive(name, ["sh", "-c", "while read x; do echo got $x; done"]))
    server.wait_phase(name, "Running")
    done = kubectl("attach", "-i", name, stdin="one\ntwo\n")
    assert "got one\ngot two\n" in done.stdout
    server.wait_phase(name, "Succeeded")
    assert kubectl("logs", name).stdout == "got one\ngot two\n"


def test_run_in_one_line(kubectl):
    done = kubectl("run", "-i", "--rm", "--restart=Never", "--image=skiff.dev/host", "--quiet", "liner", "--command", "--",
                   "sh", "-c", "read x; echo $x $x", stdin="ho\n")
    assert "ho ho" in done.stdout


def test_python_client(server):
    config.load_kube_config(f"{server.data}/kubeconfig")
    api = client.CoreV1Api()
    got = stream(api.connect_get_namespaced_pod_exec, "box", "default", command=["sh", "-c", "echo $((6*7)); exit 5"],
                 stdout=True, stderr=True, stdin=False, tty=False, _preload_content=False)
    got.run_forever(timeout=60)
    assert got.read_stdout() == "42\n" and got.returncode == 5
    forward = portforward(api.connect_get_namespaced_pod_portforward, "echo", "default", ports="7002,7009")
    peer = forward.socket(7002)
    peer.setblocking(True)
    peer.sendall(b"python")
    assert peer.recv(100) == b"PYTHON"
    peer.close()
    wait_for(lambda: "Connection refused" in (forward.error(7009) or ""))


def test_nothing_is_left_of_it(server):
    """The threads and descriptors of all those conversations are gone again."""
    task = f"/proc/{server.pid()}"
    wait_for(lambda: len(os.listdir(f"{task}/task")) < 40)
    status, pods = server.request("GET", "/api/v1/namespaces/default/pods/box")
    assert status == 200 and pods["status"]["containerStatuses"][0]["restartCount"] == 0, json.dumps(pods)


# Says what it heard.
PAGES = """
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen = f"{self.command} {self.path} {body.decode()} {self.headers.get('Authorization')}".encode()
        self.send_response(201)
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", str(len(seen)))
        self.end_headers()
        self.wfile.write(seen)
http.server.HTTPServer(("127.0.0.1", 7080), Page).serve_forever()
"""


def test_a_port_of_a_pod_answers_behind_the_api(server):
    assert server.request("POST", "/api/v1/namespaces/default/pods",
                          pod_manifest("pages", ["python3", "-c", PAGES]))[0] == 201
    server.wait_phase("pages", "Running")
    place = "/api/v1/namespaces/default/pods"

    def asked():
        answer = server.request("POST", f"{place}/pages:7080/proxy/a%20b/?c=d", {"x": 1}, token=server.token())
        return answer[0] != 503 and answer
    assert wait_for(asked) == (201, 'POST /a%20b/?c=d {"x": 1} None')
    # A page of a pod is under Skiff's address, but not in its name.
    raw = subprocess.run(["curl", "-si", "-X", "POST", "-d", "", f"http://127.0.0.1:{server.http}{place}/pages:7080/proxy"],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "Content-Security-Policy: sandbox" in raw and "Set-Cookie" not in raw and raw.endswith("POST /  None")
    # The token that signed the client in is not for the pod.
    answer = subprocess.run(["curl", "-s", "-X", "POST", "-d", "",
                             f"http://127.0.0.1:{server.http}{place}/pages:7080/proxy/x//a?token={server.token()}&b=c"],
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    assert answer == "POST /x//a?b=c  None"
    status, failure = server.request("GET", f"{place}/pages:7081/proxy/")
    assert status == 503 and "error trying to reach service" in failure["message"]
    assert server.request("GET", f"{place}/nobody:1/proxy/")[0] == 404
    assert server.request("GET", f"{place}/pages:x/proxy/")[0] == 400


def test_nobody_asks_skiff_itself_in_the_name_of_a_pod(server):
    neighbour = pod_manifest("neighbour", ["sleep", "3600"])
    neighbour["spec"]["hostNetwork"] = True
    place = "/api/v1/namespaces/default/pods"
    assert server.request("POST", place, neighbour)[0] == 201
    server.wait_phase("neighbour", "Running")
    status, failure = server.request("GET", f"{place}/neighbour:{server.http}/proxy/api/v1/secrets")
    assert status == 503 and f"port {server.http} is Skiff's own" in failure["message"]


def test_logs_come_over_a_web_socket(server):
    from websocket import create_connection
    wait = create_connection(f"ws://127.0.0.1:{server.http}/api/v1/namespaces/default/pods/echo/log",
                             subprotocols=["binary.k8s.io"], suppress_origin=True, timeout=20)
    said = b""
    while piece := wait.recv_frame():
        if piece.opcode == 8:
            break
        said += piece.data
    assert said == b"listening\nlistening\n"
