#!/usr/bin/env python3
"""Writes src/api/builtin.fields: the protobuf field numbers of the definitions in builtin.schema.

  tools/gen_fields.py MODULES > src/api/builtin.fields

MODULES is the folder k8s.io of Go's module cache with api, apimachinery,
apiextensions-apiserver and kube-aggregator at VERSION. Only facts are taken from the types' tags: JSON names and numbers. To be run again whenever
builtin.schema has new definitions. The form of the output is described in src/api/fields.h.
"""
import glob
import os
import re
import sys

VERSION = "v0.34.4"
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/api/builtin.schema")
# The module whose types have definitions of a name prefix.
MODULES = {
    "io.k8s.api.": "api",
    "io.k8s.apimachinery.": "apimachinery",
    "io.k8s.apiextensions-apiserver.": "apiextensions-apiserver",
    "io.k8s.kube-aggregator.": "kube-aggregator",
}
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.S | re.M)
FIELD = re.compile(r"^\t(?:\w+\s+)?([\w.*\[\]]+)\s+`([^`]*)`", re.M)
TAG = re.compile(r'(\w+):"([^"]*)"')


def folder_of(modules, name):
    for prefix, module in MODULES.items():
        if name.startswith(prefix):
            path = name[len(prefix):].rsplit(".", 1)[0].replace(".", "/")
            return os.path.join(modules, f"{module}@{VERSION}", path)
    return None


def structs_of(folder, cache={}):
    """Go name -> list of (JSON name or "" where inlined, number, pointer, Go type)."""
    if folder in cache:
        return cache[folder]
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.go"))):
        if path.endswith(("_test.go", "generated.pb.go")):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, body in STRUCT.findall(text):
            fields = []
            for kind, tags in FIELD.findall(body):
                tags = dict(TAG.findall(tags))
                if "protobuf" in tags and "json" in tags:
                    fields.append((tags["json"].split(",")[0], tags["protobuf"].split(",")[1],
                                   kind.startswith("*"), kind))
            found[name] = fields
    cache[folder] = found
    return found


def words(modules, folder, struct, outer=""):
    for name, number, pointer, kind in structs_of(folder).get(struct, []):
        if name == "-":
            continue
        if name:
            yield f"{name}={outer}{number}{'?' if pointer else ''}"
        else:
            yield from words(modules, folder, kind.split(".")[-1], f"{outer}{number}.")


def main():
    modules = sys.argv[1]
    print(f"# Made by tools/gen_fields.py from k8s.io/api {VERSION} and its sisters.")
    with open(SCHEMA, encoding="utf-8") as file:
        names = [line.split()[0] for line in file if line[0] not in " #\n"]
    for name in names:
        folder = folder_of(modules, name)
        fields = list(words(modules, folder, name.rsplit(".", 1)[1])) if folder else []
        if fields:
            print(name, *fields)


main()
