# SPDX-License-Identifier: Apache-2.0
"""How the API server calls a webhook and uses its answer: webhook/*, certs/hooks.c and `steward
print webhooks`."""

import re
import subprocess
import time

import pytest
import yaml

from support import hooks as h
from support import paths, wait

CHECK = "/check"


@pytest.fixture
def hooks(server, tmp_path):
    """A support.hooks.Hooks."""
    one = h.Hooks(server, tmp_path)
    yield one
    one.end()


@pytest.fixture
def thing(space, things):
    """thing(name="one", **members): a Thing for which the webhooks are called."""
    def make(name="one", **members):
        return things.object(space, name, metadata={"labels": {"space": space.name}},
                             **{"spec": {"count": 1}, **members})
    return make


def test_create_review_has_its_members(server, space, things, hooks, thing):
    """webhook/envelope.c reads these members and no others; webhook/request.c: path, type, timeout."""
    hooks.install("Validating", space, hooks.entry("a", CHECK, space))
    answer = server.ask("POST", things.path(space) + "?dryRun=All&fieldManager=me", thing())
    assert answer.status == 201, answer
    call, = hooks.of(CHECK)
    assert call.query == {"timeout": "10s"}
    assert call.headers["Content-Type"] == "application/json" and call.headers["Content-Length"]
    assert call.review["apiVersion"] == "admission.k8s.io/v1" and call.review["kind"] == "AdmissionReview"
    request = call.request
    assert re.fullmatch(r"[0-9a-f-]{36}", request["uid"])
    assert request["kind"] == {"group": "thing.contract.steward.dev", "version": "v1", "kind": "Thing"}
    assert request["resource"] == {"group": "thing.contract.steward.dev", "version": "v1",
                                   "resource": "things"}
    assert request["operation"] == "CREATE" and request["dryRun"] is True
    assert request["name"] == "one" and request["namespace"] == space.name
    assert "subResource" not in request and request["oldObject"] is None
    assert request["userInfo"]["username"] == "admin"
    assert request["options"]["kind"] == "CreateOptions"
    # The schema has been applied already: defaults are set, unknown fields are removed.
    assert request["object"]["spec"] == {"count": 1, "word": "a"}
    assert request["object"]["metadata"]["name"] == "one"


def test_review_with_generate_name_may_have_no_name(server, space, things, hooks, thing):
    """lib/schema/rule/metadata.c: with generateName there may be no name yet."""
    hooks.install("Mutating", space, hooks.entry("a", CHECK, space))
    obj = thing(None)
    obj["metadata"].pop("name")
    obj["metadata"]["generateName"] = "some-"
    made = server.create(things.path(space), obj)
    request = hooks.of(CHECK)[0].request
    assert request["object"]["metadata"]["generateName"] == "some-"
    assert request.get("name", "") in ("", made["metadata"]["name"])


def test_update_and_delete_reviews_have_old_objects(server, space, things, hooks, thing):
    """UPDATE has both objects, DELETE the old one; an apply and a patch are a CREATE or an UPDATE
    with the whole object; a change of status does not call the webhook.  A server whose cache is a moment
    behind asks about a change once more, with the newer object."""
    hooks.install("Validating", space, hooks.entry("a", CHECK, space))
    path = things.path(space, "one")

    def count(request, which):
        return request[which]["spec"]["count"] if request.get(which) else None
    server.fine(server.apply(path, thing()))
    server.fine(server.apply(path, thing(spec={"count": 2})))
    server.fine(server.merge(path, {"spec": {"count": 3}}))
    server.fine(server.merge(path + "/status", {"status": {"phase": "Ready"}}))
    server.fine(server.ask("DELETE", path))
    asked = list({count(c.request, "object"): c.request for c in hooks.of(CHECK)}.values())
    assert [r["operation"] for r in asked] == ["CREATE", "UPDATE", "UPDATE", "DELETE"]
    assert [count(r, "object") for r in asked] == [1, 2, 3, None]
    assert [count(r, "oldObject") for r in asked] == [None, 1, 2, 3]
    assert not any(r["dryRun"] for r in asked)


def test_finalizer_removal_is_reviewed_as_an_update(server, space, things, hooks, thing):
    """lib/schema/rule/kind.c allows an object that is being deleted; otherwise it would stay forever."""
    path = things.path(space, "one")
    obj = thing()
    obj["metadata"]["finalizers"] = ["steward.dev/test"]
    server.create(things.path(space), obj)
    server.fine(server.ask("DELETE", path))
    hooks.install("Validating", space, hooks.entry("a", CHECK, space))
    server.fine(server.merge(path, {"metadata": {"finalizers": []}}))
    request = hooks.of(CHECK)[0].request
    assert request["operation"] == "UPDATE"
    assert request["object"]["metadata"]["deletionTimestamp"]


