# SPDX-License-Identifier: Apache-2.0
"""Random objects, judged by `steward validate` and by an API server that has steward's definitions and asks
steward's webhook.  Each that the API server refuses is refused by `steward validate`; what only `steward validate`
refuses is on the list of docs/operations.md."""

import base64
import json
import re
import subprocess

import pytest
import yaml

from support import compared, daily, objects, paths, wait, webhook

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "verdicts"
COUNT = 400
LEAST = 40         # objects that both accept, and that both refuse
RULES_MINOR = 29   # the definitions for this Kubernetes and later have rules
SUBRESOURCE_MINOR = 22  # the first that reads this member of managedFields
STRICT_MINOR = 25  # the API server itself refuses unknown fields

# What only `steward validate` refuses: a pattern of the field, and of the message.
STRICTER = [
    (r"^metadata\.managedFields", r"must be an object"),
    (r"^metadata\..*(Timestamp|time)$", r'"2026-01-02T(3:04:05|03:04:05,5)Z": must be a time'),
    (r"^metadata\.", r"must not contain a NUL character"),
    (r"^metadata\.ownerReferences$", r"only one owner can be the controller"),
    (r"^metadata\.annotations", r"EXAMPLE.com"),
    (r"[]]$", r"^Invalid value: null: "),
    (r"^(metadata|spec)\.", r"must be an integer without a fraction and an exponent"),
]


def _printed(*what):
    text = subprocess.run([paths.steward_binary(), "print", *what], check=True, capture_output=True,
                          text=True).stdout
    return [d for d in yaml.safe_load_all(text) if d]


@pytest.fixture(scope="module")
def served(server, tmp_path_factory):
    """The API server with the definitions and the webhook."""
    definitions = _printed("crds", *(["--rules"] if server.minor >= RULES_MINOR else []))
    made = [f"{CRDS}/{d['metadata']['name']}" for d in definitions]
    one = webhook.Webhook(paths.steward_binary(), tmp_path_factory.mktemp("webhook")).start()
    try:
        for path, definition in zip(made, definitions):
            answer = server.apply(path, definition)
            assert answer.status in (200, 201), answer
        authority = base64.b64encode((one.certs / "tls.crt").read_bytes()).decode()
        for config in _printed("webhooks", f"--url=https://127.0.0.1:{one.port}"):
            for hook in config["webhooks"]:
                hook["clientConfig"]["caBundle"] = authority
            path = f"{HOOKS}/{config['kind'].lower()}s/{config['metadata']['name']}"
            made.append(path)
            answer = server.apply(path, config)
            assert answer.status in (200, 201), answer
        answer = server.ask("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        assert answer.status in (201, 409), answer
        wait.until("the webhook to be asked", lambda: all(_is_guarded(server, o) for o in objects.samples()))
        yield server
    finally:
        server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        server.remove(reversed(made))
        one.stop()


def _path(obj):
    return (f"/apis/{obj['apiVersion']}/namespaces/{NAMESPACE}/{obj['kind'].lower()}s"
            "?dryRun=All&fieldValidation=Strict")


def _is_guarded(server, sample):
    """Only the webhook knows that this annotation has two values."""
    obj = {**sample, "metadata": {"name": "probe", "namespace": NAMESPACE, "labels": {"target": "main"},
                                  "annotations": {"steward.dev/paused": "x"}}}
    answer = server.ask("POST", _path(obj), obj)
    return answer.status == 201 and any("steward.dev/paused" in text for text in answer.warnings)


def _judge(found, folder):
    """[errors of `steward validate` as (field, message), or None: accepted] of each object."""
    for number, obj in enumerate(found):
        (folder / f"{number}.json").write_text(json.dumps(obj), "utf-8")
    done = subprocess.run([paths.steward_binary(), "validate", "-o", "json", folder], capture_output=True,
                          text=True, check=False)
    verdicts = [None] * len(found)
    seen = set()
    for one in json.loads(done.stdout)["objects"]:
        number = int(one["file"].rsplit("/", 1)[1].removesuffix(".json"))
        seen.add(number)
        if one["verdict"] != "accepted":
            verdicts[number] = [(e.get("field", ""), e["message"]) for e in one.get("errors", [])] or [
                ("", str(one))]
    assert len(seen) == len(found)
    return verdicts


def _is_documented(server, errors):
    """Each of them."""
    return all(any(re.search(field, e[0]) and re.search(message, e[1]) for field, message in STRICTER)
               or (server.minor < STRICT_MINOR and "unknown field" in e[1])
               or (server.minor < SUBRESOURCE_MINOR and e[0].endswith("].subresource")) for e in errors)


def test_verdicts_are_those_of_the_api_server(served, tmp_path):
    """On new objects whose metadata, quantities, numbers and members are drawn at random."""
    found = objects.generate(daily.dice("verdicts"), COUNT, NAMESPACE)
    lenient, undocumented, both = [], [], {True: 0, False: 0}
    for obj, errors in zip(found, _judge(found, tmp_path)):
        answer = served.ask("POST", _path(obj), obj)
        assert answer.status in (201, 400, 422, 403), answer
        refused = answer.status != 201
        if refused == bool(errors):
            both[refused] += 1
        elif refused:
            lenient.append((obj, answer.message))
        elif not _is_documented(served, errors):
            undocumented.append((obj, errors))
    compared.note("Kubernetes", f"1.{served.minor} (verdicts on manifests)", COUNT)
    print(f"{COUNT} objects: {both[False]} accepted and {both[True]} refused by both")
    assert (lenient[:5], undocumented[:5]) == ([], [])
    assert min(both.values()) >= LEAST


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": True}
KNOWN = {  # only the API server refused them once
    "two controllers": {"ownerReferences": [OWNER, {**OWNER, "uid": "c"}]},
    "an owner of no version": {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]},
    "an Event as owner": {"ownerReferences": [{**OWNER, "kind": "Event"}]},
    "an empty time": {"creationTimestamp": ""},
    "a time without a zone": {"creationTimestamp": "2026-01-02T03:04:05"},
    "a leap second": {"creationTimestamp": "2026-01-02T03:04:60Z"},
    "a prefix that is no name": {"generateName": "a b"},
    "both ways to collect garbage": {"finalizers": ["orphan", "foregroundDeletion"]},
    "a manager that is a number": {"managedFields": [{"manager": 1}]},
    "a time that is a number": {"managedFields": [{"time": 1}]},
}


@pytest.mark.parametrize("what", KNOWN)
def test_metadata_refused_by_the_api_server_is_refused(served, tmp_path, what):
    """steward validate refuses it, too, at its field."""
    obj = {**objects.samples()[0]}
    obj["metadata"] = {"name": "known", "namespace": NAMESPACE, **KNOWN[what]}
    assert served.ask("POST", _path(obj), obj).status in (400, 422)
    errors = _judge([obj], tmp_path)[0]
    assert errors and all(field.startswith(f"metadata.{next(iter(KNOWN[what]))}") for field, _ in errors)
