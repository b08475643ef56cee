# SPDX-License-Identifier: Apache-2.0
"""spec.restartOnChange: restarts after changes of the Secrets and ConfigMaps that the pods read."""

import time

import pytest
from support import app, hooks, wait
from support import steward as stw

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

INPUTS = "mycompany.com/inputs-hash"
READS = {
    "restartOnChange": {"enabled": True, "minIntervalSeconds": 3600},
    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "token"}}}],
    "podTemplate": {"spec": {"volumes": [{"name": "files", "configMap": {"name": "files"}}]}},
}


@pytest.fixture
def other_namespace(installed, namespace):
    """A second namespace."""
    name = f"{namespace}-other"
    installed.create_namespace(name)
    yield name
    installed.delete_namespace(name)


def create_inputs(cluster, namespace):
    """The Secret and the ConfigMap of READS."""
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "a"},
                   "metadata": {"name": "creds", "namespace": namespace}})
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
                   "metadata": {"name": "files", "namespace": namespace}})


def change(cluster, kind, name, namespace, value):
    """Changes a value of a Secret or ConfigMap."""
    field = "stringData" if kind == "secret" else "data"
    cluster.patch(kind, name, namespace, {field: {"token": value}})


def annotation(cluster, namespace, name="web"):
    """The annotation of the pod template, or None."""
    template = app.deployment(cluster, name, namespace)["spec"]["template"]
    return template["metadata"]["annotations"].get(INPUTS)


def inputs(cluster, namespace, name="web"):
    """status.inputs of the App."""
    return cluster.get(app.KIND, name, namespace)["status"].get("inputs", {})


def wait_seen(cluster, namespace, name="web"):
    """Until the first versions are recorded."""
    wait.until("the versions of the inputs", lambda: inputs(cluster, namespace, name).get("hash"))


def deployment_writes(cluster, namespace):
    """The writes of steward to the Deployment."""
    return [r for r in stw.requests(cluster, namespace, changing=True)
            if "/deployments/web" in r[1]]


@pytest.mark.oldest("metadata-only watches, an annotation of the pod template")
def test_changed_secret_restarts_the_pods(controller, installed, namespace):
    create_inputs(installed, namespace)
    app.create_ready(installed, "web", namespace, **READS)
    wait_seen(installed, namespace)
    assert annotation(installed, namespace) is None
    change(installed, "secret", "creds", namespace, "b")
    first = wait.until("the restart", lambda: annotation(installed, namespace))
    installed.wait_event("web", namespace, "Restarted", "has changed")
    found = app.wait_ready(installed, "web", namespace)
    assert found["status"]["inputs"]["restartHash"] == first
    assert "repairs" not in found["status"]
    # the next one waits for the interval
    change(installed, "configmap", "files", namespace, "c")
    wait.until("the pending restart", lambda: inputs(installed, namespace).get("pending"))
    assert annotation(installed, namespace) == first


def test_missing_optional_secret_delays_no_restart(controller, installed, namespace):
    """It delays no restart, and counts as a change when it is created."""
    create_inputs(installed, namespace)
    optional = [{"name": "extra", "secret": {"secretName": "extra", "optional": True}}]
    reads = {**READS, "podTemplate": {"spec": {"volumes": [
        *READS["podTemplate"]["spec"]["volumes"], *optional]}}}
    app.create_ready(installed, "web", namespace, **reads)
    wait_seen(installed, namespace)
    installed.apply({"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "a"},
                     "metadata": {"name": "extra", "namespace": namespace}})
    wait.until("the restart", lambda: annotation(installed, namespace))
    installed.delete("secret", "extra", namespace)
    wait.until("the pending restart", lambda: inputs(installed, namespace).get("pending"))


def test_toggling_restart_on_change_restarts_nothing(controller, installed, namespace):
    """Neither restarts the pods, and without it a change does not either."""
    create_inputs(installed, namespace)
    off = {**READS, "restartOnChange": {"enabled": False}}
    app.create_ready(installed, "web", namespace, **off)
    app.create_ready(installed, "witness", namespace, **READS)
    wait_seen(installed, namespace, "witness")
    generation = app.deployment(installed, "web", namespace)["metadata"]["generation"]
    change(installed, "secret", "creds", namespace, "b")
    # The change and the App reach steward by different watches: one that was seen later would count.
    wait.until("steward to see the change", lambda: annotation(installed, namespace, "witness"))
    installed.apply(app.manifest("web", namespace, **READS))
    wait_seen(installed, namespace)
    assert app.deployment(installed, "web", namespace)["metadata"]["generation"] == generation
    change(installed, "secret", "creds", namespace, "c")
    first = wait.until("the restart", lambda: annotation(installed, namespace))
    installed.apply(app.manifest("web", namespace, **off))
    wait.until("the App without it", lambda: "hash" not in inputs(installed, namespace))
    assert annotation(installed, namespace) == first


