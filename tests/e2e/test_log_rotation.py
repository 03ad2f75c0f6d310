"""Logs of containers that print a lot: files are set aside when full, and read as one."""
import pathlib

from skiff import pod_manifest, wait_for

LINES = 150_000
WIDTH = 60
# Waits for nobody, so that a follower has to keep up.
PROGRAM = f"for i in range({LINES}): print(str(i).ljust({WIDTH}, '.'))"


def check(text):
    lines = text.splitlines()
    assert len(lines) == LINES
    assert all(line == str(i).ljust(WIDTH, ".") for i, line in enumerate(lines))


def test_a_log_goes_on_in_further_files_and_is_read_whole(skiff, manifest):
    pod = pod_manifest("talks", ["python3", "-c", "import time; time.sleep(1)\n" + PROGRAM])
    skiff.kubectl("apply", "-f", manifest(pod))
    wait_for(lambda: skiff.pod("talks")["status"]["phase"] in ("Running", "Succeeded"))
    check(skiff.kubectl("logs", "-f", "talks").stdout)
    skiff.wait_phase("talks", "Succeeded")
    uid = skiff.pod("talks")["metadata"]["uid"]
    files = list((pathlib.Path(skiff.data) / "pods" / uid / "logs" / "main").iterdir())
    assert sorted(f.name for f in files) == ["0.log", "0.log.1"]
    # Set aside between two drains of the pipe, never in the middle of a line.
    assert all(f.stat().st_size < 11 * 1024 * 1024 and f.read_bytes().endswith(b"\n") for f in files)
    check(skiff.kubectl("logs", "talks").stdout)
    tail = skiff.kubectl("logs", "talks", "--tail", "120000").stdout.splitlines()
    assert len(tail) == 120_000 and tail[0].startswith(f"{LINES - 120_000}.")
    skiff.kubectl("delete", "pod", "talks", "--now")
