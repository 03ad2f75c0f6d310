"""Real images: loaded from archives, pulled from a registry, run, listed, saved and removed."""
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

from images import BUSYBOX, Image, Registry, busybox_layer, digest, layer
from skiff import Skiff, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists(BUSYBOX), reason="needs root and busybox")


@pytest.fixture(scope="module")
def server():
    """A Skiff in which an image is an image."""
    skiff = Skiff().start()
    yield skiff
    skiff.stop()


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    it = Registry(tmp_path_factory.mktemp("registry"))
    yield it
    it.stop()


def pod(name, image, command=None, **container):
    spec = {"name": "main", "image": image, **container}
    if command:
        spec["command"] = command
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [spec], "restartPolicy": "Never"}}


def apply(server, value):
    server.kubectl("apply", "-f", "-", stdin=json.dumps(value))


def run(server, value, phase="Succeeded"):
    apply(server, value)
    done = server.wait_phase(value["metadata"]["name"], phase)
    return done, server.kubectl("logs", value["metadata"]["name"]).stdout


def waiting(server, name):
    statuses = ((server.pod(name) or {}).get("status") or {}).get("containerStatuses") or [{}]
    return statuses[0].get("state", {}).get("waiting", {})


def events(server, name):
    items = server.get("/api/v1/namespaces/default/events")["items"]
    return [(e["type"], e["reason"], e["message"]) for e in items if e["involvedObject"]["name"] == name]


def test_an_image_from_an_archive_runs_as_its_configuration_says(server, tmp_path):
    image = Image([busybox_layer(), layer({"srv/greeting": b"hello\n"})], Env=["WORD=from the image", "PATH=/bin"],
                  Entrypoint=["/bin/sh", "-c"], Cmd=["echo $WORD; cat greeting; id -u; id -g; echo $HOME; pwd"],
                  WorkingDir="/srv", User="worker")
    archive = image.docker_archive(tmp_path / "a.tar", "example.com/box:v1")
    assert server.run("image", "load", archive).stdout == "loaded example.com/box:v1\n"
    done, said = run(server, pod("configured", "example.com/box:v1"))
    assert said == "from the image\nhello\n1000\n1001\n/home/worker\n/srv\n"
    status = done["status"]["containerStatuses"][0]
    assert status["imageID"].startswith("example.com/box@sha256:")
    assert ("Normal", "Pulled", 'Container image "example.com/box:v1" already present on machine') in events(server, "configured")
    # The pod's own words come first.
    _, said = run(server, {**pod("own", "example.com/box:v1", ["/bin/sh", "-c", "id -u; id -g; echo $WORD; pwd"],
                                 env=[{"name": "WORD", "value": "mine"}], workingDir="/etc",
                                 securityContext={"runAsUser": 0})})
    assert said == "0\n0\nmine\n/etc\n"


def test_an_image_on_the_machines_network_finds_names_as_the_machine_does(server, tmp_path):
    archive = Image([busybox_layer()], Env=["PATH=/bin"]).docker_archive(tmp_path / "a.tar", "example.com/names:v1")
    server.run("image", "load", archive)
    value = pod("names", "example.com/names:v1", ["cat", "/etc/hosts", "/etc/resolv.conf"])
    value["spec"].update(hostNetwork=True, hostAliases=[{"ip": "192.0.2.7", "hostnames": ["far", "away"]}])
    _, said = run(server, value)
    assert said == ("# Kubernetes-managed hosts file (host network).\n" + pathlib.Path("/etc/hosts").read_text()
                    + "\n# Entries added by HostAliases.\n192.0.2.7\tfar\taway\n"
                    + pathlib.Path("/etc/resolv.conf").read_text())


def test_layers_hide_what_they_remove_and_containers_write_to_themselves_only(server, tmp_path):
    first = busybox_layer(**{"data": None, "data/old": b"old", "data/kept": b"kept", "full": None, "full/a": b"a"})
    second = layer({"data/.wh.old": b"", "full/.wh..wh..opq": b"", "full/b": b"b"})
    image = Image([first, second], Env=["PATH=/bin"])
    server.run("image", "load", image.docker_archive(tmp_path / "a.tar", "hidden:1"))
    command = ["sh", "-c", "echo $(ls data) - $(ls full); ls / > /data/new; touch /bin/extra; ls data"]
    for name in ("first", "second"):
        _, said = run(server, pod(f"hides-{name}", "hidden:1", command))
        assert said == "kept - b\nkept\nnew\n", name
    # The machine's own files are not there.
    _, said = run(server, pod("alone", "hidden:1", ["sh", "-c", f"test -e {server.data} && echo leak; ls /"]))
    assert "leak" not in said and "boot" not in said.split() and "bin" in said.split()


