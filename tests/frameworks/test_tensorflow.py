"""TensorFlow: workers that mirror one model, and workers around a parameter server."""
import goodput
from goodput import Wait
from training import Training


def test_mirrored_workers_survive_the_death_of_one_and_of_skiff(skiff):
    with Training(skiff, "tensorflow", "mirrored", "tfjobs", leader="worker-0") as training:
        training.apply()
        start = training.wait_first_step()
        training.crash_skiff()
        checkpoint = training.checkpoints()[-1][1]
        killed = training.kill_replica("worker-1")
        recovery = training.wait_recovery(killed)
        training.check_went_on(killed, checkpoint)
        training.succeed(goal=0.95)
        goodput.add("TensorFlow, mirrored, 2 workers", start, recovery)


def steps_with(training, worker, since):
    """The told steps that a worker had a hand in and that were handed out after `since`."""
    told = training.told(rf"step (\d+)/.* by .*{worker}", since=since)
    handed_out_before = [at for at, _ in training.steps(since)][:1]
    return [(at, step) for at, step in told if at not in handed_out_before]


def test_a_parameter_server_trains_on_while_a_worker_a_chief_and_skiff_die(skiff):
    with Training(skiff, "tensorflow", "servers", "tfjobs", leader="chief-0", stride=10) as training:
        training.apply()
        start = training.wait_first_step()
        training.crash_skiff()

        # The chief misses a worker for a while, and does not begin anew.
        killed = training.kill_replica("worker-1")
        born = training.wait_for(lambda: training.replicas.last_start(killed))
        back, _ = training.wait_for(lambda: steps_with(training, "servers-worker-1", since=born))[0]
        recovery = Wait(killed, back, training.replicas.downtime(killed - 0.1))
        assert not training.begins(since=killed)

        # Only the chief knows how far the training is: it finds out from its checkpoint.
        checkpoint = training.checkpoints()[-1][1]
        killed = training.kill_replica("chief-0")
        training.wait_recovery(killed)
        training.check_went_on(killed, checkpoint)
        training.succeed(goal=0.95)
        goodput.add("TensorFlow, parameter server, 2 workers", start, recovery)
