# SPDX-License-Identifier: Apache-2.0
"""Conflicts about names and node ports."""

import pytest
from support import myweb, wait
from support.cluster import NEXT_RUN, condition

pytestmark = pytest.mark.oldest("guards of creates, node ports")

FOREIGN = {
    "configmap": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"theirs": "kept"}},
    "deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "theirs"}},
        "template": {"metadata": {"labels": {"app": "theirs"}},
                     "spec": {"containers": [{"name": "c", "image": myweb.NO_IMAGE}]}}}},
    "service": {"apiVersion": "v1", "kind": "Service",
                "spec": {"ports": [{"port": 1234}], "selector": {"app": "theirs"}}},
}


def foreign(kind, name, namespace, **metadata):
    """An object that steward does not own."""
    return {**FOREIGN[kind], "metadata": {"name": name, "namespace": namespace, **metadata}}


@pytest.mark.parametrize("kind", myweb.CHILDREN)
def test_child_name_taken_by_foreign_object_stalls(controller, installed, namespace, kind):
    installed.apply(foreign(kind, "web", namespace))
    before = installed.get(kind, "web", namespace)
    installed.apply(myweb.manifest("web", namespace))
    stalled = myweb.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    why = f'{before["kind"]} "web" exists and is not controlled by this object (owner: none)'
    assert stalled["message"] == why + NEXT_RUN
    installed.wait_event("web", namespace, "NameConflict", "owner: none")
    after = installed.get(kind, "web", namespace)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"] or \
        (after.get("data"), after["metadata"].get("labels")) == \
        (before.get("data"), before["metadata"].get("labels"))
    assert "ownerReferences" not in after["metadata"]
    web = installed.get(myweb.KIND, "web", namespace)
    assert condition(web, "Ready")["reason"] == "NameConflict"
    assert not condition(web, "Reconciling")

    # After its deletion: Services and Deployments are watched, others are looked up each minute.
    installed.delete(kind, "web", namespace)
    if kind == "configmap":
        installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
    myweb.wait_settled(installed, "web", namespace, seconds=30)


def test_child_name_taken_after_deletion_stalls(controller, installed, namespace):
    """A child is deleted, and another client creates an object with its name first."""
    myweb.create_settled(installed, "web", namespace)
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/paused": "true"})
    myweb.wait_condition(installed, "web", namespace, "Ready", "Paused")
    installed.delete("configmap", "web", namespace)
    installed.apply(foreign("configmap", "web", namespace))
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/paused": None})
    myweb.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    assert installed.get("configmap", "web", namespace)["data"] == {"theirs": "kept"}
    # The deletion of the MyWeb deletes only its own children.
    installed.delete(myweb.KIND, "web", namespace)
    wait.until("our own children to go", lambda: not any(
        installed.get(k, "web", namespace) for k in ("deployment", "service")), 60)
    assert installed.get("configmap", "web", namespace)["data"] == {"theirs": "kept"}


@pytest.mark.parametrize("kind", myweb.CHILDREN)
def test_child_released_by_another_client_is_not_overwritten(controller, installed, namespace, kind):
    """Neither overwritten nor reported as deleted: steward's create never updates, on any version
    of the API server."""
    myweb.create_settled(installed, "web", namespace)
    assert "deletionGracePeriodSeconds" not in installed.get(kind, "web", namespace)["metadata"]
    label = "app.kubernetes.io/managed-by"
    installed.patch(kind, "web", namespace, {"metadata": {
        "ownerReferences": None, "labels": {label: None}, "annotations": {"mine": "now"}}})
    myweb.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    after = installed.get(kind, "web", namespace)["metadata"]
    assert "ownerReferences" not in after and label not in after["labels"]
    assert after["annotations"]["mine"] == "now"
    assert not [m for _, r, m in installed.events(namespace, "web") if r == "DriftRepaired"]


