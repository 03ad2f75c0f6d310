"""Processes that add up numbers together: the collective operations that distributed training is made of.

All meet at the first one, which tells everybody where the others listen. From then on:

  reduce      the sum of everybody's numbers reaches the first one, up a tree
  broadcast   what the first one has reaches everybody, down the same tree
  all-reduce  the sum reaches everybody: reduce then broadcast, or around a ring in equal shares
"""
import json
import socket
import struct
import sys
import time
from array import array


def connect(host, port, patience=60):
    """Peers start in any order: names and ports may take a while to be there."""
    end = time.monotonic() + patience
    while True:
        try:
            return socket.create_connection((host, port), timeout=patience)
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"cannot reach {host}:{port}: {error}")
            time.sleep(0.1)


def send(sock, data):
    data = bytes(data)
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
    return exactly(struct.unpack("!I", exactly(4))[0])


def numbers(data):
    out = array("d")
    out.frombytes(data)
    return out


class Group:
    def __init__(self, place):
        self.world = place.world
        self.rank = place.rank
        self.links = {}  # rank -> connection
        self.listener = socket.create_server(("", 0), backlog=64)
        self.peers = []
        if self.world > 1:
            self.peers = self.invite(place) if place.first else self.join(place)

    def invite(self, place):
        """The first one: collects who is there, gives ranks to those without, and tells everybody."""
        with socket.create_server(("", place.port), backlog=64) as server:
            server.settimeout(60)
            guests = []
            while len(guests) < self.world - 1:
                sock, (host, _, *_) = server.accept()
                said = json.loads(receive(sock))
                guests.append((sock, said["rank"], [host, said["port"]]))
        free = [r for r in range(1, self.world) if r not in [rank for _, rank, _ in guests]]
        peers = [[place.host, self.listener.getsockname()[1]]] + [None] * (self.world - 1)
        ranks = []
        for _, rank, address in guests:
            ranks.append(free.pop(0) if rank is None else rank)
            peers[ranks[-1]] = address
        for (sock, _, _), rank in zip(guests, ranks):
            send(sock, json.dumps({"rank": rank, "peers": peers}).encode())
            sock.close()
        return peers

    def join(self, place):
        with connect(place.host, place.port) as sock:
            send(sock, json.dumps({"rank": place.rank, "port": self.listener.getsockname()[1]}).encode())
            answer = json.loads(receive(sock))
        self.rank = answer["rank"]
        return answer["peers"]

    def link(self, rank):
        """A connection to another; of two, the one with the higher rank calls."""
        while rank not in self.links:
            if rank < self.rank:
                sock = connect(*self.peers[rank])
                send(sock, struct.pack("!I", self.rank))
                self.links[rank] = sock
            else:
                sock, _ = self.listener.accept()
                self.links[struct.unpack("!I", receive(sock))[0]] = sock
        return self.links[rank]

    def reduce(self, values):
        total = array("d", values)
        for child in (2 * self.rank + 1, 2 * self.rank + 2):
            if child < self.world:
                for i, x in enumerate(numbers(receive(self.link(child)))):
                    total[i] += x
        if self.rank > 0:
            send(self.link((self.rank - 1) // 2), total)
        return total  # of the first one: the sum; of the others: that of their branch

    def broadcast(self, values):
        if self.rank > 0:
            values = numbers(receive(self.link((self.rank - 1) // 2)))
        for child in (2 * self.rank + 1, 2 * self.rank + 2):
            if child < self.world:
                send(self.link(child), values)
        return values

    def tree_all_reduce(self, values):
        return self.broadcast(self.reduce(values))

    def ring_all_reduce(self, values):
        """Everybody sends and receives one share a step: 2 (n - 1) / n of the numbers in all, however large n is."""
        n, total = self.world, array("d", values)
        if n == 1:
            return total
        bounds = [len(total) * i // n for i in range(n + 1)]

        def share(i):
            return slice(bounds[i % n], bounds[i % n + 1])
        for step in range(n - 1):  # after this, everybody has the sum of one share
            got = self.pass_on(total[share(self.rank - step)])
            place = share(self.rank - step - 1)
            total[place] = array("d", (a + b for a, b in zip(total[place], got)))
        for step in range(n - 1):  # and after this, of all shares
            total[share(self.rank - step)] = self.pass_on(total[share(self.rank + 1 - step)])
        return total

    def pass_on(self, values):
        """To the next, from the one before. Shares are small enough for the buffers of the network in between."""
        after, before = self.link((self.rank + 1) % self.world), self.link((self.rank - 1) % self.world)
        send(after, values)
        return numbers(receive(before))
