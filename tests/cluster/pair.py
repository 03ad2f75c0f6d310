"""Asks two API servers the same questions and compares the answers field by field."""
import http.client
import json
import re
import ssl
import urllib.parse

import pytest

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
CLUSTER_IP = re.compile(r"\b10\.96\.\d+\.\d+\b")
REVISION = re.compile(r'(resourceVersion: )"\d+"')
GENERATED = re.compile(r"\b(kube-api-access|gen)-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
AGE = re.compile(r"(\d+(y|d|h|m|s|ms)(\d+(d|h|m|s))?|<invalid>)")


class Side:
    """One server. Remembers answers by name, so that a later request can quote this server's own
    uids and revisions."""

    def __init__(self, name, address, token):
        self.name = name
        url = urllib.parse.urlsplit(address)
        self.host, self.port, self.tls = url.hostname, url.port, url.scheme == "https"
        self.token = token
        self.saved = {}
        self.connection = None

    def ask(self, method, path, body, headers):
        text = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
        if isinstance(text, str):
            text = text.encode()
        all_headers = {"Authorization": f"Bearer {self.token}", "User-Agent": "differential/1.0"}
        if text is not None:
            all_headers["Content-Type"] = "application/json"
        all_headers.update(headers or {})
        for attempt in (0, 1):
            try:
                if self.connection is None:
                    self.connection = (
                        http.client.HTTPSConnection(self.host, self.port, timeout=90,
                                                    context=ssl._create_unverified_context())
                        if self.tls else http.client.HTTPConnection(self.host, self.port, timeout=90))
                self.connection.request(method, path, text, all_headers)
                answer = self.connection.getresponse()
                data = answer.read()
                return Answer(answer.status, answer.headers, data)
            except (http.client.HTTPException, ConnectionError):
                self.connection = None
                if attempt:
                    raise


class Answer:
    def __init__(self, status, headers, data):
        self.status = status
        self.type = headers.get("Content-Type", "").split(";")[0]
        self.warnings = headers.get_all("Warning") or []
        self.text = data.decode(errors="replace")
        try:
            self.body = json.loads(self.text)
        except ValueError:
            lines = self.text.splitlines()
            try:  # a watch: one event per line
                self.body = [json.loads(line) for line in lines] if lines else self.text
            except ValueError:
                self.body = self.text


def clean_text(text):
    text = UUID.sub("<uid>", text)
    text = TIME.sub("<time>", text)
    text = CLUSTER_IP.sub("<cluster-ip>", text)
    text = REVISION.sub(r'\1"<revision>"', text)
    return GENERATED.sub(r"\1-<suffix>", text)


def owner_of(entry):
    return [str(entry.get(part, "")) for part in ("operation", "subresource", "manager", "apiVersion")]


def clean(value, key=""):
    """The value without what two servers can never agree on: uids, times, revisions."""
    if isinstance(value, dict):
        if value.get("kind") == "Table":
            value = dict(value, rows=[dict(r, cells=["<age>" if isinstance(c, str) and AGE.fullmatch(c) else c
                                                     for c in r["cells"]])
                                      for r in value.get("rows") or []])
        out = {}
        for name, item in value.items():
            if name in ("resourceVersion",) and isinstance(item, str) and item.isdigit():
                out[name] = "<revision>"
            elif name == "continue" and isinstance(item, str):
                out[name] = "<continue>"
            elif name == "storageVersionHash":
                out[name] = item
            elif name == "managedFields" and isinstance(item, list):
                # Sorted by time, to the second: whether a second ends between two requests is chance.
                out[name] = sorted((clean(entry) for entry in item), key=owner_of)
            elif name == "serverAddress":
                out[name] = "<address>"
            else:
                out[clean_text(name)] = clean(item, name)
        return out
    if isinstance(value, list):
        return [clean(item, key) for item in value]
    if isinstance(value, str):
        return clean_text(value)
    return value


def differences(a, b, path=""):
    """Lines like `.spec.replicas: 1 | 2`, real server first; empty where both agree."""
    if isinstance(a, dict) and isinstance(b, dict):
        out = []
        for key in list(a) + [k for k in b if k not in a]:
            at = f"{path}.{key}"
            if key not in b:
                out.append(f"{at}: {short(a[key])} | absent")
            elif key not in a:
                out.append(f"{at}: absent | {short(b[key])}")
            else:
                out += differences(a[key], b[key], at)
        return out
    if path == ".resources" and isinstance(a, list) and isinstance(b, list):  # of discovery: by their names
        left, right = ({item["name"]: item for item in side} for side in (a, b))
        both = [[item["name"] for item in side if item["name"] in left and item["name"] in right] for side in (a, b)]
        return differences(left, right, path) + ([] if both[0] == both[1] else [f"{path}: {both[0]} | {both[1]}"])
    if isinstance(a, list) and isinstance(b, list):
        out = []
        for i in range(max(len(a), len(b))):
            at = f"{path}[{i}]"
            if i >= len(b):
                out.append(f"{at}: {short(a[i])} | absent")
            elif i >= len(a):
                out.append(f"{at}: absent | {short(b[i])}")
            else:
                out += differences(a[i], b[i], at)
        return out
    if a != b or type(a) is not type(b):
        return [f"{path or '.'}: {short(a)} | {short(b)}"]
    return []


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 700 else text[:700] + "..."


class Pair:
    """Collects every difference of a run, so that one test can show them all."""

    def __init__(self, real, ours, explained):
        self.real, self.ours = real, ours
        self.explained = explained
        self.used = set()
        self.asked = 0
        self.failures = []

    def ask(self, method, path, body=None, headers=None, save=None, compare=True):
        """`body` and `path` may be functions of a side's saved answers. Gives the real answer."""
        answers = []
        for side in (self.real, self.ours):
            its_body = body(side.saved) if callable(body) else body
            its_path = path(side.saved) if callable(path) else path
            answer = side.ask(method, its_path, its_body, headers)
            if save:
                side.saved[save] = answer.body
            answers.append(answer)
        self.asked += 1
        if compare:
            self.compare(f"{method} {path(self.real.saved) if callable(path) else path}", body, *answers)
        return answers[0]

    def compare(self, what, body, real, ours):
        found = []
        if real.status != ours.status:
            found.append(f"status: {real.status} | {ours.status}")
        if real.type != ours.type:
            found.append(f"content type: {real.type} | {ours.type}")
        found += differences(clean(real.warnings), clean(ours.warnings), "warnings")
        found += differences(clean(real.body), clean(ours.body))
        found = [line for line in found if not self.is_explained(what, line)]
        if found:
            sent = "" if body is None or callable(body) else "\n    sent " + (
                body if isinstance(body, str) else short(body) if not isinstance(body, bytes) else repr(body[:300]))
            self.failures.append(f"{what}{sent}\n" + "\n".join(f"    {line}" for line in found[:12]))

    def is_explained(self, what, line):
        for reason in self.explained:
            if re.search(reason["request"], what) and re.search(reason["difference"], line):
                self.used.add(reason["why"])
                return True
        return False

    def check(self):
        print(f"{self.asked} requests, {len(self.failures)} with differences")
        if self.failures:
            pytest.fail(f"{len(self.failures)} of {self.asked} requests differ (real | skiff):\n"
                        + "\n".join(self.failures), pytrace=False)
