"""Input that nobody sends by accident: both servers must refuse it alike, and stay up."""
import gzip
import json
import socket
import ssl

from pair import Answer
from test_differential import (APPLY, JSON_PATCH, MERGE, NS, STRATEGIC, pair, servers)  # noqa: F401

MAPS = f"/api/v1/namespaces/{NS}/configmaps"
YAML = {"Content-Type": "application/yaml"}


def config_map(**more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, **more}


def text(data="", metadata='"name":"bad"'):
    return f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{{metadata}}},"data":{{{data}}}}}'


def test_json_of_all_sorts(pair):
    post = MAPS + "?dryRun=All"
    for body in (text('"a":"' + "x" * 1_100_000 + '"'), text('"a":1e999'), text('"a":-0'), text('"a":9007199254740993'),
                 text('"a":"\\u0000"'), text('"a":"\u20ac"'), text('"a\\u0000":"b"'), text('"":"b"'),
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","generation":1e3}}',
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","generation":1.5}}',
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","generation":99999999999999999999}}',
                 '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"},"immutable":"true"}',
                 "\r\n\t " + text(), text() + "\x00", "{" * 100_000, text("," * 3), text('"a":"b",'),
                 "/* */" + text(), text().replace('"', "'"), text('"a":NaN'), text('"a":+1'), text('"a":01')):
        pair.ask("POST", post, body.encode())
    for bad in (b"\xff\xfe" + text().encode(), text('"a":"\xff"').encode("latin-1"), text().encode("utf-16")):
        pair.ask("POST", post, bad)
    many = {f"k{i}": "v" for i in range(20_000)}
    pair.ask("POST", MAPS, config_map(metadata={"name": "many-keys"}, data=many), compare=False)
    pair.ask("GET", MAPS + "/many-keys")
    pair.ask("DELETE", MAPS + "/many-keys")
    deep = "[" * 9_990 + "]" * 9_990
    pair.ask("POST", f"/apis/sea.example.org/v1/namespaces/{NS}/ships?dryRun=All",
             ('{"apiVersion":"sea.example.org/v1","kind":"Ship","metadata":{"name":"deep"},"spec":{"crew":1,"free":{"a":'
              + "[" * 12_000 + "]" * 12_000 + "}}}").encode())
    # Depth is counted before or after the patch: a matter of taste.
    for side in (pair.real, pair.ours):
        assert side.ask("PATCH", MAPS + "/kube-root-ca.crt", ('{"data":{"a":' + deep + "}}").encode(), MERGE).status in (400, 422)


def test_yaml_of_all_sorts(pair):
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\n"
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(8))
    for body in (head + "data: {a: no}\n", head + "data: {a: 1.5}\n", head + "data: {a: 0o17}\n", head + "data: {a: ~}\n",
                 head + "data: {a: 2001-01-01}\n", head + "data: {1: a}\n", head + "data: {a: !!binary aGk=}\n",
                 head + "data: {a: !mine x}\n", head + "x: &x {a: b}\ndata: *x\n", head + "x: &x {a: b}\ndata: {<<: *x}\n",
                 head + "data: {a: |\n", head + "data:\n  a: |\n    one\n    two\n", head + "---\n" + head, "---\n" + head,
                 head.replace("\n", "\r\n"), "\ufeff" + head, head + "data: {a: \"\\x00\"}\n", head + "data:\n\ta: b\n",
                 head + bomb, head + "data: {a: *nothing}\n", "%YAML 1.2\n---\n" + head, "", "---\n", "# nothing\n"):
        pair.ask("POST", MAPS + "?dryRun=All", body.encode(), YAML)
        pair.ask("PATCH", MAPS + "/bad?dryRun=All&fieldManager=x", body.encode(), APPLY)


