"""The same requests to Skiff and to a real kube-apiserver: the answers must be equal, field by field,
but for what explained.json lists. Each test is a family of requests."""
import copy
import json
import pathlib
import random
import time
import urllib.parse

import pytest

from control_plane import TOKEN, ControlPlane
from pair import Pair, Side
from samples import SAMPLES, SHIP, SHIPS
from skiff import Skiff, wait_for

HERE = pathlib.Path(__file__).parent

NS = "diff"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}
PARTIALS = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
asked = 0


@pytest.fixture(scope="module")
def servers():
    plane = ControlPlane().start()
    skiff = Skiff("--api-only")
    try:
        skiff.start()
        real = Side("real", plane.address, TOKEN)
        ours = Side("skiff", f"http://127.0.0.1:{skiff.http}", skiff.token())
        for side in (real, ours):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
            assert side.ask("POST", "/api/v1/namespaces", body, None).status == 201
            # Both make these soon after the namespace.
            for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                wait_for(lambda: side.ask("GET", f"/api/v1/namespaces/{NS}/{path}", None, None).status == 200, 10)
            assert side.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", SHIPS, None).status == 201
            wait_for(lambda: side.ask("GET", f"/apis/sea.example.org/v1/namespaces/{NS}/ships", None, None).status == 200, 10)
        time.sleep(1)  # the real server publishes a new kind's schema a little later
        yield real, ours
    finally:
        skiff.stop()
        plane.stop()


def own_namespace(pair, name):
    """A namespace in which no other test has left anything."""
    pair.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for side in (pair.real, pair.ours):
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            wait_for(lambda: side.ask("GET", f"/api/v1/namespaces/{name}/{path}", None, None).status == 200, 10)
    return name


@pytest.fixture
def pair(servers):
    """conftest.py calls its check() when the test has asked everything."""
    global asked
    one = Pair(*servers, json.loads((HERE / "explained.json").read_text()))
    yield one
    asked += one.asked


def collection(sample, ns=NS):
    version = sample["apiVersion"]
    base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    return f"{base}/namespaces/{ns}/{sample['plural']}" if sample["namespaced"] else f"{base}/{sample['plural']}"


def name_of(sample, name):
    return sample["body"].get("metadata", {}).get("name", name)


def new(sample, name="one"):
    body = copy.deepcopy(sample["body"])
    body.update(apiVersion=sample["apiVersion"], kind=sample["kind"])
    body.setdefault("metadata", {}).setdefault("name", name)
    return json.loads(json.dumps(body).replace('"NS"', f'"{NS}"'))


def title(sample):
    return f"{sample['kind']}.{sample['apiVersion']}"


KINDS = SAMPLES + [SHIP]