def test_a_registry_is_asked_and_its_words_are_told(server, registry):
    name = registry.push("team/box", "v1", Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["echo", "pulled"]))
    done, said = run(server, pod("pulled", name))
    assert said == "pulled\n"
    assert done["status"]["containerStatuses"][0]["imageID"].startswith(f"{registry.address}/team/box@sha256:")
    told = events(server, "pulled")
    assert ("Normal", "Pulling", f'Pulling image "{name}"') in told
    assert any(kind == "Normal" and reason == "Pulled" and text.startswith(f'Successfully pulled image "{name}" in ')
               and text.endswith(" bytes.") for kind, reason, text in told)
    # A tag that is not there, and a registry that is not.
    missing = f"{registry.address}/team/box:v9"
    apply(server, pod("missing", missing))
    wait_for(lambda: waiting(server, "missing").get("reason") == "ErrImagePull")
    assert "not found" in waiting(server, "missing")["message"]
    wait_for(lambda: waiting(server, "missing").get("reason") == "ImagePullBackOff")
    assert waiting(server, "missing")["message"].startswith(f'Back-off pulling image "{missing}"')
    wait_for(lambda: ("Normal", "BackOff", f'Back-off pulling image "{missing}"') in events(server, "missing"))
    apply(server, pod("nobody", "localhost:1/x:v1"))
    wait_for(lambda: waiting(server, "nobody").get("reason") in ("ErrImagePull", "ImagePullBackOff"))
    # It comes later: the next try has it.
    registry.push("team/box", "v9", Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["echo", "late"]))
    server.wait_phase("missing", "Succeeded", seconds=60)
    server.kubectl("delete", "pod", "nobody", "missing")


def test_an_index_a_digest_and_zstd(server, registry):
    zstd = lambda data: subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout
    kind = "application/vnd.oci.image.layer.v1.tar+zstd"
    if not any(os.access(f"{p}/zstd", os.X_OK) for p in os.environ["PATH"].split(":")):
        zstd, kind = (lambda data: data), "application/vnd.oci.image.layer.v1.tar"
    right = Image([busybox_layer()], pack=zstd, kind=kind, Env=["PATH=/bin"], Cmd=["echo", "right"])
    wrong = Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["echo", "wrong"])
    for image in (wrong, right):
        registry.push("many", image.digest, image)
    machine = os.uname().machine
    here = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    index = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": image.digest, "size": len(image.manifest),
         "platform": {"os": "linux", "architecture": architecture}}
        for image, architecture in ((wrong, "s390x"), (right, here))]}).encode()
    registry.put_manifest("many", "v1", index, "application/vnd.oci.image.index.v1+json")
    done, said = run(server, pod("index", f"{registry.address}/many:v1"))
    assert said == "right\n"
    assert done["status"]["containerStatuses"][0]["imageID"] == f"{registry.address}/many@{digest(index)}"
    _, said = run(server, pod("digest", f"{registry.address}/many@{wrong.digest}"))
    assert said == "wrong\n"


def test_pull_policies(server, registry):
    image = lambda word: Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["echo", word])
    name = registry.push("policy", "v1", image("one"))
    apply(server, pod("never", name, imagePullPolicy="Never"))
    wait_for(lambda: waiting(server, "never").get("reason") == "ErrImageNeverPull")
    assert waiting(server, "never")["message"] == f'Container image "{name}" is not present with pull policy of Never'
    assert server.run("image", "pull", name).stdout.startswith(name + " sha256:")
    server.wait_phase("never", "Succeeded")
    registry.push("policy", "v1", image("two"))
    assert run(server, pod("kept", name, imagePullPolicy="IfNotPresent"))[1] == "one\n"
    assert run(server, pod("fresh", name, imagePullPolicy="Always"))[1] == "two\n"


def test_a_password_comes_from_the_pull_secret(server, tmp_path):
    registry = Registry(tmp_path, "ada")
    try:
        name = registry.push("private", "v1", Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["echo", "in"]))
        apply(server, pod("denied", name))
        wait_for(lambda: "authorization" in waiting(server, "denied").get("message", ""))
        server.kubectl("create", "secret", "docker-registry", "keys", f"--docker-server={registry.address}",
                       "--docker-username=ada", "--docker-password=sesame")
        allowed = pod("allowed", name)
        allowed["spec"]["imagePullSecrets"] = [{"name": "keys"}]
        assert run(server, allowed)[1] == "in\n"
        server.kubectl("delete", "pod", "denied")
    finally:
        registry.stop()


