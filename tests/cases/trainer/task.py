"""The program inside the image of tfjob-v1.yaml: batches from examples/spiral.py, one step each."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples"))
import spiral  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, required=True)
parser.add_argument("--training_steps", type=int, required=True)
options = parser.parse_args()
sys.argv = ["task", "--steps", str(options.training_steps), "--points", str(options.batch_size),
            "--every", "200", "--goal", "0.8"]
spiral.main()
