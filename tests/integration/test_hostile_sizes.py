# SPDX-License-Identifier: Apache-2.0
"""Large input.  Objects of 3 MiB at admission: for each field that can hold them, a review takes a
fraction of a second.  Many objects for `steward validate`: four times as many take four times as long.

The cases at admission are generated from the CRDs that steward prints, so that new fields are covered."""

import json
import os
import subprocess
import time

import pytest
import yaml

from support import cpu, paths
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


def _post(webhook, crd, verb, body):
    """(CPU seconds, status, reply) of one review."""
    before = cpu.seconds(webhook.process.pid)
    status, reply = webhook.post(body, _path(crd, verb))
    return cpu.seconds(webhook.process.pid) - before, status, reply


def _ask(webhook, crd, verb, review):
    return _post(webhook, crd, verb, json.dumps(review).encode())


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
def test_review_of_3_mib_field_is_quick(webhook, kind):
    """Each field of a kind, grown in several ways, as a create and as an unchanged update."""
    crd = KINDS[kind]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    slow, asked, texts = [], 0, _Texts()
    webhook.keep()
    for path, field in [((), schema), *_fields(schema)]:
        if path[:1] == ("template",) and len(path) > 2:
            continue  # the spec of an EtcdCluster, which is tested itself
        spec = _put(schema, path, HERE)
        for size, shape, text in [(n, s, t) for n in (SIZE, SIZE // 2) for s, t in texts.of(field, n)]:
            update = size < SIZE
            cost, status, reply = _post(webhook, crd, "validate" if update else "mutate",
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
def test_review_comparing_two_large_fields_is_quick(webhook, spec):
    """A tenant's object where each entry of one field is looked up among those of another."""
    crd = KINDS["App"]
    cost, status, reply = _ask(webhook, crd, "validate", _review(crd, spec))
    assert cost < LIMIT_S, (cost, status)
    assert status == 400 or not reply["response"]["allowed"] or "warnings" in reply["response"]


def test_large_reviews_do_not_delay_others(webhook):
    """Ten of the worst objects, each followed by a valid one, which is answered."""
    crd = KINDS["App"]
    spec = _app(resources={"limits": {f"e.com/{NAME}{i}": "2" for i in range(20000)},
                           "requests": {f"e.com/{NAME}{i}": "1" for i in range(20000)}})
    worst = json.dumps(_review(crd, spec)).encode()
    honest = json.dumps(_review(crd, _app())).encode()
    before = cpu.seconds(webhook.process.pid)
    start = time.monotonic()
    for _ in range(10):
        assert webhook.post(worst, _path(crd, "validate"))[0] in (200, 400)
        status, reply = webhook.post(honest, _path(crd, "validate"))
        assert status == 200 and reply["response"]["allowed"]
    assert cpu.seconds(webhook.process.pid) - before < 10 * LIMIT_S, time.monotonic() - start


# --- validate

GROUP = "operator.k8s-summit.org/v1"
MANY = 10000
MANY_S = cpu.allowed(2)
ALL = ("text", "json", "junit", "sarif")


def _myweb(i, **more):
    return {"apiVersion": GROUP, "kind": "MyWeb", "metadata": {"name": f"web{i}", "namespace": "shop"},
            "spec": {"image": "nginx:1.25", "pageContentHtml": "hi", **more}}


def _each(n, make):
    return "".join(make(i) for i in range(n))


def _block(i):
    return (f"---\n# Source: t{i}.yaml\napiVersion: {GROUP}\nkind: MyWeb\nmetadata:\n  name: web{i}\n"
            "spec:\n  image: nginx:1.25\n  pageContentHtml: hi\n")


def _list(n, make=_myweb):
    items = _each(n, lambda i: f"- {json.dumps(make(i))}\n")
    return f"apiVersion: v1\nkind: List\nitems:\n{items}"


SHAPES = {  # name: (text of `n` objects, the part of MANY that it takes, forms)
    "list": (_list, 1, ALL),
    "list-of-one-line": (lambda n: json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        _myweb(i) for i in range(n)]}), 1, ALL),
    "documents": (lambda n: _each(n, _block), 1, ALL),
    "JSON-after-blanks": (lambda n: "\n" * n * 10 + _each(n, lambda i: f" {json.dumps(_myweb(i))}\n"), 1,
                          ("text",)),
    "JSON-on-one-line": (lambda n: _each(n, lambda i: json.dumps(_myweb(i))), 1, ("text",)),
    "misspelt-kinds": (lambda n: _list(n, lambda i: {**_myweb(i), "kind": f"MyWeb{i % 10}"}), 1, ("text",)),
    "same-name": (lambda n: _list(n, lambda _: _myweb(0)), 1, ("text",)),
    "all-findings": (lambda n: _list(n, lambda i: _myweb(i, **{f"replicax{k}": 1 for k in range(101)})), 0.02,
                     ALL),
    "keys-of-dots": (lambda n: _list(n, lambda i: _myweb(i, **{".a[b]" * 100 + str(k): 1 for k in range(50)})),
                     0.005, ("text", "json")),
    "one-object": (lambda n: json.dumps(_myweb(0, **{f"x{k}": {f"y{k}": 1} for k in range(n)})), 1, ("text",)),
    "other-kinds": (lambda n: _each(n, lambda i: f"---\n{{apiVersion: v1, kind: A, metadata: {{name: a{i}}}}}\n"),
                    3, ("text",)),
    "empty-documents": (lambda n: "---\n" * n, 10, ("text",)),
    "comments": (lambda n: "# a\n" * n, 10, ("text",)),
}


