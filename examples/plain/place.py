"""Where this process stands in its job, from what the operator put into the environment.

  TFJob                    TF_CONFIG
  PyTorchJob, XGBoostJob   MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE
  JAXJob                   COORDINATOR_ADDRESS, COORDINATOR_PORT, PROCESS_ID, NUM_PROCESSES
  PaddleJob                PADDLE_MASTER, PADDLE_NNODES; ranks are given in the order of arrival
  none of these            one process alone
"""
import json
import os
from dataclasses import dataclass, field


@dataclass
class Place:
    rank: int | None = 0  # None: whoever is first gives it
    world: int = 1  # processes that train
    host: str = "localhost"  # of the first one
    port: int = 0
    role: str = "worker"
    servers: list = field(default_factory=list)  # parameter servers, as host:port

    @property
    def first(self):
        return self.rank == 0


def from_tf_config(config):
    cluster, task = config["cluster"], config["task"]
    trainers = [w for role in ("chief", "master", "worker") for w in cluster.get(role, [])]
    own = cluster[task["type"]][task["index"]]
    host, port = trainers[0].rsplit(":", 1)
    rank = trainers.index(own) if own in trainers else task["index"]
    return Place(rank, len(trainers), host, int(port), task["type"], cluster.get("ps", []))


def read():
    env = os.environ
    if "TF_CONFIG" in env:
        return from_tf_config(json.loads(env["TF_CONFIG"]))
    if "COORDINATOR_ADDRESS" in env:
        return Place(int(env["PROCESS_ID"]), int(env["NUM_PROCESSES"]), env["COORDINATOR_ADDRESS"],
                     int(env["COORDINATOR_PORT"]))
    if "PADDLE_MASTER" in env:
        host, port = env["PADDLE_MASTER"].rsplit(":", 1)
        # The first worker is told its own address, all others its name.
        rank = 0 if host == env.get("POD_IP_DUMMY") else None
        return Place(rank, int(env["PADDLE_NNODES"]), host, int(port))
    if "MASTER_ADDR" in env:
        return Place(int(env["RANK"]), int(env["WORLD_SIZE"]), env["MASTER_ADDR"], int(env["MASTER_PORT"]))
    return Place()