@pytest.mark.parametrize("sample", KINDS, ids=title)
def test_life_of_an_object(pair, sample):
    """Create, read in every form, change in every way, delete."""
    path = collection(sample)
    name = name_of(sample, f"life-{sample['plural']}")
    one = f"{path}/{name}"
    body = new(sample, name)
    pair.ask("GET", one)
    pair.ask("POST", path + "?dryRun=All", body)
    pair.ask("POST", path, body, save="made")
    pair.ask("POST", path, body)
    pair.ask("GET", one)
    pair.ask("GET", one, headers=TABLE)
    pair.ask("GET", one, headers=PARTIAL)
    select = f"?fieldSelector=metadata.name={name}"
    pair.ask("GET", path + select)
    pair.ask("GET", path + select, headers=TABLE)
    pair.ask("GET", path + select, headers=PARTIALS)
    pair.ask("GET", path + select + "&includeObject=Object", headers=TABLE)
    pair.ask("PATCH", one + "?dryRun=All", sample["change"], MERGE)
    pair.ask("PATCH", one, sample["change"], MERGE)
    pair.ask("PATCH", one, sample["change"], MERGE)
    pair.ask("PATCH", one, {"metadata": {"annotations": {"note": "x"}}}, STRATEGIC)
    pair.ask("PATCH", one, [{"op": "add", "path": "/metadata/labels", "value": {"z": "y"}}], JSON_PATCH)
    pair.ask("PATCH", one, [{"op": "test", "path": "/metadata/name", "value": "other"}], JSON_PATCH)
    pair.ask("PUT", one, lambda saved: dict(saved["made"]))  # a stale revision
    pair.ask("GET", one, save="now")
    pair.ask("PUT", one, lambda saved: with_label(saved["now"], "put", "yes"))
    pair.ask("PUT", one, lambda saved: without(saved["now"], "resourceVersion"))
    pair.ask("PUT", one, lambda saved: with_metadata(saved["now"], uid="11111111-2222-3333-4444-555555555555"))
    pair.ask("PUT", f"{path}/other-name", lambda saved: saved["now"])
    if sample["status"]:
        pair.ask("GET", one + "/status")
        pair.ask("PATCH", one + "/status", {"status": sample["status"]}, MERGE)
        if sample is not SHIP:  # the real server says who owns these labels of a custom object, but does not take them
            pair.ask("PATCH", one + "/status", {"metadata": {"labels": {"of": "status"}, "annotations": {"of": "status"}}}, MERGE)
        pair.ask("GET", one, headers=TABLE)
    pair.ask("DELETE", one + "?dryRun=All")
    pair.ask("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1",
                             "preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}})
    pair.ask("DELETE", one + "?gracePeriodSeconds=0&propagationPolicy=Background")
    if sample["kind"] not in ("Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim"):
        pair.ask("GET", one)
        pair.ask("DELETE", one)


def with_label(value, key, text):
    value = copy.deepcopy(value)
    value["metadata"].setdefault("labels", {})[key] = text
    return value


def with_metadata(value, **more):
    value = copy.deepcopy(value)
    value["metadata"].update(more)
    return value


def without(value, *keys):
    value = copy.deepcopy(value)
    for key in keys:
        value["metadata"].pop(key, None)
    return value


@pytest.mark.parametrize("sample", KINDS, ids=title)
def test_applied_objects(pair, sample):
    """Server-side apply: create, change, conflict, force, give up a field."""
    path = collection(sample)
    name = name_of(sample, f"apply-{sample['plural']}")
    one = f"{path}/{name}"
    body = new(sample, name)
    pair.ask("PATCH", one, body, APPLY)  # no manager
    pair.ask("PATCH", one + "?fieldManager=ann", body, APPLY)
    pair.ask("PATCH", one + "?fieldManager=ann", body, APPLY)
    labelled = with_label(body, "team", "red")
    pair.ask("PATCH", one + "?fieldManager=ann", labelled, APPLY)
    pair.ask("PATCH", one + "?fieldManager=bob", {"apiVersion": sample["apiVersion"], "kind": sample["kind"],
                                                  "metadata": {"name": name, "labels": {"team": "blue"}}}, APPLY)
    pair.ask("PATCH", one + "?fieldManager=bob&force=true",
             {"apiVersion": sample["apiVersion"], "kind": sample["kind"],
              "metadata": {"name": name, "labels": {"team": "blue"}}}, APPLY)
    pair.ask("PATCH", one + "?fieldManager=ann", body, APPLY)
    pair.ask("PATCH", one + "?fieldManager=carl", {"metadata": {"annotations": {"a": "b"}}}, MERGE)
    pair.ask("PATCH", one + "?fieldManager=bob", {"apiVersion": sample["apiVersion"], "kind": sample["kind"],
                                                  "metadata": {"name": name}}, APPLY)
    pair.ask("GET", one)
    pair.ask("DELETE", one + "?gracePeriodSeconds=0")


BAD_METADATA = [
    {"name": "Upper"}, {"name": "a" * 300}, {"name": "under_score"}, {"name": "-a"}, {"name": ""}, {"name": "a/b"},
    {"name": "ok-1", "labels": {"a b": "c"}}, {"name": "ok-2", "labels": {"a": "b c"}}, {"name": "ok-3", "labels": {"a": "b" * 64}},
    {"name": "ok-4", "annotations": {"a b": "c"}}, {"name": "ok-5", "finalizers": ["x"]}, {"name": "ok-6", "finalizers": ["a/b/c"]},
    {"name": "ok-7", "ownerReferences": [{"kind": "Pod", "name": "x"}]},
    {"name": "ok-8", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": True},
                                         {"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "v", "controller": True}]},
    {"name": "ok-9", "resourceVersion": "5"}, {"name": "ok-10", "namespace": "elsewhere"}, {"name": "ok-11", "labels": {"a": 1}},
    {"name": "ok-12", "labels": ["a"]}, {"name": 7}, {"name": "ok-13", "creationTimestamp": "yesterday"},
    {"name": "ok-14", "labels": {"/a": "b"}}, {"name": "ok-15", "annotations": {"a": None}}, {"name": "ok-16", "uid": 5},
]


# One bad label at a time: of several, the real server tells in the order of a Go map, which is random.
# No Service: with a bad name the real server tries address after address for it until the request times out.
@pytest.mark.parametrize("sample", [s for s in KINDS if s["kind"] in
                                    ("ConfigMap", "Pod", "Namespace", "Deployment", "Ship", "ClusterRole", "Job")], ids=title)
def test_bad_metadata(pair, sample):
    for metadata in BAD_METADATA:
        body = new(sample)
        body["metadata"] = metadata
        pair.ask("POST", collection(sample), body)


def places(value, at=()):
    """Every place in a JSON value, as a path of keys."""
    yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, at + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, at + (i,))


def at_place(value, place):
    for key in place:
        value = value[key]
    return value


WRONG = [None, 5, -1, "text", "", True, 1.5, [], {}, ["x"], {"x": "y"}, "99999999999999999999", 2**40]


@pytest.mark.parametrize("sample", KINDS, ids=title)
def test_wrong_values(pair, sample):
    """A value of another type or shape at every place of a good object, by turns."""
    random_ = random.Random(sample["kind"])
    body = new(sample, "wrong")
    found = [p for p in places(body) if p and p[0] not in ("metadata", "apiVersion", "kind")]
    for place in random_.sample(found, min(len(found), 9)):
        bad = copy.deepcopy(body)
        at_place(bad, place[:-1])[place[-1]] = random_.choice(WRONG)
        pair.ask("POST", collection(sample) + "?dryRun=All", bad)
    for place in random_.sample(found, min(len(found), 4)):
        bad = copy.deepcopy(body)
        parent = at_place(bad, place[:-1])
        del parent[place[-1]]
        pair.ask("POST", collection(sample) + "?dryRun=All", bad)
    holders = [p for p in places(body) if isinstance(at_place(body, p), dict) and "labels" not in p]
    for place in random_.sample(holders, min(len(holders), 3)):
        bad = copy.deepcopy(body)
        at_place(bad, place)["surprise"] = {"x": 1}
        for mode in ("Strict", "Warn", "Ignore"):
            pair.ask("POST", collection(sample) + f"?dryRun=All&fieldValidation={mode}", bad)


def test_options_of_requests(pair):
    maps = f"/api/v1/namespaces/{NS}/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "options"}}
    for query in ("dryRun=Some", "dryRun=All&dryRun=All", "fieldValidation=Often", "fieldManager=" + "x" * 200,
                  "fieldManager=a%01b", "pretty=true", "dryRun="):
        pair.ask("POST", f"{maps}?{query}", body, compare="pretty" not in query)
    pair.ask("POST", maps, body)
    for query in ("dryRun=Some", "fieldValidation=Often", "force=true", "fieldManager=" + "x" * 200):
        pair.ask("PATCH", f"{maps}/options?{query}", {"data": {"a": "b"}}, MERGE)
    for query in ("force=maybe&fieldManager=a", "force=true"):
        pair.ask("PATCH", f"{maps}/options?{query}", body, APPLY)
    for query in ("propagationPolicy=Sideways", "gracePeriodSeconds=x", "gracePeriodSeconds=-5", "orphanDependents=true&propagationPolicy=Orphan",
                  "dryRun=Some"):
        pair.ask("DELETE", f"{maps}/options?{query}")
    for options in ({"propagationPolicy": "Sideways"}, {"kind": "Pod"}, {"gracePeriodSeconds": "x"}, {"preconditions": {"uid": "x"}},
                    {"preconditions": {"resourceVersion": "1"}}, {"surprise": 1}, [], "text"):
        pair.ask("DELETE", f"{maps}/options", options)


def test_options_of_deletes(pair):
    maps = f"/api/v1/namespaces/{NS}/configmaps"
    for options in ({"dryRun": "x"}, {"dryRun": [5]}, {"dryRun": ["All"]}, {"dryRun": [""]}, {"preconditions": "x"}, {"preconditions": {"uid": 5}}, {"orphanDependents": "x"}, {"orphanDependents": True}, {"propagationPolicy": 5}, {"propagationPolicy": ""}, {"gracePeriodSeconds": 1.5}, {"gracePeriodSeconds": None}, {"apiVersion": "v9"}, {"apiVersion": "v9", "kind": "DeleteOptions"}, {"apiVersion": "apps/v1", "kind": "DeleteOptions"}, {"kind": 5}, {"apiVersion": "a/b/c"}, {"ignoreStoreReadErrorWithClusterBreakingPotential": True}):
        pair.ask("DELETE", maps + "/none", options)
        pair.ask("DELETE", maps + "?labelSelector=none", options)
    for text in ("{", "null", " ", "5", '"x"', "{'a':1}", '{"a":1,}', "true", "{} x"):
        pair.ask("DELETE", maps + "/none", text)
    for q in ("dryRun=", "dryRun=x", "propagationPolicy=", "gracePeriodSeconds=", "gracePeriodSeconds=1.5", "gracePeriodSeconds=99999999999999999999", "orphanDependents=", "orphanDependents=x", "orphanDependents=false", "orphanDependents=true"):
        pair.ask("DELETE", maps + "/none?" + q)
        pair.ask("DELETE", maps + "?labelSelector=none&" + q)


def test_selectors(pair):
    ns = own_namespace(pair, "selectors")
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    for sel in ("a,", ",a", "a in x", "a in (x", "a in (x y)", "a in (=)", "a in (x,=)", "a in (,x)", "a in ()", "!", "!a=b", "! a", "a=b c", "a=-b", "-a=b", "x/y/z=1", "a>b", "a>5", "a<", "a!", "a!!b", "a=!b", "!=a", "a==", "a notin", "in", "in in (in)", "notin=notin", "a=b,,c=d", "a b c", "(", ")", "a)", "a=)", "a in (b)c", "a in (b),", "a in (" + "x"*64 + ")", "x"*64, "a="+"x"*64, "a.b/c=d", "A_=b", "a===b", "a<>b", "<a", "a in ((b))", "a in (b,,c)"):
        pair.ask("GET", maps + "?labelSelector=" + urllib.parse.quote(sel))
    for sel in ("metadata.name", "=", "a==b", "metadata.name==x", "metadata.name=x,", ",metadata.name=x", "metadata.name!=x,metadata.name=y", "metadata.name=a\\,b", "metadata.name=a\\b", "metadata.name=a=b", "metadata.name=!b", "!metadata.name=b", "metadata.name"):
        pair.ask("GET", maps + "?fieldSelector=" + urllib.parse.quote(sel))
    for path in ("/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/services", "/api/v1/secrets", "/api/v1/events", "/apis/events.k8s.io/v1/events", "/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs", "/apis/apps/v1/deployments", "/apis/certificates.k8s.io/v1/certificatesigningrequests", "/api/v1/replicationcontrollers"):
        pair.ask("GET", path + "?fieldSelector=spec.x%3D1")
        pair.ask("GET", path + "?fieldSelector=metadata.namespace%3Dnone1")


def test_pages_and_versions(pair):
    ns = own_namespace(pair, "pages")
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    for c in ("", "e30", "e30=", "bnVsbA", "W10", "eyJ2IjoieCJ9", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0", "!!!", "%20", "abc", "eyJ2Ijo1fQ"):
        pair.ask("GET", f"{maps}?limit=1&continue={c}")
    for q in ("limit=", "limit=1.5", "limit=99999999999999999999", "resourceVersion=1.5", "resourceVersion=99999999999999999999", "resourceVersion=+1", "resourceVersion=01", "timeoutSeconds=-1", "timeoutSeconds=", "sendInitialEvents=", "sendInitialEvents=x", "allowWatchBookmarks=x", "watch=false", "watch=0", "watch=", "resourceVersionMatch=", "resourceVersionMatch=x"):
        pair.ask("GET", f"{maps}?labelSelector=none&timeoutSeconds=1&{q}")
        if not q.startswith("watch"):
            pair.ask("GET", f"{maps}?labelSelector=none&timeoutSeconds=1&watch=1&{q}")


def test_lists_and_watches(pair):
    ns = own_namespace(pair, "lists")
    maps = f"/api/v1/namespaces/{ns}/configmaps"
    for i in range(7):
        pair.ask("POST", maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"page-{i}", "labels": {"n": str(i), "page": "yes"}}},
                 save=f"page-{i}")
    pages = maps + "?labelSelector=page%3Dyes"
    pair.ask("GET", pages, save="list")
    pair.ask("GET", pages + "&limit=3", save="page")
    pair.ask("GET", lambda saved: f"{pages}&limit=3&continue={saved['page']['metadata']['continue']}", save="page2")
    pair.ask("GET", lambda saved: f"{pages}&limit=3&continue={saved['page2']['metadata']['continue']}")
    pair.ask("GET", maps + "?limit=2")
    pair.ask("GET", pages + "&limit=3", headers=TABLE)
    for query in ("limit=x", "limit=-1", "continue=garbage", "resourceVersion=x", "resourceVersion=-1", "resourceVersionMatch=Exact",
                  "resourceVersionMatch=NotOlderThan", "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Sometimes",
                  "sendInitialEvents=true", "labelSelector=a%20b", "labelSelector=a%3D%3D%3Db", "labelSelector=a%20in%20(", "labelSelector=!n",
                  "labelSelector=n%20in%20(1,2)", "labelSelector=n%20notin%20(1,2),page", "labelSelector=n!%3D1,page%3Dyes", "labelSelector=n%3E3",
                  "fieldSelector=metadata.name%3Dpage-1", "fieldSelector=metadata.name!%3Dpage-1,metadata.namespace%3D" + ns + "&labelSelector=page",
                  "fieldSelector=spec.x%3D1", "fieldSelector=metadata.name", "timeoutSeconds=x", "watch=maybe&timeoutSeconds=1", "resourceVersion=0&limit=2&labelSelector=page"):
        pair.ask("GET", f"{maps}?{query}")
    short = "&timeoutSeconds=1&watch=true"
    pair.ask("GET", pages + short)
    pair.ask("GET", lambda saved: f"{pages}{short}&resourceVersion={saved['page-3']['metadata']['resourceVersion']}")
    pair.ask("GET", pages + short, headers=TABLE)
    pair.ask("GET", pages + short, headers=PARTIAL)
    pair.ask("GET", pages + short + "&resourceVersion=1", compare=False)
    for query in ("resourceVersion=x", "sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
                  "resourceVersionMatch=NotOlderThan", "sendInitialEvents=false", "labelSelector=a%20b", "fieldSelector=spec.x%3D1",
                  "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"):
        pair.ask("GET", f"{maps}?watch=1&timeoutSeconds=1&{query}")
    pair.ask("GET", f"{pages}&watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
    pair.ask("GET", f"/api/v1/watch/namespaces/{ns}/configmaps?timeoutSeconds=1&labelSelector=page")
    pair.ask("GET", f"/api/v1/watch/namespaces/{ns}/configmaps/page-1?timeoutSeconds=1")
    pair.ask("DELETE", maps + "?labelSelector=n%20in%20(5,6)")
    pair.ask("DELETE", pages)
    pair.ask("GET", pages)


def test_paths_that_lead_nowhere(pair):
    for path in ("/api", "/api/v2", "/api/v1/nothing", "/api/v1/nothing/x", "/apis/none.example.org", "/apis/none.example.org/v1",
                 "/apis/none.example.org/v1/x", "/apis/apps", "/apis/apps/v9", "/apis/apps/v9/deployments", "/nothing", "/api/v1/namespaces/none",
                 "/api/v1/namespaces/none/pods", "/api/v1/namespaces/none/pods/x", f"/api/v1/namespaces/{NS}/nodes", "/api/v1/pods/x",
                 f"/api/v1/namespaces/{NS}/pods/x/nothing", f"/api/v1/namespaces/{NS}/pods/x/status", f"/api/v1/namespaces/{NS}/pods/x/log",
                 f"/api/v1/namespaces/{NS}/configmaps/x/status", f"/api/v1/namespaces/{NS}/pods/x/binding", "/version/x", "/healthz/nothing",
                 "/livez/ping", "/readyz/ping", "/healthz", "/apis/apps/", "/api/v1/", "/api/", "//api/v1", "/api/v1//pods",
                 f"/apis/sea.example.org/v1/namespaces/{NS}/nothing", "/apis/sea.example.org/v2/ships", f"/apis/sea.example.org/v1/namespaces/{NS}/ships/x/scale"):
        pair.ask("GET", path)
    maps = f"/api/v1/namespaces/{NS}/configmaps"
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    for method, path, body in (("POST", maps + "/x", one), ("PUT", maps, one), ("PATCH", maps, one), ("POST", "/api/v1/namespaces/none/configmaps", one),
                               ("POST", "/api/v1/configmaps", one), ("PUT", maps + "/x", one), ("DELETE", "/api/v1/namespaces", None),
                               ("POST", f"/api/v1/namespaces/{NS}/nothing", one), ("POST", "/version", one), ("DELETE", "/healthz", None),
                               ("PUT", f"/api/v1/namespaces/{NS}/pods/x/log", one), ("OPTIONS", maps, None), ("BREW", maps, None)):
        pair.ask(method, path, body)


def test_bodies_that_are_no_objects(pair):
    maps = f"/api/v1/namespaces/{NS}/configmaps"
    deep = "[" * 2000 + "]" * 2000
    for body in ("", "{", "[]", "null", "5", '"x"', "{}", '{"kind":"ConfigMap"}', '{"apiVersion":"v1"}', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}',
                 '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}', '{"apiVersion":"v1","kind":"Nothing","metadata":{"name":"x"}}',
                 '{"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"x"}}', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}} trailing',
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice","name":"twice"}}', '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"' + "\\ud800" + '"},"metadata":{"name":"x"}}',
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":' + deep + "}", '{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}',
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":5}}', '{"apiVersion":5,"kind":"ConfigMap"}', "\ufeff{}", "{'a':1}"):
        pair.ask("POST", maps + "?dryRun=All", body.encode("utf-8", "replace"))
    for mode in ("Strict", "Warn", "Ignore"):
        pair.ask("POST", f"{maps}?dryRun=All&fieldValidation={mode}",
                 b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice","labels":{"a":"b","a":"c"}},"data":{"x":"y"},"data":{"z":"w"},"more":1}')
    yaml = {"Content-Type": "application/yaml"}
    for body in ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: 'b'}\n", "a: [", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: yes}\n",
                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: '1', a: '2'}\n", "&a [*a]", "- 1\n", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: y\n"):
        pair.ask("POST", maps + "?dryRun=All", body.encode(), yaml)
    one = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"types"}}'
    for kind in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "application/json; charset=utf-8", "application/cbor", "garbage"):
        pair.ask("POST", maps + "?dryRun=All", one, {"Content-Type": kind})
    pair.ask("POST", maps, one)
    for kind in ("application/json", "text/plain", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json",
                 "application/apply-patch+yaml", "application/x-patch"):
        pair.ask("PATCH", maps + "/types", b"{", {"Content-Type": kind})
        pair.ask("PATCH", maps + "/types", b"[]", {"Content-Type": kind})
        pair.ask("PATCH", maps + "/types", b"{}", {"Content-Type": kind})
        pair.ask("PATCH", maps + "/types", b"", {"Content-Type": kind})
    for accept in ("text/plain", "application/xml", "application/json;as=Nothing;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v9", "*/*", "application/*",
                   "application/yaml", "text/html,application/json;q=0.5", "application/cbor", ""):
        pair.ask("GET", maps + "/types", headers={"Accept": accept})
    pair.ask("DELETE", maps + "/types")


