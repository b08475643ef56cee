# SPDX-License-Identifier: Apache-2.0
"""Objects of 3 MiB at admission: for each field that can hold them, a review takes a fraction of a
second.

The cases are generated from the CRDs that steward prints, so that new fields are covered."""

import json
import subprocess
import time

import pytest
import yaml

from support import cpu
from support.paths import steward_binary

SIZE = 3 << 20
LIMIT_S = cpu.allowed(0.3)  # CPU of the whole process for one request, TLS included
ENTRY = 30     # bytes of one of many entries: keeps the limit on values in one review
NAME = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


def _kinds():
    text = subprocess.run([str(steward_binary()), "print", "crds"], check=True, capture_output=True).stdout
    for crd in yaml.safe_load_all(text):
        if crd:
            yield crd


def _fields(schema, path=()):
    """(path, schema) of all fields below a schema; a list's or a map's item is "*"."""
    for name, field in schema.get("properties", {}).items():
        yield path + (name,), field
        yield from _fields(field, path + (name,))
    for item in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(item, dict):
            yield path + ("*",), item
            yield from _fields(item, path + ("*",))


def _value(schema, index=0):
    """A small value of a field's type."""
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][index % len(schema["enum"])]
    if kind == "object":
        keys = schema.get("required", [])
        return {k: _value(schema["properties"][k], index) for k in keys if k in schema["properties"]}
    if kind == "array":
        return [_value(schema["items"], index)]
    return {"integer": 1, "boolean": True}.get(kind, f"v{index}")


