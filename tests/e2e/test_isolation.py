"""A pod in the default mode as root, played by somebody who wants out: what belongs to other pods, to
Skiff and to the machine is neither seen nor reached."""
import json
import os
import subprocess

import pytest
from skiff import pod_manifest, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="without root there are no namespaces")

SECRET = "the-neighbours-secret-1234"


@pytest.fixture(scope="module")
def victim(skiff):
    """A pod with something of every kind that must stay its own."""
    skiff.kubectl("create", "secret", "generic", "hidden", f"--from-literal=word={SECRET}")
    program = f"""
import os, socket, time
os.makedirs('/root/own', exist_ok=True)
for path in ('/tmp/own', '/root/own/file', '/room/own', '/dev/shm/own', '/etc/own'):
    open(path, 'w').write('{SECRET}')
abstract = socket.socket(socket.AF_UNIX)
abstract.bind('\\0skiff-victim')
abstract.listen()
local = socket.socket()
local.bind(('127.0.0.1', 7))
local.listen()
print('ready', flush=True)
time.sleep(100000)
"""
    pod = pod_manifest("victim", ["python3", "-c", program, SECRET],
                       volumes=[{"name": "room", "emptyDir": {}}, {"name": "word", "secret": {"secretName": "hidden"}}])
    pod["spec"]["containers"][0] |= {
        "env": [{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "word"}}}],
        "volumeMounts": [{"name": "room", "mountPath": "/room"}, {"name": "word", "mountPath": "/word"}]}
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    skiff.wait_phase("victim", "Running")
    wait_for(lambda: "ready" in skiff.kubectl("logs", "victim").stdout)
    return skiff.pod("victim")


