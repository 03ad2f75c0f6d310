"""Faults of pods and of their machine, each with a look at what stays behind: nothing may, and what
was acknowledged is there."""
import os
import pathlib
import signal
import time

import leaks
import pytest
from leaks import nothing_leaks
from skiff import Skiff, alive, pod_manifest, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has namespaces and limits to look at")


@pytest.fixture(scope="module")
def server():
    made = Skiff("--images=host").start()
    made.run("down")
    # So few addresses that one lost by each test would be missed before the last one.
    subnet = pathlib.Path(made.data, "subnet")
    subnet.write_text(subnet.read_text().split("/")[0] + "/28")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def neighbour(server):
    """A pod that must not feel what happens beside it."""
    program = "import time\nwhile True: print(int(time.time()), flush=True); time.sleep(0.2)"
    create(server, pod_manifest("neighbour", ["python3", "-c", program]))
    server.wait_phase("neighbour", "Running")
    says = lambda: server.kubectl("logs", "neighbour").stdout.split()  # noqa: E731
    wait_for(says)
    return says


@pytest.fixture(autouse=True)
def unharmed(server, neighbour):
    before, pid = server.pod("neighbour"), server.pid()
    count = len(neighbour())
    with nothing_leaks(server):
        yield
        for pod in server.pods():
            if pod["metadata"]["name"] != "neighbour":
                delete(server, pod["metadata"]["name"])
    after = server.pod("neighbour")
    for key in ("containerID", "restartCount"):
        assert after["status"]["containerStatuses"][0][key] == before["status"]["containerStatuses"][0][key]
    wait_for(lambda: len(neighbour()) > count)
    said = [int(line) for line in neighbour()]
    assert all(b - a <= 20 for a, b in zip(said, said[1:])), "the neighbour stood still"
    assert server.pid() == pid or not alive(pid), "two at once"


def create(server, pod):
    status, answer = server.request("POST", "/api/v1/namespaces/default/pods", pod)
    assert status == 201, answer


def delete(server, name, grace=0):
    server.request("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={grace}")
    wait_for(lambda: not server.pod(name))


def container(server, name, index=0):
    statuses = server.pod(name)["status"].get("containerStatuses") or [{}]
    return statuses[index]


def terminated(server, name, seconds=60):
    def ended():
        state = container(server, name).get("state", {})
        return state.get("terminated")
    return wait_for(ended, seconds)


def log(server, name):
    return server.kubectl("logs", name).stdout


def pods_processes(server, name):
    """Process ids of everything in the pod's control group."""
    uid = server.pod(name)["metadata"]["uid"]
    found = set()
    for folder in leaks.groups(server):
        if f"pod{uid}" in folder:
            found |= {int(line) for line in leaks.read(folder + "cgroup.procs").split()}
    return found


def shim_of(server, name):
    uid = server.pod(name)["metadata"]["uid"]
    mine = [pid for line, pid in leaks.processes(server).items() if f"shim {server.data}/pods/{uid}" in line
            and leaks.read(f"/proc/{pid}/comm") == "skiff-shim\n"]
    assert len(mine) == 1, mine
    return mine[0]


def running(server, name, script, **spec):
    """A pod with this shell script that has said "ready"."""
    pod = pod_manifest(name, ["sh", "-c", script], **spec)
    create(server, pod)
    wait_for(lambda: server.pod(name)["status"].get("phase") in ("Running", "Succeeded"))
    wait_for(lambda: "ready" in log(server, name))


def test_skiff_is_killed_while_pods_run(server):
    running(server, "stays", "echo ready; i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); sleep 0.05; done")
    before = container(server, "stays")["containerID"]
    assert server.request("POST", "/api/v1/namespaces/default/configmaps",
                          {"metadata": {"name": "acknowledged"}})[0] == 201
    server.kill()
    server.start()
    assert terminated(server, "stays")["exitCode"] == 0
    assert container(server, "stays")["containerID"] == before
    assert log(server, "stays").split() == ["ready", *map(str, range(60))]
    assert server.request("DELETE", "/api/v1/namespaces/default/configmaps/acknowledged")[0] == 200


