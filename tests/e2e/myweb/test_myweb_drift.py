# SPDX-License-Identifier: Apache-2.0
"""Manual changes of children are reverted once, with an event that names the fields."""

import pytest
import yaml
from support import incident, myweb
from support import steward as stw
from support import wait
from support.cluster import condition
from support.rest import MERGE

pytestmark = pytest.mark.oldest("ownership of server-side apply")

EDITS = [
    ("configmap", {"data": {"index.html": "defaced"}}, "data.index.html"),
    ("deployment", {"spec": {"replicas": 3}}, "spec.replicas"),
    ("deployment", {"spec": {"template": {"spec": {"automountServiceAccountToken": True}}}},
     "automountServiceAccountToken"),
    ("service", {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}, "spec.selector"),
    ("service", {"metadata": {"labels": {"app.kubernetes.io/part-of": "mine"}}},
     "metadata.labels"),
    # Without this label the watches do not report the object.
    ("configmap", {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
     "app.kubernetes.io/managed-by"),
    ("deployment", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}},
     "app.kubernetes.io/managed-by"),
]


@pytest.mark.parametrize("kind, patch, field", EDITS, ids=lambda v: v if isinstance(v, str) else "")
def test_edited_child_is_repaired(controller, installed, namespace, kind, patch, field):
    web = myweb.create_settled(installed, "web", namespace)
    assert "repairs" not in web["status"]
    before = installed.get(kind, "web", namespace)
    installed.patch(kind, "web", namespace, patch)

    message = installed.wait_event("web", namespace, "DriftRepaired", field)
    assert f'{before["kind"]} "web"' in message
    web = installed.wait_for(myweb.KIND, "web", namespace,
                             lambda o: o["status"].get("repairs") == 1 and myweb.is_settled(o))
    assert web["status"]["lastRepair"]["object"] == f'{before["kind"]}/web'
    assert field in web["status"]["lastRepair"]["fields"]
    after = installed.get(kind, "web", namespace)
    for part in ("spec", "data"):
        assert after.get(part) == before.get(part)
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("kind", myweb.CHILDREN)
def test_deleted_child_is_recreated(controller, installed, namespace, kind):
    myweb.create_settled(installed, "web", namespace)
    uid = installed.get(kind, "web", namespace)["metadata"]["uid"]
    installed.delete(kind, "web", namespace, wait_gone=False)
    installed.wait_for(kind, "web", namespace, lambda o: o["metadata"]["uid"] != uid)
    installed.wait_event("web", namespace, "DriftRepaired", "deleted")
    web = installed.wait_for(myweb.KIND, "web", namespace,
                             lambda o: o["status"].get("repairs") == 1 and myweb.is_settled(o))
    assert web["status"]["lastRepair"]["fields"] == "(deleted)"


def test_changed_managed_fields_are_no_drift(controller, installed, namespace):
    """Nothing was deleted and no value differs, so neither is reported."""
    myweb.create_settled(installed, "web", namespace)
    installed.patch("service", "web", namespace,
                    [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}])
    message = installed.wait_event("web", namespace, "DriftRepaired")
    assert message == 'repaired Service "web", which had been changed: (managedFields)'
    web = installed.wait_for(myweb.KIND, "web", namespace, lambda o: o["status"].get("repairs") == 1)
    assert web["status"]["lastRepair"]["fields"] == "(managedFields)"


def test_recreated_myweb_reports_no_drift(controller, installed, namespace):
    """Remains of a deleted MyWeb of this name cause neither a conflict nor a repair."""
    uid = myweb.create_settled(installed, "web", namespace)["metadata"]["uid"]
    installed.delete(myweb.KIND, "web", namespace)
    installed.create(myweb.manifest("web", namespace, pageContentHtml="<p>new</p>"))
    web = installed.wait_for(myweb.KIND, "web", namespace,
                             lambda o: o["metadata"]["uid"] != uid and myweb.is_settled(o))
    assert "repairs" not in web["status"]
    assert {r for _, r, _ in installed.events(namespace, "web", "MyWeb")} <= {
        "Created", "Updated", "Terminating"}
    for child in myweb.children(installed, "web", namespace).values():
        assert child["metadata"]["ownerReferences"][0]["uid"] == web["metadata"]["uid"]


def _child_writes(cluster, namespace):
    """Requests that change a child; not the status, not events."""
    return [r for r in stw.requests(cluster, namespace, changing=True)
            if "/mywebs/" not in r[1] and "/events" not in r[1]]


