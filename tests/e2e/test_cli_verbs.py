"""The verbs that kubectl users expect of the skiff command, against a real Skiff."""
import json
import os
import pathlib
import subprocess
import threading
import time

import pytest

from skiff import BINARY, Skiff, pod_manifest, tfjob, wait_for
from test_cli import failing


@pytest.fixture
def things(skiff, manifest):
    """Two config maps, gone afterwards."""
    for name, app in (("one", "web"), ("two", "db")):
        skiff.run("apply", "-f", manifest({"apiVersion": "v1", "kind": "ConfigMap",
                                           "metadata": {"name": name, "labels": {"app": app}},
                                           "data": {"key": "value"}}))
    yield skiff
    skiff.run("delete", "configmap", "one", "two", "--ignore-not-found")


def config_map(skiff, name):
    return skiff.get(f"/api/v1/namespaces/default/configmaps/{name}")


# --- reading ---

def test_explain_reads_the_servers_schema(skiff):
    out = skiff.run("explain", "tfjobs.spec.runPolicy").stdout
    assert "GROUP:      kubeflow.org\nKIND:       TFJob\nVERSION:    v1\n" in out
    assert "FIELD: runPolicy" in out and "cleanPodPolicy\t<string>" in out
    out = skiff.run("explain", "pod.spec.containers").stdout
    assert out.startswith("KIND:       Pod\n") and "name\t<string> -required-" in out
    assert "resources" in skiff.run("explain", "pods", "--recursive").stdout
    failing(skiff.run("explain", "pods.spec.colour", check=False), 'field "colour" does not exist')
    failing(skiff.run("explain", "boats", check=False), "boats")


def test_explain_says_what_kubectl_says(skiff):
    for target in ("configmaps", "pods.spec.containers.ports", "tfjobs.spec"):
        ours = skiff.run("explain", target).stdout.split()
        theirs = skiff.kubectl("explain", target).stdout.split()
        assert ours == theirs, target


def test_api_resources(skiff):
    out = skiff.run("api-resources").stdout
    assert out.splitlines()[0].split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["pods", "po", "v1", "true", "Pod"] in [line.split() for line in out.splitlines()]
    names = skiff.run("api-resources", "--namespaced=false", "-o", "name").stdout.split()
    assert "nodes" in names and "pods" not in names
    names = skiff.run("api-resources", "--api-group", "kubeflow.org", "-o", "name").stdout.split()
    assert "tfjobs.kubeflow.org" in names and "pods" not in names
    wide = skiff.run("api-resources", "-o", "wide").stdout
    assert "VERBS" in wide and "watch" in wide
    assert any(kind["kind"] == "Pod" and "get" in kind["verbs"]
               for kind in json.loads(skiff.run("api-resources", "--json").stdout))


def test_get_in_every_form(things):
    run = lambda *a: things.run("get", "configmaps", *a).stdout  # noqa: E731
    assert run("-l", "app=web", "-o", "name") == "configmap/one\n"
    assert run("--field-selector", "metadata.name=two", "-o", "name") == "configmap/two\n"
    assert run("one", "-o", "jsonpath={.data.key}") == "value"
    assert run("-l", "app in (web,db)", "-o",
               'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}') == "one\ntwo\n"
    assert run("one", "-o", "custom-columns=N:.metadata.name,K:.data.key") == "N     K\none   value\n"
    assert json.loads(run("one", "--json"))["data"] == {"key": "value"}
    assert "namespace: default" in run("one", "-o", "yaml", "-n", "default")
    failing(things.run("get", "configmaps", "-o", "xml", check=False), "jsonpath")


def test_describe_of_any_kind_shows_its_events(things, manifest):
    uid = config_map(things, "one")["metadata"]["uid"]
    things.request("POST", "/api/v1/namespaces/default/events", {
        "metadata": {"name": "one.1"}, "type": "Warning", "reason": "Odd", "message": "it is odd",
        "involvedObject": {"kind": "ConfigMap", "name": "one", "namespace": "default", "uid": uid}})
    out = things.run("describe", "configmap/one").stdout
    assert "Name:         one" in out and "key: value" in out and "it is odd" in out
    assert things.run("describe", "configmaps", "-l", "app=db").stdout.count("Name:  ") == 1
    assert "Kind:         Node" in things.run("describe", "nodes").stdout