def test_conflict_names_the_owner(controller, installed, namespace):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "someone", "controller": True,
             "uid": "11111111-2222-3333-4444-555555555555"}
    # The finalizer keeps it: the garbage collector deletes it soon, as there is no such Pod.
    installed.apply(foreign("configmap", "web", namespace, ownerReferences=[owner],
                            finalizers=["example.com/hold"]))
    installed.apply(myweb.manifest("web", namespace))
    web = installed.wait_for(myweb.KIND, "web", namespace, lambda o: condition(
        o, "ConfigMapSynced").get("reason") in ("NameConflict", "Terminating"))
    if condition(web, "ConfigMapSynced")["reason"] == "NameConflict":
        assert "(owner: Pod/someone)" in condition(web, "ConfigMapSynced")["message"]
    # While the holder is Terminating, the MyWeb is not Stalled: it waits, and then gets the name.
    installed.delete("configmap", "web", namespace, wait_gone=False)
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
    myweb.wait_condition(installed, "web", namespace, "ConfigMapSynced", "Terminating")
    installed.patch("configmap", "web", namespace, {"metadata": {"finalizers": None}})
    myweb.wait_settled(installed, "web", namespace)


def test_annotated_object_adopts_existing_child(controller, installed, namespace):
    installed.apply(foreign("configmap", "web", namespace))
    uid = installed.get("configmap", "web", namespace)["metadata"]["uid"]
    installed.apply(myweb.manifest("web", namespace, annotations={"steward.dev/adopt": "true"}))
    web = myweb.wait_settled(installed, "web", namespace)
    taken = installed.get("configmap", "web", namespace)
    assert taken["metadata"]["uid"] == uid
    assert taken["metadata"]["annotations"]["steward.dev/adopted-by"] == \
        f'MyWeb/web/{web["metadata"]["uid"]}'
    assert "ownerReferences" not in taken["metadata"]
    assert taken["data"] == {"theirs": "kept", "index.html": "<p>web</p>"}


