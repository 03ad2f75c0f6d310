#!/usr/bin/env python3
"""Training by all-reduce: PyTorchJob, JAXJob, PaddleJob, XGBoostJob, or one process alone.

Everybody keeps all weights and computes a gradient on its own points; the gradients are added up, and everybody takes
the same step. --by says how they are added up: around a ring, or up and down a tree."""
import argparse
import sys
from array import array

import place
import points
from group import Group


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by", choices=["ring", "tree"], default="ring")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--goal", type=float, default=0.95, help="accuracy to reach, else exit code 1")
    options = parser.parse_args()
    group = Group(place.read())
    print(f"rank {group.rank} of {group.world}", flush=True)
    add_up = group.ring_all_reduce if options.by == "ring" else group.tree_all_reduce
    rows = points.share(group.rank, group.world)
    weights, accuracy = array("d", bytes(8 * points.SIZE)), 0.0
    for step in range(1, options.steps + 1):
        gradient, *measures = points.gradient(weights, rows)
        total = add_up(gradient + array("d", measures))
        loss, right, count = total[points.SIZE:]
        accuracy = right / count
        for i in range(points.SIZE):
            weights[i] -= options.rate * total[i] / count
        if step % 20 == 0 and group.rank == 0:
            print(f"step {step}/{options.steps} loss {loss / count:.4f} accuracy {accuracy:.1%}", flush=True)
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.1%} is below the goal {options.goal:.1%}")


if __name__ == "__main__":
    main()