@pytest.mark.oldest("conflicts of a status")
def test_disabling_during_a_restart_restarts_once(controller, installed, namespace, hook):
    """While steward writes the restart into the Deployment: the pods are restarted once, not again."""
    create_inputs(installed, namespace)
    app.create_ready(installed, "web", namespace, **READS)
    wait_seen(installed, namespace)
    templates, switched = [], []

    def answer(request):
        templates.append(request["object"]["spec"]["template"])
        if INPUTS in templates[-1]["metadata"]["annotations"] and not switched:
            switched.append(True)
            installed.patch(app.KIND, "web", namespace,
                            {"spec": {"restartOnChange": {"enabled": False}}})
        return hooks.allow(request)
    hook(answer, "web")
    change(installed, "secret", "creds", namespace, "b")
    first = wait.until("the restart", lambda: annotation(installed, namespace))
    found = wait.until("the App without it", lambda: _switched_off(installed, namespace))
    assert found["inputs"]["restartHash"] == first == annotation(installed, namespace)
    assert "repairs" not in found
    hashes = [t["metadata"]["annotations"].get(INPUTS) for t in templates]
    assert hashes == sorted(hashes, key=lambda h: h is not None), hashes
    assert set(hashes) == {None, first}


def _switched_off(cluster, namespace):
    """The status of the App once its generation without restarts was reconciled, or None."""
    found = cluster.get(app.KIND, "web", namespace)
    status = found["status"]
    done = (status["observedGeneration"] == found["metadata"]["generation"]
            and not found["spec"]["restartOnChange"]["enabled"]
            and "restarting" not in status.get("inputs", {}) and "hash" not in status["inputs"])
    return status if done else None


@pytest.mark.oldest("an annotation of the pod template")
def test_restart_missed_in_window_waits_for_the_next(controller, installed, namespace, hook):
    """The Deployment cannot be written until then: the pods are restarted once, in the next window."""
    now = time.time()
    opened, closed = (app.window(now - 3600, now + 7200),
                      app.window(now + 12 * 3600, now + 13 * 3600))
    create_inputs(installed, namespace)
    restarts = {**READS["restartOnChange"], "windows": [opened]}
    app.create_ready(installed, "web", namespace, **{**READS, "restartOnChange": restarts})
    wait_seen(installed, namespace)
    refused = [True]

    def answer(request):
        marks = request["object"]["spec"]["template"]["metadata"]["annotations"]
        denied = {"allowed": False, "status": {"code": 403, "message": "not now"}}
        return denied if refused and INPUTS in marks else hooks.allow(request)
    hook(answer, "web")
    change(installed, "secret", "creds", namespace, "b")
    app.wait_condition(installed, "web", namespace, "Available", "Forbidden")
    assert inputs(installed, namespace)["restarting"]
    installed.patch(app.KIND, "web", namespace, {"spec": {"restartOnChange": {"windows": [closed]}}})
    installed.wait_for(app.KIND, "web", namespace, lambda o: o["status"]["observedGeneration"]
                       == o["metadata"]["generation"])
    refused.clear()
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/reconcile-at": "now"})
    wait.until("the pending restart", lambda: inputs(installed, namespace).get("pending"))
    app.create_ready(installed, "last", namespace)
    assert annotation(installed, namespace) is None
    generation = app.deployment(installed, "web", namespace)["metadata"]["generation"]
    installed.patch(app.KIND, "web", namespace, {"spec": {"restartOnChange": {"windows": [opened]}}})
    first = wait.until("the restart", lambda: annotation(installed, namespace))
    found = app.wait_ready(installed, "web", namespace)
    assert found["status"]["inputs"]["restartHash"] == first == annotation(installed, namespace)
    assert app.deployment(installed, "web", namespace)["metadata"]["generation"] == generation + 1
    assert "repairs" not in found["status"]


def test_many_changes_cause_one_restart(controller, installed, namespace):
    """A tenant changes a ConfigMap again and again: one restart, few writes of the status."""
    create_inputs(installed, namespace)
    app.create_ready(installed, "web", namespace, **READS)
    wait_seen(installed, namespace)
    change(installed, "configmap", "files", namespace, "first")
    wait.until("the restart", lambda: annotation(installed, namespace))
    wait.until("its end", lambda: not inputs(installed, namespace).get("pending"))
    before = len(stw.requests(installed, namespace, changing=True))
    writes = len(deployment_writes(installed, namespace))
    for i in range(100):
        change(installed, "configmap", "files", namespace, f"{i}")
    wait.until("the pending restart", lambda: inputs(installed, namespace).get("pending"))
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/reconcile-at": "now"})
    app.create_ready(installed, "last", namespace)
    assert len(deployment_writes(installed, namespace)) == writes
    after = [r for r in stw.requests(installed, namespace, changing=True)[before:]
             if r[1].endswith("/apps/web/status")]
    assert len(after) <= 5, after


def test_secret_of_another_namespace_restarts_nothing(controller, installed, namespace, other_namespace):
    """A Secret of that name elsewhere, and one that is deleted, restart nothing."""
    create_inputs(installed, namespace)
    create_inputs(installed, other_namespace)
    app.create_ready(installed, "web", namespace, **READS)
    wait_seen(installed, namespace)
    seen = inputs(installed, namespace)
    change(installed, "secret", "creds", other_namespace, "b")
    installed.delete("configmap", "files", namespace)
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/reconcile-at": "now"})
    app.create_ready(installed, "last", namespace)
    assert inputs(installed, namespace) == seen
    create_inputs(installed, namespace)
    wait.until("the restart after it is back", lambda: annotation(installed, namespace))
