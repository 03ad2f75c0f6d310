#!/usr/bin/env python3
"""Trains a small neural network on several workers; needs nothing but Python itself.

Three interleaved spirals, a network of one hidden layer, synchronous data-parallel SGD: every worker
computes gradients on its own share of the points, one process adds them up and hands the new
parameters back. Who that process is comes from the environment that the job operator sets:

  TFJob       TF_CONFIG: the first `ps` (or, without one, worker 0) adds up
  PyTorchJob  MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE: rank 0 adds up and trains, too
  neither     one process does all

    skiff train examples/spiral.py --framework tensorflow --workers 3 --ps 1 -- --steps 400
"""
import argparse
import json
import math
import os
import random
import socket
import struct
import sys
import threading
import time
from array import array

CLASSES, HIDDEN, INPUTS = 3, 24, 2
SIZE = INPUTS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES


class Topology:
    """Who we are: rank -1 only adds up; others train; `server` is where gradients go."""

    def __init__(self):
        self.serves, self.rank, self.world = True, 0, 1
        self.server, self.port, self.name = "127.0.0.1", 0, "single process"
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if config:
            self.from_tf_config(config)
        elif "MASTER_ADDR" in os.environ:
            self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            self.serves = self.rank == 0
            self.server, self.port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            self.name = f"rank {self.rank} of {self.world}"

    def from_tf_config(self, config):
        cluster, task = config["cluster"], config["task"]
        chiefs = cluster.get("chief", []) + cluster.get("master", [])
        workers = chiefs + cluster.get("worker", [])
        host, port = (cluster.get("ps") or workers)[0].rsplit(":", 1)
        self.server, self.port, self.world = host, int(port), len(workers)
        role, index = task["type"], task["index"]
        self.name = f"{role} {index}"
        if role == "ps":
            self.rank, self.serves = -1, index == 0
        else:
            self.rank = index + (len(chiefs) if role == "worker" else 0)
            self.serves = "ps" not in cluster and self.rank == 0


def spiral(rank, world, points):
    """This worker's share of the points, the same for everyone who asks with the same numbers."""
    rows = []
    rng = random.Random(7)
    for i in range(points * world):
        label, t = i % CLASSES, rng.random()
        angle = 4 * t + label * 2 * math.pi / CLASSES + rng.gauss(0, 0.12)
        rows.append(((t * math.sin(angle), t * math.cos(angle)), label))
    return rows[rank::world]


def gradient(params, rows):
    """Mean loss, accuracy and gradient of the cross entropy over `rows`."""
    w1, b1 = params[:INPUTS * HIDDEN], params[INPUTS * HIDDEN:INPUTS * HIDDEN + HIDDEN]
    at = INPUTS * HIDDEN + HIDDEN
    w2, b2 = params[at:at + HIDDEN * CLASSES], params[at + HIDDEN * CLASSES:]
    grad, loss, right = array("d", bytes(8 * SIZE)), 0.0, 0
    for (x, y), label in rows:
        hidden = [math.tanh(x * w1[2 * h] + y * w1[2 * h + 1] + b1[h]) for h in range(HIDDEN)]
        scores = [b2[c] + sum(hidden[h] * w2[h * CLASSES + c] for h in range(HIDDEN)) for c in range(CLASSES)]
        top = max(scores)
        weights = [math.exp(s - top) for s in scores]
        total = sum(weights)
        loss -= math.log(weights[label] / total)
        right += scores.index(top) == label
        delta = [w / total - (c == label) for c, w in enumerate(weights)]
        for h in range(HIDDEN):
            back = 0.0
            for c in range(CLASSES):
                grad[at + h * CLASSES + c] += hidden[h] * delta[c]
                back += w2[h * CLASSES + c] * delta[c]
            back *= 1 - hidden[h] * hidden[h]
            grad[2 * h] += back * x
            grad[2 * h + 1] += back * y
            grad[INPUTS * HIDDEN + h] += back
        for c in range(CLASSES):
            grad[at + HIDDEN * CLASSES + c] += delta[c]
    n = len(rows)
    return loss / n, right / n, array("d", (g / n for g in grad))