def test_patches(pair):
    pods = f"/api/v1/namespaces/{NS}/pods"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "patched", "labels": {"a": "1", "b": "2"}, "finalizers": ["example.org/a", "example.org/b"]},
           "spec": {"schedulerName": "none", "containers": [{"name": "one", "image": "a:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                                                            {"name": "two", "image": "b:1"}],
                    "tolerations": [{"key": "k", "operator": "Exists"}]}}
    pair.ask("POST", pods, pod)
    one = pods + "/patched"
    for patch in ({"spec": {"containers": [{"name": "one", "image": "a:2"}]}}, {"spec": {"containers": [{"name": "three", "image": "c:1"}]}},
                  {"spec": {"containers": [{"name": "two", "$patch": "delete"}]}}, {"spec": {"containers": [{"image": "x"}]}},
                  {"metadata": {"labels": {"a": None}}}, {"metadata": {"labels": {"$patch": "replace", "c": "3"}}},
                  {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.org/a"]}}, {"metadata": {"finalizers": ["example.org/c"]}},
                  {"metadata": {"$setElementOrder/finalizers": ["example.org/c", "example.org/b"]}}, {"spec": {"tolerations": [{"key": "z", "operator": "Exists"}]}},
                  {"spec": {"activeDeadlineSeconds": 10}}, {"spec": {"terminationGracePeriodSeconds": 5}}, {"spec": {"$patch": "sideways"}}, {"spec": "text"},
                  {"spec": {"containers": {"name": "one"}}}, {"metadata": {"name": "other"}}, {"metadata": {"resourceVersion": "1"}}, {"kind": "Other"},
                  {"metadata": {"uid": "x"}}, {"surprise": 1}, {"status": {"phase": "Running"}}):
        pair.ask("PATCH", one, patch, STRATEGIC)
        pair.ask("PATCH", one + "?dryRun=All", patch, MERGE)
    for patch in ([{"op": "replace", "path": "/spec/containers/0/image", "value": "a:3"}], [{"op": "add", "path": "/metadata/labels/x~1y", "value": "z"}],
                  [{"op": "remove", "path": "/metadata/labels/none"}], [{"op": "remove", "path": "/spec/containers/9"}], [{"op": "move", "from": "/metadata/labels/x~1y", "path": "/metadata/labels/w"}],
                  [{"op": "copy", "from": "/metadata/labels/w", "path": "/metadata/labels/v"}], [{"op": "test", "path": "/spec/containers/0/image", "value": "a:3"}],
                  [{"op": "sing", "path": "/x"}], [{"path": "/x"}], [{"op": "add", "path": "x", "value": 1}], [{"op": "add", "path": "/spec/containers/-", "value": {"name": "four", "image": "d"}}],
                  {"op": "add"}, [{"op": "replace", "path": "/metadata/labels/none", "value": "x"}], [{"op": "add", "path": "/metadata/labels", "value": "text"}], []):
        pair.ask("PATCH", one, patch, JSON_PATCH)
    pair.ask("PATCH", one, {"metadata": {"finalizers": None}}, MERGE)
    pair.ask("DELETE", one + "?gracePeriodSeconds=0")


def test_patches_of_a_template(pair):
    path = f"/apis/apps/v1/namespaces/{NS}/deployments"
    body = new([s for s in SAMPLES if s["kind"] == "Deployment"][0], "dp")
    body["spec"]["template"]["spec"] = {"containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, {"name": "b", "image": "y"}], "volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"key": "k", "operator": "Exists"}], "imagePullSecrets": [{"name": "s"}]}
    pair.ask("POST", path, body)

    def t(**spec):
        return {"spec": {"template": {"spec": spec}}}
    for p in (t(containers=[{"name": "b", "image": "z"}, {"name": "a", "image": "w"}]), t(containers=[{"name": "c", "image": "z"}]), t(containers=[{"name": "c", "$patch": "delete"}]), t(containers=[{"$patch": "replace"}, {"name": "d", "image": "q"}]), t(containers=[{"name": "a", "env": [{"name": "C", "value": "3"}]}]), t(containers=[{"name": "a", "env": [{"name": "B", "$patch": "delete"}]}]),
              t(containers=[{"name": "a", "ports": [{"containerPort": 82}]}]), t(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]), t(volumes=[{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]), {"spec": {"strategy": {"type": "Recreate"}}}, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, t(tolerations=[{"key": "z", "operator": "Exists"}]), t(imagePullSecrets=[{"name": "t"}]),
              {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}}}}, {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "$setElementOrder/containers": [{"name": "b"}]}}}}, t(nodeSelector={"a": None}), t(containers=None), t(containers=[]), t(containers=["x"]), t(containers=[[1]]), t(containers=[{"name": "a", "$patch": "merge"}]), t(containers=[{"name": "a", "$patch": "burn"}]), t(containers=[{"name": 5, "image": "z"}]),
              t(securityContext={"runAsUser": "x"}), t(securityContext={"runAsUser": 1.5}), t(terminationGracePeriodSeconds="5"), t(hostNetwork="yes"), t(containers=[{"name": "a", "resources": {"limits": {"cpu": 5}}}]), t(containers=[{"name": "a", "resources": {"limits": {"cpu": "x"}}}]), t(containers=[{"name": "a", "resources": {"limits": "x"}}]), t(containers=[{"name": "a", "livenessProbe": {"httpGet": {"port": {"a": 1}}}}]), {"spec": {"replicas": "3"}}, {"spec": {"replicas": 3.5}}, {"spec": {"replicas": -1}}, {"spec": {"selector": {"matchLabels": {"n": "m"}}}}):
        pair.ask("PATCH", path + "/dp?dryRun=All", p, STRATEGIC)
        pair.ask("PATCH", path + "/dp?dryRun=All", p, MERGE)


