# SPDX-License-Identifier: Apache-2.0
"""How the API server treats a CustomResourceDefinition: lib/schema/crd/crd.c prints them, the webhook
and the controllers rely on what they refuse."""

import subprocess
import time

import pytest
import yaml

from support import paths, wait
from support.apiserver import TABLE

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def conditions(server, name):
    """{type: status} of a definition."""
    found = server.get(f"{CRDS}/{name}")["status"].get("conditions", [])
    return {c["type"]: c["status"] for c in found}


@pytest.fixture(scope="module")
def our_own(server):
    """Applies what steward print crds prints: [(definition, answer)]; removes what was new."""
    printed = subprocess.run([paths.steward_binary(), "print", "crds"], check=True,
                             capture_output=True, text=True).stdout
    definitions = list(yaml.safe_load_all(printed))
    answers = [server.apply(f"{CRDS}/{d['metadata']['name']}", d) for d in definitions]
    yield list(zip(definitions, answers))
    server.remove([f"{CRDS}/{definition['metadata']['name']}"
                   for definition, answer in zip(definitions, answers) if answer.status == 201])


def test_printed_definitions_are_accepted_unchanged(server, our_own):
    """steward print crds: all are accepted unchanged, without a warning, and served."""
    for definition, answer in our_own:
        name = definition["metadata"]["name"]
        assert answer.status in (200, 201) and answer.warnings == [], answer
        wait.until(f"{name} to be served",
                   lambda n=name: conditions(server, n).get("Established") == "True")
        assert conditions(server, name).get("NonStructuralSchema", "False") == "False"
        stored = server.get(f"{CRDS}/{name}")["spec"]["versions"]
        assert keeps(definition["spec"]["versions"], stored) == ""


def keeps(ours, theirs, path=""):
    """Where `theirs` lacks something of `ours`, or "".  `steward doctor` compares the same way."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if not isinstance(theirs, dict) or key not in theirs:
                return f"{path}.{key}"
            lost = keeps(value, theirs[key], f"{path}.{key}")
            if lost:
                return lost
        return ""
    if isinstance(ours, list):
        if len(ours) != len(theirs):
            return path
        return next(filter(None, (keeps(a, b, path + "[]") for a, b in zip(ours, theirs))), "")
    return "" if ours == theirs else path


def test_new_definition_is_not_served_at_once(server, space, things):
    """lib/kube/cache/reflector.c waits while a new resource answers 404, or 429 with "storage is
    (re)initializing", and then lists it."""
    crd = things.definition("later")
    path = f"{things.group_path('later')}/namespaces/{space.name}/laters"
    server.create(CRDS, crd)
    seen, deadline = [], time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            answer = server.ask("GET", path)
            seen.append(answer)
            if answer.status == 200:
                break
        for answer in seen[:-1]:
            assert answer.status in (404, 429), answer
            if answer.status == 429:
                assert "initializing" in answer.message and answer.headers["Retry-After"]
        assert seen[-1].status == 200 and seen[-1].body["items"] == []
        assert seen[-1].body["kind"] == "LaterList"
    finally:
        server.remove([f"{CRDS}/{crd['metadata']['name']}"])


def test_unknown_fields_are_pruned(server, space, things, does):
    """lib/schema: a field that the schema lacks never reaches the webhook's rules or the cache; a field
    with x-kubernetes-preserve-unknown-fields keeps all."""
    obj = things.object(space, spec={"unknown": 1, "raw": {"anything": [1, {"a": None}]}}, top=1)
    answer = server.ask("POST", things.path(space), obj)
    made = server.fine(answer)
    assert "top" not in made and "unknown" not in made["spec"]
    assert made["spec"]["raw"] == {"anything": [1, {"a": None}]}
    told = does("field-validation") == "dropped with a warning"
    assert any("unknown field" in w and "spec.unknown" in w for w in answer.warnings) == told


