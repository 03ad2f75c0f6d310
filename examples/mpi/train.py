"""Data-parallel training as Horovod does it, with MPI alone: every rank averages gradients with all others.

mpirun starts the ranks in the workers and passes on what they print. When a worker dies mpirun ends
with an error; restartPolicy OnFailure starts the launcher again, and all ranks go on from the last
checkpoint.
"""
import argparse
import os
import sys
import time

print("process started", flush=True)  # before the slow imports, so that the log tells them apart
import numpy as np
from mpi4py import MPI

CLASSES, HIDDEN = 3, 48
WORLD = MPI.COMM_WORLD


def spirals(count, seed):
    """Points on three interleaved spiral arms, and which arm each is on."""
    rng = np.random.default_rng(seed)
    label = np.arange(count) % CLASSES
    t = rng.random(count)
    angle = 4 * t + label * 2 * np.pi / CLASSES + rng.normal(0, 0.1, count)
    return np.stack([t * np.sin(angle), t * np.cos(angle)], axis=1), label


def forward(weights, points):
    w1, b1, w2, b2 = weights
    hidden = np.tanh(points @ w1 + b1)
    scores = hidden @ w2 + b2
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, odds / odds.sum(axis=1, keepdims=True)


def gradients(weights, points, labels):
    """Cross entropy and its gradient with respect to each of the weights."""
    hidden, odds = forward(weights, points)
    loss = -np.log(odds[np.arange(len(labels)), labels]).mean()
    delta = (odds - np.eye(CLASSES)[labels]) / len(labels)
    back = delta @ weights[2].T * (1 - hidden * hidden)
    return loss, [points.T @ back, back.sum(axis=0), hidden.T @ delta, delta.sum(axis=0)]


def all_reduce(arrays):
    """The mean of each array over all ranks, in one message."""
    flat = np.concatenate([a.ravel() for a in arrays])
    WORLD.Allreduce(MPI.IN_PLACE, flat)
    flat /= WORLD.size
    ends = np.cumsum([a.size for a in arrays])[:-1]
    return [part.reshape(a.shape) for part, a in zip(np.split(flat, ends), arrays)]


def load(path):
    """Step, weights and their speeds; rank 0 reads, all others get what it read."""
    state = None
    if WORLD.rank == 0:
        if os.path.exists(path):
            with np.load(path) as file:
                state = int(file["step"]), *([file[f"{kind}{i}"] for i in range(4)] for kind in ("w", "v"))
        else:
            rng = np.random.default_rng(1)
            shapes = [(2, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
            state = 0, [rng.normal(0, 0.7, shape) for shape in shapes], [np.zeros(shape) for shape in shapes]
    return WORLD.bcast(state)


def save(path, step, weights, speeds):
    """Whoever is killed while writing must leave the old checkpoint: write beside it, then rename."""
    with open(path + ".new", "wb") as file:
        np.savez(file, step=step, **{f"w{i}": w for i, w in enumerate(weights)},
                 **{f"v{i}": v for i, v in enumerate(speeds)})
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    print(f"checkpoint at step {step}", flush=True)


def train(options):
    first, weights, speeds = load(options.checkpoint)
    if WORLD.rank == 0:
        print(f"rank 0 of {WORLD.size} begins after step {first}", flush=True)
    points, labels = spirals(1200, seed=7)
    points, labels = points[WORLD.rank::WORLD.size], labels[WORLD.rank::WORLD.size]
    for step in range(first + 1, options.steps + 1):
        loss, mine = gradients(weights, points, labels)
        for weight, speed, gradient in zip(weights, speeds, all_reduce(mine)):
            speed *= 0.9
            speed -= options.rate * gradient
            weight += speed
        if WORLD.rank == 0:
            if step % options.every == 0 or step == first + 1:
                print(f"step {step}/{options.steps} loss {loss:.4f}", flush=True)
            if step % options.every == 0:
                save(options.checkpoint, step, weights, speeds)
        time.sleep(options.pace)
    points, labels = spirals(600, seed=8)  # points that nobody has trained on
    return (forward(weights, points)[1].argmax(axis=1) == labels).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--pace", type=float, default=0, help="seconds to rest after a step")
    parser.add_argument("--goal", type=float, default=0.95, help="accuracy to reach, else exit code 1")
    parser.add_argument("--checkpoint", default="checkpoint.npz")
    options = parser.parse_args()
    accuracy = train(options)
    if WORLD.rank == 0:
        print(f"accuracy {accuracy:.3f}", flush=True)
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.3f} is below the goal {options.goal}")


if __name__ == "__main__":
    main()
