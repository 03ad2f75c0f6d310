"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and the controllers whose work
Skiff's API server does itself. Run as a program it stays until interrupted and prints its address:

    tests/cluster/control_plane.py [--no-controllers]
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = "control-plane-admin"
# The rest would make pods of deployments and the like, which nobody runs here.
CONTROLLERS = ("namespace-controller,garbage-collector-controller,serviceaccount-controller,"
               "serviceaccount-token-controller,root-ca-certificate-publisher-controller,"
               "clusterrole-aggregation-controller,resourcequota-controller")


GIVEN = set()


def free_port():
    """One that nobody listens on, and that was not given before: the kernel may name the same one twice in a row."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


class ControlPlane:
    def __init__(self, controllers=CONTROLLERS, api_options=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="skiff-cluster-"))
        self.port = free_port()
        self.address = f"https://127.0.0.1:{self.port}"
        self.controllers = controllers
        self.api_options = list(api_options)
        self.processes = []
        self.kubeconfig = str(self.folder / "kubeconfig")

    def start(self):
        programs = subprocess.run([ROOT / "tools" / "cluster"], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout.strip()
        self.programs = pathlib.Path(programs)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def _start_all(self):
        client, peer = free_port(), free_port()
        self._spawn("etcd", "--data-dir", self.folder / "etcd",
                    "--listen-client-urls", f"http://127.0.0.1:{client}",
                    "--advertise-client-urls", f"http://127.0.0.1:{client}",
                    "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                    "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                    "--initial-cluster", f"default=http://127.0.0.1:{peer}")
        key = self.folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(
            f'{TOKEN},admin,admin,"system:masters"\nreader-token,reader,reader,"readers"\n')
        self._spawn("kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{client}",
                    "--bind-address", "127.0.0.1", "--secure-port", str(self.port),
                    "--cert-dir", self.folder / "certs", "--token-auth-file", self.folder / "tokens.csv",
                    "--service-account-key-file", key, "--service-account-signing-key-file", key,
                    "--service-account-issuer", "https://kubernetes.default.svc",
                    "--service-cluster-ip-range", "10.96.0.0/16",
                    "--authorization-mode", "RBAC", "--allow-privileged=true", "--profiling=false", *self.api_options)
        self._write_kubeconfig()
        self._wait_ready()
        if self.controllers:
            self._spawn("kube-controller-manager", "--kubeconfig", self.kubeconfig,
                        "--controllers", self.controllers, "--leader-elect=false",
                        "--service-account-private-key-file", key, "--use-service-account-credentials=false",
                        "--root-ca-file", self.folder / "certs" / "apiserver.crt",
                        "--bind-address", "127.0.0.1", "--secure-port", str(free_port()),
                        "--cert-dir", self.folder / "certs", "--profiling=false")
            self._wait(lambda: self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200)

    def _spawn(self, program, *arguments):
        log = open(self.folder / f"{program}.log", "wb")
        self.processes.append(subprocess.Popen([str(self.programs / program), *map(str, arguments)],
                                               stdout=log, stderr=log, start_new_session=True))

    def _write_kubeconfig(self):
        cluster = {"server": self.address, "insecure-skip-tls-verify": True}
        pathlib.Path(self.kubeconfig).write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}]}))

    def _wait(self, ready, seconds=60):
        end = time.monotonic() + seconds
        while not ready():
            for process in self.processes:
                if process.poll() is not None:
                    raise AssertionError(f"{process.args[0]} ended with {process.returncode}:\n" + self.logs())
            if time.monotonic() > end:
                raise AssertionError(f"the control plane is not ready after {seconds} s:\n" + self.logs())
            time.sleep(0.1)

    def _wait_ready(self):
        def ready():
            try:
                return self.request("GET", "/readyz")[0] == 200
            except OSError:
                return False
        self._wait(ready)

    def logs(self):
        return "\n".join(f"== {log.name}\n" + log.read_text(errors="replace")[-3000:]
                         for log in sorted(self.folder.glob("*.log")))

    def memory_bytes(self):
        """Resident memory of each process."""
        out = {}
        for process in self.processes:
            for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    out[os.path.basename(process.args[0])] = int(line.split()[1]) * 1024
        return out

    def request(self, method, path, body=None, headers=None, token=TOKEN):
        """(status, JSON or text)"""
        request = urllib.request.Request(self.address + path, method=method,
                                         data=None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        request.add_header("Authorization", f"Bearer {token}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    plane = ControlPlane(controllers="" if "--no-controllers" in sys.argv else CONTROLLERS).start()
    print(f"address    {plane.address}\ntoken      {TOKEN}\nkubeconfig {plane.kubeconfig}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        signal.pause()
    finally:
        plane.stop()


if __name__ == "__main__":
    main()
