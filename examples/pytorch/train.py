"""Data-parallel training with PyTorch: every replica has its share of the points, gloo adds up gradients.

The operator sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, which is all that
torch.distributed needs. When one replica dies the others lose their connection and end, too;
restartPolicy OnFailure starts them again and they go on from the last checkpoint.
"""
import argparse
import math
import os
import sys
import time

print("process started", flush=True)  # before the slow imports, so that the log tells them apart
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CLASSES = 3


def spirals(count, seed):
    """Points on three interleaved spiral arms, and which arm each is on."""
    rng = torch.Generator().manual_seed(seed)
    label = torch.arange(count) % CLASSES
    t = torch.rand(count, generator=rng)
    angle = 4 * t + label * 2 * math.pi / CLASSES + 0.1 * torch.randn(count, generator=rng)
    return torch.stack([t * angle.sin(), t * angle.cos()], dim=1), label


def load(path, model, optimizer):
    """The step of the checkpoint, 0 where there is none. Rank 0 reads, all others get its state:
    replicas that start from different states would train apart without a word."""
    state = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        state = [torch.load(path)]
    dist.broadcast_object_list(state)
    if state[0] is None:
        return 0
    model.load_state_dict(state[0]["model"])
    optimizer.load_state_dict(state[0]["optimizer"])
    return state[0]["step"]


def save(path, model, optimizer, step):
    """Whoever is killed while writing must leave the old checkpoint: write beside it, then rename."""
    with open(path + ".new", "wb") as file:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    print(f"checkpoint at step {step}", flush=True)


def train(options):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(),
                                torch.nn.Linear(32, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = load(options.checkpoint, model, optimizer)
    print(f"rank {rank} of {world} begins after step {first}", flush=True)
    parallel = DistributedDataParallel(model)  # its backward() averages gradients over all ranks
    points, labels = spirals(1200, seed=7)
    points, labels = points[rank::world], labels[rank::world]
    for step in range(first + 1, options.steps + 1):
        loss = torch.nn.functional.cross_entropy(parallel(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.every == 0 or step == first + 1:
            print(f"step {step}/{options.steps} loss {loss.item():.4f}", flush=True)
        if rank == 0 and step % options.every == 0:
            save(options.checkpoint, model, optimizer, step)
        time.sleep(options.pace)
    points, labels = spirals(600, seed=8)  # points that nobody has trained on
    return (model(points).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--pace", type=float, default=0, help="seconds to rest after a step")
    parser.add_argument("--goal", type=float, default=0.95, help="accuracy to reach, else exit code 1")
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    try:
        accuracy = train(options)
    except RuntimeError as error:
        # A peer is gone. Those that wait for us learn of it when our connections close, and an orderly
        # end takes seconds: leave at once.
        print(f"cannot go on: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    print(f"accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()
    if accuracy < options.goal:
        sys.exit(f"accuracy {accuracy:.3f} is below the goal {options.goal}")


if __name__ == "__main__":
    main()
