"""Volumes as their users see them: files that follow their sources, memory, limits, and claims."""
import json
import os

import pytest

from skiff import Skiff, pod_manifest, wait_for


def pod(name, script, volumes, mounts, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "volumes": volumes, **spec,
                     "containers": [{"name": "main", "image": "skiff.dev/host", "volumeMounts": mounts,
                                     "command": ["sh", "-c", script]}]}}


def claim(name, **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}}


def apply(skiff, *objects):
    for value in objects:
        skiff.kubectl("apply", "-f", "-", stdin=json.dumps(value))


def phase(skiff, name):
    found = skiff.get(f"/api/v1/namespaces/default/pods/{name}")
    return found["status"].get("phase") if found else "gone"


def get(skiff, kind, name):
    return json.loads(skiff.kubectl("get", kind, name, "-o", "json").stdout)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="volumes are at their paths only for root")
USES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
AT_DATA = [{"name": "data", "mountPath": "/data"}]


@needs_root
def test_what_one_pod_writes_into_a_claim_another_reads(skiff):
    apply(skiff, claim("data"))
    waiting = get(skiff, "pvc", "data")
    assert waiting["spec"]["storageClassName"] == "standard"
    assert waiting["status"]["phase"] == "Pending"
    wait_for(lambda: "WaitForFirstConsumer" in skiff.kubectl("describe", "pvc", "data").stdout)

    apply(skiff, pod("writer", "echo kept > /data/file && chmod 600 /data/file", USES, AT_DATA))
    wait_for(lambda: phase(skiff, "writer") == "Succeeded")
    bound = get(skiff, "pvc", "data")
    assert bound["status"]["phase"] == "Bound"
    assert bound["status"]["capacity"] == {"storage": "1Gi"}
    volume = bound["spec"]["volumeName"]
    assert get(skiff, "pv", volume)["status"]["phase"] == "Bound"
    skiff.kubectl("delete", "pod", "writer")

    read_only = [{"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}]
    apply(skiff, pod("reader", "cat /data/file; touch /data/new || echo refused; sleep 600", read_only, AT_DATA))
    wait_for(lambda: "refused" in skiff.kubectl("logs", "reader", check=False).stdout)
    assert skiff.kubectl("logs", "reader").stdout.startswith("kept\n")

    # In use, it stays; the pod gone, claim, volume and folder go.
    skiff.kubectl("delete", "pvc", "data", "--wait=false")
    folder = get(skiff, "pv", volume)["spec"]["hostPath"]["path"]
    assert "deletionTimestamp" in get(skiff, "pvc", "data")["metadata"]
    assert os.path.isdir(folder)
    skiff.kubectl("delete", "pod", "reader")
    wait_for(lambda: skiff.get("/api/v1/namespaces/default/persistentvolumeclaims/data") is None)
    wait_for(lambda: skiff.get(f"/api/v1/persistentvolumes/{volume}") is None)
    assert not os.path.exists(folder)


@needs_root
def test_a_volume_made_by_hand_is_bound_kept_and_shown(skiff, tmp_path):
    (tmp_path / "note").write_text("from the machine\n")
    apply(skiff, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "by-hand"},
                  "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"],
                           "storageClassName": "", "hostPath": {"path": str(tmp_path)}}},
          claim("static", storageClassName=""))
    wait_for(lambda: get(skiff, "pvc", "static")["status"].get("phase") == "Bound")
    apply(skiff, pod("static", "cat /data/note", [{"name": "data", "persistentVolumeClaim": {"claimName": "static"}}],
                     AT_DATA))
    wait_for(lambda: phase(skiff, "static") == "Succeeded")
    assert skiff.kubectl("logs", "static").stdout == "from the machine\n"
    skiff.kubectl("delete", "pod", "static")
    skiff.kubectl("delete", "pvc", "static")
    wait_for(lambda: get(skiff, "pv", "by-hand")["status"]["phase"] == "Released")
    assert (tmp_path / "note").exists()
    skiff.kubectl("delete", "pv", "by-hand")


def test_a_pod_without_its_claim_says_what_it_waits_for(skiff):
    apply(skiff, pod("lonely", "true", [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}], AT_DATA))

    def condition():
        found = skiff.get("/api/v1/namespaces/default/pods/lonely")["status"].get("conditions", [])
        return next((c["message"] for c in found if c["type"] == "PodScheduled"), "")
    wait_for(lambda: 'persistentvolumeclaim "none" not found' in condition())
    apply(skiff, claim("none"))
    wait_for(lambda: phase(skiff, "lonely") == "Succeeded")
    skiff.kubectl("delete", "pod/lonely", "pvc/none")


def test_an_ephemeral_volume_lives_as_long_as_its_pod(skiff):
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}
    apply(skiff, pod("brief", "sleep 600", [volume], [{"name": "scratch", "mountPath": "/scratch"}]))
    wait_for(lambda: phase(skiff, "brief") == "Running")
    assert get(skiff, "pvc", "brief-scratch")["status"]["phase"] == "Bound"
    skiff.kubectl("delete", "pod", "brief")
    wait_for(lambda: skiff.get("/api/v1/namespaces/default/persistentvolumeclaims/brief-scratch") is None)