def test_objects_out_of_measure(pair):
    post = MAPS + "?dryRun=All"
    labels = {f"k{i}": "v" for i in range(10_000)}
    for metadata in ({"labels": labels}, {"annotations": {"a": "x" * 262_145}}, {"annotations": {f"k{i}": "x" * 30 for i in range(10_000)}},
                     {"labels": {"x" * 64: "v"}}, {"labels": {"a": "v" * 64}}, {"labels": {"a/b/c": "v"}}, {"labels": {"a..b/c": "v"}},
                     {"finalizers": [f"example.org/f{i}" for i in range(300)]}, {"finalizers": ["example.org/a"] * 2},
                     {"name": "x" * 254}, {"name": "\u00fc"}, {"name": "a b"}, {"name": "a\nb"}, {"name": ".."}, {"name": "%2e"},
                     {"generateName": "x" * 300}, {"generateName": "UPPER-"}, {"name": "ok", "generateName": "BAD_"},
                     {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "bad", "uid": "x"}] * 2},
                     {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "ConfigMap", "name": "bad", "uid": "x"}]},
                     {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "bad", "uid": "x"}]},
                     {"managedFields": [{"manager": "x", "operation": "Sing"}]}, {"managedFields": [{"manager": "x" * 200}]},
                     {"deletionGracePeriodSeconds": -1}, {"generation": -5}, {"selfLink": "/x"}, {"uid": "mine"},
                     {"creationTimestamp": None}, {"namespace": ""}):
        pair.ask("POST", post, config_map(metadata={"name": "bad", **metadata}))
    for quantity in ("-1", "NaN", "1e1000Ki", "0x10", "1.", ".5", "1e3", "1E", "9223372036854775808", "1Zi", "1 Gi", "", "100m", "0.0001", "1n",
                     "99999999999999999999999999", "1e-30", "+5", True, [], 1.5, 10**19):
        pair.ask("POST", f"/api/v1/namespaces/{NS}/pods?dryRun=All",
                 {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"},
                  "spec": {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"memory": quantity}}}]}})


def test_patches_out_of_measure(pair):
    pair.ask("POST", MAPS, config_map(metadata={"name": "patched"}, data={"a": "1", "b~c/d": "2"}))
    one = MAPS + "/patched"
    for patch in ([{"op": "test", "path": "/data/b~0c~1d", "value": "2"}], [{"op": "test", "path": "/data/a~2", "value": "2"}],
                  [{"op": "add", "path": "", "value": {}}], [{"op": "remove", "path": ""}], [{"op": "add", "path": "data", "value": "x"}],
                  [{"op": "move", "from": "/data", "path": "/data/a"}], [{"op": "copy", "from": "/nothing", "path": "/data/c"}],
                  [{"op": "dance", "path": "/data"}], [{"op": "add"}], [{}], [5], [{"op": "add", "path": "/data/-", "value": "x"}],
                  [{"op": "add", "path": "/metadata/finalizers", "value": []}, {"op": "add", "path": "/metadata/finalizers/7", "value": "a/b"}],
                  [{"op": "replace", "path": "/metadata/name", "value": "other"}], [{"op": "replace", "path": "/kind", "value": "Pod"}],
                  [{"op": "replace", "path": "/apiVersion", "value": "v2"}], [{"op": "replace", "path": "/metadata/uid", "value": "x"}],
                  [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001):
        pair.ask("PATCH", one + "?dryRun=All", patch, JSON_PATCH)
    for kind in (MERGE, STRATEGIC):
        for patch in ({"metadata": None}, {"data": None}, {"data": 5}, {"metadata": {"resourceVersion": "1"}}, {"metadata": {"name": "x"}},
                      {"kind": "Pod"}, {"metadata": {"uid": "x"}}, {"$patch": "dance"}, {"data": {"$retainKeys": ["a"]}},
                      {"metadata": {"finalizers": [None]}}, {"metadata": {"labels": {"a": {"b": "c"}}}}):
            pair.ask("PATCH", one + "?dryRun=All", patch, kind)
    pair.ask("DELETE", one)


def test_pods_that_are_hardly_meant(pair):
    """Good objects that come with warnings."""
    container = {"name": "a", "image": "x"}
    specs = [{"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}}, {"terminationGracePeriodSeconds": -1},
             {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {"name": ""}]}, {"hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]},
             {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "failure-domain.beta.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]},
             {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}],
                                           "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}]}}},
             {"volumes": [{"name": "v", "rbd": {"monitors": ["m"], "image": "i"}}]},
             {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]}}]}]
    containers = [{"env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}, {"name": "X", "value": "$(X)3"}]},
                  {"ports": [{"containerPort": 80, "name": "p"}, {"containerPort": 80, "name": "q"}]},
                  {"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 80}]},
                  {"resources": {"limits": {"memory": "1.5", "ephemeral-storage": "100m"}}}]
    for spec in specs + [{"containers": [{**container, **more}]} for more in containers]:
        spec = {"containers": [container], **spec}
        pair.ask("POST", f"/api/v1/namespaces/{NS}/pods?dryRun=All", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd.name"}, "spec": spec})
        pair.ask("POST", f"/apis/apps/v1/namespaces/{NS}/deployments?dryRun=All",
                 {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "odd.name"},
                  "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}})
        pair.ask("POST", f"/apis/batch/v1/namespaces/{NS}/cronjobs?dryRun=All",
                 {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "odd"},
                  "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", **spec}}}}}})


