# SPDX-License-Identifier: Apache-2.0
"""An Eru with a selector restarts all workloads that match, each once for each instant."""

import itertools

import pytest
from support import eru, strangers, wait
from support import steward as stw
from support.cluster import condition


@pytest.fixture
def another_namespace(installed, namespace):
    """A second namespace, of another tenant."""
    name = f"{namespace}-other"
    installed.create_namespace(name)
    yield name
    installed.delete_namespace(name)


@pytest.mark.oldest("label selectors of lists")
def test_selector_restarts_all_matching_workloads(controller, installed, namespace, another_namespace, kubelet):
    """No other workload of the namespace, and none of another one with the same labels."""
    eru.create_labelled(installed, namespace, ["a", "b", "mine"])
    installed.apply(eru.labelled("paused", namespace))
    eru.wait_available(installed, "paused", namespace)
    installed.patch("deployment", "paused", namespace, {"spec": {"paused": True}})
    installed.apply(eru.labelled("backend", namespace, tier="db"))
    installed.apply(eru.labelled("a", another_namespace))
    installed.apply(eru.manifest("mine", namespace))  # disabled: an exception from the selector
    installed.apply(eru.selecting("nightly", namespace, {"matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["web", "edge"]},
        {"key": "frozen", "operator": "DoesNotExist"}]}))
    found = eru.wait_eru(installed, "nightly", namespace, lambda s: s.get("matched") == 4)
    assert condition(found, "TargetFound")["message"] == "4 Deployments match the selector"
    before = len(stw.requests(installed, namespace))
    eru.restart_now(installed, "nightly", namespace, "one")
    status = eru.wait_ended(installed, "nightly", namespace)
    instant = status["restartNow"]["instant"]
    assert status["lastResult"] == "Succeeded", status
    assert {k: status["selected"][k] for k in ("matched", "restarted", "succeeded", "failed",
                                               "skipped")} == \
        {"matched": 4, "restarted": 2, "succeeded": 2, "failed": 0, "skipped": 2}
    assert {w["name"]: w["reason"] for w in status["selected"]["workloads"]} == \
        {"mine": "SkippedHasOwnEru", "paused": "SkippedTargetPaused"}
    eru.assert_each_once(installed, namespace, ["a", "b"], instant)
    for name, where in (("mine", namespace), ("paused", namespace), ("backend", namespace),
                        ("a", another_namespace)):
        assert eru.stamp(installed, name, where) is None, name
    installed.wait_event("nightly", namespace, "Restarted", "restarted 2 of 4 Deployments for")
    installed.wait_event("nightly", namespace, "SkippedWorkloads", "mine (SkippedHasOwnEru)")
    installed.wait_event("nightly", namespace, "RolloutSucceeded", "2 Deployments were restarted")

    def stored_first():
        writes = [r[1] for r in stw.requests(installed, namespace, changing=True)
                  if "/erus/nightly/status" in r[1] or "/deployments/" in r[1]]
        return writes if any("/deployments/" in w for w in writes) else None
    writes = wait.until("the writes to be in the audit log", stored_first)
    first = next(i for i, w in enumerate(writes) if "/deployments/" in w)
    # the first status, the token with its instant, what matches
    assert len([w for w in writes[:first] if "/status" in w]) >= 3, writes
    # Everything is read with lists in its own namespace.
    lists = [r for r in stw.requests(installed, namespace)[before:]
             if r[0] == "list" and "labelSelector" in r[1]]
    assert all(f"/namespaces/{namespace}/deployments?" in r[1] for r in lists), lists


