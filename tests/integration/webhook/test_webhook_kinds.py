# SPDX-License-Identifier: Apache-2.0
"""Admission of all kinds: with any JSON in their fields, the response is a verdict."""

import base64
import copy
import json
import subprocess

import pytest
import yaml

from support import paths
from support.webhook import Webhook

WRONG = [None, True, 7, -1.5, 1e99, "text", "", "\x01\n'\"", [], ["x"], [None], [[]], {}, {"a": 1},
         {"name": 5}, [{"name": []}], "x" * 70000, [{}] * 200]


def crds():
    """The CustomResourceDefinitions of config/crd by kind."""
    found = {}
    for path in sorted((paths.TOP / "config" / "crd" / "bases").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text("utf-8"))
        found[crd["spec"]["names"]["kind"]] = crd
    return found


CRDS = crds()
TARGETS = [{"name": "orders", "engine": "mariadb", "host": "h",
            "admin": {"user": "u", "passwordFile": "/f"}}]


@pytest.fixture(scope="module")
def webhook(steward_binary, tmp_path_factory):
    """A `steward webhook` with the target that the sample names."""
    folder = tmp_path_factory.mktemp("kinds")
    config = folder / "steward.yaml"
    config.write_text(yaml.safe_dump({"targets": TARGETS}), "utf-8")
    one = Webhook(steward_binary, folder, ["--config", str(config)]).start().keep()
    yield one
    assert one.stop() == 0, one.log_text()


SAMPLES = {obj["kind"]: obj for path in sorted(paths.SAMPLES.glob("*.yaml"), reverse=True)
           for obj in reversed(list(yaml.safe_load_all(path.read_text("utf-8")))) if obj}


def sample(crd):
    """The kind's sample object, in a namespace."""
    obj = copy.deepcopy(SAMPLES[crd["spec"]["names"]["kind"]])
    obj["metadata"]["namespace"] = "shop"
    return obj


def webhook_path(crd, step):
    spec = crd["spec"]
    parts = [step, spec["group"].replace(".", "-"), spec["versions"][0]["name"],
             spec["names"]["singular"]]
    return "/" + "-".join(parts)


def review(crd, obj, old=None, operation="CREATE"):
    spec = crd["spec"]
    version = {"group": spec["group"], "version": spec["versions"][0]["name"]}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55",
        "kind": {**version, "kind": spec["names"]["kind"]},
        "resource": {**version, "resource": spec["names"]["plural"]},
        "name": "web", "namespace": "shop", "operation": operation, "userInfo": {"username": "jane"},
        "object": obj, "oldObject": old, "dryRun": False}}


def places(schema, at=()):
    """Each field below a schema, lists by their first element."""
    for name, field in (schema.get("properties") or {}).items():
        yield (*at, name)
        yield from places(field, (*at, name))
        if "items" in field:
            yield (*at, name, 0)
            yield from places(field["items"], (*at, name, 0))


def put(obj, place, value):
    """Sets a field, and creates the objects and lists on the path to it."""
    at = obj
    for step, following in zip(place, place[1:]):
        empty = [] if following == 0 else {}
        if isinstance(at, list):
            if not at or not isinstance(at[0], type(empty)):
                at[:1] = [empty]
        elif not isinstance(at.get(step), type(empty)):
            at[step] = empty
        at = at[step]
    if isinstance(at, list):
        at[:1] = [value]
    else:
        at[place[-1]] = value


FIELDS = [(kind, place) for kind, crd in CRDS.items()
          for place in places(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
                              ["properties"]["spec"])]


@pytest.mark.parametrize("kind, place", FIELDS,
                         ids=[f"{kind}.{'.'.join(map(str, place))}" for kind, place in FIELDS])
def test_field_of_wrong_type_gets_a_verdict(webhook, kind, place):
    """Both steps agree, an error names a field of spec, and the process survives."""
    crd = CRDS[kind]
    for value in WRONG:
        obj = sample(crd)
        put(obj["spec"], place, value)
        status, mutated = webhook.post(review(crd, obj), webhook_path(crd, "mutate"))
        assert status == 200, value
        status, reply = webhook.post(review(crd, obj), webhook_path(crd, "validate"))
        assert status == 200, value
        answer = reply["response"]
        assert mutated["response"]["allowed"] == answer["allowed"], value
        if answer["allowed"]:
            continue
        assert mutated["response"]["status"] == answer["status"], value
        assert "patch" not in mutated["response"]
        for cause in answer["status"]["details"]["causes"]:
            assert cause["field"].startswith("spec."), value


