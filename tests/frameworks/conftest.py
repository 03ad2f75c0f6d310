import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "e2e")]
import goodput  # noqa: E402
from skiff import Skiff  # noqa: E402


@pytest.fixture
def skiff():
    """A Skiff that knows no image but those that a test maps."""
    server = Skiff().start()
    yield server
    server.stop()


def pytest_terminal_summary(terminalreporter):
    if goodput.ROWS:
        terminalreporter.section("goodput")
        for line in goodput.table():
            terminalreporter.write_line(line)