def test_node_port_held_by_a_service_is_reported(controller, installed, namespace):
    port = myweb.free_node_port(installed)
    installed.apply({**foreign("service", "holder", namespace), "spec": {
        "type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}})
    installed.apply(myweb.manifest("web", namespace, nodePortNumber=port))
    found = myweb.wait_condition(installed, "web", namespace, "NodePortAllocated",
                                 "NodePortUnavailable")
    assert found["message"].startswith(f"node port {port} is in use by Service {namespace}/holder;")
    web = installed.get(myweb.KIND, "web", namespace)
    assert condition(web, "Reconciling") and not condition(web, "Stalled")
    assert condition(web, "Ready")["reason"] == "NodePortUnavailable"
    assert installed.get("deployment", "web", namespace)
    installed.wait_event("web", namespace, "NodePortUnavailable", str(port))
    # When it is freed, it is allocated at once, not at the next attempt within a minute.
    installed.delete("service", "holder", namespace)
    assert myweb.wait_settled(installed, "web", namespace, 15)["status"]["nodePort"] == port


def test_unavailable_node_port_keeps_the_service(controller, installed, namespace):
    port = myweb.free_node_port(installed)
    installed.apply({**foreign("service", "holder", namespace), "spec": {
        "type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}})
    web = myweb.create_settled(installed, "web", namespace)
    service = installed.get("service", "web", namespace)
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"nodePortNumber": port}})
    myweb.wait_condition(installed, "web", namespace, "NodePortAllocated", "NodePortUnavailable")
    now = installed.get("service", "web", namespace)
    assert now["metadata"]["uid"] == service["metadata"]["uid"]
    assert now["spec"] == service["spec"]
    status = installed.get(myweb.KIND, "web", namespace)["status"]
    assert status["nodePort"] == web["status"]["nodePort"]
    assert status["completed"] is False


def test_second_myweb_of_a_node_port_is_reported(controller, installed, namespace):
    port = myweb.free_node_port(installed)
    older = myweb.create_settled(installed, "older", namespace, nodePortNumber=port)
    installed.apply(myweb.manifest("younger", namespace, nodePortNumber=port))
    found = myweb.wait_condition(installed, "younger", namespace, "NodePortAllocated",
                                 "NodePortUnavailable")
    assert f"MyWeb {namespace}/older" in found["message"]
    assert older["status"]["nodePort"] == port
    assert installed.get("service", "younger", namespace) is None
    # The status does not reveal names in other namespaces.
    elsewhere = f"{namespace}z"  # of two objects created in one second, the first by name wins
    installed.create_namespace(elsewhere)
    installed.apply(myweb.manifest("stranger", elsewhere, nodePortNumber=port))
    found = myweb.wait_condition(installed, "stranger", elsewhere, "NodePortAllocated",
                                 "NodePortUnavailable")
    assert "is in use by MyWeb in another namespace;" in found["message"]
    installed.delete_namespace(elsewhere)
    # The older one changes its port: the younger gets the old one at once.
    installed.patch(myweb.KIND, "older", namespace, {"spec": {"nodePortNumber": 0}})
    other = myweb.free_node_port(installed)
    installed.patch(myweb.KIND, "older", namespace, {"spec": {"nodePortNumber": other}})
    assert myweb.wait_settled(installed, "younger", namespace, 15)["status"]["nodePort"] == port


def test_node_port_outside_server_range_is_reported(controller, installed, namespace, run_steward):
    """steward is configured with a wider range than the API server has."""
    controller.stop()
    try:
        run_steward("--node-port-range", "20000-40000")
        installed.apply(myweb.manifest("web", namespace, nodePortNumber=25000))
        found = myweb.wait_condition(installed, "web", namespace, "Stalled", "OutOfRange")
        assert "25000" in found["message"]
        installed.patch(myweb.KIND, "web", namespace, {"spec": {"nodePortNumber": 0}})
        myweb.wait_settled(installed, "web", namespace)
    finally:
        controller.start()


def test_quota_refusal_stalls_until_lifted(controller, installed, namespace):
    """A quota makes it Stalled; when the quota is lifted, the next reconcile succeeds."""
    installed.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                     "metadata": {"name": "none", "namespace": namespace},
                     "spec": {"hard": {"services": "0"}}})
    # A quota refuses nothing until its use has been counted.
    installed.wait_for("resourcequota", "none", namespace, lambda o: "hard" in o.get("status", {}))
    installed.apply(myweb.manifest("web", namespace))
    found = myweb.wait_condition(installed, "web", namespace, "Stalled", "QuotaExceeded")
    assert "exceeded quota: none" in found["message"]
    assert found["message"].startswith('Service "web" could not be written')
    assert found["message"].endswith(NEXT_RUN)
    installed.delete("resourcequota", "none", namespace)
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
    myweb.wait_settled(installed, "web", namespace)


def test_failed_reconcile_is_logged_once(controller, installed, namespace):
    """With the error; not once more for the event that its first failure makes."""
    name = f"{namespace}.example.com"
    installed.apply({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [{
            "name": name, "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
            "objectSelector": {"matchLabels": {"app.kubernetes.io/instance": "logged"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                       "resources": ["configmaps"]}]}]})
    try:
        installed.apply(myweb.manifest("logged", namespace))

        def lines(text):
            return [line for line in controller.log() if line["msg"] == text
                    and line.get("namespace") == namespace]
        wait.until("a run that fails", lambda: lines("reconcile failed"))
        wait.until("the event of it", lambda: [
            e for e in installed.list("events", namespace) if e["type"] == "Warning"
            and "failed calling webhook" in (e.get("message") or e.get("note") or "")])
        assert all("failed calling webhook" in line["error"] for line in lines("reconcile failed"))
        assert not lines("the object is not ready")
    finally:
        installed.delete("validatingwebhookconfiguration", name)
        installed.annotate(myweb.KIND, "logged", namespace, {"steward.dev/reconcile-at": "1"})
    myweb.wait_settled(installed, "logged", namespace)