# --- changing ---

def test_patch_in_three_ways(things):
    assert things.run("patch", "cm", "one", "-p", '{"data": {"a": "1"}}').stdout == "configmap/one patched\n"
    assert things.run("patch", "cm/one", "--type", "merge", "-p", "data: {key: null}").returncode == 0
    things.run("patch", "cm/one", "--type", "json", "-p", '[{"op": "add", "path": "/data/b", "value": "2"}]')
    assert config_map(things, "one")["data"] == {"a": "1", "b": "2"}
    assert "no change" in things.run("patch", "cm/one", "-p", '{"data": {"a": "1"}}').stdout
    before = config_map(things, "one")
    assert "dry run" in things.run("patch", "cm/one", "--dry-run=server", "-p", '{"data": {"a": "9"}}').stdout
    assert config_map(things, "one") == before
    out = things.run("patch", "cm/one", "-o", "jsonpath={.data.c}", "-p", '{"data": {"c": "3"}}').stdout
    assert out == "3"
    failing(things.run("patch", "cm/one", check=False), "--patch-file")
    failing(things.run("patch", "cm/one", "-p", "[", check=False), "neither JSON nor YAML")
    failing(things.run("patch", "cm/none", "-p", "{}", check=False), "not found")


def test_patch_of_a_custom_kind_and_its_status(skiff, manifest, tmp_path):
    skiff.run("apply", "-f", manifest(tfjob("patched", ["sleep", "60"], {"Worker": 1}, runPolicy={"suspend": True})))
    skiff.run("patch", "tfjob", "patched", "-p", '{"spec": {"runPolicy": {"backoffLimit": 7}}}')
    assert skiff.job("tfjobs", "patched")["spec"]["runPolicy"]["backoffLimit"] == 7
    (tmp_path / "status.yaml").write_text("status: {startTime: '2026-01-01T00:00:00Z'}\n")
    out = skiff.run("patch", "tfjob/patched", "--subresource", "status", "--type", "merge", "-o", "json",
                    "--patch-file", str(tmp_path / "status.yaml")).stdout
    assert json.loads(out)["status"]["startTime"] == "2026-01-01T00:00:00Z"
    skiff.run("delete", "tfjob", "patched")


def test_label_and_annotate(things):
    run = lambda *a, **k: things.run(*a, **k)  # noqa: E731
    assert run("label", "cm", "one", "tier=front").stdout == "configmap/one labeled\n"
    assert run("label", "cm", "one", "tier=front").stdout == "configmap/one not labeled\n"
    failing(run("label", "cm", "one", "tier=back", check=False), "'tier' already has a value (front), and --overwrite is false")
    run("label", "cm", "one", "tier=back", "--overwrite")
    assert config_map(things, "one")["metadata"]["labels"] == {"app": "web", "tier": "back"}
    assert run("label", "cm", "-l", "app=web", "tier-").stdout == "configmap/one unlabeled\n"
    run("label", "cm/one", "cm/two", "team=a")
    assert " team=a\n" in run("label", "cm/two", "--list").stdout
    run("annotate", "cm", "--all", "note=x=y, with a comma")
    assert config_map(things, "two")["metadata"]["annotations"]["note"] == "x=y, with a comma"
    failing(run("label", "cm", "one", check=False), "at least one")
    failing(run("label", "cm", "one", "bad key=1", check=False), "bad key")
    failing(run("label", "cm", "a=b", check=False), "say which")


class Editor:
    """An editor that a test writes: a shell script that is told the file as $1."""

    def __init__(self, skiff, folder, script):
        self.skiff, self.folder = skiff, folder
        self.path = folder / "editor.sh"
        self.path.write_text("#!/bin/sh\necho run >> " + str(folder / "runs") + "\n" + script)
        self.path.chmod(0o755)

    def run(self, *arguments, **more):
        env = dict(self.skiff.environment(), SKIFF_EDITOR=f"{self.path}", TMPDIR=str(self.folder), **more)
        return subprocess.run([BINARY, *arguments], env=env, capture_output=True, text=True, timeout=60)

    def runs(self):
        return len((self.folder / "runs").read_text().split())

    def left(self):
        return list(self.folder.glob("skiff-edit-*"))


