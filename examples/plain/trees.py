#!/usr/bin/env python3
"""Boosted trees on several workers: XGBoostJob.

Trees of one split each, fitted to what is left of the error. Nobody shows its points: for every feature and bin, the
sums of errors and of points are added up over all workers, and everybody finds the same best split in them."""
import argparse
import math
import random
import sys
from array import array

import place
from group import Group

FEATURES, BINS = 3, 16


def share(rank, world, count=1500):
    """(features from 0 to 1, value); the last feature says nothing."""
    rng, rows = random.Random(5), []
    for _ in range(count):
        x = [rng.random() for _ in range(FEATURES)]
        rows.append((x, math.sin(6 * x[0]) + 2 * x[1] + rng.gauss(0, 0.05)))
    return rows[rank::world]


def bin_of(value):
    return min(int(value * BINS), BINS - 1)


def histogram(rows, errors):
    out = array("d", bytes(8 * FEATURES * BINS * 2))
    for (x, _), error in zip(rows, errors):
        for f in range(FEATURES):
            at = 2 * (f * BINS + bin_of(x[f]))
            out[at] += error
            out[at + 1] += 1
    return out


def best_split(sums):
    """(feature, first bin of the right side, value on the left, value on the right)."""
    best, found = -1.0, None
    for f in range(FEATURES):
        bins = [(sums[2 * (f * BINS + b)], sums[2 * (f * BINS + b) + 1]) for b in range(BINS)]
        for b in range(1, BINS):
            (left, n), (right, m) = ([sum(c) for c in zip(*part)] for part in (bins[:b], bins[b:]))
            if n == 0 or m == 0:
                continue
            gain = left * left / n + right * right / m
            if gain > best:
                best, found = gain, (f, b, left / n, right / m)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--goal", type=float, default=0.9, help="share of the variance explained, else exit code 1")
    options = parser.parse_args()
    group = Group(place.read())
    rows = share(group.rank, group.world)
    print(f"rank {group.rank} of {group.world} has {len(rows)} rows", flush=True)
    errors = [y for _, y in rows]
    mean, squares, count = group.tree_all_reduce([sum(errors), sum(e * e for e in errors), len(errors)])
    variance = squares / count - (mean / count) ** 2
    explained = 0.0
    for number in range(1, options.rounds + 1):
        feature, at, left, right = best_split(group.tree_all_reduce(histogram(rows, errors)))
        for i, (x, _) in enumerate(rows):
            errors[i] -= options.rate * (left if bin_of(x[feature]) < at else right)
        squares, _ = group.tree_all_reduce([sum(e * e for e in errors), 0])
        explained = 1 - squares / count / variance
        if number % 20 == 0 and group.rank == 0:
            print(f"round {number}/{options.rounds} explains {explained:.1%} of the variance", flush=True)
    if explained < options.goal:
        sys.exit(f"{explained:.1%} is below the goal {options.goal:.1%}")


if __name__ == "__main__":
    main()
