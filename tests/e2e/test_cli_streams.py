"""skiff run, exec, attach, cp and port-forward."""
import os
import pty
import select
import signal
import socket
import subprocess

import pytest

from skiff import BINARY, Skiff, free_port, pod_manifest, wait_for


@pytest.fixture(scope="module")
def server():
    skiff = Skiff("--images=host").start()
    skiff.request("POST", "/api/v1/namespaces/default/pods", pod_manifest("box", ["sleep", "3600"]))
    skiff.wait_phase("box", "Running")
    yield skiff
    skiff.stop()


def start(server, *arguments, **more):
    return subprocess.Popen([BINARY, *arguments], env=server.environment(), **more)


def test_run_shows_output_and_passes_the_exit_code_on(server):
    done = server.run("run", "one", "--env", "GREETING=ahoy", "--", "sh", "-c", "echo $GREETING; exit 4", check=False)
    assert (done.stdout, done.returncode) == ("ahoy\n", 4)
    assert server.pod("one")["status"]["phase"] == "Failed"
    assert "already exists" in server.run("run", "one", "--", "true", check=False).stderr


def test_run_with_input_and_removal(server):
    done = server.run("run", "two", "-i", "--rm", "--", "sh", "-c", "read x; echo $x $x", stdin="ho\n")
    assert done.stdout == "ho ho\n"
    wait_for(lambda: server.pod("two") is None)


def test_run_says_why_it_waits(server):
    process = start(server, "run", "big", "--limit", "memory=900Ti", "--", "true", stderr=subprocess.PIPE, text=True)
    assert "Insufficient memory" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.stderr.close()
    wait_for(lambda: server.pod("big") is None)


def test_exec(server):
    done = server.run("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 9", check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 9)
    text = "line\n" * 100_000
    assert server.run("exec", "-i", "box", "--", "cat", stdin=text).stdout == text
    no = server.run("exec", "nobody", "--", "true", check=False)
    assert no.returncode == 1 and 'pods "nobody" not found' in no.stderr


def test_exec_with_a_terminal(server):
    ours, theirs = pty.openpty()
    process = start(server, "exec", "-it", "box", "--", "sh", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"test -t 0 && echo ter''minal; exit 6\n")
    got = b""
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                got += os.read(ours, 65536)
            except OSError:
                break
    assert process.wait(20) == 6 and b"terminal" in got
    os.close(ours)


def test_cp(server, tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "x").write_bytes(os.urandom(500_000))
    server.run("cp", str(tmp_path / "in"), "box:/tmp/other name")
    server.run("cp", "box:/tmp/other name", str(tmp_path / "back"))
    assert (tmp_path / "back" / "deep" / "x").read_bytes() == (tmp_path / "in" / "deep" / "x").read_bytes()
    # Into a folder that is there.
    server.run("cp", str(tmp_path / "in" / "deep" / "x"), "box:/tmp")
    assert server.run("exec", "box", "--", "wc", "-c", "/tmp/x").stdout.startswith("500000")
    no = server.run("cp", "box:/no/such/file", str(tmp_path / "y"), check=False)
    assert no.returncode == 1 and "error" in no.stderr


def test_cp_takes_nothing_but_what_was_asked_for(server, tmp_path):
    """The program tar of a pod is the pod's: it may send more."""
    script = ("mkdir -p /tmp/bin /tmp/evil; echo m > /tmp/evil/model; echo x > /tmp/evil/extra; "
              "printf '#!/bin/sh\\nexec /usr/bin/tar -cf - -C /tmp/evil ./extra ./model ./extra' > /tmp/bin/tar; "
              "chmod +x /tmp/bin/tar; echo up; sleep 3600")
    pod = pod_manifest("evil", ["sh", "-c", script])
    pod["spec"]["containers"][0]["env"] = [{"name": "PATH", "value": "/tmp/bin:/usr/bin:/bin"}]
    server.request("POST", "/api/v1/namespaces/default/pods", pod)
    wait_for(lambda: "up" in server.run("logs", "evil", check=False).stdout)
    server.run("cp", "evil:/tmp/evil/model", str(tmp_path / "model"))
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == "m\n"


def test_port_forward(server):
    code = ("import socket\ns = socket.create_server(('127.0.0.1', 7000))\nprint('up', flush=True)\n"
            "while True:\n  p, _ = s.accept()\n  w = b''\n  while x := p.recv(9999): w += x\n  p.sendall(w.upper()); p.close()\n")
    server.request("POST", "/api/v1/namespaces/default/pods", pod_manifest("echo", ["python3", "-c", code]))
    server.wait_phase("echo", "Running")
    wait_for(lambda: "up" in server.run("logs", "echo").stdout)
    port = free_port()
    process = start(server, "port-forward", "pod/echo", f"{port}:7000", stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == f"Forwarding from 127.0.0.1:{port} -> 7000\n"
        for text in (b"hello", b"abc" * 200_000):
            with socket.create_connection(("127.0.0.1", port), 20) as peer:
                peer.sendall(text)
                peer.shutdown(socket.SHUT_WR)
                got = b""
                while piece := peer.recv(65536):
                    got += piece
            assert got == text.upper()
    finally:
        process.kill()
        process.communicate()
    no = server.run("port-forward", "nobody", "80", check=False)
    assert no.returncode == 1 and "not found" in no.stderr