def _validate(binary, folder, *args):
    """CPU seconds of one call."""
    with open(folder / "out", "wb") as out:
        process = subprocess.Popen([binary, "validate", *args], cwd=folder, stdout=out, stderr=out)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            process.returncode = 0  # it has been waited for
    assert os.waitstatus_to_exitcode(status) in (0, 1, 2)
    return usage.ru_utime + usage.ru_stime


def _check_linear(few, many):
    assert many < MANY_S, (few, many)
    assert many < 8 * max(few, 0.1), (few, many)


@pytest.mark.parametrize("name, form", [(name, form) for name, shape in SHAPES.items() for form in shape[2]])
def test_validate_takes_linear_time(steward_binary, tmp_path, name, form):
    make, part, _ = SHAPES[name]
    costs = []
    for n in (MANY // 4, MANY):
        (tmp_path / "in.yaml").write_text(make(max(int(n * part), 1)))
        costs.append(_validate(steward_binary, tmp_path, "-o", form, "in.yaml"))
    _check_linear(*costs)


def test_validate_compares_with_old_objects_in_linear_time(steward_binary, tmp_path):
    costs = []
    for n in (MANY // 4, MANY):
        (tmp_path / "old.yaml").write_text(_list(n))
        (tmp_path / "in.yaml").write_text(_list(n, lambda i: _myweb(n - i - 1, replicas=2)))
        costs.append(_validate(steward_binary, tmp_path, "--old", "old.yaml", "in.yaml"))
        assert f"{n} objects: {n} accepted, 0 refused" in (tmp_path / "out").read_text()
    _check_linear(*costs)


def test_validate_reads_many_files_in_linear_time(steward_binary, tmp_path):
    costs = []
    for n in (MANY // 40, MANY // 10):
        folder = tmp_path / str(n)
        folder.mkdir()
        for i in range(n):
            (folder / f"{i}.yaml").write_text(_block(i))
        costs.append(_validate(steward_binary, tmp_path, str(n)))
    _check_linear(*costs)


def _validate_in_60_mb(binary, folder, form):
    """A call with 60 MB of addresses."""
    return subprocess.run(
        ["bash", "-c", 'ulimit -v 60000; exec "$@"', "-", binary, "validate", "-o", form, "in.json"],
        cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ALL)
def test_reports_of_many_objects_are_complete_with_little_memory(steward_binary, tmp_path, form):
    """3 MB of objects of other kinds, all of which are in the report, in 60 MB of addresses."""
    if paths.sanitizer():
        pytest.skip("a sanitizer takes more memory")
    (tmp_path / "in.json").write_text('{"apiVersion":"v1","kind":"A"}' * 100000)
    done = _validate_in_60_mb(steward_binary, tmp_path, form)
    assert done.returncode == 0, done.stderr
    if form == "json":
        assert len(json.loads(done.stdout)["objects"]) == 100000


def test_report_without_memory_is_an_error(steward_binary, tmp_path):
    """What is missing in a report looks as if it were right."""
    if paths.sanitizer():
        pytest.skip("a sanitizer takes more memory")
    (tmp_path / "in.json").write_text('{"apiVersion":"v1","kind":"A"}' * 400000)
    done = _validate_in_60_mb(steward_binary, tmp_path, "json")
    assert (done.returncode, done.stderr) == (2, "there is no memory for the report\n")