def test_denial_reaches_the_client(server, space, things, hooks, thing):
    """webhook/reply.c: code, reason and message reach the client; kubectl prints the message."""
    entry = hooks.entry("a", CHECK, space)
    hooks.install("Validating", space, entry)
    hooks.answers[CHECK] = lambda _: {"allowed": False, "status": {
        "code": 422, "reason": "Invalid", "message": "spec.count: must be 2"}}
    denied = server.ask("POST", things.path(space), thing())
    assert denied.status == 422 and denied.reason == "Invalid"
    assert denied.message == f'admission webhook "{entry["name"]}" denied the request: ' \
                             "spec.count: must be 2"
    assert server.ask("GET", things.path(space, "one")).status == 404


def test_warnings_reach_the_client(server, space, things, hooks, thing):
    """webhook/reply.c: each warning becomes a header, also when the object is allowed."""
    hooks.install("Validating", space, hooks.entry("a", CHECK, space))
    texts = ["spec.count: two would be better", 'a "quoted" word']
    hooks.answers[CHECK] = lambda _: {"allowed": True, "warnings": texts}
    answer = server.ask("POST", things.path(space), thing())
    assert answer.status == 201 and answer.warnings == texts


def test_mutating_patch_is_applied_and_validated(server, space, things, hooks, thing):
    """webhook/patch.c: a JSON patch of the object; its result is validated by the schema, and by
    the validating webhooks."""
    hooks.install("Mutating", space, hooks.entry("m", "/change", space))
    hooks.install("Validating", space, hooks.entry("v", CHECK, space))
    hooks.answers["/change"] = h.patch({"op": "replace", "path": "/spec/count", "value": 7},
                                       {"op": "add", "path": "/spec/text", "value": "set"})
    made = server.create(things.path(space), thing())
    assert made["spec"]["count"] == 7 and made["spec"]["text"] == "set"
    assert hooks.of(CHECK)[0].request["object"]["spec"]["count"] == 7
    hooks.answers["/change"] = h.patch({"op": "replace", "path": "/spec/count", "value": 99})
    refused = server.ask("POST", things.path(space), thing("two"))
    assert refused.status == 422 and "spec.count" in refused.message


def test_mutating_webhook_is_reinvoked(server, space, things, hooks, thing):
    """reinvocationPolicy IfNeeded: after another webhook has changed the object, the first is
    called again and sees the change."""
    hooks.install("Mutating", space,
                  hooks.entry("a", "/first", space, reinvocationPolicy="IfNeeded"),
                  hooks.entry("b", "/second", space))
    hooks.answers["/second"] = lambda r: h.patch(
        {"op": "add", "path": "/spec/text", "value": "b"})(r)
    server.create(things.path(space), thing())
    texts = [c.request["object"]["spec"].get("text") for c in hooks.of("/first")]
    assert texts == [None, "b"]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_unreachable_webhook_follows_failure_policy(server, space, things, hooks, thing, policy):
    """failurePolicy of `steward print webhooks`: Ignore allows, Fail is a 500 with its name."""
    entry = hooks.entry("a", CHECK, space, failurePolicy=policy, clientConfig={
        "url": "https://127.0.0.1:1/none", "caBundle": hooks.bundle})
    hooks.install("Validating", space, entry)
    answer = server.ask("POST", things.path(space), thing())
    if policy == "Ignore":
        assert answer.status == 201
    else:
        assert answer.status == 500 and answer.reason == "InternalError"
        assert f'failed calling webhook "{entry["name"]}"' in answer.message


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_slow_webhook_follows_failure_policy(server, space, things, hooks, thing, policy):
    """timeoutSeconds: the API server waits that long, and then applies failurePolicy."""
    hooks.install("Validating", space, hooks.entry("a", CHECK, space, failurePolicy=policy,
                                                   timeoutSeconds=1))

    def slow(_request):
        time.sleep(3)  # longer than the timeout, which is what this tests
        return {"allowed": False}
    hooks.answers[CHECK] = slow
    begin = time.monotonic()
    answer = server.ask("POST", things.path(space), thing())
    assert 0.9 < time.monotonic() - begin < 3
    assert answer.status == (201 if policy == "Ignore" else 500), answer


@pytest.mark.parametrize("response", [{"uid": "other", "allowed": True}, {"allowed": "yes"}])
def test_invalid_answer_is_a_failure(server, space, things, hooks, thing, response):
    """webhook/reply.c always echoes the uid and writes a boolean: anything else counts as a failure."""
    hooks.install("Validating", space, hooks.entry("a", CHECK, space))
    hooks.answers[CHECK] = lambda _: response
    answer = server.ask("POST", things.path(space), thing())
    assert answer.status == 500 and "failed calling webhook" in answer.message, answer


