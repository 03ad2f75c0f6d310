"""Builds and judges the mutants that tools/mutate.py makes. Used by tools/mutants.

The sources of a library are rewritten with all their mutants, compiled with the commands of a
configured build folder and linked into the library's own tests in place of the originals. Then the
tests run once for each mutant: the quick ones, then the laws, then, of training, the simulator.
"""

import json
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import mutate

CHOOSER = """#include <cstdlib>
bool skiff_mutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("SKIFF_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number == chosen;
}
"""
# A mutant that loops is killed by its own processor time, which says the same on a busy machine: a
# healthy run takes a fraction of this. One that waits is killed by the clock.
CPU_S, PATIENCE_S = 60, 600


def limit_cpu():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Library:
    """What is mutated, and which programs must notice."""

    def __init__(self, archive, sources, judges):
        self.archive, self.sources, self.judges = archive, sources, judges


TRAINING = Library(
    "src/features/training/libskiff_training.a",
    ["src/features/training/engine/*.cc", "src/features/training/kinds/*.cc",
     "src/features/training/kinds/*/*.cc"],
    [("training_test", "src/features/training/training_test",
      ["--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=-*Laws.*:*Speed*:BigJob.*"]),
     ("laws", "src/features/training/training_test",
      ["--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=*Laws.*:BigJob.*"]),
     ("skiff_sim", "sim/skiff_sim", ["--seeds", "1..60", "--fail-fast"])])


def small_library(folder, archive, program):
    """One whose own tests run in a moment and must suffice: a test of speed is none of them. The
    laws, where there are any, take longer than all others and come last."""
    def judge(name, tests):
        return (name, f"{folder}/{program}",
                ["--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={tests}"])

    return Library(f"{folder}/lib{archive}.a", [f"{folder}/*.cc"],
                   [judge(program, "-*under_a_second:*Laws.*"), judge("laws", "*Laws.*")])


LIBRARIES = [
    TRAINING,
    small_library("src/scheduler", "skiff_scheduler", "scheduler_test"),
    small_library("src/features/jobsets", "skiff_jobsets", "jobsets_test"),
    small_library("src/features/trainer", "skiff_trainer", "trainer_test"),
]


def sources_of(tree, library):
    out = []
    for pattern in library.sources:
        out += [p for p in tree.glob(pattern) if not re.search(r"_(test|fuzz|bench)\.cc$", p.name)]
    return sorted(out)


def compile_commands(build):
    text = subprocess.run(["ninja", "-C", str(build), "-t", "compdb"], check=True,
                          capture_output=True, text=True).stdout
    return {e["file"]: e["command"] for e in json.loads(text) if e["file"].endswith(".cc")}


def compile_one(build, command, source, target):
    """What the compiler says, or None where it is satisfied."""
    words = shlex.split(command)
    words[words.index("-o") + 1] = str(target)
    words[words.index("-c") + 1] = str(source)
    for flag in ("-MF", "-MT"):
        if flag in words:
            words[words.index(flag) + 1] = str(target) + ".d"
    done = subprocess.run(words + ["-w", "-ferror-limit=0"], cwd=build, capture_output=True,
                          text=True, errors="replace")
    return None if done.returncode == 0 else done.stderr


def build_file(tree, build, folder, path, command, first):
    """Compiles a file with its mutants; those that do not compile are dropped."""
    name = str(path.relative_to(tree))
    source = folder / name.replace("/", "_")
    dropped = set()
    for _ in range(6):
        mutator = mutate.Mutator(name, path.read_text(), dropped)
        text = "bool skiff_mutant(int number);\n" + mutator.rewrite(first)
        source.write_text(text)
        said = compile_one(build, command, source, source.with_suffix(".o"))
        if said is None:
            return mutator.mutants
        lines, bad = text.splitlines(), set()
        for match in re.finditer(re.escape(source.name) + r":(\d+):\d+: error", said):
            found = re.match(r"/\*m(\d+)\*/", lines[int(match.group(1)) - 1])
            if found:
                bad.add(int(found.group(1)))
        if not bad:
            sys.exit(f"{name} does not compile once it is rewritten:\n{said[:3000]}")
        dropped |= {m.text for m in mutator.mutants if m.number in bad}
    sys.exit(f"{name}: the compiler refuses mutants without end")


def link(build, program, library, archive, target):
    text = subprocess.run(["ninja", "-C", str(build), "-t", "commands", program], check=True,
                          capture_output=True, text=True).stdout.splitlines()[-1]
    text = text.replace(library.archive, str(archive)).replace(f"-o {program}", f"-o {target}")
    # Only the link itself: what a build does after it (listing the tests) is not for mutants.
    text = next(part for part in text.split(" && ") if f"-o {target}" in part)
    subprocess.run(text, shell=True, cwd=build, check=True)


