"""`skiff train`: every kind from one script, a copy of the code, progress lines, Ctrl-C, exit codes."""
import contextlib
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from skiff import BINARY, wait_for

# A job is over with its first replica, and the others with the job: it waits for the other, by a file in the folder
# of the script.
SHOW = """import glob, os, socket, time
here = os.path.dirname(os.path.abspath(__file__))
names = ("TF_CONFIG", "MASTER_ADDR", "RANK", "COORDINATOR_ADDRESS", "PADDLE_MASTER", "PADDLE_NNODES")
print("told:", *[n for n in names if n in os.environ])
print("step 5/5 loss=0.1")
if not socket.gethostname().endswith(FIRST):
    open(f"{here}/{socket.gethostname()}.done", "w").close()
    raise SystemExit(0)
end = time.time() + 100
while not glob.glob(f"{here}/*.done") and time.time() < end:
    time.sleep(0.05)
time.sleep(3)  # the pod of the other is over as well, and stays
"""


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("module,kind,more,replicas,told", [
    ("tensorflow", "tfjob", ["--workers", "2"], ["[worker-0]", "[worker-1]"], "TF_CONFIG"),
    ("torch", "pytorchjob", ["--workers", "2"], ["[master-0]", "[worker-0]"], "MASTER_ADDR"),
    ("xgboost", "xgboostjob", ["--workers", "2"], ["[master-0]", "[worker-0]"], "MASTER_ADDR"),
    ("jax", "jaxjob", ["--workers", "2"], ["[worker-0]", "[worker-1]"], "COORDINATOR_ADDRESS"),
    ("paddle", "paddlejob", ["--workers", "2"], ["[worker-0]", "[worker-1]"], "PADDLE_NNODES"),
])
def test_every_kind_by_what_the_script_imports(skiff, tmp_path, module, kind, more, replicas, told):
    script = write(tmp_path, f"{module}_job.py", f"try:\n    import {module}\nexcept ImportError:\n    pass\n"
                   f"FIRST = {replicas[0][1:-1]!r}\n" + SHOW)
    done = skiff.run("train", script, *more, "--env", "A=b")
    assert f"imports {module}: a " in done.stdout and "Succeeded" in done.stdout
    for replica in replicas:
        assert f"{replica} step 5/5" in done.stdout, done.stdout
    assert told in done.stdout
    skiff.run("delete", kind, f"{module}-job")


def test_a_script_for_nothing_known_is_refused_with_a_sentence(skiff, tmp_path):
    done = skiff.run("train", write(tmp_path, "plain.py", "print(1)\n"), check=False)
    assert done.returncode == 1 and "say which one it is for: --framework" in done.stderr
    done = skiff.run("train", write(tmp_path, "j.py", "import jax\n"), "--ps", "2", check=False)
    assert "jax has no parameter servers" in done.stderr


def test_a_copy_is_taken_and_goes_with_the_job(skiff, tmp_path):
    write(tmp_path, "lib/helper.py", "WORD = 'copied'\n")
    write(tmp_path, ".secret", "hidden")
    script = write(tmp_path, "copied.py", "import os, sys\nsys.path.insert(0, 'lib')\nimport helper\n"
                   "print(helper.WORD, os.getcwd(), sorted(n for n in os.listdir('.') if not n.startswith('..')))\n")
    done = skiff.run("train", script, "--framework", "jax", "--copy")
    assert "[worker-0] copied /skiff/code ['copied.py', 'lib']" in done.stdout, done.stdout
    maps = lambda: [m for m in skiff.get("/api/v1/namespaces/default/configmaps")["items"]
                    if m["metadata"]["name"].startswith("copied-code-")]
    assert len(maps()) == 1
    skiff.run("delete", "jaxjob", "copied")
    wait_for(lambda: not maps())


def test_a_copy_that_is_too_large_says_what_to_do(skiff, tmp_path):
    script = write(tmp_path, "large.py", "import jax\n")
    (tmp_path / "data.bin").write_bytes(b"x" * (2 << 20))
    done = skiff.run("train", script, "--copy", check=False)
    assert "data.bin has 2.0 MiB" in done.stderr and "--claim" in done.stderr
    assert skiff.job("jaxjobs", "large") is None


def test_a_dataset_can_be_read_and_not_written(skiff, tmp_path):
    data = tmp_path / "set"
    write(data, "rows.csv", "1,2\n")
    script = write(tmp_path / "code", "reads.py", f"print(open('{data}/rows.csv').read())\n"
                   f"try:\n    open('{data}/new', 'w')\nexcept OSError as e:\n    print('refused', e.errno)\n")
    done = skiff.run("train", script, "--framework", "jax", "--dataset", str(data), "--workdir", str(tmp_path / "code"))
    assert "1,2" in done.stdout
    if os.geteuid() == 0:
        assert "refused" in done.stdout and not (data / "new").exists()
    skiff.run("delete", "jaxjob", "reads")