def test_changed_ca_bundle_takes_effect(server, space, things, hooks, thing, tmp_path):
    """certs/rotation.c: a new caBundle is used without a restart; a certificate that it does not trust
    is refused."""
    path = hooks.install("Validating", space, hooks.entry("a", CHECK, space))
    config = server.get(path)
    hooks.pair(tmp_path / "new")
    stranger = h.pem(h.webhook.make_pair(tmp_path / "stranger", "127.0.0.1"))

    def trust(bundle):
        for entry in config["webhooks"]:
            entry["clientConfig"]["caBundle"] = bundle
        server.fine(server.merge(path, {"webhooks": config["webhooks"]}))

    def asked():
        return server.ask("POST", things.path(space) + "?dryRun=All", thing())
    trust(stranger)
    wait.until("the certificate to be refused", lambda: asked().status == 500)
    assert "certificate" in asked().message
    trust(hooks.bundle)
    wait.until("the new bundle to be used", lambda: asked().status == 201)


def test_selectors_choose_the_reviewed_objects(server, space, things, hooks, thing):
    """objectSelector and namespaceSelector choose the objects for which the webhook is called."""
    server.fine(server.merge(f"/api/v1/namespaces/{space.name}", {"metadata": {"labels": {"a": "b"}}}))
    hooks.install("Validating", space,
                  hooks.entry("a", "/yes", space, namespaceSelector={"matchLabels": {"a": "b"}}),
                  hooks.entry("b", "/no", space, namespaceSelector={"matchLabels": {"a": "c"}}))
    obj = thing("other")
    obj["metadata"]["labels"] = {}
    server.create(things.path(space), obj)
    assert not hooks.calls

    def seen():
        server.fine(server.ask("POST", things.path(space) + "?dryRun=All", thing()))
        return hooks.of("/yes")
    wait.until("the label of the namespace to be seen", seen)
    assert not hooks.of("/no")


def test_equivalent_version_is_converted_for_review(server, space, things, hooks):
    """matchPolicy Equivalent: a rule for v1 matches a request in v2, which is converted; `kind` and
    `resource` are those of the rule (webhook/envelope.c)."""
    hooks.install("Validating", space, hooks.entry("a", "/all", space),
                  hooks.entry("b", "/exact", space, matchPolicy="Exact"))
    obj = things.object(space, version="v2", metadata={"labels": {"space": space.name}}, spec={})
    server.create(things.path(space, version="v2"), obj)
    request = hooks.of("/all")[0].request
    assert request["kind"]["version"] == request["resource"]["version"] == "v1"
    assert request["requestKind"]["version"] == request["requestResource"]["version"] == "v2"
    assert request["object"]["apiVersion"].endswith("/v1")
    assert not hooks.of("/exact")


def test_match_conditions_save_calls(server, space, things, hooks, thing, does):
    """config/server-1.29: matchConditions save calls that the webhook would only allow; older
    servers drop the member, and call."""
    hooks.install("Validating", space, hooks.entry("a", CHECK, space, matchConditions=[
        {"name": "two", "expression": "object.spec.count == 2"}]))
    server.create(things.path(space), thing())
    assert bool(hooks.of(CHECK)) == (does("match-conditions") == "dropped")
    server.create(things.path(space), thing("two", spec={"count": 2}))
    assert hooks.of(CHECK)


@pytest.mark.parametrize("effects", ["Some", "Unknown"])
def test_side_effects_other_than_none_are_refused(server, space, hooks, effects):
    """`steward print webhooks` has None: v1 refuses any value that permits side effects."""
    path = f"{h.API}/{h.PLURALS['Validating']}"
    refused = server.ask("POST", path, {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": space.name},
        "webhooks": [hooks.entry("a", CHECK, space, sideEffects=effects)]})
    assert refused.status == 422, refused


@pytest.mark.parametrize("conditions", [[], ["--match-conditions"]])
def test_printed_webhooks_are_accepted(server, does, conditions):
    """steward print webhooks: accepted by every server without a warning; only matchConditions may
    be dropped."""
    printed = subprocess.run([paths.steward_binary(), "print", "webhooks", *conditions], check=True,
                             capture_output=True, text=True).stdout
    dropped = does("match-conditions") == "dropped"
    for config in filter(lambda o: o["kind"].endswith("WebhookConfiguration"),
                         yaml.safe_load_all(printed)):
        path = f"{h.API}/{config['kind'].lower()}s"
        answer = server.ask("POST", path + "?dryRun=All", config)
        assert answer.status in (201, 409) and answer.warnings == [], answer
        for given, made in zip(config["webhooks"], answer.body.get("webhooks", [])):
            lacks = {k for k in given if k not in made}
            assert lacks == ({"matchConditions"} & set(given) if dropped else set())
