# SPDX-License-Identifier: Apache-2.0
"""The rules of `steward print crds --rules`, judged by an API server without webhooks and by
`steward validate`.  The API server may accept more than steward, and never less."""

import json
import random
import subprocess

import pytest
import yaml

from support import judged, paths, wait

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CEL_MINOR = 25    # the first whose CRDs have such rules, unless they are switched on
LEAST_MINOR = 29  # the first with rules that steward uses; its CRDs are in config/server-1.29
NAMESPACE = "cel-rules"
GENERATED = 60    # new objects of each kind, and as many changes
SEED = 20


def printed(*options):
    """The definitions of `steward print crds`."""
    text = subprocess.run([paths.steward_binary(), "print", "crds", *options], check=True,
                          capture_output=True, text=True).stdout
    return [d for d in yaml.safe_load_all(text) if d]


def without_subresources(definition):
    """The same, so that the status of an object can be created with it."""
    version = {k: v for k, v in definition["spec"]["versions"][0].items() if k != "subresources"}
    return {**definition, "spec": {**definition["spec"], "versions": [version]}}


def install(server, definitions):
    """Replaces the definitions."""
    for definition in definitions:
        path = f"{CRDS}/{definition['metadata']['name']}"
        answer = server.apply(path, definition)
        assert answer.status in (200, 201) and answer.warnings == [], answer
        wait.until("the kind to be served", lambda p=path: any(
            c["type"] == "Established" and c["status"] == "True"
            for c in server.get(p)["status"].get("conditions", [])))


def probe(server, spec, kind="Eru", group="mtsre.meitu.com/v1"):
    """The answer to the creation of one object."""
    return server.ask("POST", f"/apis/{group}/namespaces/{NAMESPACE}/{kind.lower()}s?dryRun=All", {
        "apiVersion": group, "kind": kind, "metadata": {"name": "probe"}, "spec": spec})


# Specs that only a rule refuses.
PROBES = {
    "MyWeb": {"image": "a", "mountPath": "/."}, "Eru": {"deploymentname": "x", "jitterSeconds": 700},
    "App": {"image": "a", "healthCheck": {"path": "/", "timeoutSeconds": 20}},
    "DatabaseUser": {"user": "app", "password": {}}, "EtcdCluster": {"storage": {"size": "1Mi"}},
    "EtcdBackup": {"storageType": "S3"}, "EtcdRestore": {"etcdCluster": {"name": "a"}}}


def has_rules(server, definition):
    """Whether the API server judges by the rules of a kind: it reads definitions by a watch."""
    group, version = definition["spec"]["group"], definition["spec"]["versions"][0]["name"]
    kind = definition["spec"]["names"]["kind"]
    return probe(server, PROBES[kind], kind, f"{group}/{version}").status == 422


def store(server, case):
    """Creates the old object, with its status; whether the API server stored it."""
    answer = server.ask("POST", case.path(NAMESPACE), case.old)
    if answer.status != 201:
        return False
    case.object["metadata"]["resourceVersion"] = answer.body["metadata"]["resourceVersion"]
    return True


def ask(server, case):
    """The API server's answer to the creation or the change."""
    if not case.old:
        return server.ask("POST", case.path(NAMESPACE) + "?dryRun=All", case.object)
    return server.ask("PUT", f"{case.path(NAMESPACE)}/{case.name}?dryRun=All", case.object)


@pytest.fixture(scope="module")
def with_rules(server):
    """The definitions; where there are none for this Kubernetes, the tests have no subject."""
    if server.minor < LEAST_MINOR:
        pytest.skip("the definitions for this Kubernetes have no rules")
    definitions = printed("--rules")
    answer = server.ask("POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    assert answer.status in (201, 409), answer
    yield definitions
    server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    server.remove([f"{CRDS}/{definition['metadata']['name']}" for definition in definitions])


@pytest.fixture(scope="module")
def cases(server, with_rules, tmp_path_factory):
    """[judged.Case] with both verdicts: what the unit tests judge, and what is generated from it.
    Old objects are those that the definitions without rules store."""
    folder = tmp_path_factory.mktemp("judged")
    noted = judged.cases(folder, NAMESPACE)
    assert len(noted) > 800
    every = noted + judged.generated(random.Random(SEED), noted, GENERATED, NAMESPACE)
    judged.judge(every, folder)
    install(server, [without_subresources(d) for d in printed()])
    every = [c for c in every if not c.old or store(server, c)]
    install(server, with_rules)
    wait.until("the rules to be in force", lambda: all(has_rules(server, d) for d in with_rules))
    for case in every:
        case.answer = ask(server, case)
    return every


def test_old_server_refuses_definitions_with_rules(server):
    """It refuses to apply a definition with rules, and names the field.  Created by a client that does
    not look, it lacks them: the kind is served, and the webhook refuses what the rules would."""
    if server.minor >= CEL_MINOR:
        pytest.skip("this Kubernetes knows the rules")
    definition = next(d for d in printed("--rules") if d["spec"]["names"]["kind"] == "Eru")
    path = f"{CRDS}/{definition['metadata']['name']}"
    answer = server.apply(path, definition)
    assert answer.status >= 400 and "x-kubernetes-validations" in answer.message
    created = server.ask("POST", CRDS, definition)
    assert created.status == 201, created
    server.ask("POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        assert "x-kubernetes-validations" not in json.dumps(created.body)
        wait.until("the kind to be served", lambda: probe(server, PROBES["Eru"]).status == 201)
    finally:
        server.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        server.remove([path])


def test_definitions_fit_into_kubectl_annotation():
    """It writes the whole definition into an annotation, and all annotations have at most 256 KiB."""
    for definition in printed("--rules"):
        assert len(json.dumps(definition, separators=(",", ":"))) < 250000, definition["metadata"]["name"]


def test_rules_accept_what_steward_accepts(server, cases):
    """What steward accepts, the API server accepts, new or changed."""
    stricter = judged.stricter(cases, server.minor)
    assert stricter == [], stricter[:5]
    assert sum(not c.refused for c in cases if c.old) > 100


def test_most_bad_objects_are_refused(cases):
    """At least 100 of 108, without a webhook."""
    bad, accepted = judged.new_refused(cases)
    assert len(bad) > 400
    assert 108 * len(accepted) <= 8 * len(bad), accepted


def test_rules_refuse_bad_changes(cases):
    """All of those that CEL can see."""
    bad, accepted = judged.changes_refused(cases)
    assert len(bad) > 100
    assert accepted == [], accepted[:5]


def test_rule_message_equals_that_of_steward(server, with_rules):
    """With the field and the reason."""
    install(server, with_rules)
    user = "handsomeguy.cn/v1alpha1"
    wait.until("the source of a password to be required", lambda: (
        "spec.password.name: Required value: set one of name, generate" in probe(
            server, {"user": "app", "password": {}}, "DatabaseUser", user).message))
    said = probe(server, {"user": "app", "password": {"generate": {}, "trimNewline": True}},
                 "DatabaseUser", user)
    assert said.causes == [("FieldValueForbidden", "spec.password.trimNewline")]
    assert said.message.endswith(
        "spec.password.trimNewline: Forbidden: a generated password has no newline")
