"""Asynchronous training with Keras: workers fetch parameters from servers and send gradients back.

The operator sets TF_CONFIG. Parameter servers and workers only serve; the chief hands out steps. A
worker that dies holds up nobody: the chief gives its step to another, and work again to the worker
when it is back. A chief that dies goes on from its last checkpoint; so it does, of its own, when a
parameter server dies, because parameters are lost with it.
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


def serve(resolver):
    """A worker or parameter server; it is ended with its job."""
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                         protocol="grpc", start=True).join()


def batches():
    """Read by each worker for itself, with its own name, so that the chief can tell who did a step."""
    points, labels = spirals(1200, seed=7)
    data = tf.data.Dataset.from_tensor_slices((points, labels)).shuffle(1200).batch(100).repeat()
    return data.map(lambda x, y: (x, y, tf.strings.strip(tf.io.read_file("/etc/hostname"))))


def train(options, strategy):
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = network(keras)
        optimizer = keras.optimizers.legacy.Adam(0.01)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        done = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
        def replica(batch):
            points, labels, who = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(loss_of(labels, model(points, training=True)))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss, who
        return strategy.run(replica, args=(next(iterator),))

    @tf.function
    def data():
        return batches()

    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, optimizer=optimizer, done=done),
                                         options.checkpoint, max_to_keep=2)
    manager.restore_or_initialize()
    first = int(done.numpy())
    iterator = iter(coordinator.create_per_worker_dataset(data))
    print(f"begins after step {first}", flush=True)
    for last in range(first + options.every, options.steps + 1, options.every):
        results = [coordinator.schedule(step, args=(iterator,)) for _ in range(options.every)]
        coordinator.join()
        results = coordinator.fetch(results)
        who = sorted({name.decode() for _, name in results})
        loss = sum(float(loss) for loss, _ in results) / len(results)
        print(f"step {last}/{options.steps} loss {loss:.4f} by {' and '.join(who)}", flush=True)
        done.assign(last)
        manager.save()
        print(f"checkpoint at step {last}", flush=True)
        time.sleep(options.pace)
    points, labels = spirals(600, seed=8)  # points that nobody has trained on
    return float((model(points).numpy().argmax(axis=1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--pace", type=float, default=0, help="seconds to rest after each of them")
    parser.add_argument("--goal", type=float, default=0.95, help="accuracy to reach, else exit code 1")
    parser.add_argument("--checkpoint", default="checkpoint", help="a folder of the chief")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        serve(resolver)
    accuracy = train(options, tf.distribute.ParameterServerStrategy(resolver))
    print(f"accuracy {accuracy:.3f}", flush=True)
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.3f} is below the goal {options.goal}")


if __name__ == "__main__":
    main()
