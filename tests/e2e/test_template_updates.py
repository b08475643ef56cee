# SPDX-License-Identifier: Apache-2.0
"""A new version of steward whose pod templates differ restarts nothing by itself."""

import json
import time

import pytest
from support import app, faults, myweb, wait
from support import steward as stw
from support.cluster import condition

pytestmark = pytest.mark.oldest("ownership of server-side apply, conditions of the API server")

ANNOTATION = "steward.dev/update-template"
MARK = "spec.template.metadata.annotations.steward.dev/test"


class Versions:
    """Stewards that are the same except for the pod templates that they make."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.one = None

    def start(self, version, *flags):
        """Replaces the one that runs; version None makes the templates of the present sources."""
        self.end()
        self.one = stw.Steward(faults.binary(), self.cluster, self.cluster.kubeconfig_steward,
                               self.folder, list(flags), name="version")
        if version:
            self.one.env = {**self.one.env, "STEWARD_TEMPLATE": version}
        return self.one.start()

    def end(self):
        """Stops the one that runs."""
        if self.one and self.one.running():
            assert self.one.stop() == 0, self.one.log_tail()


@pytest.fixture
def versions(installed, tmp_path):
    """A Versions, of which the first runs."""
    stw.uninstall_webhooks(installed)
    all_of_them = Versions(installed, tmp_path)
    all_of_them.start(None)
    yield all_of_them
    all_of_them.end()


@pytest.fixture
def two(versions, installed, namespace):
    """An App "shop" and a MyWeb "site"; [(kind, name)]."""
    # The API server drops the empty value.
    app.create_ready(installed, "shop", namespace, env=[
        {"name": "B", "value": "1"}, {"name": "A", "value": "2"}, {"name": "C", "value": ""}])
    myweb.create_settled(installed, "site", namespace)
    return [(app.KIND, "shop"), (myweb.KIND, "site")]


def generation(cluster, name, namespace):
    """Of the Deployment."""
    return cluster.get("deployment", name, namespace)["metadata"]["generation"]


def mark(cluster, name, namespace):
    """Of which version the pod template is."""
    template = cluster.get("deployment", name, namespace)["spec"]["template"]
    return template["metadata"].get("annotations", {}).get("steward.dev/test")


def wait_outdated(cluster, kind, name, namespace):
    """Until the condition is True; returns it."""
    cluster.wait_for(kind, name, namespace, lambda o: condition(o, "TemplateOutdated"))
    return cluster.wait_condition(kind, name, namespace, "TemplateOutdated", "NewVersion")


def wait_updated(cluster, kind, name, namespace):
    """Until the condition is gone; returns the object."""
    return cluster.wait_for(kind, name, namespace, lambda o: not condition(o, "TemplateOutdated")
                            and condition(o, "Ready")["status"] == "True")


def consent(found):
    """What the condition asks for."""
    return found["message"].partition(ANNOTATION + "=")[2].partition(" ")[0]


def test_new_template_waits_for_consent(versions, two, installed, namespace):
    before = {name: generation(installed, name, namespace) for _, name in two}
    new = versions.start("2")
    for kind, name in two:
        found = wait_outdated(installed, kind, name, namespace)
        assert found["status"] == "True" and MARK in found["message"]
        assert f'Deployment "{name}"' in found["message"]
        assert generation(installed, name, namespace) == before[name]
        assert "repairs" not in installed.get(kind, name, namespace)["status"]
    assert new.metric("steward_objects", kind="App", condition="TemplateOutdated", status="True") == 1
    # It is settled, also after another start.
    quiet = stw.quiet_requests(installed, namespace)
    new = versions.start("2")
    for kind, name in two:
        installed.annotate(kind, name, namespace, {"steward.dev/reconcile-at": "now"})
    wait.until("two passes", lambda: sum(new.metric("controller_runtime_reconcile_total",
               controller=c) for c in ("app", "myweb")) >= 4)
    wait.stays("no request", lambda: stw.requests(installed, namespace) == quiet, 5, every=0.5)
    for kind, name in two:
        digits = consent(wait_outdated(installed, kind, name, namespace))
        assert len(digits) == 12
        installed.annotate(kind, name, namespace, {ANNOTATION: digits})
        found = wait_updated(installed, kind, name, namespace)
        assert mark(installed, name, namespace) == "2"
        assert generation(installed, name, namespace) == before[name] + 1
        assert "repairs" not in found["status"]
    # The consent was for that version only.
    versions.start("3")
    for kind, name in two:
        wait_outdated(installed, kind, name, namespace)
        assert mark(installed, name, namespace) == "2"
    versions.start("3", "--template-updates=immediately")
    for kind, name in two:
        wait_updated(installed, kind, name, namespace)
        assert mark(installed, name, namespace) == "3"
        assert generation(installed, name, namespace) == before[name] + 2


def test_spec_change_applies_the_new_template(versions, two, installed, namespace):
    """A change that restarts the pods anyway brings it; one of other fields leaves the pods alone."""
    versions.start("2")
    old = {}
    for kind, name in two:
        wait_outdated(installed, kind, name, namespace)
        old[name] = installed.get("deployment", name, namespace)["spec"]["template"]
    installed.patch(app.KIND, "shop", namespace, {"spec": {"strategy": {"minReadySeconds": 7}}})
    installed.wait_for("deployment", "shop", namespace,
                       lambda o: o["spec"].get("minReadySeconds") == 7)
    installed.patch("deployment", "site", namespace, {"spec": {"replicas": 5}})
    installed.wait_event("site", namespace, "DriftRepaired", "spec.replicas")
    for kind, name in two:
        app_now = installed.wait_for(kind, name, namespace, lambda o: o["status"]
                                     ["observedGeneration"] == o["metadata"]["generation"])
        assert condition(app_now, "TemplateOutdated")["status"] == "True"
        assert installed.get("deployment", name, namespace)["spec"]["template"] == old[name]
    before = {name: generation(installed, name, namespace) for _, name in two}
    installed.patch(app.KIND, "shop", namespace, {"spec": {"env": [{"name": "B", "value": "3"}]}})
    installed.patch(myweb.KIND, "site", namespace, {"spec": {"mountPath": "/srv"}})
    for kind, name in two:
        wait_updated(installed, kind, name, namespace)
        assert mark(installed, name, namespace) == "2"
        assert generation(installed, name, namespace) == before[name] + 1


def test_scaling_during_upgrade_keeps_the_template(versions, two, installed, namespace):
    """No version has seen that change when the new one starts: the pods stay as they are."""
    old = {name: installed.get("deployment", name, namespace)["spec"]["template"]
           for _, name in two}
    versions.end()
    for kind, name in two:
        installed.patch(kind, name, namespace, {"spec": {"replicas": 3}})
    versions.start("2")
    for kind, name in two:
        installed.wait_for("deployment", name, namespace, lambda o: o["spec"]["replicas"] == 3)
        found = wait_outdated(installed, kind, name, namespace)
        assert MARK in found["message"]
        assert installed.get("deployment", name, namespace)["spec"]["template"] == old[name]
    # One that changes the pods brings the new template.
    versions.end()
    installed.patch(app.KIND, "shop", namespace, {"spec": {"env": [{"name": "B", "value": "3"}]}})
    installed.patch(myweb.KIND, "site", namespace, {"spec": {"mountPath": "/srv"}})
    versions.start("3")
    for kind, name in two:
        wait.until("the new template", lambda name=name: mark(installed, name, namespace) == "3")


def test_rollback_keeps_the_pods(versions, two, installed, namespace):
    """The pods stay as they are, there and back, also if the rest is written on the way."""
    old = {name: installed.get("deployment", name, namespace)["spec"]["template"]
           for _, name in two}
    versions.start("2")
    for kind, name in two:
        wait_outdated(installed, kind, name, namespace)
    installed.patch(app.KIND, "shop", namespace, {"spec": {"strategy": {"minReadySeconds": 7}}})
    installed.wait_for("deployment", "shop", namespace,
                       lambda o: o["spec"].get("minReadySeconds") == 7)
    before = {name: generation(installed, name, namespace) for _, name in two}
    versions.start(None)
    for kind, name in two:
        found = wait_updated(installed, kind, name, namespace)
        assert "repairs" not in found["status"]
        assert installed.get("deployment", name, namespace)["spec"]["template"] == old[name]
        assert generation(installed, name, namespace) == before[name]


def test_forged_deployment_fields_do_not_block_the_template(versions, two, installed, namespace):
    """Neither forged fields nor our own field manager keep the pod template of a tenant, or the
    new one away."""
    versions.start("2")
    for kind, name in two:
        wait_outdated(installed, kind, name, namespace)
    evil = {"template": {"metadata": {"annotations": {"steward.dev/test": "evil"}},
                         "spec": {"automountServiceAccountToken": True}}}
    installed.patch("deployment", "site", namespace, {"spec": evil})
    installed.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=steward-app",
                      "-f", "-", stdin=_with(installed, "shop", namespace))
    for kind, name in two:
        wait.until("the new template", lambda name=name: mark(installed, name, namespace) == "2")
        wait_updated(installed, kind, name, namespace)
        pod = installed.get("deployment", name, namespace)["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        installed.wait_event(name, namespace, "TemplateUpdated", f'Deployment "{name}"')


def forge(cluster, kind, name, namespace, entry):
    """What a tenant with a role of its own can write into the status."""
    entry = {"object": f"Deployment/{name}", **entry}
    cluster.patch(kind, name, namespace, {"status": {"podTemplates": [entry]}}, subresource="status")
    cluster.annotate(kind, name, namespace, {"steward.dev/reconcile-at": str(entry)})


def remembered(cluster, kind, name, namespace):
    """status.podTemplates."""
    return cluster.get(kind, name, namespace)["status"].get("podTemplates")


def test_forged_status_restarts_nothing(versions, two, installed, namespace):
    """What is forged there restarts nothing, and keeps nothing from being repaired."""
    zeros, ones = "0" * 32, "1" * 32
    lies = [{"hash": ones}, {"hash": "no digits"}, {}, {"hash": zeros, "storedHash": zeros},
            {"hash": ones, "storedHash": ones, "waitingHash": ones}]
    before = {name: generation(installed, name, namespace) for _, name in two}
    true = {name: remembered(installed, kind, name, namespace) for kind, name in two}
    assert all(true.values())
    for kind, name in two:
        for lie in lies:
            forge(installed, kind, name, namespace, lie)
            installed.wait_for(kind, name, namespace,
                               lambda o, name=name: o["status"].get("podTemplates") == true[name])
        assert generation(installed, name, namespace) == before[name]
    versions.start("2")
    for kind, name in two:
        wait_outdated(installed, kind, name, namespace)
    # A change by hand is found and repaired; what is remembered of the template has no effect.
    for kind, name in two:
        installed.annotate(kind, name, namespace, {"steward.dev/paused": "true"})
        installed.wait_for(kind, name, namespace,
                           lambda o: condition(o, "Ready")["reason"] == "Paused")
        installed.patch("deployment", name, namespace, {"spec": {"template": {"spec": {
            "automountServiceAccountToken": True}}}})
        forge(installed, kind, name, namespace, {"hash": ones, "storedHash": zeros})
        installed.annotate(kind, name, namespace, {"steward.dev/paused": None})
        wait.until("the new template", lambda name=name: mark(installed, name, namespace) == "2")
        wait_updated(installed, kind, name, namespace)
        pod = installed.get("deployment", name, namespace)["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False


def test_new_template_waits_for_a_window(versions, two, installed, namespace):
    """Of an App that has one; a change of the windows itself restarts nothing."""
    versions.start("2")
    for kind, name in two:
        wait_outdated(installed, kind, name, namespace)
    before = generation(installed, "shop", namespace)
    day = 86400
    now = time.time()
    for windows, same in (([app.window(now + day, now + day + 3600)], True),
                          ([app.window(now - 3600, now + 3600)], False)):
        installed.patch(app.KIND, "shop", namespace, {"spec": {"restartOnChange": {
            "enabled": True, "windows": windows}}})
        if same:
            found = installed.wait_for(app.KIND, "shop", namespace, lambda o: o["status"]
                                       ["observedGeneration"] == o["metadata"]["generation"])
            assert condition(found, "TemplateOutdated")["status"] == "True"
            assert generation(installed, "shop", namespace) == before
    wait_updated(installed, app.KIND, "shop", namespace)
    assert mark(installed, "shop", namespace) == "2"
    assert generation(installed, "shop", namespace) == before + 1
    assert mark(installed, "site", namespace) is None


def _with(cluster, name, namespace):
    """The Deployment with another pod template, as JSON."""
    found = cluster.get("deployment", name, namespace)
    found["spec"]["template"]["spec"]["automountServiceAccountToken"] = True
    for key in ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"):
        found["metadata"].pop(key, None)
    found.pop("status", None)
    return json.dumps(found)