def send(sock, numbers):
    data = numbers.tobytes()
    sock.sendall(struct.pack("!I", len(data)) + data)


def receive(sock):
    def exactly(n):
        out = b""
        while len(out) < n:
            piece = sock.recv(n - len(out))
            if not piece:
                raise ConnectionError("the other side has gone")
            out += piece
        return out
    numbers = array("d")
    numbers.frombytes(exactly(struct.unpack("!I", exactly(4))[0]))
    return numbers


class Server:
    """Adds up the gradients of all workers, step by step, and answers with the new parameters."""

    def __init__(self, port, world, rate):
        rng = random.Random(1)
        self.params = array("d", (rng.gauss(0, 0.5) for _ in range(SIZE)))
        self.speed = array("d", bytes(8 * SIZE))
        self.world, self.rate = world, rate
        self.waiting, self.step = [], 0
        self.turn = threading.Condition()
        self.listener = socket.create_server(("", port), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.threads = []
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()

    def accept(self):
        for _ in range(self.world):
            sock, address = self.listener.accept()
            print(f"worker at {address[0]} connected", flush=True)
            thread = threading.Thread(target=self.serve, args=(sock,), daemon=True)
            thread.start()
            self.threads.append(thread)

    def serve(self, sock):
        try:
            send(sock, self.params)
            while True:
                grad = receive(sock)
                if len(grad) == 0:
                    return
                with self.turn:
                    self.add(grad)
                send(sock, self.params)
        except ConnectionError:
            print("a worker has gone", flush=True)

    def add(self, grad):
        mine = self.step
        self.waiting.append(grad)
        if len(self.waiting) == self.world:
            for i in range(SIZE):
                mean = sum(g[i] for g in self.waiting) / self.world
                self.speed[i] = 0.9 * self.speed[i] - self.rate * mean
                self.params[i] += self.speed[i]
            self.waiting, self.step = [], self.step + 1
            self.turn.notify_all()
        while self.step == mine:
            self.turn.wait()

    def join(self):
        self.acceptor.join()
        for thread in self.threads:
            thread.join()


def connect(host, port):
    """Peers start in any order: their names and ports may take a while to be there."""
    for attempt in range(600):
        try:
            return socket.create_connection((host, port), timeout=60)
        except OSError as error:
            if attempt % 50 == 49:
                print(f"still waiting for {host}:{port}: {error}", flush=True)
            time.sleep(0.1)
    sys.exit(f"cannot reach {host}:{port}")


def train(topology, options, port):
    rows = spiral(topology.rank, topology.world, options.points)
    sock = connect("127.0.0.1" if topology.serves else topology.server, port)
    params, accuracy = receive(sock), 0.0
    for step in range(1, options.steps + 1):
        loss, accuracy, grad = gradient(params, rows)
        send(sock, grad)
        params = receive(sock)
        if step % options.every == 0 or step == options.steps:
            print(f"step {step}/{options.steps} loss {loss:.4f} accuracy {accuracy:.1%}", flush=True)
    send(sock, array("d"))
    return accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--points", type=int, default=120, help="points per worker")
    parser.add_argument("--every", type=int, default=25, help="steps between two lines")
    parser.add_argument("--rate", type=float, default=0.25)
    parser.add_argument("--goal", type=float, default=0.9, help="accuracy to reach, else exit code 1")
    options = parser.parse_args()
    topology = Topology()
    print(f"I am {topology.name}; {topology.world} worker(s); gradients go to "
          f"{topology.server}:{topology.port}", flush=True)
    server = Server(topology.port, topology.world, options.rate) if topology.serves else None
    accuracy = options.goal
    if topology.rank >= 0:
        accuracy = train(topology, options, server.port if server else topology.port)
    if server:
        server.join()
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.1%} is below the goal {options.goal:.1%}")
    print("done", flush=True)


if __name__ == "__main__":
    main()