def test_skiff_is_killed_while_pods_go(server):
    """Those whose deletion was acknowledged do not come back, and leave nothing."""
    for n in range(4):
        running(server, f"goes-{n}", "trap '' TERM; echo ready; while true; do sleep 1; done",
                terminationGracePeriodSeconds=2)
    for n in range(4):
        assert server.request("DELETE", f"/api/v1/namespaces/default/pods/goes-{n}")[0] == 200
    server.kill()
    server.start()
    wait_for(lambda: [p["metadata"]["name"] for p in server.pods()] == ["neighbour"])


def test_the_shim_is_killed(server):
    """Its containers die with it: the pod says so, and one that may be restarted is."""
    loop = "echo ready; while true; do sleep 1; done"
    running(server, "never", loop)
    running(server, "always", "(setsid sleep 4321 &); " + loop, restartPolicy="Always")
    old = pods_processes(server, "always") | pods_processes(server, "never")
    assert len(old) >= 6
    for name in ("never", "always"):
        os.kill(shim_of(server, name), signal.SIGKILL)
    end = terminated(server, "never")
    assert end["exitCode"] == 137 and end["message"] == "the pod's shim was killed", end
    wait_for(lambda: server.pod("never")["status"]["phase"] == "Failed")
    wait_for(lambda: container(server, "always").get("restartCount") == 1 and
             container(server, "always")["state"].get("running"))
    assert not [pid for pid in old if alive(pid)]
    last = container(server, "always")["lastState"]["terminated"]
    assert last["exitCode"] == 137 and last["message"] == "the pod's shim was killed", last
    assert "ready" in server.kubectl("logs", "always", "--previous").stdout


def test_the_shim_is_killed_while_skiff_is_away(server):
    running(server, "lost", "echo ready; sleep 1000")
    shim, inside = shim_of(server, "lost"), pods_processes(server, "lost")
    server.kill()
    os.kill(shim, signal.SIGKILL)
    wait_for(lambda: not [pid for pid in inside if alive(pid)])
    server.start()
    end = terminated(server, "lost")
    assert end["exitCode"] == 137 and end["message"] == "the pod's shim was killed", end
    assert log(server, "lost") == "ready\n"


def test_the_program_is_killed(server):
    running(server, "child", "sleep 4322 & echo ready; wait", restartPolicy="OnFailure")
    victims = [pid for pid in pods_processes(server, "child") if "wait" in leaks.read(f"/proc/{pid}/cmdline")]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: container(server, "child").get("restartCount") == 1)
    last = container(server, "child")["lastState"]["terminated"]
    assert last["exitCode"] == 137 and last["reason"] == "Error", last


def test_a_memory_hog_is_told_as_such(server):
    hog = pod_manifest("hog", ["python3", "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))"])
    hog["spec"]["containers"][0]["resources"] = {"limits": {"memory": "48Mi"}}
    create(server, hog)
    end = terminated(server, "hog")
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)
    told = server.run("why", "pod/hog").stdout
    assert "48Mi" in told or "memory" in told, told


def test_a_fork_bomb_meets_its_limit(server):
    """Every container has one without asking; Skiff and other pods answer while the bomb goes on."""
    running(server, "bomb", "echo ready; until test -e /tmp/go; do sleep 0.1; done\n"
            "bomb() { bomb | bomb & }; bomb 2>/dev/null; while true; do sleep 1 2>/dev/null; done")
    uid = server.pod("bomb")["metadata"]["uid"]
    limit = next(pathlib.Path(g, "pids.max") for g in leaks.groups(server)
                 if g.endswith(f"/pod{uid}/main/") and os.path.exists(g + "pids.max"))
    assert 1024 <= int(limit.read_text()) <= int(leaks.read("/proc/sys/kernel/threads-max")) // 4
    limit.write_text("700")  # the same sooner
    server.kubectl("exec", "bomb", "--", "touch", "/tmp/go")
    # How often the kernel refused.
    wait_for(lambda: int((limit.parent / "pids.events").read_text().split()[1]) > 100)
    assert int((limit.parent / "pids.current").read_text()) <= 700
    assert server.request("GET", "/readyz")[0] == 200
    create(server, pod_manifest("meanwhile", ["echo", "fine"]))
    server.wait_phase("meanwhile", "Succeeded")
    delete(server, "bomb")


