"""Compiles files by themselves and runs clang-tidy on them, in parallel. What was found good is
remembered under ~/.cache/skiff by what went into it, so that a second run is quick."""
import hashlib
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.expanduser("~/.cache/skiff/standalone")
CACHE_DAYS = 30
COMPILER, TIDY = "clang++-19", "clang-tidy-19"
# What CMakeLists.txt defines, for all files at once: no precompiled header, no batches. Paths are
# relative to the tree, so that clones share what they know.
FLAGS = ["-std=c++2b", "-pthread", "-I.", "-Isrc", "-DFMT_SHARED", "-DGTEST_HAS_PTHREAD=1",
         '-DSKIFF_SOURCE_DIR="."', '-DFAKE_NVML_LIBRARY="fake"', "-DSKIFF_JEMALLOC",
         "-DBOOST_ASIO_NO_DEPRECATED", "-DBOOST_ASIO_SEPARATE_COMPILATION",
         "-DBOOST_BEAST_SEPARATE_COMPILATION"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<)', re.M)


class Tree:
    """The files of one source tree and what they include of each other."""

    def __init__(self, root=ROOT):
        self.root = root
        self.known = {}  # path: (hash of its bytes, files of this tree that it includes)
        self.first = {}  # path: the file of this tree that it includes before all others

    def read(self, path):
        if path not in self.known:
            data = open(os.path.join(self.root, path), "rb").read()
            names = INCLUDE.findall(data.decode("utf-8", "replace"))
            found = [self.resolve(path, name) for name in names]
            self.known[path] = hashlib.sha256(data).hexdigest(), sorted({p for p in found if p})
            self.first[path] = found[0] if found else None
        return self.known[path]

    def resolve(self, path, name):
        if not name:
            return None
        for folder in (os.path.dirname(path), "", "src"):
            candidate = os.path.normpath(os.path.join(folder, name))
            if os.path.isfile(os.path.join(self.root, candidate)):
                return candidate
        return None

    def key(self, path, words):
        """Names the file, all that it includes of this tree, and the command that reads it."""
        seen, todo = set(), [path]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += self.read(here)[1]
        parts = [path, *words, *(f"{p} {self.read(p)[0]}" for p in sorted(seen))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def affected(self, now, all_files):
        """Which files to compile where those of `now` have changed: also those that may have relied
        on what a changed header no longer includes."""
        users = {p for p in all_files if not now.isdisjoint(self.read(p)[1])}
        return self.without_proven(now | users, all_files)

    def without_proven(self, paths, all_files):
        """Leaves out headers that a source file includes before anything else: where that file
        compiles, so does the header. Each such file takes its header's place."""
        proof = {}
        for path in all_files:
            if path.endswith(".cc") and self.read(path) and self.first[path]:
                proof.setdefault(self.first[path], path)
        return sorted({proof.get(p, p) for p in paths})


def is_source(path):
    """A C++ file that must compile by itself; the precompiled headers need not."""
    return path.endswith((".cc", ".h")) and not path.startswith("cmake/")


def version(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


def compile_alone(root, path):
    """What the compiler says against this file, empty if nothing. A header is included by a file
    that has nothing else."""
    source, text = ([path], None) if path.endswith(".cc") else (["-"], f'#include "{path}"\n')
    done = subprocess.run([COMPILER, "-fsyntax-only", "-w", *FLAGS, "-x", "c++", *source], cwd=root,
                          input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def clang_tidy(root, path):
    done = subprocess.run([TIDY, "--quiet", f"--config-file={ROOT}/.clang-tidy", path, "--", *FLAGS, "-w"],
                          cwd=root, capture_output=True, text=True)
    return (done.stdout or done.stderr) if done.returncode else ""


def check_each(check, words, tree, paths, cache=CACHE):
    """Runs `check` on the files that are not known to be good; (path, what it says) of the bad."""
    def one(path):
        mark = os.path.join(cache, tree.key(path, words)) if cache else None
        if mark and os.path.exists(mark):
            os.utime(mark)
            return path, ""
        said = check(tree.root, path)
        if mark and not said:
            open(mark, "w").close()
        return path, said

    if cache:
        os.makedirs(cache, exist_ok=True)
        forget_old(cache)
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return [(path, said) for path, said in pool.map(one, paths) if said]


def forget_old(cache):
    for entry in os.scandir(cache):
        if entry.stat().st_mtime < time.time() - CACHE_DAYS * 86400:
            os.unlink(entry.path)


def check_standalone(paths, tree, cache=CACHE):
    return check_each(compile_alone, [version(COMPILER), *FLAGS], tree, paths, cache)


def check_clang_tidy(paths, tree, cache=CACHE):
    rules = open(os.path.join(ROOT, ".clang-tidy"), encoding="utf-8").read()
    return check_each(clang_tidy, [version(TIDY), rules, *FLAGS], tree, paths, cache)
