"""XGBoost: a master with the tracker and two workers."""
import goodput
from training import Training


def test_boosting_survives_the_death_of_a_worker_and_of_skiff(skiff):
    with Training(skiff, "xgboost", "xgboost", "xgboostjobs", leader="master-0") as training:
        training.apply()
        start = training.wait_first_step()
        training.crash_skiff()
        checkpoint = training.checkpoints()[-1][1]
        killed = training.kill_replica("worker-1")
        recovery = training.wait_recovery(killed)
        training.check_went_on(killed, checkpoint)
        training.succeed(goal=0.97)
        goodput.add("XGBoost, 3 replicas", start, recovery)