def test_a_program_that_ignores_sigterm(server):
    running(server, "deaf", "trap '' TERM; (trap '' TERM; sleep 4323) & echo ready; while true; do sleep 0.1; done")
    inside = pods_processes(server, "deaf")
    assert len(inside) >= 3
    began = time.monotonic()
    server.request("DELETE", "/api/v1/namespaces/default/pods/deaf?gracePeriodSeconds=2")
    wait_for(lambda: not any(alive(pid) for pid in inside) or not server.pod("deaf"), every=0.01)
    assert time.monotonic() - began >= 1.9, "it had two seconds"
    wait_for(lambda: not server.pod("deaf"))
    assert not [pid for pid in inside if alive(pid)], "the object went before its processes"


def test_children_that_left_their_parents(server):
    """Daemons: forked twice, in sessions of their own, deaf to everything that can be refused."""
    daemon = "import os, signal, sys, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\n" \
             "for _ in range(2):\n  if os.fork(): os._exit(0)\n  os.setsid()\n" \
             "for fd in (0, 1, 2): os.close(fd)\ntime.sleep(4324)"
    start = f"python3 -c '{daemon}'; echo ready; "
    running(server, "stopped", start + "sleep 1000")
    running(server, "ended", start + "sleep 1")
    inside = pods_processes(server, "stopped")
    assert any("4324" in leaks.read(f"/proc/{pid}/cmdline") for pid in inside)
    assert terminated(server, "ended")["exitCode"] == 0
    wait_for(lambda: not [pid for line, pid in leaks.processes(server).items() if "4324" in line and
                          pid not in inside])
    delete(server, "stopped", grace=1)
    assert not [pid for pid in inside if alive(pid)]


def resident(server):
    text = leaks.read(f"/proc/{server.pid()}/smaps_rollup")
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Anonymous:")) * 1024


def test_a_flood_of_logs(server, neighbour):
    """Files stay bounded, Skiff's memory too, and who reads slowly holds up nobody."""
    megabytes = 120
    line = "x" * 99
    flood = f"import sys\nblock = '{line}\\n' * 10000\n" \
            f"for _ in range({megabytes}): sys.stdout.write(block)\nprint('the end', flush=True)\n" \
            "import time; time.sleep(1000)"
    before = resident(server)
    pod = pod_manifest("flood", ["sh", "-c", "sleep 1; exec python3 -c \"$FLOOD\""])
    pod["spec"]["containers"][0]["env"] = [{"name": "FLOOD", "value": flood}]
    create(server, pod)
    server.wait_phase("flood", "Running")
    slow = server.kubectl_popen("logs", "-f", "flood")  # nobody reads what it says
    try:
        folder = pathlib.Path(server.data, "pods", server.pod("flood")["metadata"]["uid"], "logs", "main")
        wait_for(lambda: server.kubectl("logs", "flood", "--tail=1").stdout == "the end\n", 90, 0.3)
        sizes = {f.name: f.stat().st_size for f in folder.iterdir()}
        assert sum(sizes.values()) < 64 << 20 and len(sizes) <= 5, sizes
        assert slow.poll() is None
        assert resident(server) - before < 64 << 20, "the flood is in Skiff's memory"
        assert neighbour()
    finally:
        slow.kill()
        slow.communicate()


def test_addresses_come_back(server):
    """More pods than there are addresses, one after another and however they end."""
    for n in range(16):
        create(server, pod_manifest(f"brief-{n}", ["sleep", "1000"] if n % 4 == 3 else ["true"]))
        if n % 4 == 3:
            server.wait_phase(f"brief-{n}", "Running")
            os.kill(shim_of(server, f"brief-{n}"), signal.SIGKILL)
            server.wait_phase(f"brief-{n}", "Failed")
        else:
            server.wait_phase(f"brief-{n}", "Succeeded")
        delete(server, f"brief-{n}")


def test_too_many_pods_for_the_addresses_wait(server):
    names = [f"crowd-{n}" for n in range(14)]
    for name in names:
        create(server, pod_manifest(name, ["sleep", "1000"]))
    up = lambda: [n for n in names if server.pod(n)["status"].get("phase") == "Running"]  # noqa: E731
    wait_for(lambda: len(up()) == 12)
    waiting, ready = [n for n in names if n not in up()], up()
    for name in waiting:
        wait_for(lambda: "address" in server.kubectl("describe", "pod", name).stdout)
    for name in ready[:2]:
        delete(server, name)
    for name in waiting:
        server.wait_phase(name, "Running", seconds=60)
