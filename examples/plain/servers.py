#!/usr/bin/env python3
"""Training with parameter servers: TFJob with roles PS, Chief and Worker.

Each server keeps a part of the weights. Whoever trains pulls them, computes a gradient on its own points and
pushes it; nobody waits for anybody. The chief looks at the result and ends the job."""
import argparse
import socket
import sys
import threading
from array import array

import place
import points
from group import connect, numbers, receive, send


def serve(here, rate):
    """Answers every push of gradients with the weights as they are now."""
    own = here.servers[here.rank]
    low, high = bounds(here.rank, len(here.servers))
    weights, lock = array("d", bytes(8 * (high - low))), threading.Lock()

    def answer(sock):
        try:
            while True:
                pushed = numbers(receive(sock))
                with lock:
                    for i, g in enumerate(pushed):
                        weights[i] -= rate * g
                    now = bytes(weights)
                send(sock, now)
        except ConnectionError:
            sock.close()
    with socket.create_server(("", int(own.rsplit(":", 1)[1])), backlog=64) as server:
        print(f"server {here.rank} keeps weights {low} to {high - 1}", flush=True)
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def bounds(i, n):
    return points.SIZE * i // n, points.SIZE * (i + 1) // n


def train(here, steps, goal):
    rows = points.share(here.rank, here.world)
    servers = [connect(*address.rsplit(":", 1)) for address in here.servers]
    update, accuracy = array("d", bytes(8 * points.SIZE)), 0.0
    for step in range(1, steps + 1):
        weights = array("d")
        for i, server in enumerate(servers):
            low, high = bounds(i, len(servers))
            send(server, update[low:high])
            weights += numbers(receive(server))
        total, loss, right, count = points.gradient(weights, rows)
        update, accuracy = array("d", (g / count for g in total)), right / count
        if step % 20 == 0:
            print(f"step {step}/{steps} loss {loss / count:.4f} accuracy {accuracy:.1%}", flush=True)
    if accuracy < goal:
        sys.exit(f"accuracy {accuracy:.1%} is below the goal {goal:.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--goal", type=float, default=0.95, help="accuracy to reach, else exit code 1")
    options = parser.parse_args()
    here = place.read()
    if not here.servers:
        sys.exit("this program needs a TFJob with at least one PS")
    if here.role == "ps":
        serve(here, options.rate)
    else:
        train(here, options.steps, options.goal)


if __name__ == "__main__":
    main()