def test_a_folder_that_holds_skiffs_data_keeps_what_is_written_and_hides_the_data(skiff):
    here = pathlib.Path(skiff.data).parent
    script = here / f"{pathlib.Path(skiff.data).name}-holds.py"
    result = script.with_suffix(".out")
    script.write_text(f"import os\nopen('{result}', 'w').write(str(os.listdir('{skiff.data}')))\n")
    try:
        skiff.run("train", str(script), "--framework", "jax", "--name", "holds", "--workdir", str(here))
        assert result.exists()
        if os.geteuid() == 0:
            assert result.read_text() == "[]"
    finally:
        script.unlink()
        result.unlink(missing_ok=True)
    skiff.run("delete", "jaxjob", "holds")


SLOW = "import time\nprint('ready', flush=True)\nfor i in range(1, 600):\n    print(f'step {i}/600', flush=True)\n    time.sleep(0.1)\n"


@contextlib.contextmanager
def running(*arguments, **options):
    """A process that does not outlive the test."""
    process = subprocess.Popen([BINARY, *arguments], **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def interrupted(skiff, *arguments):
    """The exit code and the output of a `skiff train` that gets a Ctrl-C once its job runs."""
    with running("train", *arguments, env=skiff.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                 stdin=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            if "ready" in line:
                break
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=120)[0]
        return process.returncode, out


def test_ctrl_c_stops_the_job(skiff, tmp_path):
    code, out = interrupted(skiff, write(tmp_path, "slow.py", SLOW), "--framework", "jax")
    assert code == 130 and "is deleted" in out, out
    assert skiff.job("jaxjobs", "slow") is None
    assert not skiff.pods(selector="training.kubeflow.org/job-name=slow")


def test_ctrl_c_with_keep_leaves_it(skiff, tmp_path):
    code, out = interrupted(skiff, write(tmp_path, "kept.py", SLOW), "--framework", "jax", "--keep")
    assert code == 130 and "goes on" in out, out
    assert skiff.job("jaxjobs", "kept") is not None
    skiff.run("delete", "jaxjob", "kept")


def test_a_terminal_has_a_line_that_stays(skiff, tmp_path):
    script = write(tmp_path, "shown.py", SLOW)
    main, side = pty.openpty()
    env = dict(skiff.environment(), TERM="xterm")
    env.pop("NO_COLOR")
    with running("train", script, "--framework", "jax", env=env, stdin=side, stdout=side, stderr=side,
                 start_new_session=True) as process:
        os.close(side)
        seen, end = b"", time.monotonic() + 60
        while b"] step " not in seen.replace(b"[worker-0]", b"") and time.monotonic() < end:
            if select.select([main], [], [], 0.5)[0]:
                seen += os.read(main, 65536)
        text = seen.decode(errors="replace")
        assert "\033[" in text and re.search(r"\[#*-+\] step \d+/600 \(\d+ %\)", text), text[-2000:]
        process.send_signal(signal.SIGINT)
        while b"[y/N]" not in seen and time.monotonic() < end + 60:
            if select.select([main], [], [], 0.5)[0]:
                seen += os.read(main, 65536)
        os.write(main, b"y\n")
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    os.read(main, 65536)
                except OSError:
                    break
        assert process.wait(30) == 130
    assert skiff.job("jaxjobs", "shown") is None
    os.close(main)


def test_detached_it_comes_back_at_once_and_help_teaches(skiff, tmp_path):
    done = skiff.run("train", write(tmp_path, "away.py", "import jax_none\n"), "--framework", "jax", "--detach",
                     "--retries", "0")
    assert "jaxjob/away created" in done.stdout and "[worker-0]" not in done.stdout
    skiff.run("delete", "jaxjob", "away")
    help_text = skiff.run("train", "--help").stdout
    for part in ("Examples:", "--copy", "--nproc", "SKIFF_PROGRESS_FILE"):
        assert part in help_text


def test_a_script_that_fails_passes_its_code_on_and_the_reason_is_told(skiff, tmp_path):
    script = write(tmp_path, "fails.py", "import sys\nsys.exit(3)\n")
    done = skiff.run("train", script, "--framework", "jax", "--retries", "0", check=False)
    assert done.returncode == 3
    assert "JAXJob fails has failed" in done.stdout and "ended with exit code 3" in done.stdout
    skiff.run("delete", "jaxjob", "fails")