POD_SPECS = [
    {}, {"containers": []}, {"containers": [{}]}, {"containers": [{"name": "a"}]}, {"containers": [{"name": "A_b", "image": "x"}]},
    {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]}, {"containers": [{"name": "a", "image": " x"}]},
    {"containers": [{"name": "a", "image": "x", "imagePullPolicy": "Perhaps"}]}, {"containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 0}]}]},
    {"containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 70000, "protocol": "ICMP"}]}]},
    {"containers": [{"name": "a", "image": "x", "ports": [{"name": "toolongaportname", "containerPort": 1}, {"name": "b", "containerPort": 2}, {"name": "b", "containerPort": 3}]}]},
    {"containers": [{"name": "a", "image": "x", "env": [{"name": ""}, {"name": "a b"}, {"name": "ok", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]},
    {"containers": [{"name": "a", "image": "x", "env": [{"name": "n", "valueFrom": {}}, {"name": "m", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]}]},
    {"containers": [{"name": "a", "image": "x", "envFrom": [{}, {"configMapRef": {"name": ""}}, {"prefix": "a b", "secretRef": {"name": "s"}}]}]},
    {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]},
    {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "-1"}}}]},
    {"containers": [{"name": "a", "image": "x", "resources": {"limits": {"example.org/gpu": "1.5"}}}]},
    {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"nothing": "1"}}}]},
    {"containers": [{"name": "a", "image": "x", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": "2"}, "requests": {"cpu": "0.5", "memory": "1e3"}}}]},
    {"containers": [{"name": "a", "image": "x", "resources": {"limits": {"cpu": "abc"}}}]},
    {"containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "none", "mountPath": "/a"}, {"name": "v", "mountPath": ""}, {"name": "v", "mountPath": "/a", "subPath": "../x"}]}], "volumes": [{"name": "v", "emptyDir": {}}]},
    {"containers": [{"name": "a", "image": "x"}], "volumes": [{"name": "v"}, {"name": "V"}, {"name": "v", "hostPath": {"path": "/x/../y"}}]},
    {"containers": [{"name": "a", "image": "x"}], "volumes": [{"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "/abs"}]}}, {"name": "b", "secret": {"secretName": "s", "defaultMode": 512}}, {"name": "c", "emptyDir": {}, "hostPath": {"path": "/"}}]},
    {"containers": [{"name": "a", "image": "x"}], "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": ""}}, {"name": "b", "projected": {"sources": [{"configMap": {"name": "c"}}, {}]}}, {"name": "c", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "x"}}]}}]},
    {"containers": [{"name": "a", "image": "x", "livenessProbe": {}}]}, {"containers": [{"name": "a", "image": "x", "livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": -1, "successThreshold": 2}}]},
    {"containers": [{"name": "a", "image": "x", "readinessProbe": {"httpGet": {"port": "not a port", "path": ""}, "tcpSocket": {"port": 99999}}}]},
    {"containers": [{"name": "a", "image": "x", "lifecycle": {"preStop": {}, "postStart": {"exec": {"command": []}}}}]},
    {"containers": [{"name": "a", "image": "x", "securityContext": {"runAsUser": -1, "privileged": True, "allowPrivilegeEscalation": False}}]},
    {"containers": [{"name": "a", "image": "x", "terminationMessagePolicy": "Never", "terminationMessagePath": ""}]},
    {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Sometimes", "dnsPolicy": "Mine"}, {"containers": [{"name": "a", "image": "x"}], "dnsPolicy": "None"},
    {"containers": [{"name": "a", "image": "x"}], "dnsConfig": {"nameservers": ["1.2.3.4", "x"], "searches": ["a b"], "options": [{"name": ""}]}},
    {"containers": [{"name": "a", "image": "x"}], "hostNetwork": True, "hostPID": True, "nodeSelector": {"a b": "c"}}, {"containers": [{"name": "a", "image": "x"}], "nodeName": "Upper"},
    {"containers": [{"name": "a", "image": "x"}], "tolerations": [{"operator": "Exists", "value": "x", "key": "k"}, {"key": "", "operator": "Equal"}, {"key": "a", "effect": "NoWhere"}, {"key": "a", "tolerationSeconds": 5}]},
    {"containers": [{"name": "a", "image": "x"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}}}},
    {"containers": [{"name": "a", "image": "x"}], "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "podAffinityTerm": {"topologyKey": ""}}]}}},
    {"containers": [{"name": "a", "image": "x"}], "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Cry"}]},
    {"containers": [{"name": "a", "image": "x"}], "initContainers": [{"name": "a", "image": "y"}, {"name": "i", "image": "z", "restartPolicy": "Never"}, {"name": "s", "image": "z", "restartPolicy": "Always"}]},
    {"containers": [{"name": "a", "image": "x"}], "activeDeadlineSeconds": 0, "terminationGracePeriodSeconds": -1, "hostname": "A.b", "subdomain": "c d"},
    {"containers": [{"name": "a", "image": "x"}], "imagePullSecrets": [{"name": ""}, {"name": "s"}], "hostAliases": [{"ip": "x", "hostnames": ["A_"]}], "serviceAccountName": "Upper"},
    {"containers": [{"name": "a", "image": "x"}], "priority": 5}, {"containers": [{"name": "a", "image": "x"}], "priorityClassName": "system-node-critical"}, {"containers": [{"name": "a", "image": "x"}], "priorityClassName": "none"},
    {"containers": [{"name": "a", "image": "x"}], "serviceAccountName": "none"}, {"containers": [{"name": "a", "image": "x"}], "schedulerName": "Mine Own", "overhead": {"cpu": "1"}, "runtimeClassName": "none"},
    {"containers": [{"name": "a", "image": "x"}], "securityContext": {"runAsUser": 1000, "fsGroup": -1, "sysctls": [{"name": "bad name", "value": "1"}], "seccompProfile": {"type": "Localhost"}}},
    {"containers": [{"name": "a", "image": "x"}], "readinessGates": [{"conditionType": "a b"}], "schedulingGates": [{"name": "example.org/g"}], "os": {"name": "windows"}, "setHostnameAsFQDN": True},
    {"containers": [{"name": "a", "image": "x"}], "ephemeralContainers": [{"name": "e", "image": "y"}], "automountServiceAccountToken": False, "enableServiceLinks": False, "shareProcessNamespace": True},
]


