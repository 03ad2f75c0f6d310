#!/usr/bin/env python3
"""How long it takes to build Skiff: from nothing, and again with what ccache has kept.

bench/builds.py clones the committed tree into a temporary folder, so that nothing of this tree helps.
Packages (tools/setup) and downloads are not counted."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLD_CPU_SECONDS = 550  # the most that a build of the product from nothing may take
DEMO_SECONDS = 300      # the most that `make demo` may take in all


def cpu_seconds():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def timed(command, folder, **environment):
    """Runs a command and returns (wall seconds, CPU seconds)."""
    wall, cpu = time.time(), cpu_seconds()
    done = subprocess.run(command, cwd=folder, env=dict(os.environ, **environment), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")
    return time.time() - wall, cpu_seconds() - cpu


def row(what, wall, cpu, goal="", missed=False):
    print(f"{what:<52} {wall:>6.0f} s {cpu:>7.0f} CPU s  {goal}{' MISSED' if missed else ''}", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="skiff-builds-") as scratch:
        clone, cache = os.path.join(scratch, "clone"), os.path.join(scratch, "ccache")
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        wall, cpu = timed(["make", "build"], clone, CCACHE_DISABLE="1")
        row("make build, from nothing, without ccache", wall, cpu,
            f"at most {COLD_CPU_SECONDS} CPU s", cpu > COLD_CPU_SECONDS)
        demo, demo_cpu = timed(["make", "demo"], clone, CCACHE_DISABLE="1")
        row("make demo, already built", demo, demo_cpu)
        row("make demo from nothing: the sum of both", wall + demo, cpu + demo_cpu,
            f"at most {DEMO_SECONDS} s with the packages", wall + demo > DEMO_SECONDS)
        row("make build, nothing changed", *timed(["make", "build"], clone, CCACHE_DISABLE="1"))
        for what in ("make build, from nothing, ccache empty", "make build, from nothing, ccache full"):
            shutil.rmtree(os.path.join(clone, "build"))
            row(what, *timed(["make", "build"], clone, CCACHE_DIR=cache))


if __name__ == "__main__":
    main()