def test_edit_sends_what_was_changed(things, tmp_path):
    editor = Editor(things, tmp_path, "sed -i 's/key: value/key: edited/' \"$1\"\n")
    done = editor.run("edit", "cm/one")
    assert done.returncode == 0 and done.stdout == "configmap/one edited\n", done.stderr
    assert config_map(things, "one")["data"] == {"key": "edited"}
    assert editor.left() == []


def test_edit_left_alone_changes_nothing(things, tmp_path):
    before = config_map(things, "one")
    done = Editor(things, tmp_path, "true\n").run("edit", "cm", "one")
    assert done.returncode == 0 and "no changes made" in done.stderr
    assert config_map(things, "one") == before


def test_edit_shows_the_error_and_keeps_the_text(things, tmp_path):
    # The first time it breaks the object; the second time it looks for the error and gives up.
    editor = Editor(things, tmp_path,
                    f"cp \"$1\" {tmp_path}/seen\nif [ $(wc -l < {tmp_path}/runs) = 1 ]; then "
                    "sed -i 's/app: web/app: \"not valid!\"/' \"$1\"; fi\n")
    done = editor.run("edit", "cm/one")
    assert done.returncode == 1 and editor.runs() == 2
    seen = (tmp_path / "seen").read_text()
    assert "# skiff: ERROR:" in seen and "metadata.labels" in seen and "not valid!" in seen
    [kept] = editor.left()
    assert str(kept) in done.stderr and "not valid!" in kept.read_text()
    assert config_map(things, "one")["metadata"]["labels"] == {"app": "web"}


def test_edit_merges_with_what_others_changed_meanwhile(things, tmp_path):
    rival = f"{BINARY} patch cm/one -p '{{\"data\": {{\"other\": \"theirs\"}}}}'"
    editor = Editor(things, tmp_path,
                    f"if [ $(wc -l < {tmp_path}/runs) = 1 ]; then {rival}; "
                    "sed -i 's/key: value/key: mine/' \"$1\"; else echo '# saved' >> \"$1\"; fi\n")
    done = editor.run("edit", "cm/one")
    assert done.returncode == 0, done.stderr
    assert editor.runs() == 2
    assert config_map(things, "one")["data"] == {"key": "mine", "other": "theirs"}


def test_edit_with_an_editor_that_fails(things, tmp_path):
    failing(Editor(things, tmp_path, "exit 3\n").run("edit", "cm/one"), "editor", "kept in")


def test_apply_server_side_names_its_manager(skiff, manifest):
    path = manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": {"a": "1"}})
    done = skiff.run("apply", "-f", path, "--server-side", "--field-manager", "me", check=False)
    if done.returncode != 0 and ("not supported" in done.stderr or "apply-patch" in done.stderr or "media type" in done.stderr):
        pytest.skip("this server has no server-side apply")
    assert done.stdout == "configmap/ssa serverside-applied\n", done.stderr
    managers = [f["manager"] for f in config_map(skiff, "ssa")["metadata"]["managedFields"]]
    assert managers == ["me"]
    other = manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": {"a": "2"}}, "other.json")
    failing(skiff.run("apply", "-f", other, "--server-side", "--field-manager", "you", check=False), "conflict", "--force-conflicts")
    skiff.run("apply", "-f", other, "--server-side", "--field-manager", "you", "--force-conflicts")
    assert config_map(skiff, "ssa")["data"] == {"a": "2"}
    skiff.run("delete", "cm", "ssa")


# --- waiting ---

def test_wait_for_phases_conditions_and_the_end(skiff, manifest):
    skiff.run("apply", "-f", manifest(pod_manifest("waited", ["sleep", "3"])))
    out = skiff.run("wait", "pod/waited", "--for=jsonpath={.status.phase}=Running").stdout
    assert out == "pod/waited condition met\n"
    skiff.run("wait", "pod", "waited", "--for=condition=Ready")
    skiff.run("wait", "pod", "waited", "--for=jsonpath='{.status.phase}'=Succeeded", "--timeout=60s")
    timer = threading.Timer(0.5, lambda: skiff.run("delete", "pod", "waited"))
    timer.start()
    assert skiff.run("wait", "pods", "waited", "--for=delete").stdout == "pod/waited deleted\n"
    timer.join()
    assert skiff.run("wait", "pods", "waited", "--for=delete").returncode == 0