def test_pod_specs(pair):
    """Alone and inside a template: the same rules below another path."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    for i, spec in enumerate(POD_SPECS):
        pair.ask("POST", f"/api/v1/namespaces/{NS}/pods?dryRun=All", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"spec-{i}"}, "spec": spec})
        if i % 3 == 0:
            pair.ask("POST", f"/apis/batch/v1/namespaces/{NS}/jobs?dryRun=All", dict(job, spec={"template": {"spec": dict({"restartPolicy": "Never"}, **spec)}}))


SERVICE_SPECS = [
    {}, {"ports": []}, {"ports": [{"port": 0}]}, {"ports": [{"port": 80}, {"port": 81}]}, {"ports": [{"port": 80, "name": "A"}]}, {"ports": [{"port": 80, "protocol": "X"}]},
    {"type": "Odd", "ports": [{"port": 80}]}, {"type": "ExternalName"}, {"type": "ExternalName", "externalName": "a.example.org"}, {"type": "ExternalName", "externalName": "bad name"},
    {"clusterIP": "None"}, {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}, {"clusterIP": "1.2.3.4", "ports": [{"port": 80}]}, {"clusterIP": "x", "ports": [{"port": 80}]},
    {"type": "NodePort", "ports": [{"port": 80, "nodePort": 5}]}, {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]}, {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30124}], "loadBalancerSourceRanges": ["x"]},
    {"ports": [{"port": 80, "nodePort": 30001}]}, {"ports": [{"port": 80, "targetPort": "Bad Port"}]}, {"ports": [{"port": 80}], "sessionAffinity": "Always"}, {"ports": [{"port": 80}], "sessionAffinity": "ClientIP"},
    {"ports": [{"port": 80}], "selector": {"a b": "c"}}, {"ports": [{"port": 80}], "externalIPs": ["x"]}, {"ports": [{"port": 80}], "ipFamilyPolicy": "RequireDualStack"}, {"ports": [{"port": 80}], "internalTrafficPolicy": "Here"},
    {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}, {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}, {"ports": [{"port": 80, "appProtocol": "x y"}], "publishNotReadyAddresses": True},
]


def test_service_specs(pair):
    for i, spec in enumerate(SERVICE_SPECS):
        pair.ask("POST", f"/api/v1/namespaces/{NS}/services?dryRun=All", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"svc-{i}"}, "spec": spec})


SHIP_SPECS = [
    None, {}, {"crew": 0}, {"crew": 101}, {"crew": "3"}, {"crew": 1.5}, {"crew": 1, "sail": "square"}, {"crew": 1, "name": "Upper"}, {"crew": 1, "name": "toolongforthis"},
    {"crew": 1, "ports": [{"name": "a"}, {"name": "a"}]}, {"crew": 1, "ports": [{"days": 1}]}, {"crew": 1, "flags": ["a", "a"]}, {"crew": 1, "cargo": {"a": "b"}}, {"crew": 1, "size": 5},
    {"crew": 1, "size": 1.5}, {"crew": 1, "size": []}, {"crew": 1, "free": {"a": None}}, {"crew": 1, "free": "x"}, {"crew": 1, "when": "yesterday"}, {"crew": 1, "surprise": 1}, {"crew": None}, {"crew": 1, "sail": None},
]


def test_custom_objects(pair):
    ships = f"/apis/sea.example.org/v1/namespaces/{NS}/ships"
    for i, spec in enumerate(SHIP_SPECS):
        pair.ask("POST", ships + "?dryRun=All", {"apiVersion": "sea.example.org/v1", "kind": "Ship", "metadata": {"name": f"ship-{i}"}, "spec": spec})
    ship = {"apiVersion": "sea.example.org/v1", "kind": "Ship", "metadata": {"name": "argo"}, "spec": {"crew": 50}, "status": {"state": "ignored"}}
    pair.ask("POST", ships, ship)
    one = ships + "/argo"
    pair.ask("GET", one + "/scale")
    pair.ask("PUT", one + "/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "argo"}, "spec": {"replicas": 7}})
    pair.ask("PATCH", one + "/scale", {"spec": {"replicas": 8}}, MERGE)
    pair.ask("PATCH", one + "/scale", {"spec": {"replicas": -8}}, MERGE)
    pair.ask("PATCH", one + "/status", {"status": {"aboard": 5, "selector": "a=b"}, "spec": {"crew": 1}}, MERGE)
    pair.ask("GET", one + "/scale")
    pair.ask("GET", one)
    pair.ask("GET", f"/apis/sea.example.org/v1beta1/namespaces/{NS}/ships/argo")
    pair.ask("PATCH", f"/apis/sea.example.org/v1beta1/namespaces/{NS}/ships/argo", {"spec": {"extra": 1}}, MERGE)
    pair.ask("GET", ships + "?fieldSelector=spec.sail%3Dlug")
    pair.ask("GET", ships + "?fieldSelector=spec.sail%3Dgaff")
    pair.ask("GET", ships + "?fieldSelector=spec.crew%3D8")
    pair.ask("GET", ships, headers=TABLE)
    pair.ask("PATCH", one, {"spec": {"crew": 9}}, STRATEGIC)
    pair.ask("DELETE", ships)


def crd(**spec):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    base = {"group": "bad.example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [version]}
    for key, value in spec.items():
        if key == "schema":
            base["versions"] = [dict(version, schema={"openAPIV3Schema": value})]
        elif key == "version":
            base["versions"] = [dict(version, **value)]
        else:
            base[key] = value
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.bad.example.org"}, "spec": base}


def test_definitions(pair):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    string = {"type": "string"}
    for body in (crd(), crd(scope="World"), crd(group=""), crd(group="Upper.example.org"), crd(names={"plural": "things"}), crd(names={"plural": "others", "kind": "Thing"}),
                 crd(names={"plural": "things", "kind": "thing kind", "listKind": "X"}), crd(versions=[]), crd(version={"storage": False}), crd(version={"served": False}), crd(version={"name": "V1"}),
                 crd(version={"schema": None}), crd(schema={}), crd(schema={"type": "string"}), crd(schema={"type": "object", "properties": {"a": {}}}), crd(schema={"type": "object", "properties": {"a": {"type": "array"}}}),
                 crd(schema={"type": "object", "properties": {"a": {"type": "array", "items": [string]}}}), crd(schema={"type": "object", "properties": {"a": {"$ref": "#/x"}}}),
                 crd(schema={"type": "object", "properties": {"a": dict(string, default=5)}}), crd(schema={"type": "object", "properties": {"a": dict(string, pattern="(")}}),
                 crd(schema={"type": "object", "properties": {"a": {"type": "array", "items": string, "x-kubernetes-list-type": "map"}}}),
                 crd(schema={"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"k": string}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}}),
                 crd(schema={"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}), crd(schema={"type": "object", "additionalProperties": string, "properties": {"a": string}}),
                 crd(version={"additionalPrinterColumns": [{"name": "x", "type": "odd", "jsonPath": "spec"}]}), crd(version={"subresources": {"scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".status.x"}}}),
                 crd(version={"selectableFields": [{"jsonPath": ".spec.none"}]}), crd(preserveUnknownFields=True), crd(conversion={"strategy": "Magic"}), crd(conversion={"strategy": "Webhook"}),
                 crd(schema={"type": "object", "properties": {"a": {"type": "string", "enum": ["x"], "default": "y"}}}), crd(schema={"type": "object", "properties": {"a": {"type": "object", "nullable": True, "default": None}}})):
        pair.ask("POST", path, body)


def test_documents_of_discovery(pair):
    groups = ["/api/v1"] + sorted({"/apis/" + s["apiVersion"] for s in KINDS if "/" in s["apiVersion"]})
    groups += ["/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1", "/apis/certificates.k8s.io/v1"]
    for path in groups:
        pair.ask("GET", path)
    for path in sorted({p.rsplit("/", 1)[0] for p in groups[1:]}):
        pair.ask("GET", path)


def test_reviews(pair):
    access = "/apis/authorization.k8s.io/v1"
    for spec in ({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": NS}}, {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}, {},
                 {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}}):
        pair.ask("POST", access + "/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec})
        for who in ({"user": "nobody"}, {"user": "x", "groups": ["system:masters"]}, {}):
            pair.ask("POST", access + "/subjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": dict(spec, **who)})
    pair.ask("POST", access + f"/namespaces/{NS}/localsubjectaccessreviews",
             {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": NS},
              "spec": {"user": "nobody", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": NS}}})
    pair.ask("POST", access + f"/namespaces/{NS}/localsubjectaccessreviews",
             {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "spec": {"user": "nobody", "resourceAttributes": {"verb": "get", "namespace": "other"}}})
    pair.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "wrong"}})
    pair.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}})
    token = f"/api/v1/namespaces/{NS}/serviceaccounts/default/token"
    for spec in ({}, {"expirationSeconds": 5}, {"expirationSeconds": 2**33}, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}, {"boundObjectRef": {"kind": "Ship", "apiVersion": "v1", "name": "none"}}):
        pair.ask("POST", token, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}, compare=bool(spec))


def test_requests_of_others(pair):
    """RBAC by impersonation: what a user with a small role may and may not do."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    ns = own_namespace(pair, "others")
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}, {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["only"], "verbs": ["get", "update"]}]}
    pair.ask("POST", f"{rbac}/namespaces/{ns}/roles", role)
    pair.ask("POST", f"{rbac}/namespaces/{ns}/rolebindings",
             {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
              "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]})
    time.sleep(0.5)
    ann = {"Impersonate-User": "ann"}
    for method, path in (("GET", f"/api/v1/namespaces/{ns}/pods"), ("GET", "/api/v1/pods"), ("GET", f"/api/v1/namespaces/{ns}/pods/none"), ("DELETE", f"/api/v1/namespaces/{ns}/pods/none"),
                         ("GET", f"/api/v1/namespaces/{ns}/configmaps/only"), ("GET", f"/api/v1/namespaces/{ns}/configmaps/other"), ("GET", f"/api/v1/namespaces/{ns}/configmaps"),
                         ("GET", f"/api/v1/namespaces/{ns}/pods/none/log"), ("GET", f"/api/v1/namespaces/{ns}/pods/none/exec"), ("GET", "/api/v1/nodes"), ("GET", "/apis/apps/v1/deployments"), ("GET", "/metrics"),
                         ("GET", "/api/v1/namespaces"), ("GET", "/healthz"), ("GET", f"/apis/sea.example.org/v1/namespaces/{ns}/ships"), ("DELETE", f"/api/v1/namespaces/{ns}/pods")):
        pair.ask(method, path, headers=ann)
    pair.ask("POST", f"{rbac}/namespaces/{ns}/roles", dict(role, metadata={"name": "grab"}), ann)
    editor = {"Impersonate-User": "eve"}
    pair.ask("POST", f"{rbac}/clusterroles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "role-writer"},
                                              "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "get"]}]})
    pair.ask("POST", f"{rbac}/clusterrolebindings", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "role-writer"},
                                                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "role-writer"},
                                                     "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]})
    time.sleep(0.5)
    pair.ask("POST", f"{rbac}/namespaces/{ns}/roles", dict(role, metadata={"name": "grab"}), editor)
    pair.ask("POST", f"{rbac}/namespaces/{ns}/rolebindings",
             {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "grab"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
              "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]}, editor)
    pair.ask("GET", f"/api/v1/namespaces/{ns}/pods", headers={"Impersonate-Group": "x"})
    pair.ask("GET", f"/api/v1/namespaces/{ns}/pods", headers={"Impersonate-User": "ann", "Impersonate-Group": "system:masters"})
    for name in ("view", "edit", "admin", "cluster-admin", "system:discovery", "system:basic-user", "system:public-info-viewer"):
        pair.ask("GET", f"{rbac}/clusterroles/{name}")


def test_limits_and_quotas(pair):
    ns = "limits"
    pair.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})
    for side in (pair.real, pair.ours):
        wait_for(lambda: side.ask("GET", f"/api/v1/namespaces/{ns}/serviceaccounts/default", None, None).status == 200, 10)
    base = f"/api/v1/namespaces/{ns}"
    pair.ask("POST", base + "/limitranges", {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}, "min": {"cpu": "50m"}, "maxLimitRequestRatio": {"cpu": "8"}},
        {"type": "Pod", "max": {"cpu": "2"}}]}})
    pair.ask("POST", base + "/resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi", "count/configmaps": "3", "services": "1"}}})
    time.sleep(1.5)
    pair.ask("GET", base + "/resourcequotas/q")
    cases = [{}, {"limits": {"memory": "1Mi"}}, {"limits": {"memory": "1Mi", "cpu": "2"}}, {"limits": {"memory": "1Mi"}, "requests": {"cpu": "10m"}}, {"limits": {"memory": "1Mi", "cpu": "1"}, "requests": {"cpu": "60m"}},
             {"limits": {"memory": "2Gi"}}, {"limits": {"memory": "1Mi", "cpu": "900m"}, "requests": {"cpu": "900m"}}, {"limits": {"memory": "1Mi"}}]
    for i, resources in enumerate(cases):
        pair.ask("POST", base + "/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}, "spec": {"schedulerName": "none", "containers": [{"name": "a", "image": "x", "resources": resources}]}})
    for i in range(4):
        pair.ask("POST", base + "/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}})
    for i in range(2):
        pair.ask("POST", base + "/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{i}"}, "spec": {"ports": [{"port": 80}]}})
    time.sleep(0.5)
    pair.ask("GET", base + "/resourcequotas/q")
    pair.ask("GET", base + "/resourcequotas/q", headers=TABLE)


