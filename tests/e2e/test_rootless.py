"""Skiff of an ordinary user: pods with addresses, names and files of their own in a user namespace."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile
import tempfile

import pytest

import skiff as harness
from images import BUSYBOX, Image, busybox_layer, layer
from skiff import Skiff, alive, pod_manifest, wait_for

USER = 23456
# The tests run as root of a machine whose /dev/net/tun may be root's: the user gets his own in a private mount
# namespace, as distributions give it to everybody.
def become(tun_mode="666", granted=False, without=""):
    """Granted: /etc/subuid gives the user others beside himself. Without: a program that he cannot run."""
    hide = f" && mount --bind /dev/null {shutil.which(without)}" if without and shutil.which(without) else ""
    users = f" && cat /etc/passwd > /mnt/passwd && echo 'skiffer:x:{USER}:{USER}::/:/bin/sh' >> /mnt/passwd" + "".join(
        f" && echo skiffer:300000:65536 > /mnt/{name} && touch /etc/{name} && mount --bind /mnt/{name} /etc/{name}"
        for name in ("subuid", "subgid")) + " && mount --bind /mnt/passwd /etc/passwd"
    return ["unshare", "-m", "sh", "-c",
            f"mount -t tmpfs -o mode=755 none /mnt && mknod /mnt/tun c 10 200 && chmod {tun_mode} /mnt/tun"
            f" && mount --bind /mnt/tun /dev/net/tun{users if granted else ''}{hide}"
            f' && exec setpriv --reuid {USER} --regid {USER} --clear-groups "$@"', "sh"]


def usable():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return False
    if not (shutil.which("pasta") or shutil.which("slirp4netns")):
        return False
    return subprocess.run([*become(), "unshare", "-Urn", "true"], capture_output=True).returncode == 0


class RootlessSkiff(Skiff):
    """The same, driven by a user without rights; the binary is where he may read it."""

    def __init__(self, *up_options, **rights):
        super().__init__(*up_options)
        self.rights = rights
        self.place = tempfile.mkdtemp(prefix="skiff-e2e-user-")
        os.chmod(self.place, 0o755)
        self.binary = shutil.copy(harness.BINARY, f"{self.place}/skiff")
        os.chmod(self.binary, 0o755)
        for folder in (self.data, self.home, self.reports):
            os.chown(folder, USER, USER)

    def request(self, method, path, body=None, token=None, headers=None):
        return super().request(method, path, body, token or self.token(), headers)

    def run(self, *arguments, check=True, stdin=None, timeout=120):
        done = subprocess.run([*become(**self.rights), self.binary, *arguments], env=self.environment(), input=stdin, cwd="/",
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode:
            raise AssertionError(f"skiff {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def log(self):
        return (pathlib.Path(self.data) / "skiff.log").read_text()

    def record(self):
        return json.loads((pathlib.Path(self.data) / "rootless.json").read_text())

    def stop(self):
        super().stop()
        shutil.rmtree(self.place, ignore_errors=True)


def left_over(data):
    """Processes of the user that name the data folder."""
    out = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and data.encode() in (folder / "cmdline").read_bytes() and alive(int(folder.name)):
                out.append((folder.name, (folder / "cmdline").read_bytes()))
        except OSError:
            pass
    return out


SERVER = ("import http.server, socketserver\n"
          "class A(http.server.BaseHTTPRequestHandler):\n"
          "    def do_GET(self):\n"
          "        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'hi')\n"
          "socketserver.ThreadingTCPServer(('', 80), A).serve_forever()")
PYTHON = "/usr/bin/python3"
needs_namespace = pytest.mark.skipif(not usable(), reason="needs root, /dev/net/tun and pasta or slirp4netns")


@pytest.fixture(scope="module")
def rootless():
    server = RootlessSkiff("--images=host")
    server.start()
    pod = pod_manifest("web", [PYTHON, "-c", SERVER], terminationGracePeriodSeconds=1)
    pod["metadata"]["labels"] = {"app": "web"}
    server.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    server.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": 80}]}}))
    server.kubectl("apply", "-f", "-", stdin=json.dumps(
        pod_manifest("client", ["sleep", "1000"], terminationGracePeriodSeconds=1)))
    for name in ("web", "client"):
        server.wait_phase(name, "Running")
    yield server
    server.stop()
    assert left_over(server.data) == []


def inside(server, pod, script):
    return server.kubectl("exec", pod, "--", PYTHON, "-c", script).stdout.strip()


def fetch(url):
    return ("import time, urllib.request as u\nfor _ in range(50):\n"
            f"    try: print(u.urlopen('{url}', timeout=5).read().decode()); break\n"
            "    except OSError: time.sleep(0.1)")


@needs_namespace
def test_it_is_told_which_network_pods_have(rootless):
    assert "pods have a network of their own in a user namespace, the outside by " in rootless.log()
    assert "pods have no resource limits" in rootless.log()


@needs_namespace
def test_pods_have_addresses_of_their_own_and_find_each_other(rootless):
    web, client = (rootless.pod(name)["status"]["podIP"] for name in ("web", "client"))
    assert web != client and not web.startswith("127.")
    assert inside(rootless, "client", fetch(f"http://{web}")) == "hi"
    assert inside(rootless, "client", fetch("http://web:8080")) == "hi"
    assert inside(rootless, "web", fetch("http://web.default.svc.cluster.local:8080")) == "hi", "itself"


@needs_namespace
def test_the_api_is_found_from_pods_and_trusts_the_user_outside(rootless):
    script = ("import json, ssl, urllib.request as u\n"
              "c = ssl.create_default_context(cafile='/var/run/secrets/kubernetes.io/serviceaccount/ca.crt')\n"
              "print(json.load(u.urlopen('https://kubernetes.default.svc/version', context=c, timeout=10))['major'])")
    assert inside(rootless, "client", script) == "1"
    assert Skiff.request(rootless, "GET", "/api/v1/pods")[0] == 403, "anonymous: root is not the user who started it"
    url = f"http://127.0.0.1:{rootless.http}/api/v1/pods"
    asked = subprocess.run([*become(), PYTHON, "-c", f"import urllib.request as u; print(u.urlopen('{url}').status)"],
                           capture_output=True, text=True, cwd="/")
    assert asked.stdout.strip() == "200", asked.stderr


@needs_namespace
def test_pods_do_not_see_each_others_processes_and_write_only_for_themselves(rootless):
    inside(rootless, "web", "open('/etc/mark', 'w').write('x')")
    assert not os.path.exists("/etc/mark")
    assert inside(rootless, "client", "import os; print(os.path.exists('/etc/mark'))") == "False"
    assert "sleep" not in inside(rootless, "web", "import glob; print([open(p).read() for p in glob.glob('/proc/[0-9]*/comm')])")
    assert rootless.kubectl("exec", "client", "--", "cat", f"{rootless.data}/kubeconfig", check=False).returncode != 0


@needs_namespace
def test_volumes_are_at_their_paths(rootless):
    pod = pod_manifest("volume", ["sh", "-c", "cat /config/key && echo more > /scratch/x && cat /scratch/x"],
                       volumes=[{"name": "config", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "config", "mountPath": "/config"},
                                                    {"name": "scratch", "mountPath": "/scratch"}]
    rootless.kubectl("create", "configmap", "settings", "--from-literal=key=value\n")
    rootless.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    rootless.wait_phase("volume", "Succeeded")
    assert rootless.kubectl("logs", "volume").stdout.split() == ["value", "more"]
    rootless.kubectl("delete", "pod/volume", "configmap/settings")


def default_gateway():
    """Of the machine; pasta maps its loopback to this address unless it is told not to."""
    words = subprocess.run(["ip", "-4", "route", "show", "default"], capture_output=True, text=True, check=True).stdout.split()
    return words[words.index("via") + 1] if "via" in words else ""


def has_default_route():
    return bool(subprocess.run(["ip", "-4", "route", "show", "default"], capture_output=True, check=True).stdout.strip())


REACH = "import socket\ntry: socket.create_connection(('%s', %d), 3); print('reached')\nexcept OSError as e: print(e)"


@contextlib.contextmanager
def listener_outside():
    """Its address and port: on this machine, but not on its loopback."""
    address = "198.51.100.77"
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    try:
        with socket.create_server((address, 0)) as there:
            yield there.getsockname()
    finally:
        subprocess.run(["ip", "address", "del", f"{address}/32", "dev", "lo"], check=True)


@needs_namespace
@pytest.mark.parametrize("without, program", [("slirp4netns", "pasta"), ("pasta", "slirp4netns")])
def test_the_outside_is_reached_and_the_loopback_of_the_machine_is_not(without, program):
    if not shutil.which(program):
        pytest.skip(f"needs {program}")
    server = RootlessSkiff("--images=host", without=without)
    try:
        server.start()
        assert f"the outside by {program}" in server.log()
        server.kubectl("apply", "-f", "-", stdin=json.dumps(
            pod_manifest("client", ["sleep", "1000"], terminationGracePeriodSeconds=1)))
        server.wait_phase("client", "Running")
        if has_default_route():
            with listener_outside() as there:
                assert inside(server, "client", REACH % there) == "reached"
        gateway = inside(server, "client", "import os; print(os.environ['KUBERNETES_SERVICE_HOST'])")
        with socket.create_server(("127.0.0.1", 0)) as here:
            here.settimeout(0.2)
            for address in filter(None, ("127.0.0.1", gateway, "10.0.2.2", default_gateway())):
                inside(server, "client", REACH % (address, here.getsockname()[1]))
            with pytest.raises(TimeoutError):
                here.accept()
    finally:
        server.stop()
    assert left_over(server.data) == []


@needs_namespace
def test_a_killed_skiff_finds_its_pods_and_their_network_again(rootless):
    before, address = rootless.record(), rootless.pod("web")["status"]["podIP"]
    rootless.kill()
    rootless.start()
    assert rootless.record()["holder"] == before["holder"]
    assert inside(rootless, "client", fetch(f"http://{address}")) == "hi"
    assert inside(rootless, "client", fetch("http://web:8080")) == "hi"
    # What carried its packets has ended meanwhile.
    rootless.kill()
    os.kill(before["network"]["pid"], 9)
    wait_for(lambda: not alive(before["network"]["pid"]))
    rootless.start()
    assert rootless.record()["network"] != before["network"]
    assert inside(rootless, "client", fetch("http://web:8080")) == "hi"


@needs_namespace
def test_down_after_a_kill_leaves_nothing():
    server = RootlessSkiff("--images=host")
    try:
        server.start()
        server.kubectl("apply", "-f", "-", stdin=json.dumps(pod_manifest("long", ["sleep", "1000"])))
        server.wait_phase("long", "Running")
        server.kill()
        assert left_over(server.data)
        server.run("down")
        assert left_over(server.data) == []
    finally:
        server.stop()


def start_with_a_pod(server):
    server.start()
    server.kubectl("apply", "-f", "-", stdin=json.dumps(
        pod_manifest("long", ["sleep", "1000"], terminationGracePeriodSeconds=1)))
    server.wait_phase("long", "Running")
    return server.record()


def kill_processes(*pids):
    for pid in pids:
        os.kill(pid, 9)
    for pid in pids:
        wait_for(lambda: not alive(pid))


@needs_namespace
@pytest.mark.parametrize("then", ["down", "up"])
def test_a_killed_holder_leaves_no_network_program(then):
    server = RootlessSkiff("--images=host")
    try:
        before = start_with_a_pod(server)
        server.kill()
        kill_processes(before["holder"]["pid"])
        assert alive(before["network"]["pid"]), "it does not notice by itself"
        if then == "down":
            server.run("down")
            assert left_over(server.data) == []
        else:
            server.start()
            assert server.record()["network"] != before["network"]
        wait_for(lambda: not alive(before["network"]["pid"]))
    finally:
        server.stop()


@needs_namespace
def test_pods_are_found_again_where_the_way_out_cannot_be_mended():
    server = RootlessSkiff("--images=host")
    try:
        before = start_with_a_pod(server)
        server.kill()
        kill_processes(before["network"]["pid"])
        server.rights = {"tun_mode": "600"}
        server.start()
        assert "but do not reach the outside: " in server.log()
        assert server.record()["holder"] == before["holder"]
        assert server.kubectl("exec", "long", "--", "echo", "here").stdout == "here\n"
        server.kill()
        server.run("down")
        assert left_over(server.data) == []
    finally:
        server.stop()


def owned_folder(tar, path, uid, gid):
    """With a folder that is closed to everybody but its owner, and is not empty."""
    out = io.BytesIO(tar)
    with tarfile.open(fileobj=out, mode="a") as archive:
        for name, kind in ((path, tarfile.DIRTYPE), (path + "/own", tarfile.REGTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid, info.gid = kind, 0o700, uid, gid
            archive.addfile(info)
    return out.getvalue()


# What the image wants, what it is: the user of the image, owners in its layers, and what its layers hide.
@needs_namespace
@pytest.mark.skipif(not os.path.exists(BUSYBOX), reason="needs busybox")
@pytest.mark.parametrize("granted, users", [(False, "0 0"), (True, "1000 1001")])
def test_images_run(granted, users, tmp_path):
    if granted and not shutil.which("newuidmap"):
        pytest.skip("needs newuidmap")
    os.chmod(tmp_path, 0o755)
    for folder in tmp_path.parents:
        if folder.is_relative_to(tempfile.gettempdir()) and folder != pathlib.Path(tempfile.gettempdir()):
            os.chmod(folder, 0o755)
    first = busybox_layer(**{"data": None, "data/old": b"old", "data/kept": b"kept", "full": None, "full/a": b"a"})
    first = owned_folder(first, "home/worker", 1000, 1001)
    second = layer({"data/.wh.old": b"", "full/.wh..wh..opq": b"", "full/b": b"b"})
    image = Image([first, second], Env=["PATH=/bin"], User="worker")
    archive = image.docker_archive(tmp_path / "a.tar", "box:1")
    os.chmod(archive, 0o644)
    server = RootlessSkiff(granted=granted)
    try:
        server.start()
        assert ("all users in pods are you" in server.log()) != granted
        server.run("image", "load", str(archive))
        pod = pod_manifest("box", ["sh", "-c", "echo $(id -u) $(id -g); echo $(ls /data) - $(ls /full)"])
        pod["spec"]["containers"][0]["image"] = "box:1"
        server.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        server.wait_phase("box", "Succeeded")
        assert server.kubectl("logs", "box").stdout == f"{users}\nkept - b\n"
        server.run("down", "--purge")
        assert not os.path.exists(server.data)
    finally:
        server.stop()


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/net/tun"),
                    reason="needs root to become somebody else, and /dev/net/tun to take it from him")
def test_where_it_is_not_allowed_pods_have_loopback_addresses_and_it_is_told():
    server = RootlessSkiff("--images=host", tun_mode="600")
    try:
        server.start()
        assert "pods have loopback addresses, no network of their own: " in server.log()
        assert "to listen on, and all ports there" in server.log()
        serve_and_find_each_other(server)
        assert not [line for _, line in left_over(server.data) if b"hold" in line]
    finally:
        server.stop()
    assert left_over(server.data) == []


def serve_and_find_each_other(server):
    """Without namespaces: two pods on one port of root's, names, a service, oneself, exec, proxy, probes."""
    for name in ("web", "other"):
        script = SERVER.replace("b'hi'", f"b'{name[:2]}'")
        pod = pod_manifest(name, [PYTHON, "-c", script], terminationGracePeriodSeconds=1, subdomain="web", hostname=name)
        pod["metadata"]["labels"] = {"app": name, "all": "yes"}
        pod["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"port": 80}, "periodSeconds": 1}
        server.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    for name, spec in (("web", {"clusterIP": "None", "selector": {"all": "yes"}}),
                       ("front", {"selector": {"app": "other"}, "ports": [{"port": 8080, "targetPort": 80}]})):
        server.kubectl("apply", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}))
    server.kubectl("wait", "--for=condition=Ready", "pod/web", "pod/other", "--timeout=60s")
    web, other = (server.pod(name)["status"]["podIP"] for name in ("web", "other"))
    assert web.startswith("127.") and other.startswith("127.") and web != other
    assert inside(server, "web", fetch(f"http://{other}")) == "ot"
    assert inside(server, "web", fetch("http://localhost")) == "we"
    assert inside(server, "other", fetch("http://127.0.0.1")) == "ot"
    assert inside(server, "other", fetch("http://web.web")) == "we", "a name by the pod's search list"
    assert inside(server, "web", fetch("http://front:8080")) == "ot", "a cluster IP"
    assert inside(server, "web", fetch("http://front.default.svc.cluster.local:8080")) == "ot"
    assert inside(server, "web", "import ssl, urllib.request as u\nc = ssl._create_unverified_context()\n"
                  "print(u.urlopen('https://kubernetes.default.svc/healthz', context=c, timeout=10).read().decode())") == "ok"
    assert server.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/other:80/proxy/").stdout == "ot"
    # They run on while Skiff is away, and names are found again after it.
    server.kill()
    server.start()
    assert inside(server, "other", fetch("http://web.web")) == "we"