def test_wait_for_a_beginning(skiff, manifest):
    path = manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}})
    timer = threading.Timer(0.5, lambda: skiff.run("apply", "-f", path))
    timer.start()
    assert skiff.run("wait", "cm/later", "--for=create").stdout == "configmap/later condition met\n"
    timer.join()
    skiff.run("delete", "cm", "later")


def test_wait_gives_up_in_time(things):
    began = time.monotonic()
    failing(things.run("wait", "cm/one", "cm/two", "--for=condition=Ready", "--timeout=1s", check=False),
            "timed out waiting for the condition on configmaps/one", "configmaps/two")
    assert time.monotonic() - began < 25, "its own patience is thirty"
    failing(things.run("wait", "cm/one", "--for=condition=Ready", "--timeout=0", check=False), "timed out")
    failing(things.run("wait", "cm/none", "--for=condition=Ready", check=False), "not found")
    failing(things.run("wait", "cm", "-l", "app=none", "--for=condition=Ready", check=False), "no matching resources")
    failing(things.run("wait", "cm/one", "--for=luck", check=False), "luck", "condition=TYPE")


def test_wait_for_several(things):
    things.run("annotate", "cm", "one", "two", "done=yes")
    out = things.run("wait", "cm", "one", "two", "--for=jsonpath={.metadata.annotations.done}=yes").stdout
    assert out == "configmap/one condition met\nconfigmap/two condition met\n"


# --- who may ---

def reviews_served(skiff):
    status, _ = skiff.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                              {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                               "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}})
    return status == 201


def test_auth_can_i_and_whoami(skiff):
    if not reviews_served(skiff):
        failing(skiff.run("auth", "can-i", "get", "pods", check=False), "could not find")
        pytest.skip("this server has no access reviews")
    assert skiff.run("auth", "can-i", "create", "tfjobs").stdout == "yes\n"
    done = skiff.run("auth", "can-i", "delete", "nodes", "--as", "jane", check=False)
    assert done.returncode == 1 and done.stdout.startswith("no")
    done = skiff.run("auth", "can-i", "delete", "nodes", "--as", "jane", "-q", check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert "[*]" in skiff.run("auth", "can-i", "--list").stdout
    assert "Username" in skiff.run("auth", "whoami").stdout
    assert "jane" in skiff.run("auth", "whoami", "--as", "jane", check=False).stdout


# --- backup, restore ---

@pytest.fixture
def own_skiff():
    server = Skiff("--images=host")
    server.start()
    yield server
    server.stop()


def put_map(skiff, manifest, name, value):
    skiff.run("apply", "-f", manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                                       "data": {"v": value}}, f"{name}.json"))


def test_backup_and_restore_of_a_running_skiff(own_skiff, manifest, tmp_path):
    skiff, file = own_skiff, str(tmp_path / "copy.skiff")
    put_map(skiff, manifest, "kept", "before")
    skiff.run("apply", "-f", manifest(pod_manifest("steady", ["sleep", "600"])))
    uid = skiff.wait_phase("steady", "Running")["metadata"]["uid"]
    summary = json.loads(skiff.run("backup", file, "--json").stdout)
    assert summary["objects"] > 2 and oct(os.stat(file).st_mode)[-3:] == "600"
    failing(skiff.run("backup", file, check=False), "there already")
    put_map(skiff, manifest, "kept", "after")
    put_map(skiff, manifest, "younger", "x")
    watch = skiff.kubectl_popen("get", "configmaps", "-w", "-o", "name")
    revision = int(config_map(skiff, "younger")["metadata"]["resourceVersion"])
    pid = skiff.pid()

    failing(skiff.run("restore", file, check=False, stdin=""), "--yes")
    assert config_map(skiff, "younger")
    done = skiff.run("restore", file, "--yes")
    assert "restored" in done.stdout and "before-restore" in done.stdout
    assert skiff.pid() == pid  # it started again the way it was started
    assert config_map(skiff, "kept")["data"] == {"v": "before"}
    assert config_map(skiff, "younger") is None
    # No client's revision comes again, so nobody misses what happens from now on.
    put_map(skiff, manifest, "next", "x")
    assert int(config_map(skiff, "next")["metadata"]["resourceVersion"]) > revision
    # The pod that is in both went on.
    assert skiff.pod("steady")["metadata"]["uid"] == uid
    assert skiff.pod("steady")["status"]["containerStatuses"][0]["restartCount"] == 0
    kept = [p for p in pathlib.Path(skiff.data).glob("before-restore-*")]
    assert len(kept) == 1 and (kept[0] / "objects.db").exists() and (kept[0] / "pki" / "ca.crt").exists()
    watch.terminate()
    watch.wait(10)


