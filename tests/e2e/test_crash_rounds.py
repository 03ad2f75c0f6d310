"""kill -9, five hundred times, while clients create, change and remove: what was acknowledged is
there, nothing is there that nobody asked for, and no watch misses a change or sees one twice."""
import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time

import pytest

from skiff import BINARY, Skiff, wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 4
NAMES = 8  # for each writer


class Gone(Exception):
    """The server was killed under a request: its outcome is open."""


class Connection:
    def __init__(self, server):
        self.http = http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)

    def call(self, method, path, body=None):
        try:
            self.http.request(method, path, None if body is None else json.dumps(body),
                              {"Content-Type": "application/json"})
            answer = self.http.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Gone from error


class Writer:
    """One client and all it knows of its own objects. Nobody else writes them."""

    def __init__(self, number, seed):
        self.number, self.rng = number, random.Random(seed)
        self.known = {}       # name: (value, resourceVersion) as acknowledged or seen
        self.open = None      # (name, value or None): sent, and the server died before it answered
        self.newest = 0       # highest revision acknowledged
        self.acknowledged = 0
        self.count = 0
        self.wrong = []

    def run(self, server):
        connection = Connection(server)
        try:
            while not self.wrong:
                self.step(connection)
        except Gone:
            pass

    def step(self, connection):
        name = f"w{self.number}-{self.rng.randrange(NAMES)}"
        self.count += 1
        value = f"{self.number}:{self.count}"
        body = {"metadata": {"name": name}, "data": {"v": value, "pad": "x" * self.rng.randrange(3000)}}
        if name not in self.known:
            request = ("POST", MAPS, body)
        elif self.rng.random() < 0.3:
            request, value = ("DELETE", f"{MAPS}/{name}"), None
        else:
            body["metadata"]["resourceVersion"] = self.known[name][1]
            request = ("PUT", f"{MAPS}/{name}", body)
        self.open = (name, value)
        status, answer = connection.call(*request)
        self.open = None
        if status not in (200, 201):
            self.wrong.append(f"{request[:2]}: {status} {answer.get('message')}")
        elif value is None:
            del self.known[name]
        else:
            revision = int(answer["metadata"]["resourceVersion"])
            if revision <= self.newest:
                self.wrong.append(f"{name}: revision {revision} after {self.newest}")
            self.newest = revision
            self.known[name] = (value, str(revision))
        self.acknowledged += 1

    def compare(self, found):
        """What a new start shows: as acknowledged, but for the one request that was open."""
        mine = {n: o for n, o in found.items() if n.startswith(f"w{self.number}-")}
        for name in set(mine) | set(self.known):
            value = mine[name]["data"]["v"] if name in mine else None
            allowed = [self.known[name][0] if name in self.known else None]
            if self.open and self.open[0] == name:
                allowed.append(self.open[1])
            if value not in allowed:
                self.wrong.append(f"{name} is {value}, not one of {allowed}")
            elif value == allowed[0] and name in mine and name in self.known and \
                    mine[name]["metadata"]["resourceVersion"] != self.known[name][1]:
                self.wrong.append(f"{name} has another revision than was acknowledged")
        self.known = {n: (o["data"]["v"], o["metadata"]["resourceVersion"]) for n, o in mine.items()}
        self.open = None


class Watcher:
    """Follows by list and watch as client-go does, over all crashes."""

    def __init__(self):
        self.objects, self.revision, self.events, self.lists, self.wrong = {}, 0, 0, 0, []

    def run(self, server):
        connection = Connection(server)
        try:
            if not self.revision or not self.watch(connection):
                self.list(Connection(server))
                self.watch(Connection(server))
        except Gone:
            pass

    def list(self, connection):
        status, answer = connection.call("GET", MAPS)
        revision = int(answer["metadata"]["resourceVersion"])
        if status != 200 or revision < self.revision:
            self.wrong.append(f"a list at {revision} after a watch that was at {self.revision}")
        found = {o["metadata"]["name"]: int(o["metadata"]["resourceVersion"]) for o in answer["items"]}
        for name, seen in self.objects.items():
            if found.get(name, seen) < seen:
                self.wrong.append(f"{name} was seen at {seen} and is back at {found[name]}")
        self.objects, self.revision = found, revision
        self.lists += 1

    def watch(self, connection):
        """False: the server asks to list again."""
        try:
            connection.http.request("GET", f"{MAPS}?watch=true&resourceVersion={self.revision}")
            answer = connection.http.getresponse()
            if answer.status == 410:
                return False
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return False
                self.see(event["type"], event["object"]["metadata"])
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Gone from error
        return True

    def see(self, kind, meta):
        name, revision = meta["name"], int(meta["resourceVersion"])
        if revision <= self.revision:
            self.wrong.append(f"{name}: event {revision} after {self.revision}")
        if (kind == "ADDED") == (name in self.objects):
            self.wrong.append(f"{kind} of {name}, which {'was' if name in self.objects else 'was not'} there")
        self.revision = revision
        self.events += 1
        if kind == "DELETED":
            self.objects.pop(name, None)
        else:
            self.objects[name] = revision


