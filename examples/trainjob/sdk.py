#!/usr/bin/env python3
"""Trains a function on two nodes with Kubeflow's own SDK: pip install kubeflow==0.5.0

    skiff up -d --images=host
    eval "$(skiff env)"
    python3 examples/trainjob/sdk.py
"""
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, TrainerClient


def train(steps):
    """Runs on every node; it brings its own imports."""
    import os
    rank, nodes = os.environ["JAX_PROCESS_ID"], os.environ["JAX_NUM_PROCESSES"]
    slope = 0.0
    for _ in range(steps):
        slope -= 0.02 * sum(2 * x * (slope * x - 3 * x) for x in range(1, 5))
    print(f"node {rank} of {nodes} found y = {slope:.3f} x", flush=True)


client = TrainerClient(KubernetesBackendConfig(namespace="default"))
print("runtimes:", ", ".join(sorted(runtime.name for runtime in client.list_runtimes())))
name = client.train(runtime="jax-distributed",
                    trainer=CustomTrainer(func=train, func_args={"steps": 100}, num_nodes=2))
client.wait_for_job_status(name)
for node in range(2):
    print(*client.get_job_logs(name, step=f"node-{node}"), sep="\n")
client.delete_job(name)
