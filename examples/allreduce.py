"""Training by all-reduce: every process has data of its own, and all take the mean of their
gradients, so that all go on with the same model. That is what Horovod does.

    mpirun -np 4 python3 allreduce.py --steps=200
"""
import argparse
import socket

import numpy
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--every", type=int, default=50)
parser.add_argument("--goal", type=float, default=0.02, help="the loss that must be reached")
options = parser.parse_args()

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
hosts = world.allgather(socket.gethostname())
if rank == 0:
    print(f"{size} processes on {', '.join(sorted(set(hosts)))}", flush=True)

# A line through noise: y = 3 x - 2. Each process sees other points of it.
random = numpy.random.default_rng(rank)
x = random.uniform(-1, 1, 256)
y = 3 * x - 2 + random.normal(0, 0.1, 256)
model = numpy.zeros(2)

for step in range(1, options.steps + 1):
    error = model[0] * x + model[1] - y
    gradient = numpy.array([(error * x).mean(), error.mean(), (error**2).mean()])
    world.Allreduce(MPI.IN_PLACE, gradient, op=MPI.SUM)
    gradient /= size
    model -= 0.3 * gradient[:2]
    if rank == 0 and step % options.every == 0:
        print(f"step {step}/{options.steps} loss={gradient[2]:.4f}", flush=True)

models = world.allgather(model.tolist())
assert all(other == models[0] for other in models), "the processes do not agree"
if rank == 0:
    print(f"model: y = {model[0]:.2f} x + {model[1]:.2f}", flush=True)
    if gradient[2] > options.goal:
        raise SystemExit(f"the loss is {gradient[2]:.4f}, and the goal was {options.goal}")
    print("done", flush=True)
