"""Several Skiffs on one machine: each has a network of its own for its pods."""
import concurrent.futures
import os
import pathlib

import pytest

from leaks import bridge
from skiff import Skiff, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="without root Skiff takes none of the machine's networks")


def subnet(server):
    return (pathlib.Path(server.data) / "subnet").read_text().strip()


def test_skiffs_that_start_together_do_not_share_a_network():
    servers = [Skiff("--images=host") for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
        try:
            list(pool.map(Skiff.start, servers))
            taken = [subnet(server) for server in servers]
            assert len(set(taken)) == len(servers), taken
        finally:
            list(pool.map(Skiff.stop, servers))


def test_a_network_that_another_has_taken_meanwhile_is_left_to_it():
    first, second = Skiff("--images=host").start(), Skiff("--images=host")
    try:
        before = subnet(first)
        first.run("down")
        second.start()
        first.start()
        assert before and subnet(first) != subnet(second)
        again = subnet(first)
        first.kill()
        first.start()
        assert subnet(first) == again, "pods that live on keep their addresses"
    finally:
        first.stop()
        second.stop()


def test_what_a_killed_skiff_left_is_in_nobodys_way():
    first, second = Skiff("--images=host").start(), Skiff("--images=host")
    left = pathlib.Path("/sys/class/net", bridge(first))
    try:
        wait_for(left.exists)
        first.kill()
        assert left.exists()
        second.start()
        assert not left.exists(), "its route to services would lead nowhere"
        first.start()
        assert left.exists() and subnet(first) != subnet(second)
    finally:
        first.stop()
        second.stop()
