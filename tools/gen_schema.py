#!/usr/bin/env python3
"""Writes src/api/builtin.schema from the OpenAPI v3 documents of Kubernetes.

  tools/gen_schema.py DIR MODULES > src/api/builtin.schema

DIR is api/openapi-spec/v3 of the Go module k8s.io/kubernetes at VERSION; get it with
`go mod download -json k8s.io/kubernetes@VERSION`. MODULES is the folder that has the modules api,
apimachinery, apiextensions-apiserver and kube-aggregator of the same release (k8s.io in the module
cache): how Go types are written to JSON, pointers and omitempty, is told by the source only. Only facts are taken:
names, types, list and patch properties. To serve another kind, add its definition to ROOTS and run
this again.
The form of the output is described in src/schema/definitions.h.
"""
import glob
import json
import os
import re
import sys

VERSION = "v1.34.4"
MODULE_VERSION = "v0" + VERSION[2:]
CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
ROOTS = [CORE + "PodTemplateSpec"] + [
    f"io.k8s.api.{group}.{name}"
    for group, names in {
        "core.v1": "Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume "
                   "PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret "
                   "Service ServiceAccount",
        "admissionregistration.v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
        "apps.v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
        "authentication.v1": "SelfSubjectReview TokenRequest TokenReview",
        "authorization.v1": "LocalSubjectAccessReview SelfSubjectAccessReview "
                            "SelfSubjectRulesReview SubjectAccessReview",
        "autoscaling.v1": "HorizontalPodAutoscaler Scale",
        "autoscaling.v2": "HorizontalPodAutoscaler",
        "batch.v1": "CronJob Job",
        "certificates.v1": "CertificateSigningRequest",
        "coordination.v1": "Lease",
        "discovery.v1": "EndpointSlice",
        "events.v1": "Event",
        "networking.v1": "Ingress IngressClass NetworkPolicy",
        "node.v1": "RuntimeClass",
        "policy.v1": "Eviction PodDisruptionBudget",
        "rbac.v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
        "scheduling.v1": "PriorityClass",
        "storage.v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    }.items() for name in names.split()
] + [META + name for name in "DeleteOptions LabelSelector ObjectMeta Status".split()] + [
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
]
REF = "#/components/schemas/"
SCALARS = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}


def reference(schema):
    for one in [schema] + schema.get("allOf", []):
        if "$ref" in one:
            return one["$ref"][len(REF):]
    return None


def type_of(schema):
    """The type word of one place; adds nothing but facts."""
    name = reference(schema)
    if name:
        return "@" + name
    kind = schema.get("type")
    if kind == "array":
        return "[" + type_of(schema["items"]) + "]"
    if kind == "object" and "additionalProperties" in schema:
        return "{" + type_of(schema["additionalProperties"]) + "}"
    if kind == "object":
        return "object" if schema.get("properties") else "o"
    if kind in SCALARS:
        return SCALARS[kind] + (":" + schema["format"] if schema.get("format") else "")
    if schema.get("format") == "int-or-string":
        return "int-or-string"
    if {one.get("type") for one in schema.get("oneOf", [])} == {"string", "number"}:
        return "quantity"
    return "x"


def keywords(schema):
    out = []
    # A default that is empty says only that a Go struct has a zero value.
    if schema.get("default") not in (None, {}, "", 0, False):
        out.append("default=" + json.dumps(schema["default"], separators=(",", ":")))
    if schema.get("x-kubernetes-list-type", "atomic") != "atomic":
        out.append("lt=" + schema["x-kubernetes-list-type"])
    if "x-kubernetes-list-map-keys" in schema:
        out.append("lk=" + ",".join(schema["x-kubernetes-list-map-keys"]))
    if schema.get("x-kubernetes-map-type") == "atomic":
        out.append("mt=atomic")
    if "x-kubernetes-patch-merge-key" in schema:
        out.append("pk=" + schema["x-kubernetes-patch-merge-key"])
    if "x-kubernetes-patch-strategy" in schema:
        out.append("ps=" + schema["x-kubernetes-patch-strategy"])
    return out


def references(schema):
    """Every definition that a schema names."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"][len(REF):]
        schema = schema.values()
    elif not isinstance(schema, list):
        return
    for inner in schema:
        yield from references(inner)


def go_folder(name):
    """Where the Go type of a definition is declared, and what it is called there."""
    package, _, kind = name.rpartition(".")
    for prefix, module, inner in (
            ("io.k8s.api.", "api", ""),
            ("io.k8s.apimachinery.pkg.", "apimachinery", "pkg/"),
            ("io.k8s.apiextensions-apiserver.pkg.", "apiextensions-apiserver", "pkg/"),
            ("io.k8s.kube-aggregator.pkg.", "kube-aggregator", "pkg/")):
        if package.startswith(prefix):
            path = inner + package[len(prefix):].replace(".", "/")
            return f"{module}@{MODULE_VERSION}/{path}", kind
    raise SystemExit(f"nobody knows where {name} is declared")


STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
FIELD = re.compile(r'^\s*(?:(\w+)\s+)?([\w.*\[\]]+)\s+`[^`]*json:"([^"]*)"', re.M)


def go_structs(modules, folder, cache={}):
    if folder not in cache:
        cache[folder] = {}
        for path in sorted(glob.glob(os.path.join(modules, folder, "*.go"))):
            if not path.endswith("_test.go"):
                with open(path, encoding="utf-8") as file:
                    cache[folder].update(STRUCT.findall(file.read()))
    return cache[folder]


def marks(modules, folder, kind):
    """JSON name -> how Go writes it: ~ even where it is zero, * a pointer."""
    out = {}
    for _, go_type, tag in FIELD.findall(go_structs(modules, folder).get(kind, "")):
        name, *options = tag.split(",")
        if "inline" in options or not name:
            if "." not in go_type:  # metav1.TypeMeta: apiVersion and kind are always there
                out.update(marks(modules, folder, go_type))
        elif name != "-":
            # A struct is never empty for Go, so omitempty means nothing to it.
            out[name] = ("*" if go_type.startswith("*") else "") + (
                "~" if "omitempty" not in options else "") + (
                "?" if "omitzero" in options else "")
    return out


def lines(name, schema, modules):
    yield " ".join([name, type_of(schema)] + keywords(schema))
    required = schema.get("required", [])
    written = marks(modules, *go_folder(name)) if schema.get("properties") else {}
    for key, place in sorted(schema.get("properties", {}).items()):
        mark = ("!" if key in required else "") + written.get(key, "")
        yield " " + " ".join([key + mark, type_of(place)] + keywords(place))


def main():
    definitions = {}
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
        with open(path, encoding="utf-8") as file:
            definitions.update(json.load(file).get("components", {}).get("schemas", {}))
    wanted, open_names = set(), list(ROOTS)
    while open_names:
        name = open_names.pop()
        if name not in wanted:
            wanted.add(name)
            open_names.extend(references(definitions[name]))
    print(f"# Made by tools/gen_schema.py from k8s.io/kubernetes {VERSION}.")
    for name in sorted(wanted):
        print("\n".join(lines(name, definitions[name], sys.argv[2])))


main()
