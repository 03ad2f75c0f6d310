"""PyTorch: three replicas whose gradients gloo adds up."""
import goodput
from training import Training


def test_all_reduce_survives_the_death_of_a_worker_and_of_skiff(skiff):
    with Training(skiff, "pytorch", "pytorch", "pytorchjobs", leader="master-0") as training:
        training.apply()
        start = training.wait_first_step()
        training.crash_skiff()
        checkpoint = training.checkpoints()[-1][1]
        killed = training.kill_replica("worker-1")
        recovery = training.wait_recovery(killed)
        training.check_went_on(killed, checkpoint)
        training.succeed(goal=0.95)
        goodput.add("PyTorch, gloo, 3 replicas", start, recovery)
