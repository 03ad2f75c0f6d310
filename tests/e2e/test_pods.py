"""What a pod may expect of the machine it runs on."""
import json
import os
import time

from skiff import pod_manifest, wait_for


def apply(skiff, manifest, value):
    skiff.kubectl("apply", "-f", manifest(value))


def container(pod):
    return pod["status"]["containerStatuses"][0]


def test_config_map_and_empty_dir_and_environment(skiff, manifest):
    apply(skiff, manifest, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
                            "data": {"rate": "0.1", "script.sh": "echo from the map; cat /scratch/note"}})
    apply(skiff, manifest, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
                            "stringData": {"password": "sesame"}})
    pod = pod_manifest("volumes", ["sh", "-c", "echo noted > /scratch/note; sh /etc/settings/script.sh; "
                                   "echo rate $RATE name $NAME word $WORD joined $JOINED"])
    pod["spec"]["volumes"] = [{"name": "map", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}}]
    c = pod["spec"]["containers"][0]
    c["volumeMounts"] = [{"name": "map", "mountPath": "/etc/settings"}, {"name": "scratch", "mountPath": "/scratch"}]
    c["env"] = [{"name": "RATE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
                {"name": "JOINED", "value": "$(NAME)-$(RATE)"}]
    apply(skiff, manifest, pod)
    skiff.wait_phase("volumes", "Succeeded")
    said = skiff.kubectl("logs", "volumes").stdout
    assert said == "from the map\nnoted\nrate 0.1 name volumes word sesame joined volumes-0.1\n"


def test_missing_key_waits_and_goes_on_when_it_comes(skiff, manifest):
    pod = pod_manifest("waits", ["sh", "-c", "echo $A"])
    pod["spec"]["containers"][0]["env"] = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "a"}}}]
    apply(skiff, manifest, pod)
    wait_for(lambda: "CreateContainerConfigError" in json.dumps(skiff.pod("waits")["status"]))
    assert "later" in skiff.run("why", "pod/waits").stdout
    apply(skiff, manifest, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"a": "here"}})
    skiff.wait_phase("waits", "Succeeded")
    assert skiff.kubectl("logs", "waits").stdout == "here\n"


def test_exit_codes_and_signals(skiff, manifest):
    for name, command, code in (("code7", ["sh", "-c", "exit 7"], 7), ("killed", ["sh", "-c", "kill -9 $$$$"], 137)):
        apply(skiff, manifest, pod_manifest(name, command))
        pod = skiff.wait_phase(name, "Failed")
        assert container(pod)["state"]["terminated"]["exitCode"] == code
        assert container(pod)["state"]["terminated"]["reason"] == "Error"


def test_restart_on_failure(skiff, manifest):
    pod = pod_manifest("again", ["sh", "-c", "if [ -f /scratch/x ]; then echo second; else touch /scratch/x; echo first; exit 1; fi"],
                       restartPolicy="OnFailure", volumes=[{"name": "s", "emptyDir": {}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "s", "mountPath": "/scratch"}]
    apply(skiff, manifest, pod)
    done = skiff.wait_phase("again", "Succeeded", seconds=60)
    assert container(done)["restartCount"] == 1
    assert skiff.kubectl("logs", "again").stdout == "second\n"
    assert skiff.kubectl("logs", "again", "--previous").stdout == "first\n"


def test_memory_limit_kills_and_says_so(skiff, manifest):
    pod = pod_manifest("hog", ["python3", "-c", "x = bytearray(300 << 20)"])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    apply(skiff, manifest, pod)
    ended = container(skiff.wait_phase("hog", "Failed"))["state"]["terminated"]
    assert ended["exitCode"] == 137 and ended["reason"] == "OOMKilled"
    assert "memory" in skiff.run("why", "pod/hog").stdout


def test_cpu_limit_slows(skiff, manifest):
    program = "import time; e = time.time() + 1.5\nwhile time.time() < e: pass\nprint(time.process_time())"
    pod = pod_manifest("slow", ["python3", "-c", program])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "100m"}}
    apply(skiff, manifest, pod)
    skiff.wait_phase("slow", "Succeeded", seconds=60)
    assert float(skiff.kubectl("logs", "slow").stdout) < 0.6


def test_grace_is_given_and_then_ended(skiff, manifest):
    apply(skiff, manifest, pod_manifest("polite", ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo here; while :; do sleep 0.05; done"]))
    apply(skiff, manifest, pod_manifest("stubborn", ["sh", "-c", "trap '' TERM; echo here; while :; do sleep 0.05; done"]))
    for name in ("polite", "stubborn"):
        skiff.wait_phase(name, "Running")
        wait_for(lambda name=name: skiff.kubectl("logs", name).stdout == "here\n")
    follow = skiff.kubectl_popen("logs", "-f", "polite")
    assert follow.stdout.readline() == "here\n"
    skiff.kubectl("delete", "pod", "polite", "--grace-period=600")
    assert follow.communicate(timeout=60)[0] == "bye\n"
    start = time.monotonic()
    skiff.kubectl("delete", "pod", "stubborn", "--grace-period=2")
    assert 1.5 < time.monotonic() - start < 25, "it has two seconds, not the thirty of its own"


def test_a_pod_sees_the_machine_but_not_its_neighbours_nor_skiff(skiff, manifest):
    program = (f"ls {skiff.data} 2>&1 | head -3; echo; ls /tmp; echo; ps ax -o args= 2>/dev/null | head -20; "
               "echo mine > /root/skiff-e2e-probe; cat /root/skiff-e2e-probe")
    apply(skiff, manifest, pod_manifest("neighbour", ["sleep", "4242"]))
    skiff.wait_phase("neighbour", "Running")
    apply(skiff, manifest, pod_manifest("curious", ["sh", "-c", program]))
    skiff.wait_phase("curious", "Succeeded")
    said = skiff.kubectl("logs", "curious").stdout
    assert "objects.db" not in said and "kubeconfig" not in said, "it sees Skiff's data"
    assert "4242" not in said, "it sees its neighbour's processes"
    assert said.endswith("mine\n")

    assert not os.path.exists("/root/skiff-e2e-probe"), "its writes reached the machine"
    skiff.kubectl("delete", "pod", "neighbour", "--grace-period=1")
