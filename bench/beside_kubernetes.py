#!/usr/bin/env python3
"""Skiff's API server beside kube-apiserver with etcd, same machine, same load, one after the other.

The peer is measured first. Both speak TLS to the same C++ client (bench/api_bench.cc)."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from control_plane import TOKEN, ControlPlane  # noqa: E402
from skiff import Skiff  # noqa: E402

BENCH = ROOT / "build" / "release" / "bench" / "skiff_api_bench"


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def sync_ms():
    """Median of one small write with fdatasync inside a file that has its blocks already, as a log has them: the
    least that a write which survives a power cut can cost here."""
    times = []
    with tempfile.NamedTemporaryFile(dir=tempfile.gettempdir()) as file:
        os.write(file.fileno(), bytes(1 << 20))
        os.fsync(file.fileno())
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        for _ in range(101):
            start = time.perf_counter()
            os.write(file.fileno(), b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - start) * 1000)
    return sorted(times)[50]


def figures(port, token):
    done = subprocess.run([BENCH, str(port), token], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def growth(port, token, pid):
    """[(objects, list ms, MB beyond idle)]"""
    idle = rss_mb(pid)
    steps = []
    process = subprocess.Popen([BENCH, str(port), token, "growth"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        step = json.loads(line)
        steps.append((step["objects"], step["list_ms"], rss_mb(pid) - idle))
        process.stdin.write(" ")
        process.stdin.flush()
    if process.wait():
        raise SystemExit("the growth run failed")
    return steps


def exponent(steps, column):
    """Of the growth from the first to the last step: 1 is linear."""
    (n0, *first), (n1, *last) = steps[0], steps[-1]
    return math.log(last[column] / first[column]) / math.log(n1 / n0)


def row(what, ours, theirs, ratio, goal, met):
    print(f"{what:<46} {ours:>14} {theirs:>16} {ratio:>9}   {goal}{'' if met else '  MISSED'}", flush=True)


def main():
    plane = ControlPlane().start()
    try:
        theirs = figures(plane.port, TOKEN)
        their_memory = {name: size / 1048576 for name, size in plane.memory_bytes().items()}
    finally:
        plane.stop()
    skiff = Skiff("--api-only").start()
    try:
        sync = sync_ms()
        ours = figures(skiff.https, skiff.token())
        sync = min(sync, sync_ms())  # the stricter of before and after
        our_memory = rss_mb(skiff.pid())
    finally:
        skiff.stop()
    grown = Skiff("--api-only").start()
    try:
        time.sleep(1)
        steps = growth(grown.https, grown.token(), grown.pid())
    finally:
        grown.stop()

    print(f"one write + fdatasync here: {sync:.2f} ms; the list is {ours['list_bytes'] / 1e6:.1f} MB here, "
          f"{theirs['list_bytes'] / 1e6:.1f} MB there")
    row("what", "Skiff", "kube-apiserver", "ratio", "goal", True)
    for what, key, goal, more in (("creates/s, 64 connections", "creates_per_s", 3, True),
                                  ("GETs/s, 16 connections", "gets_per_s", 5, True),
                                  ("list of 10,000 pods, ms", "list_ms", 5, False)):
        a, b = ours[key], theirs[key]
        ratio = a / b if more else b / a
        row(what, f"{a:,.0f}", f"{b:,.0f}", f"{ratio:.1f}x", f"{goal}x", ratio >= goal)
    row("one create, one connection, ms", f"{ours['create_ms']:.2f}", f"{theirs['create_ms']:.2f}",
        f"{theirs['create_ms'] / ours['create_ms']:.1f}x", f"sync {sync:.2f} + 0.5", ours["create_ms"] <= sync + 0.5)
    row("500 watchers, 200 events/s: p99 lag, ms", f"{ours['watch_lag_p99_ms']:.1f}", f"{theirs['watch_lag_p99_ms']:.1f}",
        f"{theirs['watch_lag_p99_ms'] / ours['watch_lag_p99_ms']:.1f}x", "100", ours["watch_lag_p99_ms"] <= 100)
    row("  events delivered", f"{ours['watch_events']:,}", f"{theirs['watch_events']:,}", "", "", True)
    row("memory after this, MB", f"{our_memory:.0f}", f"{sum(their_memory.values()):.0f}", "", "", True)
    print("growth of Skiff: " + "; ".join(f"{n:,} objects: list {ms:.1f} ms, {mb:.1f} MB" for n, ms, mb in steps))
    for what, column in (("list time", 0), ("memory", 1)):
        e = exponent(steps, column)
        row(f"growth 1,000 to 100,000 objects: {what}", f"n^{e:.2f}", "", "", "n^1.1", e <= 1.1)


if __name__ == "__main__":
    main()
