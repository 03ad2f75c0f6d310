import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

# How many requests of each family still differ. It may only shrink.
UNEQUAL = json.loads((pathlib.Path(__file__).parent / "unequal.json").read_text())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A family of requests fails with all its differences, once every request was made."""
    result = yield
    pair = item.funcargs.get("pair")
    if pair is not None:
        pair.check(UNEQUAL.get(item.name, 0))
    return result
