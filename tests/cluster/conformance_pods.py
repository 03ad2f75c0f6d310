#!/usr/bin/env python3
"""Upstream's conformance specs that run pods, on a whole Skiff: API, scheduler, controllers and node are ours.

    tests/cluster/conformance_pods.py [--sig node,apps,storage] [--focus REGEX] [--jobs N] [--out FOLDER]
                                      [--json FILE [--failed]] [--docs FILE]

Needs root. --json keeps what was seen: a later run adds to it, with --failed it runs only what has not passed yet.
--docs writes the part of docs/conformance.md about pods from all that --json knows."""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e"))
import spec_images  # noqa: E402
from skiff import Skiff  # noqa: E402
from specs import ALONE, exactly, list_specs, run_specs  # noqa: E402

# Why a spec does not pass.
REASONS = {
    "Daemon set .* should rollback without unnecessary restarts": "wants two nodes, and Skiff is one machine",
}
# Each of these watches a pod for minutes and does nothing else: all of them at once.
SLOW = re.compile(r"Probing container|\[Slow\]")
AT_ONCE = 12
BEGIN, END = "<!-- pods: written by conformance_pods.py -->", "<!-- pods: end -->"


def run_group(kubeconfig, names, out, number):
    found = run_specs(kubeconfig, exactly(names), f"{out}/{number:03}.log", timeout="15m", nodes="0")
    for name in names:
        if name in found:
            result = found[name]
            first = result.message.splitlines()[0] if result.message else ""
            print(f"{time.strftime('%H:%M:%S')} {result.outcome:7} {result.seconds:6.1f} s  {name}"
                  + (f"\n         {number:03}.log: {first[:200]}" if not result.passed else ""), flush=True)
    return {name: found[name] for name in names if name in found}


def run_all(skiff, names, jobs, out):
    kubeconfig = f"{skiff.data}/kubeconfig"
    results, numbers = {}, iter(range(1000))
    slow = [name for name in names if SLOW.search(name) and not ALONE.search(name)]
    fast = [name for name in names if not SLOW.search(name) and not ALONE.search(name)]
    with (concurrent.futures.ThreadPoolExecutor(AT_ONCE) as many, concurrent.futures.ThreadPoolExecutor(jobs) as few):
        futures = [many.submit(run_group, kubeconfig, [name], out, next(numbers)) for name in slow]
        futures += [few.submit(run_group, kubeconfig, fast[at:at + 5], out, next(numbers))
                    for at in range(0, len(fast), 5)]
        for future in futures:
            results.update(future.result())
    for name in names:
        if ALONE.search(name):
            results.update(run_group(kubeconfig, [name], out, next(numbers)))
    return results


def explained(name):
    """Why the spec does not pass, where that is known."""
    return next((why for pattern, why in REASONS.items() if re.search(pattern, name)), "")


def reason(name, known):
    return explained(name) or (known["message"].splitlines()[0][:200] if known["message"] else "not run")


def page(seen, sigs):
    """The part of docs/conformance.md about pods."""
    lines, table = [], ["| | specs | passed |", "|---|---|---|"]
    for sig in sigs:
        names = [name for name in sorted(seen) if name.startswith(f"[sig-{sig}]")]
        good = [name for name in names if seen[name]["outcome"] == "passed"]
        table.append(f"| `[sig-{sig}]` | {len(names)} | **{len(good)}** |")
        lines += ["", f"### [sig-{sig}]: not passed", ""]
        lines += [f"- {plain(name)}: {reason(name, seen[name])}" for name in names if name not in good] or ["None."]
        lines += ["", f"### [sig-{sig}]: passed", ""]
        lines += [f"- {plain(name)}" for name in good]
    return "\n".join([*table, *lines])


def plain(name):
    return re.sub(r" \[(Conformance|NodeConformance|LinuxOnly|MinimumKubeletVersion:[\d.]+)\]|^\[sig-[a-z-]+\] ", "", name)


def write_docs(path, text):
    file = pathlib.Path(path)
    old = file.read_text()
    before, rest = old.split(BEGIN)
    file.write_text(f"{before}{BEGIN}\n{text}\n{rest[rest.index(END):]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sig", default="node,apps,storage")
    parser.add_argument("--focus", default="")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--json")
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--docs")
    parser.add_argument("--list", action="store_true", help="say which specs are meant, and run none")
    options = parser.parse_args()
    sigs = options.sig.split(",")
    notes = pathlib.Path(options.json) if options.json else None
    seen = json.loads(notes.read_text()) if notes and notes.exists() else {}
    names = [name for sig in sigs for name in list_specs(rf"\[sig-{sig}\].*\[Conformance\]")]
    for name in names:
        seen.setdefault(name, {"outcome": "not run", "message": ""})
    chosen = [name for name in names if re.search(options.focus, name)
              and not (options.failed and seen[name]["outcome"] == "passed")]
    if options.list:
        print("\n".join(chosen))
        return 0
    out = pathlib.Path(options.out or tempfile.mkdtemp(prefix="skiff-specs-"))
    out.mkdir(parents=True, exist_ok=True)
    results = {}
    if chosen:
        skiff = Skiff().start()
        try:
            spec_images.load(skiff, skiff.home)
            results = run_all(skiff, chosen, options.jobs, out)
        finally:
            shutil.copy(f"{skiff.data}/skiff.log", out)
            skiff.stop()
    seen.update({name: {"outcome": result.outcome, "message": result.message} for name, result in results.items()})
    if notes:
        notes.write_text(json.dumps(seen, indent=1, sort_keys=True))
    if options.docs:
        write_docs(options.docs, page({name: seen[name] for name in names}, sigs))
    good = sum(result.passed for result in results.values())
    known = sum(not result.passed and explained(name) != "" for name, result in results.items())
    print(f"{good} of {len(chosen)} specs passed, {known} failed as expected; logs in {out}")
    return 0 if good + known == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
