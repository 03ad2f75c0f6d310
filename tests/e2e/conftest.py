import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from skiff import Skiff  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "crash: many kill -9, minutes long")


@pytest.fixture(scope="module")
def skiff():
    """A running Skiff in which every image is this machine's own files."""
    server = Skiff("--images=host")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def manifest(tmp_path):
    """Writes an object to a file and returns the file's path."""
    def write(value, name="manifest.json"):
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)
    return write
