"""Data-parallel training with Keras: MultiWorkerMirroredStrategy keeps the model alike on all workers.

The operator sets TF_CONFIG. When one worker dies the others lose their connection and end, too;
restartPolicy OnFailure starts them again and BackupAndRestore goes on at the last whole epoch.
"""
import argparse
import os
import sys
import time

print("process started", flush=True)  # before the slow imports, so that the log tells them apart
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
import tf_keras as keras

from spirals import network, spirals


class Progress(keras.callbacks.Callback):
    """Tells of each epoch. Comes after BackupAndRestore in the list: what is told of is on disk."""

    def __init__(self, options):
        super().__init__()
        self.options, self.begun = options, False

    def on_epoch_begin(self, epoch, logs=None):
        if not self.begun:
            print(f"begins after step {epoch}", flush=True)
        self.begun = True

    def on_epoch_end(self, epoch, logs=None):
        print(f"step {epoch + 1}/{self.options.epochs} loss {logs['loss']:.4f}", flush=True)
        print(f"checkpoint at step {epoch + 1}", flush=True)
        time.sleep(self.options.pace)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--pace", type=float, default=0, help="seconds to rest after an epoch")
    parser.add_argument("--goal", type=float, default=0.95, help="accuracy to reach, else exit code 1")
    parser.add_argument("--checkpoint", default="checkpoint", help="a folder that all workers share")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    points, labels = spirals(1200, seed=7)
    data = tf.data.Dataset.from_tensor_slices((points, labels)).shuffle(1200, seed=1).batch(100)
    sharding = tf.data.Options()  # each worker takes its own rows; there are no files to share out
    sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    data = data.with_options(sharding)
    with strategy.scope():
        model = network(keras)
        model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=options.epochs, verbose=0,
              callbacks=[keras.callbacks.BackupAndRestore(options.checkpoint), Progress(options)])
    points, labels = spirals(600, seed=8)  # points that nobody has trained on
    accuracy = float((model(points).numpy().argmax(axis=1) == labels).mean())
    print(f"accuracy {accuracy:.3f}", flush=True)
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.3f} is below the goal {options.goal}")


if __name__ == "__main__":
    main()
