"""PyTorch under torchrun: workers come and go while the training goes on."""
import goodput
from training import Training


def worlds(training, since=0.0):
    """How many were at work, at each beginning."""
    return [int(number) for _, number in training.told(r"rank \d+ of (\d+) begins", since=since)]


def wait_world(training, size, since):
    """Until `size` workers have trained on from a checkpoint; where they began."""
    training.wait_for(lambda: size in worlds(training, since) and worlds(training, since)[-1] == size)
    at, began = training.begins(since)[-1]
    training.wait_for(lambda: training.steps(since=at))
    assert began > 0 and training.steps(since=at)[0][1] == began + 1
    return at


def test_a_worker_is_lost_and_regained(skiff):
    with Training(skiff, "pytorch", "elastic", "pytorchjobs", leader="worker-0") as training:
        training.apply()
        start = training.wait_first_step()
        # A slow machine may let two begin before the third is up.
        training.wait_for(lambda: worlds(training)[-1] == 3 and training.checkpoints())
        training.crash_skiff()

        # One is killed: it is started again in its place and taken in.
        checkpoint = training.checkpoints()[-1][1]
        killed = training.kill_replica("worker-2")
        recovery = training.wait_recovery(killed)
        training.check_went_on(killed, checkpoint)
        back = wait_world(training, 3, killed)

        # One is taken away for good, and given back: two go on alone meanwhile.
        skiff.kubectl("scale", "pytorchjob", "elastic", "--replicas=2")
        alone = wait_world(training, 2, back)
        skiff.kubectl("scale", "pytorchjob", "elastic", "--replicas=3")
        wait_world(training, 3, alone)
        training.succeed(goal=0.95)
        goodput.add("PyTorch, elastic, 3 workers", start, recovery)