def test_unreadable_workload_does_not_block_others(controller, installed, namespace, kubelet):
    """The others are restarted, and the condition names it."""
    eru.create_labelled(installed, namespace, ["a", "b"])
    large = eru.labelled("large", namespace, replicas=0)
    large["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "V", "value": strangers.LARGE}]
    installed.create(large)
    installed.apply(eru.selecting("nightly", namespace))
    found = eru.wait_eru(installed, "nightly", namespace, lambda s: s.get("matched") == 2)
    told = condition(found, "TargetFound")
    assert (told["status"], told["reason"]) == ("False", "Unreadable")
    assert told["message"] == '2 Deployments match the selector; others match and cannot be read: "large"'
    eru.restart_now(installed, "nightly", namespace, "one")
    status = eru.wait_ended(installed, "nightly", namespace)
    assert status["lastResult"] == "Succeeded", status
    eru.assert_each_once(installed, namespace, ["a", "b"], status["restartNow"]["instant"])
    installed.delete("deployment", "large", namespace)
    eru.restart_now(installed, "nightly", namespace, "two")
    eru.wait_eru(installed, "nightly", namespace,
                 lambda s: condition({"status": s}, "TargetFound")["reason"] == "Found")


@pytest.mark.oldest("lists in pages")
def test_selector_with_no_or_too_many_matches_is_reported(controller, installed, namespace):
    installed.apply(eru.selecting("nightly", namespace, enabled=True))
    found = eru.wait_eru(installed, "nightly", namespace,
                         lambda s: eru.ready_reason(s) == "NothingMatches")
    assert condition(found, "TargetFound")["status"] == "False"
    eru.restart_now(installed, "nightly", namespace, "one")
    status = eru.wait_ended(installed, "nightly", namespace)
    assert status["history"][0]["reason"] == "SkippedNothingMatches"
    installed.wait_event("nightly", namespace, "SkippedNothingMatches")

    for i in range(101):
        installed.apply(eru.labelled(f"web-{i}", namespace, replicas=0))
    installed.annotate(eru.KIND, "nightly", namespace, {"steward.dev/reconcile-at": "now"})
    found = eru.wait_eru(installed, "nightly", namespace,
                         lambda s: eru.ready_reason(s) == "TooManyMatch")
    assert "more than 100 Deployments" in condition(found, "Stalled")["message"]
    eru.restart_now(installed, "nightly", namespace, "two")
    found = eru.wait_eru(installed, "nightly", namespace, lambda s: len(s.get("history", [])) == 2)
    assert found["status"]["history"][0]["reason"] == "SkippedTooManyMatch"
    assert "selected" not in found["status"]

    installed.delete("deployment", "web-7", namespace)
    installed.annotate(eru.KIND, "nightly", namespace, {"steward.dev/reconcile-at": "again"})
    eru.wait_eru(installed, "nightly", namespace, lambda s: eru.ready_reason(s) == "Active")
    assert {eru.STAMP in o["spec"]["template"]["metadata"].get("annotations", {})
            for o in installed.list("deployment", namespace)} == {False}


@pytest.fixture
def break_writes(installed, namespace):
    """break_writes(name): changes of a Deployment are refused, by a webhook that does not answer;
    returns its name."""
    name = f"broken-{namespace}"

    def create(deployment):
        installed.patch("deployment", deployment, namespace,
                        {"metadata": {"labels": {"broken": namespace}}})
        installed.create({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name}, "webhooks": [{
                "name": "broken.example.com", "admissionReviewVersions": ["v1"],
                "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 1,
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "objectSelector": {"matchLabels": {"broken": namespace}},
                "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"],
                           "resources": ["deployments"]}]}]})
        # The API server learns of it by a watch.
        wait.until("the webhook to be in force", lambda: installed.annotate(
            "deployment", deployment, namespace, {"try": f"{next(_tries)}"},
            check=False).returncode != 0)
        return name
    yield create
    installed.delete("validatingwebhookconfiguration", name, check=False)


_tries = itertools.count()


@pytest.mark.oldest("errors of webhooks")
def test_refused_write_does_not_block_others(controller, installed, namespace, kubelet, break_writes):
    """The others are restarted nevertheless; it is restarted when it can be."""
    names = ["a", "b", "c"]
    eru.create_labelled(installed, namespace, names)
    installed.apply(eru.selecting("nightly", namespace))
    eru.wait_eru(installed, "nightly", namespace, lambda s: s.get("matched") == 3)
    webhook = break_writes("a")
    eru.restart_now(installed, "nightly", namespace, "one")
    found = eru.wait_eru(installed, "nightly", namespace, lambda s: s.get("selected", {}).get(
        "restarted") == 2 and s.get("retry"))
    assert {w["name"]: w["state"] for w in found["status"]["selected"]["workloads"]}["a"] == \
        "Pending"
    assert eru.stamp(installed, "a", namespace) is None
    assert condition(found, "Reconciling")["reason"] == "ProgressingWithRetry"
    installed.delete("validatingwebhookconfiguration", webhook)
    status = eru.wait_ended(installed, "nightly", namespace)
    assert status["lastResult"] == "Succeeded" and status["selected"]["succeeded"] == 3
    eru.assert_each_once(installed, namespace, names, status["restartNow"]["instant"])


@pytest.mark.oldest("checks of the CRD")
@pytest.mark.parametrize("spec, want", [
    ({"deploymentname": "web", "selector": eru.TIER},
     "spec.selector: Forbidden: set exactly one of deploymentname, selector"),
    ({}, "spec.deploymentname: Required value: set exactly one of deploymentname, selector"),
    ({"selector": {}}, "spec.selector: Required value: needs matchLabels or matchExpressions"),
    ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
     "spec.selector.matchExpressions[0].values: Required value: In and NotIn need values"),
])
def test_stored_invalid_selector_stalls(controller, installed, namespace, spec, want):
    """Without a webhook: the API server refuses them by its own rules, or they stall."""
    installed.apply(eru.labelled("web", namespace, replicas=0))
    done = installed.apply({**eru.manifest("bad", namespace), "spec": spec}, check=False)
    if done.returncode != 0:
        assert want.rpartition(": ")[2] in done.stderr, done.stderr
        return
    found = eru.wait_eru(installed, "bad", namespace,
                         lambda s: eru.ready_reason(s) == "InvalidSpec")
    assert want in condition(found, "Ready")["message"]