def start(server, log):
    process = subprocess.Popen([BINARY, "up", "--images=host", "--https", f"127.0.0.1:{server.https}",
                                "--http", f"127.0.0.1:{server.http}"],
                               env=server.environment(), stdout=log, stderr=log)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "Skiff ended by itself"
        try:
            status, answer = Connection(server).call("GET", MAPS)
            if status == 200:
                return process, answer
        except Gone:
            time.sleep(0.004)
    raise AssertionError("Skiff does not start")


def listed(answer):
    return {o["metadata"]["name"]: o for o in answer["items"] if o["metadata"]["name"].startswith("w")}


def complaints(writers, watcher):
    return [w for one in (*writers, watcher) for w in one.wrong]


def enough(rounds, writers, watcher):
    """Whether there was load enough to prove anything, or something is proven already."""
    loaded = sum(w.acknowledged for w in writers) > 10 * rounds and watcher.events > 5 * rounds
    return loaded or complaints(writers, watcher)


def run_rounds(rounds):
    rng = random.Random(rounds)
    server = Skiff()
    writers = [Writer(n, rng.random()) for n in range(WRITERS)]
    watcher = Watcher()
    newest, process = 0, None
    try:
        with open(os.path.join(server.home, "log"), "w") as log:
            for number in range(rounds + 1):
                process, answer = start(server, log)
                revision = int(answer["metadata"]["resourceVersion"])
                assert revision >= newest, "the store went back"
                newest = revision
                for writer in writers:
                    writer.compare(listed(answer))
                threads = [threading.Thread(target=one.run, args=(server,), daemon=True)
                           for one in (*writers, watcher)]
                for thread in threads:
                    thread.start()
                time.sleep(rng.random() * 0.15)
                if number == rounds:  # a slow machine may not have come to much between the crashes
                    wait_for(lambda: enough(rounds, writers, watcher))
                process.send_signal(signal.SIGKILL)
                process.wait()
                for thread in threads:
                    thread.join(90)
                    assert not thread.is_alive(), "a client hangs after the crash"
                assert not complaints(writers, watcher), f"round {number}: {complaints(writers, watcher)[:5]}"
            process, answer = start(server, log)
            for writer in writers:
                writer.compare(listed(answer))
            watcher.list(Connection(server))
            assert not complaints(writers, watcher), complaints(writers, watcher)[:5]
        acknowledged = sum(w.acknowledged for w in writers)
        print(f"{rounds} rounds, {acknowledged} acknowledged, {watcher.events} events, {watcher.lists} lists")
    finally:
        if process:
            process.kill()
            process.wait()
        server.stop()


def config_map(name, value, revision):
    return {"metadata": {"name": name, "resourceVersion": str(revision)}, "data": {"v": value}}


def test_the_checks_can_fail():
    """Each thing that must not happen, shown to those who look for it."""
    def writer():
        one = Writer(0, 1)
        one.known = {"w0-1": ("0:5", "7")}
        return one
    good = {"w0-1": config_map("w0-1", "0:5", 7)}
    for found, wrong in ((good, False), ({}, True), ({"w0-1": config_map("w0-1", "0:4", 6)}, True),
                         ({"w0-1": config_map("w0-1", "0:5", 8)}, True),
                         ({**good, "w0-2": config_map("w0-2", "0:9", 9)}, True)):
        one = writer()
        one.compare(found)
        assert bool(one.wrong) == wrong, (found, one.wrong)
    open_delete = writer()
    open_delete.open = ("w0-1", None)
    open_delete.compare({})
    assert not open_delete.wrong, "the outcome of an open request may be either"
    for events in ([("ADDED", 5), ("MODIFIED", 5)], [("MODIFIED", 5)], [("ADDED", 5), ("ADDED", 6)],
                   [("ADDED", 5), ("DELETED", 6), ("DELETED", 7)]):
        watcher = Watcher()
        for kind, revision in events:
            watcher.see(kind, {"name": "a", "resourceVersion": str(revision)})
        assert watcher.wrong, events


def test_twenty_rounds():
    run_rounds(20)


@pytest.mark.crash
@pytest.mark.timeout(1200)
def test_five_hundred_rounds():
    run_rounds(500)
