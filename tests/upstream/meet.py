#!/usr/bin/env python3
"""Stands in for the programs inside the images of upstream's tests: needs nothing but Python itself.

Reads its place in the job from what the operator put into the environment, as the framework would, meets
all others over the network at the first one's address, and ends well only if everybody came.

    meet.py pytorch|xgboost|jax|paddle|tensorflow|mpi|torchrun [ARGUMENTS, which are ignored]"""
import json
import os
import runpy
import socket
import sys
import time

PATIENCE_SECONDS = 60


class Place:
    def __init__(self, first, host, port, world):
        self.first, self.host, self.port, self.world = first, host, int(port), int(world)


def variable(name):
    value = os.environ.get(name)
    if value is None:
        sys.exit(f"meet: {name} is not set")
    return value


def same(a, b):
    if variable(a) != variable(b):
        sys.exit(f"meet: {a}={variable(a)} but {b}={variable(b)}")


def pytorch():
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        same(name, f"PET_{name}")
    same("RANK", "PET_NODE_RANK")
    same("WORLD_SIZE", "PET_NNODES")  # one process in each pod
    return Place(variable("RANK") == "0", variable("MASTER_ADDR"), variable("MASTER_PORT"), variable("WORLD_SIZE"))


def torchrun():
    return Place(variable("PET_NODE_RANK") == "0", variable("PET_MASTER_ADDR"), variable("PET_MASTER_PORT"),
                 variable("PET_NNODES"))


def xgboost():
    workers = variable("WORKER_ADDRS").split(",")
    if len(workers) != int(variable("WORLD_SIZE")) - 1:
        sys.exit(f"meet: WORLD_SIZE={variable('WORLD_SIZE')} but the workers are {workers}")
    return Place(variable("RANK") == "0", variable("MASTER_ADDR"), variable("MASTER_PORT"), variable("WORLD_SIZE"))


def jax():
    return Place(variable("PROCESS_ID") == "0", variable("COORDINATOR_ADDRESS"), variable("COORDINATOR_PORT"),
                 variable("NUM_PROCESSES"))


def paddle():
    # The first one is told its own address, the others its name.
    host, port = variable("PADDLE_MASTER").rsplit(":", 1)
    return Place(host == os.environ.get("POD_IP_DUMMY"), host, port, variable("PADDLE_NNODES"))


def tensorflow():
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if not config:  # a job of one replica has none
        return Place(True, "localhost", 0, 1)
    workers = [w for role in ("chief", "master", "worker") for w in config["cluster"].get(role, [])]
    task = config["task"]
    own = config["cluster"][task["type"]][task["index"]]
    host, port = workers[0].rsplit(":", 1)
    return Place(own == workers[0], host, port, len(workers))


def mpi():
    """Open MPI and MPICH tell their processes who they are; how these talk is not for this program."""
    # The newer API says it. In the machine's network all pods have its name, and mpirun takes each for itself.
    role = os.environ.get("K_MPI_JOB_ROLE") or ("worker" if "-worker-" in socket.gethostname() else "another")
    if role != "worker" and "-launcher" in socket.gethostname():
        sys.exit(f"meet: started on {socket.gethostname()}, which is no worker")
    own = "OMPI_COMM_WORLD" if "OMPI_COMM_WORLD_RANK" in os.environ else "PMI"
    rank, size = int(variable(f"{own}_RANK")), int(variable(f"{own}_SIZE"))
    print(f"rank {rank} of {size} on {socket.gethostname()}", flush=True)
    if not 0 <= rank < size:
        sys.exit("meet: that is no rank")
    return Place(True, "localhost", 0, 1)


def connect(place):
    """The name may not resolve yet, and nobody may listen: that is what frameworks wait for, too."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return socket.create_connection((place.host, place.port), timeout=5)
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"meet: {place.host}:{place.port}: {error}")
            time.sleep(0.1)


def receive_line(connection):
    line = b""
    while not line.endswith(b"\n"):
        piece = connection.recv(64)
        if not piece:
            sys.exit("meet: a peer hung up")
        line += piece
    return line.decode().strip()


def meet(place):
    """An all-reduce of ones: the first adds up, and tells everybody the sum."""
    if place.first:
        total, connections = 1, []
        if place.world > 1:
            with socket.create_server(("", place.port)) as server:
                server.settimeout(PATIENCE_SECONDS)
                while len(connections) < place.world - 1:
                    connections.append(server.accept()[0])
        for connection in connections:
            connection.settimeout(PATIENCE_SECONDS)
            total += int(receive_line(connection))
        for connection in connections:
            connection.sendall(f"{total}\n".encode())
    else:
        with connect(place) as connection:
            connection.settimeout(PATIENCE_SECONDS)
            connection.sendall(b"1\n")
            total = int(receive_line(connection))
    print(f"{total} of {place.world} have met", flush=True)
    if total != place.world:
        sys.exit(1)


FRAMEWORKS = {f.__name__: f for f in (pytorch, torchrun, xgboost, jax, paddle, tensorflow, mpi)}


def main(arguments):
    meet(FRAMEWORKS[arguments[0]]())
    if arguments[0] == "torchrun":
        runpy.run_path(arguments[1], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
