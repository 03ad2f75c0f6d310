"""A real disk that fills up under a running Skiff, and files that are damaged when it starts."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import urllib.request

import pytest

from skiff import Skiff, wait_for

MAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.contextmanager
def small_disk(size):
    """A file system of its own; only root may make one."""
    folder = tempfile.mkdtemp(prefix="skiff-e2e-disk-")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
                             capture_output=True, text=True)
    if mounted.returncode and os.geteuid() != 0:
        os.rmdir(folder)
        pytest.skip("only root can mount a small disk: " + mounted.stderr)
    assert mounted.returncode == 0, mounted.stderr
    try:
        yield pathlib.Path(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


def fill(path):
    """A file that takes all the room there is."""
    with open(path, "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(b"x" * 4096)


def create(server, name, size=20_000):
    return server.request("POST", MAPS, {"metadata": {"name": name}, "data": {"text": "x" * size}})


class Watcher(threading.Thread):
    """Names of ConfigMaps in the order in which a watch tells of them."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.names = []
        self.stream = urllib.request.urlopen(f"http://127.0.0.1:{server.http}{MAPS}?watch=true", timeout=60)

    def run(self):
        with contextlib.suppress(OSError, ValueError):
            for line in self.stream:
                self.names.append(json.loads(line)["object"]["metadata"]["name"])


def write_until_refused(server):
    """Acknowledged names, and the answer of the first that was not."""
    acknowledged = []
    for n in range(2000):
        status, answer = create(server, f"more-{n}")
        if status != 201:
            return acknowledged, status, answer
        acknowledged.append(f"more-{n}")
    raise AssertionError("the disk never filled up")


def names(server):
    return {o["metadata"]["name"] for o in server.get(MAPS)["items"]}


def test_a_full_disk_refuses_writes_and_recovers_by_itself():
    with small_disk("24m") as disk:
        server = Skiff("--images=host")
        shutil.rmtree(server.data)
        server.data = str(disk / "data")
        server.start()
        try:
            pid = server.pid()
            assert create(server, "before")[0] == 201
            watcher = Watcher(server)
            watcher.start()
            fill(disk / "ballast")
            acknowledged, status, answer = write_until_refused(server)
            # The one that met the full disk first may be told that its outcome is open.
            assert status in (503, 504), answer
            status, answer = create(server, "refused")
            assert status == 503 and answer["reason"] == "ServiceUnavailable", answer
            assert f"the disk that holds {server.data}/objects.db is full" in answer["message"]
            told = server.kubectl("create", "configmap", "refused", check=False)
            assert told.returncode and "is full" in told.stderr, told.stderr
            assert server.request("DELETE", f"{MAPS}/before")[0] == 503

            # Reading goes on: one, all, kubectl, health, status.
            safe = {"kube-root-ca.crt", "before", *acknowledged}
            assert names(server) | {"kube-root-ca.crt"} == safe
            assert server.get(f"{MAPS}/before")["data"]["text"]
            assert "before" in server.kubectl("get", "configmaps").stdout
            assert server.request("GET", "/livez")[0] == 200
            assert server.request("GET", "/readyz")[0] == 500
            assert "is full" in server.request("GET", "/skiff/v1/status")[1]["refusing"]

            os.remove(disk / "ballast")
            wait_for(lambda: create(server, "after")[0] in (201, 409))
            assert create(server, "after-2")[0] == 201
            assert server.pid() == pid and server.request("GET", "/readyz")[0] == 200
            assert safe | {"after", "after-2"} <= names(server) | {"kube-root-ca.crt"}
            assert "refused" not in names(server)
            wait_for(lambda: "after-2" in watcher.names)
            mine = [n for n in watcher.names if n.startswith("more-")]
            assert mine[:len(acknowledged)] == acknowledged and len(set(mine)) == len(mine)

            # And all of it is on the disk.
            expected = names(server)
            server.kill()
            server.start()
            assert names(server) == expected
        finally:
            server.stop()


def test_a_crash_on_a_full_disk_loses_nothing_confirmed():
    with small_disk("24m") as disk:
        server = Skiff("--images=host")
        shutil.rmtree(server.data)
        server.data = str(disk / "data")
        server.start()
        try:
            fill(disk / "ballast")
            acknowledged, _, _ = write_until_refused(server)
            server.kill()
            os.remove(disk / "ballast")
            server.start()
            assert set(acknowledged) <= names(server)
            assert create(server, "after")[0] == 201
        finally:
            server.stop()


def contents(folder):
    return {p.name: p.read_bytes() for p in pathlib.Path(folder).glob("objects.db*") if p.stat().st_size}


@pytest.mark.parametrize("how", ["noise", "cut", "no log"])
def test_a_damaged_file_is_told_at_start_and_left_alone(how):
    server = Skiff("--images=host").start()
    try:
        for n in range(30):
            assert create(server, f"map-{n}")[0] == 201
        if how == "no log":
            server.kill()
            os.remove(f"{server.data}/objects.db-wal")
        else:
            server.run("down")
            path = pathlib.Path(server.data) / "objects.db"
            whole = path.read_bytes()
            middle = len(whole) // 2
            if how == "noise":
                with open(path, "r+b") as f:
                    f.seek(middle)
                    f.write(bytes((b ^ 0x55) for b in whole[middle:middle + 3000]))
            else:
                os.truncate(path, middle)
        before = contents(server.data)
        refused = server.run("up", "-d", "--https", f"127.0.0.1:{server.https}", "--http",
                             f"127.0.0.1:{server.http}", check=False)
        said = refused.stdout + refused.stderr
        assert refused.returncode != 0, said
        assert f"{server.data}/objects.db" in said and "damaged" in said and "backup" in said, said
        assert "Nothing was changed" in said
        assert contents(server.data) == before
    finally:
        server.stop()
