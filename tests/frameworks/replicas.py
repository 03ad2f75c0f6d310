"""Watches the processes of a job's replicas from outside: when each was born and when it died.

A pod's status knows both to the second only, and what we want to know takes milliseconds. The time
of birth is the kernel's own; a death wakes the watcher through a pidfd."""
import os
import pathlib
import re
import select
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    def __init__(self, pid, pod, born):
        self.pid, self.pod, self.born, self.died = pid, pod, born, None


def birth(pid):
    """Wall-clock time of a process's start, to a hundredth of a second."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + int(stat[19]) / TICKS


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


class Replicas(threading.Thread):
    """Every process that a Skiff has started as the first of a pod of one job."""

    def __init__(self, job, port):
        super().__init__(daemon=True)
        self.name_of_pod = re.compile(rb"\0HOSTNAME=(" + job.encode() + rb"-[a-z]+-?[0-9]*)\0")
        self.mine = f"\0KUBERNETES_SERVICE_PORT={port}\0".encode()  # other Skiffs may run such a job, too
        self.all, self.seen, self.stopping = [], set(), False
        self.poll, self.by_fd = select.poll(), {}
        self.start()

    def run(self):
        while not self.stopping:
            self.look()
            self.bury(50)

    def bury(self, milliseconds):
        for fd, _ in self.poll.poll(milliseconds):
            self.by_fd.pop(fd).died = time.time()
            self.poll.unregister(fd)
            os.close(fd)

    def stop(self):
        self.stopping = True
        self.join()
        for fd in self.by_fd:
            os.close(fd)

    def pod_of(self, pid):
        environment = b"\0" + pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        found = self.name_of_pod.search(environment)
        return found.group(1).decode() if found and self.mine in environment else None

    def look(self):
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or entry in self.seen:
                continue
            try:
                born = birth(entry)
                pod = self.pod_of(entry)
                # A process between fork and exec has its parent's variables: look at it again.
                if pod is None:
                    if time.time() - born > 2:
                        self.seen.add(entry)
                    continue
                self.seen.add(entry)
                if self.pod_of(parent(entry)):
                    continue
                self.add(Process(int(entry), pod, born))
            except (OSError, ValueError):
                continue  # gone while we looked

    def add(self, process):
        self.bury(0)
        if self.alive(process.pod):
            return  # not the pod's first: somebody else has started it in there, as mpirun does
        fd = os.pidfd_open(process.pid)
        self.by_fd[fd] = process
        self.poll.register(fd, select.POLLIN)
        self.all.append(process)

    def alive(self, pod=None):
        return [p for p in self.all if p.died is None and (pod is None or p.pod == pod)]

    def last_start(self, since):
        return max((p.born for p in self.all if p.born >= since), default=None)

    def downtime(self, since):
        """How long the replica that was worst off had no process, from when its own had died."""
        gaps = {}
        for old in [p for p in self.all if p.died and p.died >= since]:
            after = [p.born for p in self.all if p.pod == old.pod and p.born > old.born]
            if after:
                gaps[old.pod] = gaps.get(old.pod, 0.0) + max(0.0, min(after) - old.died)
        return max(gaps.values(), default=0.0)