def test_images_are_listed_saved_and_removed(server, registry, tmp_path):
    name = registry.push("round/trip", "v1", Image([busybox_layer(), layer({"x": b"unique to this one"})], Env=["PATH=/bin"], Cmd=["cat", "/x"]))
    server.run("image", "pull", name)
    listed = {row["image"]: row for row in json.loads(server.run("image", "ls", "-o", "json").stdout)}
    assert listed[name]["size"] > 100000
    assert name in server.run("image", "ls").stdout
    server.run("image", "save", name, "-o", str(tmp_path / "saved.tar"))
    with tarfile.open(tmp_path / "saved.tar") as tar:
        assert {"oci-layout", "index.json", "manifest.json"} <= set(tar.getnames())
    # A pod that runs it keeps its files.
    apply(server, pod("holds", name, ["sh", "-c", "sleep 1; while test ! -e /go; do sleep 0.1; done; cat /x"]))
    server.wait_phase("holds", "Running")
    assert "removed" in server.run("image", "rm", name).stdout
    assert server.run("image", "rm", name, check=False).returncode == 1
    top = digest(layer({"x": b"unique to this one"}))[7:]
    layers = pathlib.Path(server.data) / "images" / "layers"
    assert (layers / top).is_dir()
    server.kubectl("delete", "pod", "holds", "--grace-period=0", "--force")
    wait_for(lambda: server.pod("holds") is None)
    # Back from the file, byte for byte.
    server.run("image", "load", str(tmp_path / "saved.tar"))
    again = {row["image"]: row for row in json.loads(server.run("image", "ls", "-o", "json").stdout)}
    assert again[name]["digest"] == listed[name]["digest"]
    assert run(server, pod("back", name, imagePullPolicy="Never"))[1] == "unique to this one"


def test_a_pod_of_an_image_outlives_skiff_and_leaves_nothing(server, tmp_path):
    image = Image([busybox_layer(**{"tmp/seed": b"own tmp"})], Env=["PATH=/bin"], WorkingDir="/made/for/it")
    server.run("image", "load", image.docker_archive(tmp_path / "a.tar", "lasting:1"))
    lasting = pod("lasting", "lasting:1", ["sh", "-c", "cat /tmp/seed; pwd; touch /ready; while true; do sleep 1; done"],
                  readinessProbe={"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1})
    lasting["spec"]["initContainers"] = [{"name": "first", "image": "lasting:1", "command": ["sh", "-c", "touch /ready"]}]
    apply(server, lasting)
    status = lambda: server.pod("lasting")["status"]["containerStatuses"][0]
    wait_for(lambda: server.pod("lasting")["status"].get("containerStatuses") and status()["ready"])
    before = status()
    assert server.kubectl("logs", "lasting").stdout == "own tmp/made/for/it\n"
    server.kill()
    server.start()
    wait_for(lambda: status()["ready"])
    after = status()
    assert (after["containerID"], after["imageID"], after["restartCount"]) == (before["containerID"], before["imageID"], 0)
    uid = server.pod("lasting")["metadata"]["uid"]
    uses = pathlib.Path(server.data) / "images" / "uses"
    assert (uses / uid).is_dir()
    server.kubectl("delete", "pod", "lasting", "--grace-period=1")
    wait_for(lambda: not (uses / uid).exists())
    assert not (pathlib.Path(server.data) / "pods" / uid).exists()
    assert uid not in pathlib.Path("/proc/self/mountinfo").read_text()


def test_nothing_is_left_of_images_that_nobody_needs():
    skiff = Skiff().start()
    try:
        archive = Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["true"]).docker_archive(f"{skiff.home}/a.tar", "gone:1")
        skiff.run("image", "load", archive)
        skiff.kubectl("apply", "-f", "-", stdin=json.dumps(pod("p", "gone:1", imagePullPolicy="Never")))
        skiff.wait_phase("p", "Succeeded")
        skiff.kubectl("delete", "pod", "p")
        images = pathlib.Path(skiff.data) / "images"
        wait_for(lambda: not list((images / "uses").iterdir()))
        skiff.run("image", "rm", "gone:1")
        for place in ("blobs", "layers", "refs", "tmp", "uses"):
            assert not list((images / place).iterdir()), place
    finally:
        skiff.stop()


@pytest.mark.parametrize("arguments, sentence", [
    (["load", "/dev/null"], "neither index.json nor manifest.json"),
    (["load", "/no/such/file"], "No such file"),
    (["rm", "nobody/knows:it"], "is not on this machine"),
    (["pull", "Not A Name"], "invalid reference format"),
    (["pull", "localhost:1/x"], "localhost:1"),
])
def test_bad_input_is_told(server, arguments, sentence):
    done = server.run("image", *arguments, check=False)
    assert done.returncode == 1 and sentence in done.stderr, done.stderr


def test_a_bad_name_and_a_missing_user_are_told(server, tmp_path):
    apply(server, pod("bad-name", "Not/A/Name"))
    wait_for(lambda: waiting(server, "bad-name").get("reason") == "InvalidImageName")
    image = Image([busybox_layer()], Env=["PATH=/bin"], Cmd=["true"], User="ghost")
    server.run("image", "load", image.docker_archive(tmp_path / "a.tar", "ghost:1"))
    apply(server, pod("ghost", "ghost:1", imagePullPolicy="Never"))
    wait_for(lambda: waiting(server, "ghost").get("reason") == "CreateContainerError")
    assert "unable to find user ghost" in waiting(server, "ghost")["message"]
    server.kubectl("delete", "pod", "bad-name", "ghost")
