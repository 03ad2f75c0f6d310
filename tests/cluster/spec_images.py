"""The images that upstream's specs name, built of what is at hand: no registry is asked.

agnhost and nonewprivs are upstream's own programs; busybox is Debian's; what stands for nginx and httpd is
busybox' web server with the same files at the same places."""
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import images as test_images  # noqa: E402
from images import BUSYBOX, layer  # noqa: E402
from specs import program  # noqa: E402

E2E = "registry.k8s.io/e2e-test-images"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PAGE = b"<html><body><h1>It works!</h1></body></html>\n"
PASSWD = b"""root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/home:/bin/false
user-defined-in-image:x:1000:1000::/home:/bin/sh
"""
GROUP = b"""root:x:0:
nobody:x:65534:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
"""

# Debian's busybox sh drops variables with a dash in their name, upstream's gives them to `env`.
SHELL = b"""#!/usr/bin/bash
[ "$*" = "-c env" ] && exec /bin/env
exec -a "$0" /bin/busybox "$@"
"""


def image(*layers, **config):
    return test_images.Image(list(layers), pack=lambda one: one, kind="application/vnd.oci.image.layer.v1.tar",
                             Env=[PATH], **config)


def machine_program(name):
    """{path: bytes} of a program of this machine with the libraries it needs."""
    path = subprocess.run(["which", name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True,
                                                          check=True).stdout)
    return {file.lstrip("/"): pathlib.Path(file).read_bytes() for file in [f"/usr/bin/{name}", *libraries]}


def certificate():
    """Of localhost, for the servers of agnhost."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "7", "-subj", "/CN=localhost",
                        "-keyout", f"{folder}/localhost.key", "-out", f"{folder}/localhost.crt"], check=True,
                       stderr=subprocess.DEVNULL)
        return {file.name: file.read_bytes() for file in pathlib.Path(folder).iterdir()}


@functools.cache
def base():
    """Alpine's or Debian's part of upstream's images: a shell and its usual tools."""
    files = dict.fromkeys(["bin", "etc", "home", "lib", "lib64", "root", "usr", "usr/bin", "usr/local", "usr/local/bin",
                           "usr/sbin", "var", "var/run"])
    files["tmp"] = ("folder", 0o1777)
    files["bin/busybox"] = pathlib.Path(BUSYBOX).read_bytes()
    files["etc/passwd"], files["etc/group"] = (PASSWD, 0, 0, 0o644), (GROUP, 0, 0, 0o644)
    files.update(machine_program("bash"))
    applets = subprocess.run([BUSYBOX, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            files[f"bin/{applet}"] = ("link", "/bin/busybox")
    files["bin/sh"] = SHELL
    return layer(files)


def web_server(folder, binary):
    """A server of `folder` on port 80 that is called as upstream's is, whatever its options."""
    script = f"#!/bin/sh\nexec /bin/busybox httpd -f -p 80 -h {folder}\n".encode()
    parents = {str(parent): None for parent in reversed(pathlib.PurePosixPath(folder.lstrip("/")).parents)
               if str(parent) != "."}
    more = layer({**parents, folder.lstrip("/"): None, f"{folder}/index.html".lstrip("/"): (PAGE, 0, 0, 0o644),
                  f"usr/local/bin/{binary}": script})
    return image(base(), more, Cmd=[binary], ExposedPorts={"80/tcp": {}})


def images():
    """{name: image} under the names that specs of v1.34.4 use."""
    agnhost = {"agnhost": pathlib.Path(program("agnhost")).read_bytes(), "agnhost-2": ("link", "agnhost"),
               "uploads": None, "usr/local": None, "usr/local/bin": None,
               **machine_program("curl"), **certificate()}
    pause = {"agnhost": agnhost["agnhost"]}
    setuid = {"usr/local/bin/nnp": (pathlib.Path(program("nonewprivs")).read_bytes(), 0, 0, 0o6755)}
    httpd, nginx = (web_server("/usr/local/apache2/htdocs", "httpd"), web_server("/usr/share/nginx/html", "nginx"))
    return {
        f"{E2E}/agnhost:2.56": image(base(), layer(agnhost), Entrypoint=["/agnhost"], Cmd=["pause"]),
        f"{E2E}/busybox:1.37.0-1": image(base(), Cmd=["sh"]),
        f"{E2E}/httpd:2.4.38-4": httpd,
        f"{E2E}/httpd:2.4.39-4": httpd,
        f"{E2E}/nginx:1.14-4": nginx,
        f"{E2E}/nginx:1.15-4": nginx,
        f"{E2E}/nonewprivs:1.3": image(base(), layer(setuid), Cmd=["nnp"]),
        f"{E2E}/nonroot:1.4": image(base(), Cmd=["sh"], User="1234"),
        "registry.k8s.io/pause:3.10.1": image(layer(pause), Entrypoint=["/agnhost", "pause"], User="65535:65535"),
    }


def load(skiff, folder):
    for name, one in images().items():
        archive = one.docker_archive(f"{folder}/image.tar", name)
        skiff.run("image", "load", archive)
        pathlib.Path(archive).unlink()