def make(tree, build, library, jobs):
    """All mutants, and where each program with all of them in it lies."""
    folder = build / "generated" / pathlib.Path(library.archive).stem
    folder.mkdir(parents=True, exist_ok=True)
    commands = compile_commands(build)
    paths = sources_of(tree, library)
    (folder / "chooser.cc").write_text(CHOOSER)
    some = next(iter(commands[str(p)] for p in paths))
    if compile_one(build, some, folder / "chooser.cc", folder / "chooser.o"):
        sys.exit("the chooser of mutants does not compile")

    def one(numbered):
        number, path = numbered
        return build_file(tree, build, folder, path, commands[str(path)], 1 + number * 10_000)

    with ThreadPoolExecutor(jobs) as pool:
        mutants = sum(pool.map(one, enumerate(paths)), [])
    archive = folder / pathlib.Path(library.archive).name
    archive.unlink(missing_ok=True)
    objects = [str(folder / str(p.relative_to(tree)).replace("/", "_"))[:-3] + ".o" for p in paths]
    others = [str(build / o) for o in archive_members(build, library, paths, commands)]
    subprocess.run(["ar", "qcs", str(archive), *objects, str(folder / "chooser.o"), *others],
                   check=True)
    programs = {}
    for _, program, _ in library.judges:
        if program not in programs:
            programs[program] = folder / pathlib.Path(program).name
            link(build, program, library, archive, programs[program])
    return mutants, programs


def archive_members(build, library, paths, commands):
    """Objects of the library that are not mutated."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "query", library.archive], check=True,
                          capture_output=True, text=True).stdout
    objects = [line.strip() for line in text.splitlines() if line.strip().endswith(".cc.o")]
    mutated = {re.search(r" -o (\S+)", commands[str(p)]).group(1) for p in paths}
    return [o for o in objects if o not in mutated]


def killer_of(mutant, library, programs, build):
    """Which program notices, or None. Number 0 is the healthy program."""
    for name, program, arguments in library.judges:
        try:
            done = subprocess.run([str(programs[program]), *arguments], cwd=build,
                                  env={"SKIFF_MUTANT": str(mutant)}, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=PATIENCE_S,
                                  preexec_fn=limit_cpu)
        except subprocess.TimeoutExpired:
            return f"{name} (does not end)"
        if done.returncode != 0:
            return name
    return None


def equivalents(path):
    """The mutants that change nothing that can be seen: {key: reason}."""
    out, key = {}, None
    for line in path.read_text().splitlines() if path.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            out[key] = line.strip()
        else:
            key = line
    return out


def build_all(tree, build, wanted, jobs):
    """[(mutant, its library, the library's programs)] of all libraries with a file that is wanted."""
    out = []
    for library in LIBRARIES:
        if wanted and not any(wanted in str(p.relative_to(tree)) for p in sources_of(tree, library)):
            continue
        programs = sorted({program for _, program, _ in library.judges})
        subprocess.run(["ninja", "-C", str(build), "-j", str(jobs), *programs], check=True,
                       stdout=subprocess.DEVNULL)
        mutants, programs = make(tree, build, library, jobs)
        killer = killer_of(0, library, programs, build)
        if killer:
            sys.exit(f"{killer} fails without any mutant; mend that first")
        out += [(m, library, programs) for m in mutants]
    return out


def verdict(judged):
    """Prints which mutants survived; how many of them were killed, and by whom."""
    by = {}
    for mutant, killer in judged:
        by[killer] = by.get(killer, 0) + 1
        if killer is None:
            print(f"survived: {mutant.file}:{mutant.line}: {mutant.what}\n    {mutant.text}")
    survived = by.pop(None, 0)
    print(", ".join(f"{n} by {name}" for name, n in sorted(by.items(), key=lambda e: -e[1])))
    return len(judged) - survived


def run(tree, build, known_path, sample, seed, jobs, only=None):
    """Judges all mutants or a sample; True where enough are killed."""
    begin = time.monotonic()
    built = build_all(tree, build, only, jobs)
    print(f"{len(built)} mutants built in {time.monotonic() - begin:.0f} s", flush=True)
    known = equivalents(known_path)
    made = {m.key() for m, _, _ in built}
    looked_at = {m.file for m, _, _ in built}
    stale = {key for key in known if key not in made and (not only or key.split(": ")[0] in looked_at)}
    for key in sorted(stale):
        print(f"stale: {known_path.name} names a mutant that is not made any more: {key}")
    chosen = [b for b in built if b[0].key() not in known and (not only or only in b[0].file)]
    if sample and sample < len(chosen):
        chosen = random.Random(seed).sample(chosen, sample)
    with ThreadPoolExecutor(jobs) as pool:
        judged = list(pool.map(
            lambda b: (b[0], killer_of(b[0].number, b[1], b[2], build)), chosen))
    killed = verdict(judged)
    print(f"generated: {killed} of {len(judged)} killed, {100 * killed / max(1, len(judged)):.1f} % "
          f"({len(built)} in all, {len(known.keys() & made)} of them equivalent), "
          f"{time.monotonic() - begin:.0f} s")
    return not stale and killed >= 0.95 * len(judged)
