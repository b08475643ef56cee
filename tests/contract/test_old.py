# SPDX-License-Identifier: Apache-2.0
"""Changes of objects, judged by an API server without webhooks and by `steward validate --old`.

The old objects were stored before the CRD had a schema, so that they may break it.  The API server
may accept more than steward, and never less; what it accepts only without a webhook is listed."""

import copy
import json
import subprocess

import pytest
import yaml

from support import paths, wait

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "old-objects"
RATCHETS = 30  # from this minor version on a value that has not changed may break the schema
WEB = {"image": "nginx:1.25", "pageContentHtml": "x"}
NEXT = {**WEB, "image": "nginx:1.26"}
APP = {"image": "nginx:1.25"}
SECRETS = [{"name": f"a{i}"} for i in range(500)]
BAD_ENV = {"name": "A", "value": 5}

# kind, old spec, new spec, whether only a webhook refuses it
CASES = {
    "type": ("MyWeb", {**WEB, "nodePortNumber": "x"}, {**NEXT, "nodePortNumber": "x"}, False),
    "other type": ("MyWeb", {**WEB, "nodePortNumber": "x"}, {**WEB, "nodePortNumber": "y"}, False),
    "required": ("MyWeb", {"pageContentHtml": "x"}, {"pageContentHtml": "y"}, False),
    "required, same spec": ("MyWeb", {"pageContentHtml": "x"}, {"pageContentHtml": "x"}, False),
    "null": ("MyWeb", {**WEB, "image": None}, {**WEB, "image": None, "replicas": 2}, False),
    "enum": ("MyWeb", {**WEB, "contentUpdate": "no"}, {**NEXT, "contentUpdate": "no"}, False),
    "maximum": ("MyWeb", {**WEB, "replicas": 1000}, {**NEXT, "replicas": 1000}, False),
    "long list": ("MyWeb", {**WEB, "imagePullSecrets": SECRETS},
                  {**WEB, "imagePullSecrets": SECRETS, "image": "nginx:1.26"}, False),
    "other long list": ("MyWeb", {**WEB, "imagePullSecrets": SECRETS},
                        {**WEB, "imagePullSecrets": SECRETS[1:]}, False),
    "element": ("App", {**APP, "env": [BAD_ENV]}, {**APP, "env": [BAD_ENV, {"name": "B", "value": "x"}]}, False),
    "moved element": ("App", {**APP, "env": [BAD_ENV]},
                      {**APP, "env": [{"name": "B", "value": "x"}, BAD_ENV]}, True),
    "element of another key": ("App", {**APP, "env": [BAD_ENV]}, {**APP, "env": [{"name": "B", "value": 5}]},
                               False),
    "element without its key": ("App", {**APP, "env": [{"value": "x"}]},
                                {**APP, "env": [{"value": "x"}], "image": "nginx:1.26"}, False),
    "entry of a map": ("App", {**APP, "config": {"environment": {"a": 5}}},
                       {**APP, "config": {"environment": {"a": 5, "b": "x"}}}, False),
    "renamed entry of a map": ("App", {**APP, "config": {"environment": {"a": 5}}},
                               {**APP, "config": {"environment": {"c": 5}}}, False),
    "no object": ("MyWeb", 5, 5, False),
    "unknown field": ("MyWeb", {**WEB, "x": 1}, {**WEB, "x": 1, "image": "nginx:1.26"}, False),
}
METADATA = {
    "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5, "uid": "another",
    "resourceVersion": "1", "generation": 99, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x",
    "finalizers": ["example.com/a"],
}


def _definitions():
    text = subprocess.run([paths.steward_binary(), "print", "crds"], check=True, capture_output=True).stdout
    return {d["spec"]["names"]["kind"]: d for d in yaml.safe_load_all(text)
            if d and d["spec"]["names"]["kind"] in ("MyWeb", "App")}


def _without_schema(definition):
    loose = copy.deepcopy(definition)
    for version in loose["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return loose


def _type_of(definition):
    spec = definition["spec"]
    version = f"{spec['group']}/{spec['versions'][0]['name']}"
    return version, f"/apis/{version}/namespaces/{NAMESPACE}/{spec['names']['plural']}"


@pytest.fixture(name="stored", scope="module")
def stored_objects(server):
    """{case: (object as it is stored, path)}; the CRDs have their schema again."""
    server.ask("POST", "/api/v1/namespaces",
               {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    definitions, stored = _definitions(), {}

    def install(make, checks):
        for kind, definition in definitions.items():
            server.fine(server.apply(f"{CRDS}/{definition['metadata']['name']}", make(definition)))
            version, path = _type_of(definition)
            probe = {"apiVersion": version, "kind": kind, "metadata": {"name": "probe"},
                     "spec": {"unknown": {}}}
            wait.until("the schema to be in force", lambda p=path, o=probe: server.ask(
                "POST", f"{p}?dryRun=All", o).status == (422 if checks else 201))
    install(_without_schema, False)
    for i, (case, (kind, old, _, _)) in enumerate({**CASES, "": ("MyWeb", WEB, None, False)}.items()):
        version, path = _type_of(definitions[kind])
        answer = server.ask("POST", path, {"apiVersion": version, "kind": kind, "metadata": {"name": f"o{i}"},
                                           "spec": old})
        assert answer.status == 201, (case, answer)
        stored[case] = answer.body, f"{path}/o{i}"
    install(lambda d: d, True)
    yield stored
    server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    server.remove([f"{CRDS}/{definition['metadata']['name']}" for definition in definitions.values()])


def _judge(server, tmp_path, old, path, new):
    """(the API server's answer to the change, the report of steward)"""
    answer = server.ask("PUT", f"{path}?dryRun=All&fieldValidation=Strict", {
        **new, "metadata": {"resourceVersion": old["metadata"]["resourceVersion"], **new["metadata"]}})
    for name, thing in (("old", old), ("new", new)):
        (tmp_path / f"{name}.json").write_text(json.dumps(thing))
    done = subprocess.run([paths.steward_binary(), "validate", "--old", tmp_path / "old.json",
                           tmp_path / "new.json"], capture_output=True, text=True, timeout=60, check=False)
    return answer, done


@pytest.mark.parametrize("case", CASES)
def test_change_of_object_against_the_schema_is_judged_alike(server, stored, tmp_path, case):
    old, path = stored[case]
    _, _, spec, by_webhook = CASES[case]
    new = {**old, "metadata": {"name": old["metadata"]["name"], "namespace": NAMESPACE}, "spec": spec}
    answer, done = _judge(server, tmp_path, old, path, new)
    accepted = answer.status == 200
    if server.minor < RATCHETS:
        return  # it refuses all that breaks the schema, and may know no strict check of fields
    assert (done.returncode == 0) == (accepted and not by_webhook), (answer, done.stdout)


@pytest.mark.parametrize("name", METADATA)
def test_server_set_metadata_in_a_manifest_is_judged_alike(server, stored, tmp_path, name):
    old, path = stored[""]
    new = {**old, "metadata": {"name": old["metadata"]["name"], "namespace": NAMESPACE, name: METADATA[name]},
           "spec": NEXT}
    answer, done = _judge(server, tmp_path, old, path, new)
    assert (done.returncode == 0) == (answer.status == 200), (answer, done.stdout)
