"""Distributed boosting with XGBoost: every replica has its share of the rows, histograms are all-reduced.

The operator sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK. XGBoost wants a tracker, which tells
replicas of each other: the master runs it beside its own share of the training. When one replica
dies the others are told by the tracker and end, too; restartPolicy OnFailure starts them again and
they go on from the last checkpoint.
"""
import argparse
import json
import os
import socket
import sys
import threading
import time

print("process started", flush=True)  # before the slow imports, so that the log tells them apart
import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker

CLASSES = 3
PARAMETERS = {"objective": "multi:softprob", "num_class": CLASSES, "max_depth": 4, "eta": 0.2, "nthread": 1}


def spirals(count, seed):
    """Points on three interleaved spiral arms, and which arm each is on."""
    rng = np.random.default_rng(seed)
    label = np.arange(count) % CLASSES
    t = rng.random(count)
    angle = 4 * t + label * 2 * np.pi / CLASSES + rng.normal(0, 0.1, count)
    return np.stack([t * np.sin(angle), t * np.cos(angle)], axis=1), label


def track(host, port, world):
    """Starts the tracker and tells everybody who connects to `port` where it is. The tracker itself
    cannot have that port: for a minute after a restart it would find the port still in use."""
    tracker = RabitTracker(n_workers=world, host_ip=socket.gethostbyname(host), sortby="task")
    tracker.start()
    where = json.dumps(tracker.worker_args()).encode()
    listener = socket.create_server(("", port))

    def answer():
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(where)
    threading.Thread(target=answer, daemon=True).start()
    return tracker  # which ends when nobody holds it


def find_tracker(host, port):
    """Workers may be up before the master, or before its name is known."""
    while True:
        try:
            with socket.create_connection((host, port), timeout=10) as connection:
                return json.loads(connection.makefile().read())
        except (OSError, ValueError) as error:
            print(f"no tracker yet: {error}", flush=True)
            time.sleep(0.5)


class Progress(xgb.callback.TrainingCallback):
    """Tells of each round; the master keeps the trees so far."""

    def __init__(self, options):
        super().__init__()
        self.options, self.path = options, options.checkpoint

    def after_iteration(self, model, epoch, evals_log):
        done = model.num_boosted_rounds()
        loss = evals_log["train"]["mlogloss"][-1]
        print(f"step {done}/{self.options.rounds} loss {loss:.4f}", flush=True)
        if collective.get_rank() == 0 and done % self.options.every == 0:
            # Whoever is killed while writing must leave the old checkpoint: write beside it, then rename.
            with open(self.path + ".new", "wb") as file:
                file.write(model.save_raw("json"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(self.path + ".new", self.path)
            print(f"checkpoint at step {done}", flush=True)
        time.sleep(self.options.pace)
        return False


def load(path):
    """The trees of the checkpoint or None. Rank 0 reads, all others get what it read: replicas that
    start from different trees would train apart without a word."""
    raw = b""
    if collective.get_rank() == 0 and os.path.exists(path):
        with open(path, "rb") as file:
            raw = file.read()
    raw = collective.broadcast(raw, 0)
    return xgb.Booster(PARAMETERS, model_file=bytearray(raw)) if raw else None


def train(options):
    rank, world = collective.get_rank(), collective.get_world_size()
    model = load(options.checkpoint)
    first = model.num_boosted_rounds() if model else 0
    print(f"rank {rank} of {world} begins after step {first}", flush=True)
    points, labels = spirals(3000, seed=7)
    rows = xgb.DMatrix(points[rank::world], labels[rank::world])
    model = xgb.train(dict(PARAMETERS, eval_metric="mlogloss"), rows, options.rounds - first, evals=[(rows, "train")],
                      xgb_model=model, verbose_eval=False, callbacks=[Progress(options)])
    points, labels = spirals(600, seed=8)  # points that nobody has trained on
    return float((model.inplace_predict(points).argmax(axis=1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--every", type=int, default=2, help="rounds between two checkpoints")
    parser.add_argument("--pace", type=float, default=0, help="seconds to rest after a round")
    parser.add_argument("--goal", type=float, default=0.97, help="accuracy to reach, else exit code 1")
    parser.add_argument("--checkpoint", default="checkpoint.json")
    options = parser.parse_args()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    host, port = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ.get("MASTER_PORT", 9999))
    tracker = track(host, port, world) if rank == 0 else None
    where = tracker.worker_args() if tracker else find_tracker(host, port)
    with collective.CommunicatorContext(dmlc_communicator="rabit", dmlc_task_id=f"{rank:05d}", **where):
        accuracy = train(options)
    print(f"accuracy {accuracy:.3f}", flush=True)
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.3f} is below the goal {options.goal}")


if __name__ == "__main__":
    main()
