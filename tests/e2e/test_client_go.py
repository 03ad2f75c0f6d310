"""A user's day with client-go (tests/e2e/client_go), in JSON and in protobuf."""
import subprocess

import pytest

from skiff import ROOT


@pytest.mark.parametrize("encoding", [[], ["protobuf"]], ids=["json", "protobuf"])
def test_a_day_with_client_go(skiff, encoding):
    program = subprocess.run([ROOT / "tools" / "client-go"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    done = subprocess.run([program, f"{skiff.data}/kubeconfig", *encoding], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" ok ") == 13, done.stdout
