"""Which files and commits a group of checks has not seen yet."""
import os
import subprocess

import checks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def git(*arguments):
    """What git prints, or None where it fails: a history may be shallow or rewritten."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def ancestor(name):
    """The full name of a commit that HEAD descends from, else None."""
    if git("merge-base", "--is-ancestor", name, "HEAD") is None:
        return None
    return git("rev-parse", "--verify", "--quiet", name + "^{commit}")


def base_commit(group):
    """The commit since which `group` checks: SKIFF_BASE, else the one on which it passed last, else
    where this branch began, else the twentieth before HEAD, else the first."""
    given = os.environ.get("SKIFF_BASE", "")
    for name in (given, checks.passed_commit(group)):
        found = ancestor(name) if name else None
        if found:
            return found
    fork = git("merge-base", "HEAD", "origin/main")
    if fork and fork != git("rev-parse", "HEAD"):
        return fork
    return ancestor("HEAD~20") or git("rev-list", "--max-parents=0", "HEAD").split()[-1]


def changed_files(base):
    """Files that differ from `base`, committed or not, and those that git does not know yet."""
    differ = git("diff", "--name-only", "--diff-filter=d", base) or ""
    new = git("ls-files", "-o", "--exclude-standard") or ""
    return sorted(set(differ.splitlines()) | set(new.splitlines()))


def subjects(base):
    """(short name, subject) of the commits since `base`, without merges."""
    out = git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD") or ""
    return [tuple(line.partition(" ")[::2]) for line in out.splitlines()]
