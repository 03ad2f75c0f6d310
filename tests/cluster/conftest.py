import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A family of requests fails with all its differences, once every request was made."""
    result = yield
    pair = item.funcargs.get("pair")
    if pair is not None:
        pair.check()
    return result