def test_restore_refuses_a_damaged_backup_and_changes_nothing(own_skiff, manifest, tmp_path):
    skiff, file = own_skiff, tmp_path / "copy.skiff"
    put_map(skiff, manifest, "kept", "x")
    skiff.run("backup", str(file))
    bytes_ = file.read_bytes()
    file.write_bytes(bytes_[:len(bytes_) // 2])
    pid = skiff.pid()
    failing(skiff.run("restore", str(file), "--yes", check=False), "no backup")
    file.write_text("something else")
    failing(skiff.run("restore", str(file), "--yes", check=False), "no backup")
    failing(skiff.run("restore", str(tmp_path / "none"), "--yes", check=False), "none")
    assert skiff.pid() == pid and config_map(skiff, "kept")
    assert not list(pathlib.Path(skiff.data).glob("*restore*"))


def test_restore_into_a_new_data_folder(own_skiff, manifest, tmp_path):
    skiff, file = own_skiff, str(tmp_path / "copy.skiff")
    put_map(skiff, manifest, "kept", "x")
    token = skiff.token()
    skiff.run("backup", file)
    other = Skiff("--images=host")
    os.rmdir(other.data)
    done = other.run("restore", file, "--yes")
    assert "skiff up -d" in done.stdout
    other.start()
    try:
        assert config_map(other, "kept")["data"] == {"v": "x"}
        assert other.token() == token  # the same Skiff, with the same keys
    finally:
        other.stop()


def test_backup_under_load_is_of_one_moment(own_skiff, tmp_path):
    skiff = own_skiff
    stop = threading.Event()
    count = [0]

    def load():
        while not stop.is_set():
            count[0] += 1
            skiff.request("POST", "/api/v1/namespaces/default/configmaps",
                          {"metadata": {"name": f"n-{count[0]:06}"}})

    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait_for(lambda: count[0] > 20)
        for n in range(3):
            skiff.run("backup", str(tmp_path / f"{n}.skiff"))
    finally:
        stop.set()
        thread.join()
    skiff.run("restore", str(tmp_path / "2.skiff"), "--yes")
    names = sorted(m["metadata"]["name"] for m in skiff.get("/api/v1/namespaces/default/configmaps")["items"]
                   if m["metadata"]["name"].startswith("n-"))
    # One writer makes them in order, so a copy of one moment has no gap.
    assert names and names == [f"n-{i + 1:06}" for i in range(len(names))]


# --- everything ---

@pytest.mark.parametrize("verb", ["get", "describe", "apply", "delete", "patch", "edit", "label", "annotate", "wait",
                                  "explain", "api-resources", "backup", "restore"])
def test_help_teaches_with_examples(skiff, verb):
    out = skiff.run(verb, "--help").stdout
    assert "Examples:" in out and f"skiff {verb}" in out


def test_json_of_what_changes_objects(things, manifest):
    made = json.loads(things.run("apply", "--json", "-f", manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})).stdout)
    assert made["metadata"]["name"] == "one"
    assert json.loads(things.run("label", "cm/one", "a=b", "--json").stdout)["metadata"]["labels"]["a"] == "b"
    assert things.run("--json", "get", "cm/one").stdout.startswith("{")
