"""docs/checks.md: for each group of tests, when it last passed, on which commit and how long it took.

tools/test writes the page. tools/tidy reads from it which commit was checked last, so that it
looks at what has changed since."""
import os
import re
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs/checks.md")
HEAD = """# Checks

Written by `tools/test`, never by hand: a group that passes on committed code gets its row. `make test` runs
the groups that protect users day by day, `make test-all` adds the long ones; the Makefile says which. Times
depend on what was already compiled.

| group | passed on (UTC) | commit | tests | took | CPU | what it checks |
|---|---|---|---|---|---|---|
"""


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def clean_commit():
    """The commit that the files are; empty if they are not what a commit has."""
    changed = git("status", "--porcelain").splitlines()
    if any(not line.endswith("docs/checks.md") for line in changed):
        return ""
    return git("rev-parse", "--short=12", "HEAD")


def rows():
    if not os.path.exists(PAGE):
        return {}
    found = re.findall(r"^(\| ([a-z_]+) \| \d.*)$", open(PAGE).read(), re.M)
    return {name: line for line, name in found}


def passed_commit(group):
    """The commit on which a group passed last, or empty."""
    line = rows().get(group, "")
    return line.split("|")[3].strip() if line else ""


def record(groups, name, commit, tests, took_s, cpu_s):
    """Writes the page with a new row for one group. groups: name -> sentence, in their order."""
    kept = rows()
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    sentence = " ".join(groups[name].split())
    kept[name] = (f"| {name} | {when} | {commit} | {tests:,} | {took_s:,.0f} s | {cpu_s:,.0f} s "
                  f"| {sentence} |")
    with open(PAGE, "w") as page:
        page.write(HEAD + "".join(kept[n] + "\n" for n in groups if n in kept))
