"""How far a job is: from its log, its bars, its file of JSON lines; in status, describe and why."""
import json

import pytest

from skiff import pytorchjob, tfjob, wait_for


def progress(skiff, plural, name):
    return (skiff.job(plural, name) or {}).get("status", {}).get("progress", {})


def script(text):
    return ["python3", "-u", "-c", text]


@pytest.fixture
def run(skiff, manifest):
    made = []

    def apply(job, plural):
        skiff.kubectl("apply", "-f", manifest(job))
        made.append((plural, job["metadata"]["name"]))
    yield apply
    for plural, name in made:
        skiff.run("delete", plural, name)


def test_steps_from_the_log_are_in_the_status(skiff, run):
    run(tfjob("steps", script("import time\nfor i in range(1, 1000): print(f'step {i}/1000 loss={1/i:.3f}'); time.sleep(0.2)"),
              {"Worker": 2}), "tfjob")
    wait_for(lambda: "estimatedCompletionTime" in progress(skiff, "tfjobs", "steps"))
    told = progress(skiff, "tfjobs", "steps")
    assert told["totalSteps"] == 1000 and 0 < told["step"] < 1000 and "loss" in told["metrics"]
    assert told["replica"] == "worker-0" and told["firstStepTime"] <= told["lastUpdateTime"]
    wide = skiff.kubectl("get", "tfjob", "steps", "-o", "wide").stdout
    assert "STEP" in wide and "PERCENT" in wide and str(told["estimatedCompletionTime"])[:10] in wide
    text = skiff.run("describe", "tfjob", "steps").stdout
    for part in ("Progress:", "Time line:", "first step (worker-0)", "Where the time went:", "training"):
        assert part in text, text
    wait_for(lambda: "worker-1" in skiff.run("top", "job", "steps").stdout)
    assert "JOB" in skiff.run("top", "jobs", "-A").stdout
    assert "It is at step" in skiff.run("why", "tfjob/steps").stdout


def test_a_bar_without_newlines_is_seen_while_it_grows(skiff, run):
    bar = "import sys, time\nfor i in range(1, 1000):\n    sys.stderr.write(f'\\r {i/10:.0f}%|##  | {i}/1000 [00:01<00:02, 9it/s, loss=0.5]')\n    time.sleep(0.1)"
    run(pytorchjob("bar", script(bar), 0), "pytorchjob")
    wait_for(lambda: progress(skiff, "pytorchjobs", "bar").get("step"))
    assert progress(skiff, "pytorchjobs", "bar")["totalSteps"] == 1000


def test_a_file_of_json_lines_goes_before_the_log(skiff, run):
    writes = ("import json, os, time\nprint('step 1/2 noise=7')\n"
              "with open(os.environ['SKIFF_PROGRESS_FILE'], 'a') as f:\n"
              "    print(json.dumps({'step': 30, 'total_steps': 40, 'metrics': {'auc': 0.75}}), file=f)\n"
              "time.sleep(60)")
    run(tfjob("file", script(writes), {"Worker": 1}), "tfjob")
    told = wait_for(lambda: progress(skiff, "tfjobs", "file").get("step") == 30 and progress(skiff, "tfjobs", "file"))
    assert told["percent"] == 75 and told["metrics"] == {"auc": "0.75"}


def test_the_last_word_of_a_short_job_is_kept(skiff, run):
    run(tfjob("short", script("print('Epoch 5/5 accuracy=0.9')"), {"Worker": 1}), "tfjob")
    skiff.wait_job("tfjobs", "short", "Succeeded")
    told = wait_for(lambda: progress(skiff, "tfjobs", "short"))
    assert told["epoch"] == 5 and told["percent"] == 100 and told["metrics"] == {"accuracy": "0.9"}
    revision = skiff.job("tfjobs", "short")["metadata"]["resourceVersion"]
    text = skiff.run("describe", "tfjob", "short").stdout
    assert "succeeded" in text and "so far" not in text
    assert skiff.job("tfjobs", "short")["metadata"]["resourceVersion"] == revision


def test_who_says_nothing_has_no_progress_and_pods_outside_of_jobs_get_no_file(skiff, manifest):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},
           "spec": {"restartPolicy": "Never", "containers": [
               {"name": "main", "image": "skiff.dev/host", "command": ["sh", "-c", "echo step 1/2; env"]}]}}
    skiff.kubectl("apply", "-f", manifest(pod))
    skiff.wait_phase("plain", "Succeeded")
    assert "SKIFF_PROGRESS_FILE" not in skiff.kubectl("logs", "plain").stdout
    assert "training.skiff.dev/progress" not in json.dumps(skiff.pod("plain"))
    skiff.run("delete", "pod", "plain")