@pytest.mark.parametrize("kind", CRDS)
def test_spec_of_wrong_type_is_refused(webhook, kind):
    """A spec that is not an object is never repaired."""
    crd = CRDS[kind]
    for value in [v for v in WRONG if not isinstance(v, dict)]:
        obj = {**sample(crd), "spec": value}
        for step in ("mutate", "validate"):
            status, reply = webhook.post(review(crd, obj), webhook_path(crd, step))
            assert status == 200 and not reply["response"]["allowed"], value
            assert "patch" not in reply["response"]


@pytest.mark.parametrize("kind", CRDS)
@pytest.mark.parametrize("place", [("labels",), ("annotations",), ("labels", "target"), ("name",),
                                   ("finalizers",), ("deletionTimestamp",)], ids=str)
def test_metadata_of_wrong_type_gets_a_verdict(webhook, kind, place):
    """The API server refuses such objects itself; other clients get a verdict."""
    crd = CRDS[kind]
    for value in WRONG:
        obj = sample(crd)
        put(obj["metadata"], place, value)
        for step in ("mutate", "validate"):
            assert webhook.post(review(crd, obj), webhook_path(crd, step))[0] == 200, value


@pytest.mark.parametrize("elements", ["containers", "initContainers", "volumes"])
def test_template_element_without_a_name_is_refused(webhook, elements):
    """Elements that follow are compared with it by name."""
    crd = CRDS["App"]
    obj = sample(crd)
    obj["spec"]["podTemplate"] = {"spec": {elements: [{"image": "sidecar:1"}, {"name": "b"}]}}
    for step in ("mutate", "validate"):
        status, reply = webhook.post(review(crd, obj), webhook_path(crd, step))
        assert status == 200 and not reply["response"]["allowed"]
        assert {"reason": "FieldValueRequired", "message": "Required value",
                "field": f"spec.podTemplate.spec.{elements}[0].name"} in \
            reply["response"]["status"]["details"]["causes"]


@pytest.mark.parametrize("kind", CRDS)
def test_update_from_invalid_object_is_accepted(webhook, kind):
    """After any stored object, a valid one is accepted unless a field is immutable."""
    crd = CRDS[kind]
    for value in WRONG:
        for old in ({**sample(crd), "spec": value}, {**sample(crd), "status": value}):
            status, reply = webhook.post(review(crd, sample(crd), old, "UPDATE"),
                                         webhook_path(crd, "validate"))
            assert status == 200, value
            if not reply["response"]["allowed"]:
                for cause in reply["response"]["status"]["details"]["causes"]:
                    assert "immutable" in cause["message"], value


@pytest.mark.parametrize("kind", CRDS)
def test_deletions_are_never_refused(webhook, kind):
    """Not even if spec and status are not objects."""
    crd = CRDS[kind]
    for value in WRONG:
        old = {**sample(crd), "spec": value, "status": value}
        status, reply = webhook.post(review(crd, None, old, "DELETE"), webhook_path(crd, "validate"))
        assert status == 200 and reply["response"]["allowed"], value


@pytest.mark.parametrize("kind", CRDS)
def test_object_with_defaults_gets_an_empty_patch(webhook, kind):
    """The patch of an object with all its defaults is empty."""
    crd = CRDS[kind]
    obj = sample(crd)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name, field in schema["properties"].items():
        if "default" in field:
            obj["spec"].setdefault(name, field["default"])
    _, reply = webhook.post(review(crd, obj), webhook_path(crd, "mutate"))
    paths_given = [op["path"] for op in json.loads(decode(reply))] if "patch" in reply["response"] else []
    assert [p for p in paths_given if p.count("/") == 2 and schema["properties"]
            [p.split("/")[2]].get("default") is not None] == []


def decode(reply):
    """The JSON patch of a reply."""
    return base64.b64decode(reply["response"]["patch"])


def test_tested_kinds_are_those_printed(steward_binary):
    """The CRDs that steward prints are those tested here."""
    printed = subprocess.run([steward_binary, "print", "crds"], text=True, capture_output=True,
                             timeout=60, check=True).stdout
    kinds = [d["spec"]["names"]["kind"] for d in yaml.safe_load_all(printed) if d]
    assert sorted(kinds) == sorted(CRDS)
