"""What the two TensorFlow examples learn, and the network that learns it."""
import numpy as np

CLASSES = 3


def spirals(count, seed):
    """Points on three interleaved spiral arms, and which arm each is on."""
    rng = np.random.default_rng(seed)
    label = np.arange(count) % CLASSES
    t = rng.random(count)
    angle = 4 * t + label * 2 * np.pi / CLASSES + rng.normal(0, 0.1, count)
    return np.stack([t * np.sin(angle), t * np.cos(angle)], axis=1).astype(np.float32), label


def network(keras):
    dense = keras.layers.Dense
    return keras.Sequential([keras.Input((2,)), dense(32, activation="tanh"), dense(32, activation="tanh"),
                             dense(CLASSES)])
