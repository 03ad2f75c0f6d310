"""What one Skiff holds of this machine, looked at before and after: nothing may stay behind."""
import contextlib
import glob
import hashlib
import os
import pathlib
import subprocess
import time


def fnv(text):
    h = 14695981039346656037
    for byte in text.encode():
        h = ((h ^ byte) * 1099511628211) & 0xffff_ffff_ffff_ffff
    return h


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def bridge(server):
    return "skiff" + hashlib.sha256(server.data.encode()).hexdigest()[:6]


def group(server):
    """The control group that all pods of this server are in."""
    return f"skiff-{fnv(server.data + '/pods') & 0xffff_ffff:08x}"


def groups(server):
    """Folders of the pods' control groups in every hierarchy, and of their containers."""
    name = group(server)
    return {path for pattern in (f"/sys/fs/cgroup/{name}/**/", f"/sys/fs/cgroup/*/{name}/**/")
            for path in glob.glob(pattern, recursive=True) if not path.endswith(f"/{name}/")}


def processes(server):
    """{what it is: its number} of shims, and of everything in a control group or with the files of one
    of this server's pods. With its command and namespace, because numbers are given out again."""
    found = {}
    for folder in glob.glob("/proc/[0-9]*"):
        command = read(folder + "/cmdline").replace("\0", " ")
        mine = (group(server) + "/" in read(folder + "/cgroup") or f"shim {server.data}/" in command
                or server.data + "/pods/" in read(folder + "/mountinfo"))
        # What shims are forked from is begun with the first of them, and stays.
        if read(folder + "/comm").strip() == "skiff-nursery":
            continue
        if mine and (state := read(folder + "/stat")) and state.rsplit(")", 1)[1].split()[0] != "Z":
            with contextlib.suppress(OSError):
                found[f"{folder[6:]} {command}{os.readlink(folder + '/ns/net')}"] = int(folder[6:])
    return found


def links(server):
    own = set()
    for path in glob.glob("/sys/class/net/*/master"):
        with contextlib.suppress(OSError):
            if os.path.basename(os.readlink(path)) == bridge(server):
                own.add(path.split("/")[4])
    return own


def rules(server):
    """Lines of nft that name this server's bridge or table, without their counters."""
    done = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True)
    tables = done.stdout.split("\ntable ")
    return {line.strip() for table in tables if bridge(server) in table for line in table.splitlines()}


def files(server):
    """All but the store's own files and logs, which go on by themselves."""
    root = pathlib.Path(server.data)
    return {str(p.relative_to(root)) for folder in ("pods", "volumes") for p in (root / folder).glob("*")} | \
        {p.name for p in root.iterdir() if not p.name.startswith(("objects.db", "skiff.log"))}


def descriptors(server):
    """How many Skiff itself has open, by kind; those of the store and of sockets come and go."""
    kinds = {}
    for fd in glob.glob(f"/proc/{server.pid()}/fd/*"):
        with contextlib.suppress(OSError):
            target = os.readlink(fd)
            kind = target.split(":")[0] if ":" in target else target
            if kind not in ("socket",) and not target.startswith(server.data + "/objects.db"):
                kinds[kind] = kinds.get(kind, 0) + 1
    return {f"{kind} #{n}" for kind, count in kinds.items() for n in range(count)}


LOOKS = {"processes": lambda server: set(processes(server)), "links": links, "nft rules": rules,
         "control groups": groups, "files": files,
         "mounts": lambda server: {line for line in read("/proc/self/mountinfo").splitlines()
                                   if server.data + "/" in line},
         "open descriptors": descriptors}


def look(server):
    return {what: find(server) for what, find in LOOKS.items()}


def left_behind(before, after):
    return {what: sorted(after[what] - before[what]) for what in before if after[what] - before[what]}


@contextlib.contextmanager
def nothing_leaks(server, seconds=60):
    """Whatever the block starts is gone soon after it, and what was there before is there still."""
    # A Skiff that has just started makes the rules of its services a moment later.
    settle = time.monotonic() + seconds
    while not any(f"{bridge(server)}_services" in line for line in rules(server)):
        assert time.monotonic() < settle, "the rules of services were never made"
        time.sleep(0.05)
    before = look(server)
    yield
    end = time.monotonic() + seconds
    while extra := left_behind(before, after := look(server)):
        assert time.monotonic() < end, f"left behind: {extra}"
        time.sleep(0.1)
    lost = {what: missing for what in ("processes", "links", "nft rules", "mounts", "files")
            if (missing := sorted(before[what] - after[what]))}
    assert not lost, f"gone with it: {lost}"