def raw(side, request):
    """The first line and body of the answer to bytes that no client library would send."""
    with socket.create_connection((side.host, side.port), timeout=20) as plain:
        connection = ssl._create_unverified_context().wrap_socket(plain) if side.tls else plain
        got = b""
        try:
            connection.sendall(request.replace(b"TOKEN", side.token.encode()))
            while piece := connection.recv(65536):
                got += piece
        except OSError:
            pass
    return int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/1.") else None


# What both refuse, the real server and ours by these codes.
DIFFERENT = {
    "a path with ..": (404, 400),  # no part of Skiff ever sees such a path
    "an escaped NUL": (404, 400),  # nor this one
    "a chunk too large for any number": (500, 400),  # it is the client's fault
    "a connect": (404, 405),
    "a token of no kind": (403, 401),  # a browser may send its password this way, and is asked for a good one
}


def test_http_that_no_client_sends(servers):  # noqa: F811
    real, ours = servers
    end = b"Host: h\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n"
    get = b"GET /api/v1/namespaces/default HTTP/1.1\r\n"
    cases = {
        "a good one": get + end + b"\r\n",
        "a path with ..": b"GET /api/v1/../v1/namespaces HTTP/1.1\r\n" + end + b"\r\n",
        "a doubled slash": b"GET /api//v1/namespaces HTTP/1.1\r\n" + end + b"\r\n",
        "an escaped slash": b"GET /api/v1/namespaces/a%2Fb HTTP/1.1\r\n" + end + b"\r\n",
        "an escape of an escape": b"GET /api/v1/namespaces/a%252Fb HTTP/1.1\r\n" + end + b"\r\n",
        "half an escape": b"GET /api/v1/namespaces/a%2 HTTP/1.1\r\n" + end + b"\r\n",
        "an escaped NUL": b"GET /api/v1/namespaces/a%00b HTTP/1.1\r\n" + end + b"\r\n",
        "the absolute form": b"GET http://h/api/v1/namespaces/default HTTP/1.1\r\n" + end + b"\r\n",
        "no host": get + b"Authorization: Bearer TOKEN\r\nConnection: close\r\n\r\n",
        "two hosts": get + b"Host: other\r\n" + end + b"\r\n",
        "length and chunks": b"POST /api/v1/namespaces HTTP/1.1\r\n" + end + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths": b"POST /api/v1/namespaces HTTP/1.1\r\n" + end + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "a negative length": b"POST /api/v1/namespaces HTTP/1.1\r\n" + end + b"Content-Length: -3\r\n\r\n",
        "a chunk too large for any number": b"POST /api/v1/namespaces HTTP/1.1\r\n" + end + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "a header without a colon": get + end + b"nothing\r\n\r\n",
        "a space before the colon": get + end + b"X : y\r\n\r\n",
        "a NUL in a header": get + end + b"X: a\x00b\r\n\r\n",
        "no version": b"GET /api/v1\r\n\r\n",
        "another protocol": b"HELLO\r\n\r\n",
        "HTTP/3 in words": b"GET /api/v1 HTTP/3.0\r\n" + end + b"\r\n",
        "an unknown method": b"DANCE /api/v1/namespaces HTTP/1.1\r\n" + end + b"\r\n",
        "a connect": b"CONNECT h:443 HTTP/1.1\r\n" + end + b"\r\n",
        "a bad token": get + b"Host: h\r\nAuthorization: Bearer nonsense\r\nConnection: close\r\n\r\n",
        "a token of no kind": get + b"Host: h\r\nAuthorization: Basic dTpw\r\nConnection: close\r\n\r\n",
    }
    different = {}
    for name, request in cases.items():
        answers = raw(real, request), raw(ours, request)
        if answers[0] != answers[1]:
            different[name] = answers
    # The real server hangs up before its answer to so long a body is read.
    long = b"POST /api/v1/namespaces HTTP/1.1\r\n" + end + b"Content-Type: application/json\r\nContent-Length: 4194304\r\n\r\n"
    assert raw(ours, long + b" " * 4194304) == 413
    # Heads beyond a megabyte: Go takes 1 MiB, we take less. Both refuse with 431 and go on.
    for side in servers:
        assert raw(side, get + end + b"X: " + b"y" * 2_000_000 + b"\r\n\r\n") == 431
    assert different == DIFFERENT, f"{different} instead of {DIFFERENT}"


def test_a_body_that_grows_when_unpacked(servers):  # noqa: F811
    """No server unpacks request bodies: a bomb stays a few kilobytes of nonsense."""
    bomb = gzip.compress(json.dumps(config_map(data={"a": "x" * 50_000_000})).encode())
    answers = [side.ask("POST", MAPS, bomb, {"Content-Encoding": "gzip"}) for side in servers]
    assert [a.status for a in answers] == [400, 400], [a.text for a in answers]
    assert all(isinstance(a, Answer) and a.body["reason"] == "BadRequest" for a in answers)
