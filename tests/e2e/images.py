"""Builds small images from the machine's busybox, and serves them with Debian's docker-registry."""
import base64
import gzip
import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
import urllib.request

from skiff import free_port, wait_for

BUSYBOX = "/usr/bin/busybox"
SESAME = "$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW"  # bcrypt, the only form docker-registry takes
APPLETS = ("sh", "cat", "echo", "ls", "id", "sleep", "true", "env", "pwd", "touch", "hostname", "test", "httpd")


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files):
    """A tar of {path: bytes | ("link", target) | None or ("folder", mode) | (bytes, uid, gid, mode)}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, value in files.items():
            info = tarfile.TarInfo(path)
            if value is None or value[:1] == ("folder",):
                info.type, info.mode = tarfile.DIRTYPE, value[1] if value else 0o755
                tar.addfile(info)
            elif isinstance(value, tuple) and value[0] == "link":
                info.type, info.linkname = tarfile.SYMTYPE, value[1]
                tar.addfile(info)
            else:
                if isinstance(value, tuple):
                    value, info.uid, info.gid, info.mode = value
                else:
                    info.mode = 0o755
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
    return out.getvalue()


def busybox_layer(**more):
    files = {"bin": None, "bin/busybox": pathlib.Path(BUSYBOX).read_bytes(), "etc": None, "tmp": None,
             "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nworker:x:1000:1001:W:/home/worker:/bin/sh\n",
             "etc/group": b"root:x:0:\nworkers:x:1001:\n"}
    for applet in APPLETS:
        files[f"bin/{applet}"] = ("link", "busybox")
    files.update(more)
    return layer(files)


class Image:
    """Layers (plain tars) and what `config` of an image says."""

    def __init__(self, layers, pack=gzip.compress, kind="application/vnd.oci.image.layer.v1.tar+gzip", **config):
        self.blobs = {}
        self.layers = layers
        document = {"architecture": "amd64", "os": "linux", "config": config,
                    "rootfs": {"type": "layers", "diff_ids": [digest(one) for one in layers]}}
        self.config = json.dumps(document).encode()
        packed = [pack(one) for one in layers]
        for blob in [self.config, *packed]:
            self.blobs[digest(blob)] = blob
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(self.config),
                       "size": len(self.config)},
            "layers": [{"mediaType": kind, "digest": digest(one), "size": len(one)} for one in packed]}).encode()
        self.digest = digest(self.manifest)

    def docker_archive(self, path, *tags):
        """As `docker save` wrote it for years: plain layers and manifest.json."""
        names = [f"{digest(one)[7:]}/layer.tar" for one in self.layers]
        files = {f"{digest(self.config)[7:]}.json": self.config, **dict(zip(names, self.layers))}
        files["manifest.json"] = json.dumps([{"Config": f"{digest(self.config)[7:]}.json", "RepoTags": list(tags),
                                              "Layers": names}]).encode()
        pathlib.Path(path).write_bytes(layer(files))
        return str(path)


class Registry:
    """Debian's docker-registry on a free loopback port; with `user`, behind the password "sesame"."""

    def __init__(self, folder, user=None):
        self.port = free_port()
        self.address = f"localhost:{self.port}"
        self.user = user
        config = {"version": 0.1, "log": {"level": "error"}, "http": {"addr": f"127.0.0.1:{self.port}"},
                  "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, "delete": {"enabled": True}}}
        if user:
            (folder / "htpasswd").write_text(f"{user}:{SESAME}\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
        (folder / "config.json").write_text(json.dumps(config))
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", str(folder / "config.json")],
                                        stdout=self.log, stderr=self.log)
        wait_for(self.answers)

    def answers(self):
        try:
            return self.request("GET", "/v2/")[0] in (200, 401)
        except OSError:
            return False

    def request(self, method, path, body=None, kind="application/octet-stream"):
        url = path if path.startswith("http") else f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, method=method, data=body, headers={"Content-Type": kind})
        if self.user:
            request.add_header("Authorization", "Basic " + base64.b64encode(f"{self.user}:sesame".encode()).decode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()

    def push_blob(self, repository, blob):
        _, headers, _ = self.request("POST", f"/v2/{repository}/blobs/uploads/", b"")
        place = headers["Location"]
        joint = "&" if "?" in place else "?"
        self.request("PUT", f"{place}{joint}digest={digest(blob)}", blob)

    def push(self, repository, tag, image):
        for blob in image.blobs.values():
            self.push_blob(repository, blob)
        self.put_manifest(repository, tag, image.manifest, "application/vnd.oci.image.manifest.v1+json")
        return f"{self.address}/{repository}:{tag}"

    def put_manifest(self, repository, tag, manifest, kind):
        self.request("PUT", f"/v2/{repository}/manifests/{tag}", manifest, kind)

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()