def test_pod_security(pair):
    for level in ("baseline", "restricted"):
        ns = f"pss-{level}"
        pair.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns, "labels": {
            "pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/warn": "restricted"}}})
        for side in (pair.real, pair.ours):
            wait_for(lambda: side.ask("GET", f"/api/v1/namespaces/{ns}/serviceaccounts/default", None, None).status == 200, 10)
        good = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
        for i, (spec, context) in enumerate((({}, {}), ({}, good), ({"hostNetwork": True, "hostPID": True}, good), ({}, dict(good, privileged=True, allowPrivilegeEscalation=True)), ({}, dict(good, capabilities={"add": ["SYS_ADMIN"]})),
                                             ({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, good), ({}, dict(good, runAsUser=0)), ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, good),
                                             ({}, dict(good, seccompProfile={"type": "Unconfined"})), ({}, dict(good, procMount="Unmasked")))):
            container = {"name": "a", "image": "x", "securityContext": context}
            if i == 2:
                container["ports"] = [{"containerPort": 80, "hostPort": 80}]
            pair.ask("POST", f"/api/v1/namespaces/{ns}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}, "spec": dict(spec, schedulerName="none", containers=[container])})
        pair.ask("POST", f"/apis/apps/v1/namespaces/{ns}/deployments", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}}})
    pair.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pss-odd", "labels": {"pod-security.kubernetes.io/enforce": "odd"}}})
    pair.ask("PATCH", "/api/v1/namespaces/pss-baseline", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}, MERGE)