def _entries(schema, size, count):
    """`count` entries of a list or a map, of `size` bytes together."""
    pad = max(size // count - 20, 1)
    if schema.get("type") == "array":
        item = schema["items"]
        if item.get("type") == "object":
            return [{**_value(item, i), "x": "x" * max(pad - 20, 1)} for i in range(count)]
        return [f"{'y' * pad}{i}" for i in range(count)]
    item = schema.get("additionalProperties")
    if isinstance(item, dict) and item.get("type") == "string":
        return {f"k{i}": "x" * pad for i in range(count)}
    return {f"{'k' * pad}{i}": _value(item, i) if isinstance(item, dict) else i for i in range(count)}


def _grown(schema, size):
    """(shape, function that makes the value) of values of `size` bytes for a field."""
    kind = schema.get("type")
    yield "unlike", lambda: {f"k{i:06}": "x" * 12 for i in range(size // ENTRY)}
    yield "numbers", lambda: [1] * (size // 2)
    if kind == "string" or "x-kubernetes-int-or-string" in schema:
        yield "text", lambda: "a" * size
        yield "slashes", lambda: "/" * size
        yield "escapes", lambda: "\u0001" * (size // 6)
    elif kind in ("array", "object"):
        most = schema.get("maxItems", schema.get("maxProperties", 1000))
        yield "many", lambda: _entries(schema, size, size // ENTRY)
        yield "full", lambda: _entries(schema, size, most)
        yield "few", lambda: _entries(schema, size, 7)
        if "x-kubernetes-preserve-unknown-fields" in schema:
            yield "deep", lambda: {"a": [{"b": {f"k{i}": [i] for i in range(size // ENTRY // 2)}}]}


def _put(schema, path, value):
    """A spec with `value` at `path`, and with the required fields around it."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if step == "*":
        if schema.get("type") == "array":
            return [_put(schema["items"], rest, value)]
        return {"key": _put(schema["additionalProperties"], rest, value)}
    around = _value(schema)
    around[step] = _put(schema["properties"][step], rest, value)
    return around


def _review(crd, spec, old=None):
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]["name"]
    group = crd["spec"]["group"]

    def whole(it):
        return it and {"apiVersion": f"{group}/{version}", "kind": names["kind"],
                       "metadata": {"name": "big", "namespace": "shop", "labels": {"target": "one"}},
                       "spec": it}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55",
        "kind": {"group": group, "version": version, "kind": names["kind"]},
        "resource": {"group": group, "version": version, "resource": names["plural"]},
        "name": "big", "namespace": "shop", "operation": "UPDATE" if old else "CREATE",
        "userInfo": {"username": "jane"}, "object": whole(spec), "oldObject": whole(old),
        "dryRun": False}}


def _path(crd, verb):
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]["name"]
    group = crd["spec"]["group"].replace(".", "-")
    return f"/{verb}-{group}-{version}-{names['kind'].lower()}"


def _post(door, crd, verb, body):
    """(CPU seconds, status, reply) of one review."""
    before = cpu.seconds(door.process.pid)
    status, reply = door.post(body, _path(crd, verb))
    return cpu.seconds(door.process.pid) - before, status, reply


def _ask(door, crd, verb, review):
    return _post(door, crd, verb, json.dumps(review).encode())


HERE = "@@here@@"


class _Texts:
    """A cache of JSON texts of grown values, shared by fields of one shape: to generate a text
    takes longer than its review."""

    def __init__(self):
        self.made = {}

    def of(self, field, size):
        like = json.dumps({k: v for k, v in field.items() if k != "description"}, sort_keys=True)
        for shape, make in _grown(field, size):
            key = (shape, size, "" if shape in ("unlike", "numbers") else like)
            if key not in self.made:
                self.made[key] = json.dumps(make()).encode()
            yield shape, self.made[key]


def _body(crd, spec, text, update):
    review = json.dumps(_review(crd, spec, spec if update else None)).encode()
    return review.replace(f'"{HERE}"'.encode(), text)


KINDS = {crd["spec"]["names"]["kind"]: crd for crd in _kinds()}


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.thorough("ten seconds and more") if kind.startswith("Etcd") else [])
    for kind in sorted(KINDS)])
def test_every_field_at_3_mib(door, kind):
    """Each field of a kind, grown in several ways, as a create and as an unchanged update."""
    crd = KINDS[kind]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    slow, asked, texts = [], 0, _Texts()
    door.keep()
    for path, field in [((), schema), *_fields(schema)]:
        if path[:1] == ("template",) and len(path) > 2:
            continue  # the spec of an EtcdCluster, which is tested itself
        spec = _put(schema, path, HERE)
        for size, shape, text in [(n, s, t) for n in (SIZE, SIZE // 2) for s, t in texts.of(field, n)]:
            update = size < SIZE
            cost, status, reply = _post(door, crd, "validate" if update else "mutate",
                                        _body(crd, spec, text, update))
            asked += 1
            assert status in (200, 400, 413), (path, shape, status, reply)
            if cost > LIMIT_S:
                slow.append((".".join(path), shape, "update" if update else "create", round(cost, 3)))
    assert asked > 20
    assert not slow, f"{len(slow)} of {asked}: {slow[:20]}"


def _app(**spec):
    return {"image": "nginx:1.25", **spec}


@pytest.mark.parametrize("spec", [
    pytest.param(_app(resources={"limits": {f"e.com/{NAME}{i}": "2" for i in range(20000)},
                                 "requests": {f"e.com/{NAME}{i}": "1" for i in range(20000)}}),
                 id="requests-against-limits"),
    pytest.param(_app(config={"environment": {f"{NAME}{i}": "x" for i in range(40000)}},
                      env=[{"name": f"{NAME}{i}", "value": "x"} for i in range(200)]),
                 id="env-against-environment"),
    pytest.param(_app(env=[{**{f"x{k}": k for k in range(600)}, "name": f"{NAME}{i}"}
                           for i in range(200)]), id="env-against-itself"),
])
def test_two_fields_that_are_compared(door, spec):
    """A tenant's object where each entry of one field is looked up among those of another."""
    crd = KINDS["App"]
    cost, status, reply = _ask(door, crd, "validate", _review(crd, spec))
    assert cost < LIMIT_S, (cost, status)
    assert status == 400 or not reply["response"]["allowed"] or "warnings" in reply["response"]


def test_others_are_answered_meanwhile(door):
    """Ten of the worst objects, each followed by a valid one, which is answered."""
    crd = KINDS["App"]
    spec = _app(resources={"limits": {f"e.com/{NAME}{i}": "2" for i in range(20000)},
                           "requests": {f"e.com/{NAME}{i}": "1" for i in range(20000)}})
    worst = json.dumps(_review(crd, spec)).encode()
    honest = json.dumps(_review(crd, _app())).encode()
    before = cpu.seconds(door.process.pid)
    start = time.monotonic()
    for _ in range(10):
        assert door.post(worst, _path(crd, "validate"))[0] in (200, 400)
        status, reply = door.post(honest, _path(crd, "validate"))
        assert status == 200 and reply["response"]["allowed"]
    assert cpu.seconds(door.process.pid) - before < 10 * LIMIT_S, time.monotonic() - start