def test_schema_defaults_replace_absent_and_null(server, space, things):
    """lib/schema/crd/crd.c: defaults are there for the webhook; an explicit null counts as absent."""
    made = server.create(things.path(space), things.object(space, spec={"word": None, "list": [{}]}))
    assert made["spec"] == {"count": 2, "word": "a", "list": [{"port": 80}]}
    empty = server.create(things.path(space), things.object(space, "two", spec={}))
    assert empty["spec"] == {"count": 2, "word": "a"}
    missing = server.ask("POST", things.path(space), things.object(space, "three"))
    assert missing.status == 422 and ("FieldValueRequired", "spec") in missing.causes


@pytest.mark.parametrize("field, bad", [
    ("count", "two"), ("count", 1.5), ("count", 99), ("word", "c"), ("word", 1), ("amount", True),
    ("amount", "much"), ("list", [{"port": 80}, {"port": 80}]), ("list", {}), ("map", {"a": 1}),
    ("text", "x" * 9), ("text", "")])
def test_invalid_value_is_a_422_with_its_path(server, space, things, field, bad):
    """Bad values are a 422 with the field's path, so that the webhook need not check them."""
    refused = server.ask("POST", things.path(space), things.object(space, spec={field: bad}))
    assert refused.status == 422 and refused.reason == "Invalid", refused
    assert any(at.startswith(f"spec.{field}") for _, at in refused.causes), refused


@pytest.mark.parametrize("amount", [1, "1", "100m", "1Gi", "1.5"])
def test_int_or_string_accepts_quantities(server, space, things, amount):
    """lib/schema/crd/crd.c: quantities are x-kubernetes-int-or-string with a pattern for text."""
    made = server.create(things.path(space), things.object(space, spec={"amount": amount}))
    assert made["spec"]["amount"] == amount


def test_printer_columns_are_shown_in_order(server, space, things):
    """lib/schema/crd/crd.c: additionalPrinterColumns, in their order, with their priority; this is what
    kubectl get prints."""
    server.create(things.path(space), things.object(space, spec={"count": 5}))
    table = server.get(things.path(space), accept=TABLE)
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", 0), ("Count", "integer", 0), ("Word", "string", 1), ("Age", "date", 0)]
    assert table["rows"][0]["cells"][:3] == ["one", 5, "a"]


def filled(definitions, schema, name=""):
    """A value of this type with all of its members."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return filled(definitions, definitions[name], name)
    if name.endswith("intstr.IntOrString"):
        return 1
    if schema.get("type") == "array":
        return [filled(definitions, schema["items"])]
    if "additionalProperties" in schema:
        return {"a": filled(definitions, schema["additionalProperties"])}
    if "properties" in schema:
        return {key: filled(definitions, one) for key, one in schema["properties"].items()}
    return {"integer": 1, "boolean": True, "string": "1"}.get(schema.get("type"), {})


def test_members_of_a_pod_are_known(server, tmp_path):
    """lib/schema/field/core_types.c has each member that this server has, with its type: none is said to be
    unknown."""
    definitions = server.get("/openapi/v2")["definitions"]
    template = filled(definitions, {"$ref": "io.k8s.api.core.v1.PodTemplateSpec"})
    assert len(template["spec"]) > 30 and len(template["spec"]["containers"][0]) > 20
    template["unknown"] = template["spec"]["unknown"] = 1
    file = tmp_path / "app.yaml"
    file.write_text(yaml.safe_dump({
        "apiVersion": "mycompany.com/v1", "kind": "App", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"image": "shop:1", "podTemplate": template}}), "utf-8")
    said = subprocess.run([paths.steward_binary(), "validate", "--lenient", file], check=False,
                          capture_output=True, text=True).stdout
    unknown = [line for line in said.splitlines() if "passed on unchanged" in line]
    assert len(unknown) == 2 and all(".unknown" in line for line in unknown), unknown
    assert not [line for line in said.splitlines() if ": must be a" in line], said