def test_fields_of_other_owners_are_kept(controller, installed, namespace):
    """An annotation, another key and a field that steward does not set are kept."""
    version = myweb.create_settled(installed, "web", namespace)["metadata"]["resourceVersion"]
    writes = _child_writes(installed, namespace)
    installed.patch("configmap", "web", namespace, {"data": {"robots.txt": "none"}})
    installed.patch("deployment", "web", namespace, {"metadata": {"annotations": {"a": "b"}}})
    installed.patch("service", "web", namespace, {"spec": {"sessionAffinity": "ClientIP"}})
    wait.stays("not a word in the status", lambda: installed.get(
        myweb.KIND, "web", namespace)["metadata"]["resourceVersion"] == version, 2)
    assert installed.get("configmap", "web", namespace)["data"]["robots.txt"] == "none"
    assert _child_writes(installed, namespace) == writes


def test_repair_causes_no_further_requests(controller, installed, namespace):
    myweb.create_settled(installed, "web", namespace)
    installed.patch("configmap", "web", namespace, {"data": {"index.html": "x"}})
    installed.wait_event("web", namespace, "DriftRepaired")
    installed.wait_for(myweb.KIND, "web", namespace, lambda o: o["status"].get("repairs") == 1)
    before = stw.quiet_requests(installed, namespace)
    wait.stays("no request", lambda: stw.requests(installed, namespace) == before, 3, every=0.5)


def test_repeated_foreign_edits_stop_repairs(controller, installed, namespace):
    """steward stops reverting a field that another client changes over and over."""
    myweb.create_settled(installed, "web", namespace)
    loops = controller.metric("steward_hot_loop_total", controller="myweb")
    quiet = controller.metrics_text()

    api = installed.api
    page = f"/api/v1/namespaces/{namespace}/configmaps/web"
    path = f"/apis/operator.k8s-summit.org/v1/namespaces/{namespace}/mywebs/web"

    def stalled():
        return condition(api.call("GET", path)[1], "Stalled").get("reason") == "HotLoop"

    for n in range(30):
        assert api.call("PATCH", page, {"data": {"index.html": f"mine {n}"}}, MERGE)[0] == 200
        wait.until("a repair or the end of patience", lambda: stalled() or api.call(
            "GET", page)[1]["data"]["index.html"] == "<p>web</p>", every=0.02)
        if stalled():
            break
    assert stalled()
    assert n >= 15
    installed.wait_event("web", namespace, "HotLoop", "ConfigMap")
    assert controller.metric("steward_hot_loop_total", controller="myweb") == loops + 1
    assert installed.get(myweb.KIND, "web", namespace)["status"]["completed"] is False
    before = stw.requests(installed, namespace, changing=True)
    installed.patch("configmap", "web", namespace, {"data": {"index.html": "mine"}})
    wait.stays("no more writes", lambda: installed.get(
        "configmap", "web", namespace)["data"]["index.html"] == "mine", 2)
    assert stw.requests(installed, namespace, changing=True) == before
    assert "steward.dev/reconcile-at" in condition(
        installed.get(myweb.KIND, "web", namespace), "Stalled")["message"]
    with incident.follow("StewardHotLoop", installed) as runbook:
        runbook.before(quiet)
        runbook.fires(controller.metrics_text)
        shown = yaml.safe_load(runbook.kubectl("--show-managed-fields"))["items"]
        [page] = [o["metadata"] for o in shown if o["kind"] == "ConfigMap" and
                  (o["metadata"]["namespace"], o["metadata"]["name"]) == (namespace, "web")]
        assert {m["manager"] for m in page["managedFields"]} - {"steward"}  # who it is
        # When the other client has stopped, what the message names ends it.
        installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/reconcile-at": "now"})
        myweb.wait_settled(installed, "web", namespace)
        assert installed.get("configmap", "web", namespace)["data"]["index.html"] == "<p>web</p>"


def test_frequent_spec_changes_are_no_hot_loop(controller, installed, namespace):
    myweb.create_settled(installed, "web", namespace)
    for n in range(25):
        installed.patch(myweb.KIND, "web", namespace, {"spec": {"pageContentHtml": f"page {n}"}})
        wait.until("the page", lambda n=n: installed.get(
            "configmap", "web", namespace)["data"]["index.html"] == f"page {n}", every=0.02)
    myweb.wait_settled(installed, "web", namespace)