@needs_root
def test_files_follow_their_sources_in_a_running_pod(skiff):
    skiff.kubectl("create", "configmap", "settings", "--from-literal=colour=red")
    script = ("while true; do echo $(for f in colour labels later; do cat /all/$f 2>/dev/null; echo; done) pinned $(cat /pinned);"
              " sleep 0.1; done")
    sources = [{"configMap": {"name": "settings"}},
               {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['app']"}}]}},
               {"secret": {"name": "later", "optional": True}}]
    apply(skiff, pod("follower", script, [{"name": "all", "projected": {"sources": sources}}],
                     [{"name": "all", "mountPath": "/all"},
                      {"name": "all", "mountPath": "/pinned", "subPath": "colour"}]))

    def says(line):
        wait_for(lambda: line in skiff.kubectl("logs", "follower", "--tail=1", check=False).stdout)
    says("red follower pinned red")
    skiff.kubectl("patch", "configmap", "settings", "-p", '{"data":{"colour":"blue"}}')
    skiff.kubectl("label", "pod", "follower", "app=leader", "--overwrite")
    says("blue leader pinned red")
    skiff.kubectl("create", "secret", "generic", "later", "--from-literal=later=here")
    says("blue leader here pinned red")
    skiff.kubectl("delete", "pod/follower", "configmap/settings", "secret/later")


@needs_root
def test_a_pod_cannot_change_what_skiff_writes_for_it(skiff):
    skiff.kubectl("create", "configmap", "fixed", "--from-literal=a=1")
    pod = pod_manifest("prober", ["sh", "-c", "exec 2>&1; ln -sfn /etc /c/..data; echo x > /c/b; rm /c/a; cat /c/a; ls /c"],
                       volumes=[{"name": "c", "configMap": {"name": "fixed"}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "c", "mountPath": "/c"}]
    skiff.request("POST", "/api/v1/namespaces/default/pods", pod)
    skiff.wait_phase("prober", "Succeeded")
    log = skiff.kubectl("logs", "prober").stdout
    assert log.count("Read-only file system") == 3 and log.endswith("1a\n"), log


@needs_root
def test_memory_is_bounded_and_disk_beyond_its_limit_evicts(skiff):
    memory = {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    apply(skiff, pod("memory", "stat -f -c %T /mem; head -c 3000000 /dev/zero > /mem/x || echo full", [memory],
                     [{"name": "mem", "mountPath": "/mem"}]))
    wait_for(lambda: phase(skiff, "memory") == "Succeeded")
    said = skiff.kubectl("logs", "memory").stdout.splitlines()  # what went to stderr may be anywhere
    assert "tmpfs" in said and "full" in said
    disk = {"name": "disk", "emptyDir": {"sizeLimit": "1Mi"}}
    apply(skiff, pod("greedy", "head -c 3000000 /dev/zero > /disk/x; sleep 600", [disk],
                     [{"name": "disk", "mountPath": "/disk"}]))
    wait_for(lambda: phase(skiff, "greedy") == "Failed", 60)
    status = get(skiff, "pod", "greedy")["status"]
    assert status["reason"] == "Evicted"
    assert status["message"] == 'Usage of EmptyDir volume "disk" exceeds the limit "1Mi". '
    skiff.kubectl("delete", "pod/memory", "pod/greedy")


@needs_root
def test_a_claim_grows_where_its_class_allows_it(skiff):
    apply(skiff, claim("growing"), pod("grower", "true", [
        {"name": "data", "persistentVolumeClaim": {"claimName": "growing"}}], AT_DATA))
    wait_for(lambda: phase(skiff, "grower") == "Succeeded")
    skiff.kubectl("patch", "pvc", "growing", "-p", '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}')
    wait_for(lambda: get(skiff, "pvc", "growing")["status"]["capacity"] == {"storage": "2Gi"})
    skiff.kubectl("delete", "pod/grower", "pvc/growing")


@needs_root
def test_volumes_outlive_skiff_and_nothing_outlives_their_namespace():
    skiff = Skiff("--images=host")
    skiff.start()
    try:
        skiff.kubectl("create", "namespace", "team")
        skiff.kubectl("create", "-n", "team", "configmap", "map", "--from-literal=colour=red")
        volumes = [*USES, {"name": "mem", "emptyDir": {"medium": "Memory"}}, {"name": "map", "configMap": {"name": "map"}}]
        mounts = [*AT_DATA, {"name": "mem", "mountPath": "/mem"}, {"name": "map", "mountPath": "/map"}]
        script = ("echo disk > /data/f; echo memory > /mem/f;"
                  " while true; do echo $(cat /data/f) $(cat /mem/f) $(cat /map/colour); sleep 0.1; done")
        for value in (claim("data"), pod("keeper", script, volumes, mounts)):
            skiff.kubectl("apply", "-n", "team", "-f", "-", stdin=json.dumps(value))

        def says(line):
            wait_for(lambda: line in skiff.kubectl("logs", "-n", "team", "keeper", "--tail=1", check=False).stdout)
        says("disk memory red")
        folders = os.listdir(os.path.join(skiff.data, "volumes"))
        assert len(folders) == 1
        skiff.kill()
        skiff.start()
        skiff.kubectl("patch", "-n", "team", "configmap", "map", "-p", '{"data":{"colour":"blue"}}')
        says("disk memory blue")
        assert skiff.pod("keeper", "team")["status"]["containerStatuses"][0]["restartCount"] == 0

        skiff.kubectl("delete", "namespace", "team", timeout=120)
        wait_for(lambda: not os.listdir(os.path.join(skiff.data, "volumes")))
        wait_for(lambda: not json.loads(skiff.kubectl("get", "pv", "-o", "json").stdout)["items"])
        with open("/proc/self/mountinfo") as mounted:
            assert skiff.data not in mounted.read()
    finally:
        skiff.stop()