def test_owners_and_finalizers(pair):
    maps = f"/api/v1/namespaces/{NS}/configmaps"

    def make(name, **metadata):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": dict({"name": name}, **metadata)}

    def owned(name, **more):
        return lambda saved: make(name, ownerReferences=[dict({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": saved["owner"]["metadata"]["uid"]}, **more)])
    for policy in ("Background", "Foreground", "Orphan"):
        pair.ask("POST", maps, make("owner"), save="owner")
        pair.ask("POST", maps, owned("child", blockOwnerDeletion=True))
        pair.ask("DELETE", f"{maps}/owner", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
        for side in (pair.real, pair.ours):
            wait_for(lambda: side.ask("GET", f"{maps}/owner", None, None).status == 404, 20)
            if policy != "Orphan":
                wait_for(lambda: side.ask("GET", f"{maps}/child", None, None).status == 404, 20)
        pair.ask("GET", f"{maps}/child")
        pair.ask("DELETE", f"{maps}/child")
    pair.ask("POST", maps, make("held", finalizers=["example.org/hold"]))
    pair.ask("DELETE", f"{maps}/held")
    pair.ask("GET", f"{maps}/held")
    pair.ask("DELETE", f"{maps}/held")
    pair.ask("PATCH", f"{maps}/held", {"metadata": {"finalizers": ["example.org/hold", "example.org/more"]}}, MERGE)
    pair.ask("PATCH", f"{maps}/held", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    pair.ask("POST", maps, make("held"))
    pair.ask("PATCH", f"{maps}/held", {"metadata": {"finalizers": None}}, MERGE)
    pair.ask("GET", f"{maps}/held")
    for i in range(2):
        pair.ask("POST", maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}})
    pair.ask("DELETE", maps + "?labelSelector=none")


def test_end_of_a_namespace(pair):
    pair.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ends"}})
    base = "/api/v1/namespaces/ends"
    for side in (pair.real, pair.ours):
        wait_for(lambda: side.ask("GET", f"{base}/configmaps/kube-root-ca.crt", None, None).status == 200, 10)
    pair.ask("POST", base + "/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.org/hold"]}})
    pair.ask("DELETE", "/api/v1/namespaces/ends")
    for side in (pair.real, pair.ours):
        wait_for(lambda: any(c["type"] == "NamespaceFinalizersRemaining" and c["status"] == "True"
                             for c in side.ask("GET", base, None, None).body["status"].get("conditions", [])), 20)
    pair.ask("GET", base)
    pair.ask("POST", base + "/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})
    pair.ask("PATCH", base + "/configmaps/held", {"metadata": {"finalizers": None}}, MERGE)
    for side in (pair.real, pair.ours):
        wait_for(lambda: side.ask("GET", base, None, None).status == 404, 30)
    pair.ask("GET", base)


def test_number_of_requests():
    """Last: the suite is as large as it says."""
    print(f"{asked} requests were compared")
    assert asked >= 1000
