"""A CustomResourceDefinition costs its own size, however many others there are. Measured as CPU of the server, which
other programs on the machine do not change much. The bounds are some ten times what it takes on two slow cores, and a
fraction of what it took when each change read all definitions again (0.2 to 0.3 s each beside ninety)."""
import time

import pytest

from skiff import Skiff, wait_for

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OTHERS = 90


@pytest.fixture(scope="module")
def crowded():
    """A Skiff with ninety definitions of four hundred fields each, and what one cost before they came."""
    server = Skiff("--images=host")
    server.start()
    try:
        settle(server)
        server.first = [cpu_of(server, lambda i=i: create(server, small(i))) for i in range(3)]
        for i in range(OTHERS):
            create(server, large(i))
        settle(server)
        yield server
    finally:
        server.stop()


def cpu(server):
    """CPU seconds of the server so far, by the scheduler's clock: the one of /proc has ticks of 10 ms."""
    return time.clock_gettime((~server.pid() << 3) | 2)


def settle(server):
    """Waits until the server has done what it does in the background."""
    def quiet():
        before = cpu(server)
        time.sleep(0.5)
        return cpu(server) - before < 0.01
    wait_for(quiet)


def cpu_of(server, act):
    """With what follows from it: the collector's pass, the APIService of the group."""
    before = cpu(server)
    act()
    time.sleep(0.3)
    return cpu(server) - before


def definition(plural, kind, group, fields):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": schema}}]}}


def small(number):
    return definition(f"smalls{number}", f"Small{number}", f"small{number}.example.org", {"size": {"type": "integer"}})


def large(number):
    leaves = [{"type": "string", "description": "What the controller wants to know of this part of the object."},
              {"type": "integer", "minimum": 0, "maximum": 100000}, {"type": "boolean"},
              {"type": "string", "enum": ["Always", "Never", "OnFailure"], "default": "Never"},
              {"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9-]+$"}}]
    parts = {f"part{a}": {"type": "object", "properties": {f"field{b}": leaves[(a + b) % 5] for b in range(20)}}
             for a in range(20)}
    return definition(f"larges{number}", f"Large{number}", f"large{number // 3}.example.org", parts)


def create(server, crd):
    """Until the definition is established and its kind is served."""
    status, made = server.request("POST", DEFINITIONS, crd)
    assert status == 201, made
    wait_for(lambda: "True" in [c["status"] for c in server.get(f"{DEFINITIONS}/{crd['metadata']['name']}")["status"]
                                ["conditions"] if c["type"] == "Established"], every=0.005)
    path = f"/apis/{crd['spec']['group']}/v1/{crd['spec']['names']['plural']}"
    wait_for(lambda: server.get(path), every=0.005)


def test_one_beside_ninety_costs_what_the_first_did(crowded):
    one = min(cpu_of(crowded, lambda i=i: create(crowded, small(100 + i))) for i in range(3))
    assert one <= max(3 * min(crowded.first), 0.1), (one, crowded.first)


def test_three_beside_ninety_cost_little(crowded):
    three = cpu_of(crowded, lambda: [create(crowded, small(200 + i)) for i in range(3)])
    assert three <= max(3 * sum(crowded.first), 0.3), (three, crowded.first)


def test_a_change_and_a_removal_beside_ninety_cost_little(crowded):
    create(crowded, small(300))
    path = f"{DEFINITIONS}/smalls300.small300.example.org"

    def change():
        crd = crowded.get(path)
        crd["metadata"]["labels"] = {"changed": "yes"}
        status, answer = crowded.request("PUT", path, crd)
        assert status == 200, answer

    def remove():
        assert crowded.request("DELETE", path)[0] == 200
        wait_for(lambda: crowded.request("GET", path)[0] == 404, every=0.02)
        assert crowded.request("GET", "/apis/small300.example.org/v1/smalls300")[0] == 404

    settle(crowded)
    assert cpu_of(crowded, change) <= max(3 * min(crowded.first), 0.1)
    assert cpu_of(crowded, remove) <= max(6 * min(crowded.first), 0.15)


def test_the_openapi_index_costs_what_has_changed(crowded):
    def index():
        return crowded.get("/openapi/v3")["paths"]

    whole = cpu_of(crowded, index)
    create(crowded, small(400))
    settle(crowded)
    again = cpu_of(crowded, lambda: index()["apis/small400.example.org/v1"])
    assert again <= whole / 3, (again, whole)
