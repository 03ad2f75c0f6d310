"""Replicas that all use one port on one machine reach each other by the names in TF_CONFIG."""
from skiff import tfjob

PROGRAM = """
import json, os, socket, threading, time
config = json.loads(os.environ["TF_CONFIG"])
me = config["cluster"][config["task"]["type"]][config["task"]["index"]]
server = socket.create_server(("", 2222), backlog=16)
heard = set()
def serve():
    while True:
        peer, _ = server.accept()
        peer.sendall(me.encode())
        heard.add(peer.recv(200).decode())
        peer.close()
threading.Thread(target=serve, daemon=True).start()
for role, hosts in sorted(config["cluster"].items()):
    for host in hosts:
        name, port = host.rsplit(":", 1)
        for attempt in range(300):
            try:
                with socket.create_connection((name, int(port)), timeout=5) as s:
                    said = s.recv(200).decode()
                    s.sendall(me.encode())
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit(f"cannot reach {host}")
        assert said == host, (said, host)
        print("reached", host, flush=True)
while not heard.issuperset(sum(config["cluster"].values(), [])):  # whoever still looks for us must find us
    time.sleep(0.1)
"""


def test_four_replicas_on_port_2222(skiff, manifest):
    job = tfjob("ports", ["python3", "-c", PROGRAM], {"Chief": 1, "PS": 1, "Worker": 2},
                runPolicy={"cleanPodPolicy": "None"})
    skiff.kubectl("apply", "-f", manifest(job))
    skiff.wait_job("tfjobs", "ports", "Succeeded")
    names = ["ports-chief-0", "ports-ps-0", "ports-worker-0", "ports-worker-1"]
    for name in names:  # the chief's end is the job's, but the others may not have reached everybody yet
        skiff.wait_phase(name, "Succeeded")
    assert len({skiff.pod(n)["status"]["podIP"] for n in names}) == 4
    for name in names:
        said = skiff.kubectl("logs", name).stdout
        for peer in names:
            assert f"reached {peer}.default.svc:2222" in said
