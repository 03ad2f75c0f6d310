#!/usr/bin/env python3
"""Upstream's conformance specs of sig-api-machinery, on Skiff or on a real control plane.

    tests/cluster/conformance.py [--real] [--focus REGEX] [--out FILE]

Neither has nodes. Skiff serves the API alone; the controllers that specs lean on but that are not part of
an API server (those that make pods) are kube-controller-manager's own, running against Skiff."""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e"))
from control_plane import ControlPlane, free_port  # noqa: E402
from skiff import Skiff  # noqa: E402
from specs import program, run_specs  # noqa: E402

FOCUS = r"\[sig-api-machinery\].*\[Conformance\]"
# What needs pods of a webhook or of another API server, CEL, or FlowSchemas.
SKIP = {
    "webhooks": r"AdmissionWebhook|CustomResourceConversionWebhook",
    "aggregated API servers": r"Aggregator",
    "CEL": r"ValidatingAdmissionPolicy|MutatingAdmissionPolicy",
    "FlowSchemas": r"API priority and fairness",
}
# What waits for a running pod, and so passes on no control plane without nodes; the real one fails them, too.
SKIP["running pods"] = ("all pods are removed when a namespace is deleted|namespace deletion should delete pod first|"
                        "MUST list and watch custom resources matching the field selector")
WORKLOADS = ("replicationcontroller-controller,replicaset-controller,deployment-controller,job-controller,"
             "cronjob-controller,endpoints-controller,endpointslice-controller,disruption-controller")


# The suite starts only where it sees a ready node; nothing runs on this one.
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper"}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "on paper"}],
                    "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}}}


def add_node(server):
    merge = {"Content-Type": "application/merge-patch+json"}
    assert server.request("POST", "/api/v1/nodes", NODE)[0] == 201
    # A new node is tainted as not ready.
    assert server.request("PATCH", "/api/v1/nodes/paper", {"spec": {"taints": None}}, headers=merge)[0] == 200
    status, body = server.request("PATCH", "/api/v1/nodes/paper/status", READY, headers=merge)
    assert status == 200, body


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--focus", default=FOCUS)
    parser.add_argument("--out", default="/dev/null")
    parser.add_argument("--json")
    options = parser.parse_args()
    helper = None
    if options.real:
        server = ControlPlane(controllers="*,-node-lifecycle-controller,-taint-eviction-controller").start()
        kubeconfig = server.kubeconfig
    else:
        server = Skiff("--api-only").start()
        kubeconfig = f"{server.data}/kubeconfig"
        helper = subprocess.Popen([program("kube-controller-manager"), "--kubeconfig", kubeconfig,
                                   "--controllers", WORKLOADS, "--leader-elect=false", "--bind-address=127.0.0.1",
                                   "--secure-port", str(free_port()), "--cert-dir", server.home],
                                  stdout=open(f"{server.home}/controllers.log", "w"), stderr=subprocess.STDOUT)
    add_node(server)
    try:
        results = run_specs(kubeconfig, options.focus, options.out, skip="|".join(SKIP.values()))
    finally:
        if helper:
            helper.terminate()
            helper.wait()
        server.stop()
    for name, result in sorted(results.items()):
        print(f"{result.outcome:7} {result.seconds:6.1f} s  {name}")
    good = sum(result.passed for result in results.values())
    print(f"{good} of {len(results)} specs passed")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({n: r.passed for n, r in results.items()}, indent=1))
    return 0 if results and good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