@pytest.fixture(scope="module")
def attacker(skiff, victim):
    """Runs Python in a pod that asks for nothing: the answer is what it printed."""
    pod = pod_manifest("attacker", ["sleep", "100000"])
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    skiff.wait_phase("attacker", "Running")

    def attack(program, check=True):
        done = skiff.kubectl("exec", "attacker", "--", "python3", "-c", program, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout
    return attack


HEAD = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def tries(what, fn):
    try:
        value = fn()
        print('BROKEN', what, repr(value)[:200])
    except (OSError, PermissionError) as e:
        print('refused', what, e.errno and errno.errorcode[e.errno])
def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        n = ctypes.get_errno()
        raise OSError(n, os.strerror(n))
def write(path, text):
    with open(path, 'w') as f: f.write(text)
"""


def refused(attack, lines):
    """Every line was tried, and each was refused."""
    said = attack(HEAD + "\n".join(lines)).splitlines()
    assert len(said) == len(lines), said
    assert all(line.startswith("refused") for line in said), said


def test_it_is_root_with_the_rights_that_engines_give(attacker):
    text = attacker("import os; print(os.getuid(), open('/proc/self/status').read())")
    uid, status = text.split(None, 1)
    rights = int(status.split("CapEff:")[1].split()[0], 16)
    names = {0: "chown", 1: "dac_override", 3: "fowner", 4: "fsetid", 5: "kill", 6: "setgid", 7: "setuid", 8: "setpcap",
             10: "net_bind_service", 13: "net_raw", 18: "sys_chroot", 29: "audit_write", 31: "setfcap"}
    # As containerd, without mknod.
    assert uid == "0" and rights == sum(1 << n for n in names), hex(rights)
    assert int(status.split("CapBnd:")[1].split()[0], 16) == rights


def test_other_processes_are_not_there(skiff, attacker, victim):
    seen = attacker("import glob\nfor p in glob.glob('/proc/[0-9]*'):\n  for name in ('/cmdline', '/environ'):\n"
                    "    try: print(open(p + name, errors='replace').read())\n    except OSError: print('refused')")
    assert SECRET not in seen and "skiff up" not in seen.replace("\0", " ")
    assert "sleep\x00100000" in seen, "it sees its own"
    refused(attacker, [f"tries('signal {pid}', lambda: os.kill({pid}, 0))"
                       for pid in (skiff.pid(), os.getpid())] + [
        "tries('ptrace init', lambda: call('ptrace', 16, 1, 0, 0))"])


def test_other_files_are_not_there(skiff, attacker, victim):
    """Not under the paths of the pod, of Skiff or of the machine; not by walking all there is."""
    walked = attacker(f"""
import os
for top in ('/tmp', '/root/own', '/room', '/word', '/dev', '/run', '/mnt', '/var/tmp', {skiff.data!r}):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if not os.path.isfile(path) or os.path.getsize(path) > 100000: continue
                if {SECRET!r}.encode() in open(path, 'rb').read(): print('FOUND', path)
            except OSError: pass
print('walked')
""")
    assert walked == "walked\n"
    assert attacker(f"import os; print(os.path.exists({skiff.data!r}) and os.listdir({skiff.data!r}))") in \
        ("[]\n", "False\n")
    mounts = attacker("print(open('/proc/self/mountinfo').read())")
    assert victim["metadata"]["uid"] not in mounts
    uid = skiff.pod("attacker")["metadata"]["uid"]
    # Its own sources may be named, none of them a folder with more in it than its own.
    assert all(uid in line for line in mounts.splitlines() if skiff.data + "/pods" in line)


def test_keys_and_sockets_of_skiff_are_out_of_reach(skiff, attacker, victim):
    data, uid = skiff.data, victim["metadata"]["uid"]
    paths = [f"{data}/kubeconfig", f"{data}/objects.db", f"{data}/pki/ca.key", f"{data}/pods/{uid}/sandbox.json",
             f"{data}/pods/{uid}/volumes/word/word"]
    refused(attacker, [f"tries({p!r}, lambda: open({p!r}).read())" for p in paths] + [
        f"tries('shim', lambda: socket.socket(socket.AF_UNIX).connect('{data}/pods/{uid}/shim.sock'))",
        "tries('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0skiff-victim'))"])


def gateway(skiff):
    """The machine's address in the pods' network."""
    return next(a["address"] for a in skiff.get("/api/v1/nodes")["items"][0]["status"]["addresses"]
                if a["type"] == "InternalIP")


def test_the_loopback_of_others_is_not_its_own(skiff, attacker, victim):
    refused(attacker, [
        f"tries('trust', lambda: socket.create_connection(('127.0.0.1', {skiff.http}), 2))",
        f"tries('https on loopback', lambda: socket.create_connection(('127.0.0.1', {skiff.https}), 2))",
        f"tries('loopback of the victim', lambda: socket.create_connection(('{victim['status']['podIP']}', 7), 2))"])


def test_nobody_is_trusted_for_being_on_this_machine(skiff, attacker):
    """Pods reach the API at their gateway, also without TLS, and are nobody there without a token."""
    said = attacker(f"""
import os, urllib.request, urllib.error
for path in ('secrets', 'secrets/hidden', 'pods/victim/log', 'configmaps'):
    try: print(urllib.request.urlopen('http://{gateway(skiff)}:{skiff.http}/api/v1/namespaces/default/' + path).status)
    except urllib.error.HTTPError as e: print(e.code)
""").split()
    assert len(said) == 4 and set(said) <= {"401", "403"}, said


def test_the_kernel_is_not_its_own(attacker):
    refused(attacker, [
        "tries('disk', lambda: os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)))",
        "tries('memory', lambda: os.mknod('/tmp/mem', 0o20600, os.makedev(1, 1)))",
        "tries('mount', lambda: call('mount', b'none', b'/mnt', b'tmpfs', 0, None))",
        "tries('remount', lambda: call('mount', None, b'/proc/sys', None, 0x1020, None))",
        "tries('umount', lambda: call('umount2', b'/proc/sys', 2))",
        "tries('proc again', lambda: call('mount', b'proc', b'/mnt', b'proc', 0, None))",
        "tries('unshare mounts', lambda: call('unshare', 0x20000))",
        "tries('unshare network', lambda: call('unshare', 0x40000000))",
        "tries('setns', lambda: call('setns', os.open('/proc/1/ns/mnt', os.O_RDONLY), 0))",
        "tries('module', lambda: call('syscall', 175, b'x', 1, b''))",
        "tries('reboot', lambda: call('reboot', 0x1234567))",
        "tries('clock', lambda: call('settimeofday', b'\\0' * 16, None))",
        "tries('hostname', lambda: call('sethostname', b'mine', 4))",
        "tries('swap', lambda: call('swapoff', b'/swap'))",
        "tries('accounting', lambda: call('acct', b'/tmp/acct'))",
        "tries('kernel log', lambda: call('klogctl', 5, None, 0))",
        "tries('raw io', lambda: call('iopl', 3))",
        "tries('handle', lambda: call('syscall', 304, 3, b'\\0' * 64, 0))"])


@pytest.mark.parametrize("path", [
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/panic_on_oom", "/proc/sysrq-trigger",
    "/proc/sys/fs/binfmt_misc/register", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent",
    "/sys/fs/cgroup/memory/release_agent", "/sys/power/state", "/proc/irq/default_smp_affinity"])
def test_the_kernels_settings_are_not_its_own(attacker, path):
    refused(attacker, [f"tries({path!r}, lambda: write({path!r}, 'x'))"])


def test_what_the_kernel_tells_root_only_is_not_told(attacker):
    """Files that show the machine's memory, keys or timers: absent, empty or refused, as engines do."""
    said = attacker("""
for path in ('/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/sched_debug', '/proc/kmsg', '/proc/latency_stats'):
    try:
        with open(path, 'rb') as f: print(path, len(f.read(4096)))
    except OSError as e: print(path, 0)
import os
for path in ('/proc/acpi', '/proc/scsi', '/sys/firmware', '/sys/devices/virtual/powercap', '/sys/fs/cgroup'):
    try: print(path, len(os.listdir(path)))
    except OSError: print(path, 0)
""")
    assert all(line.endswith(" 0") for line in said.splitlines()), said


def test_nothing_is_left_open_for_it(attacker, skiff):
    """Descriptors that came with the program: its own streams, and nothing of the shim."""
    said = attacker("import os\nfor fd in os.listdir('/proc/self/fd'):\n"
                    "  try: print(fd, os.readlink('/proc/self/fd/' + fd))\n  except OSError: pass")
    assert all(line.split()[1].startswith(("pipe:", "/dev/null", "/dev/pts", "socket:", "/proc/")) and
               int(line.split()[0]) < 5 for line in said.splitlines()), said
    pod = pod_manifest("streams", ["sh", "-c", "ls -l /proc/self/fd /proc/1/fd | grep -v total"])
    skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    skiff.wait_phase("streams", "Succeeded")
    text = skiff.kubectl("logs", "streams").stdout
    targets = [line.split(" -> ")[1] for line in text.splitlines() if " -> " in line]
    assert targets and all(t.startswith(("pipe:", "/dev/null", "/proc/")) for t in targets), text


def test_a_chroot_leads_nowhere_else(attacker):
    """The old way out: chroot into a folder while another is held open, then climb."""
    said = attacker("""
import os
fd = os.open('/', os.O_RDONLY)
os.makedirs('/tmp/jail', exist_ok=True)
os.chroot('/tmp/jail')
os.fchdir(fd)
for _ in range(50): os.chdir('..')
os.chroot('.')
print(os.path.exists('/proc/1/cmdline'), b'sleep' in open('/proc/1/cmdline', 'rb').read() or open('/proc/1/comm').read())
print(os.path.exists('/tmp/own'))
""").splitlines()
    assert said[0] in ("True True", "True skiff-init") or said[0].startswith("True skiff-init"), said
    assert "False" in said, said


def test_what_it_changes_is_its_own(skiff, attacker):
    attacker("open('/etc/skiff-was-here', 'w').write('x'); open('/root/skiff-was-here', 'w').write('x')")
    assert not os.path.exists("/etc/skiff-was-here") and not os.path.exists("/root/skiff-was-here")
    assert skiff.kubectl("exec", "victim", "--", "ls", "/etc/skiff-was-here", check=False).returncode


def test_limits_of_others_are_not_its_own(attacker):
    said = attacker("""
import os
found = []
for folder, _, names in os.walk('/sys/fs/cgroup'):
    found += [os.path.join(folder, n) for n in names if os.access(os.path.join(folder, n), os.W_OK)]
writable = []
for path in found:
    try:
        os.close(os.open(path, os.O_WRONLY)); writable.append(path)
    except OSError: pass
print(writable)
""")
    assert said == "[]\n"


def test_a_token_of_one_namespace_reads_no_secret_of_another(skiff):
    skiff.kubectl("create", "namespace", "elsewhere")
    token = skiff.kubectl("create", "token", "default", "-n", "elsewhere").stdout.strip()
    for path in ("secrets/hidden", "secrets", "pods", "pods/victim/log", "configmaps"):
        status = subprocess.run(["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-H",
                                 f"Authorization: Bearer {token}",
                                 f"https://127.0.0.1:{skiff.https}/api/v1/namespaces/default/{path}"],
                                capture_output=True, text=True).stdout
        assert status == "403", (path, status)
