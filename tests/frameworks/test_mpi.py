"""MPI: mpirun starts ranks in two workers, which average their gradients as Horovod does."""
import goodput
from training import Training


def test_all_reduce_survives_the_death_of_a_worker_and_of_skiff(skiff):
    with Training(skiff, "mpi", "mpi", "mpijobs", leader="launcher") as training:
        training.apply()
        start = training.wait_first_step()
        training.crash_skiff()
        checkpoint = training.checkpoints()[-1][1]
        killed = training.kill_replica("worker-1")
        recovery = training.wait_recovery(killed)
        training.check_went_on(killed, checkpoint)
        training.succeed(goal=0.95)
        goodput.add("Open MPI, 2 workers", start, recovery)
