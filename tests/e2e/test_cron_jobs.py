"""CronJobs, driven with kubectl as their users do."""
import json


from skiff import wait_for


def cron_job(name, schedule, script, **spec):
    template = {"spec": {"restartPolicy": "Never",
                         "containers": [{"name": "main", "image": "skiff.dev/host",
                                         "command": ["sh", "-c", script]}]}}
    return json.dumps({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
                       "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template}},
                                **spec}})


def get(skiff, *what):
    return json.loads(skiff.kubectl("get", *what, "-o", "json").stdout)


def jobs_of(skiff, cron):
    return [job for job in get(skiff, "jobs")["items"]
            if any(o["name"] == cron for o in job["metadata"].get("ownerReferences", []))]


def test_a_cron_job_starts_jobs_remembers_them_and_takes_them_along(skiff):
    # "@every" counts from the creation, so that the test need not wait for the next minute.
    skiff.kubectl("apply", "-f", "-", stdin=cron_job("tick", "@every 1s", "echo tock"))
    job = wait_for(lambda: (found := jobs_of(skiff, "tick")) and found[0])
    assert job["metadata"]["name"].removeprefix("tick-").isdigit()
    assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].endswith("Z")
    skiff.kubectl("wait", "--for=condition=complete", "job/" + job["metadata"]["name"], "--timeout=60s")
    status = wait_for(lambda: (s := get(skiff, "cronjob", "tick")["status"]) and
                      "lastSuccessfulTime" in s and s)
    assert "lastScheduleTime" in status
    assert "SuccessfulCreate" in skiff.kubectl("describe", "cronjob", "tick").stdout

    skiff.kubectl("patch", "cronjob", "tick", "-p", '{"spec":{"suspend":true}}')
    skiff.kubectl("create", "job", "by-hand", "--from=cronjob/tick")
    skiff.kubectl("wait", "--for=condition=complete", "job/by-hand", "--timeout=60s")
    skiff.kubectl("delete", "cronjob", "tick")
    wait_for(lambda: not jobs_of(skiff, "tick"))


def test_a_cron_job_that_forbids_runs_one_at_a_time_in_its_own_zone(skiff):
    skiff.kubectl("apply", "-f", "-", stdin=cron_job(
        "slow", "@every 1s", "sleep 600", concurrencyPolicy="Forbid", timeZone="Asia/Kolkata"))
    active = wait_for(lambda: get(skiff, "cronjob", "slow")["status"].get("active"))
    assert len(active) == 1 and active[0]["kind"] == "Job"
    job = jobs_of(skiff, "slow")[0]
    assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].endswith("+05:30")
    assert active[0]["uid"] == job["metadata"]["uid"]
    skiff.kubectl("delete", "job", job["metadata"]["name"])
    skiff.kubectl("delete", "cronjob", "slow")
    wait_for(lambda: not jobs_of(skiff, "slow"))
