"""Data that the examples make themselves, and a model small enough to read: logistic regression."""
import math
import random
from array import array

FEATURES = 16
SIZE = FEATURES + 1  # and a bias


def share(rank, world, count=1200):
    """Every world-th point, from the rank-th on: (features, 0 or 1)."""
    rng = random.Random(3)
    truth = [rng.gauss(0, 1) for _ in range(SIZE)]
    rows = []
    for _ in range(count):
        x = [rng.gauss(0, 1) for _ in range(FEATURES)] + [1.0]
        rows.append((x, 1 if sum(a * b for a, b in zip(x, truth)) > 0 else 0))
    return rows[rank::world]


def gradient(weights, rows):
    """(gradient summed over the rows, loss, right answers, rows), so that sums of these are those of all."""
    out, loss, right = array("d", bytes(8 * SIZE)), 0.0, 0
    for x, label in rows:
        score = sum(a * b for a, b in zip(x, weights))
        guess = 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))
        loss -= math.log(guess if label else 1 - guess)
        right += (guess > 0.5) == (label == 1)
        for i, value in enumerate(x):
            out[i] += (guess - label) * value
    return out, loss, right, len(rows)
