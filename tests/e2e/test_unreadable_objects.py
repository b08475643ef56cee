# SPDX-License-Identifier: Apache-2.0
"""Objects of strangers that other JSON readers refuse, in every resource that steward lists: what the
API server stores and sends is read, and an object that is too large to be read costs only itself."""

import contextlib
import http.client
import json
import ssl

import pytest

from support import cluster as k8s
from support import incident, myweb, optional, paths, rights, wait
from support import steward as stw
from support.strangers import LARGE, WHOLE, Strangers, may_be_listed, without_hostile


class Observer:
    """Reads /debug/state and /metrics of a steward, as an engineer on call may."""

    def __init__(self, cluster, steward, namespace):
        self.steward = steward
        cluster.kubectl("apply", "-k", str(paths.TOP / "config" / "rbac"))
        cluster.create_account(f"{namespace}/on-call")
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{namespace}-on-call"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": "steward-debug-reader"},
                "subjects": [{"kind": "ServiceAccount", "name": "on-call", "namespace": namespace}]}
        cluster.apply(role)
        self.token = cluster.token_of(f"{namespace}/on-call")

    def read(self, path):
        """The text of a page."""
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        with contextlib.closing(http.client.HTTPSConnection(
                "127.0.0.1", self.steward.metrics_port, timeout=20, context=tls)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            reply = connection.getresponse()
            text = reply.read().decode()
            assert reply.status == 200, text
            return text

    def state(self):
        """/debug/state as a dict."""
        return json.loads(self.read("/debug/state"))

    def unreadable(self, namespace):
        """{(resource, name): reason} of this namespace."""
        return {(u["resource"], u["name"]): u["reason"] for u in self.state()["unreadable"]
                if u["namespace"] == namespace}

    def count(self, resource):
        """Its gauge."""
        start = f'steward_unreadable_objects{{resource="{resource}"}} '
        return next(float(line[len(start):]) for line in self.read("/metrics").splitlines()
                    if line.startswith(start))


def assert_repairs(cluster, namespace, name):
    """Each child that another client changes is put right."""
    before = myweb.children(cluster, name, namespace)
    drift = {
        "configmap": {"data": {key: "drift" for key in before["configmap"]["data"]}},
        "service": {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}},
        "deployment": [{"op": "replace", "value": "registry.invalid/drift:1",
                        "path": "/spec/template/spec/containers/0/image"}],
    }
    for kind, patch in drift.items():
        cluster.patch(kind, name, namespace, patch)
    for kind, place in (("configmap", ("data",)), ("service", ("spec", "selector")),
                        ("deployment", ("spec", "template", "spec", "containers"))):
        def value(obj, place=place):
            for step in place:
                obj = obj[step]
            return [c["image"] for c in obj] if place[-1] == "containers" else obj
        want = value(before[kind])
        cluster.wait_for(kind, name, namespace, lambda obj, v=value, w=want: v(obj) == w,
                         what=f"the drift of the {kind} to be repaired")


@pytest.fixture
def strangers(installed, namespace):
    """A Strangers in a namespace of its own, on a server with the definitions of others."""
    stw.uninstall_webhooks(installed)
    installed.apply([optional.definition(*optional.MONITOR), optional.definition(*optional.ROUTE)])
    installed.wait_established()
    for word, name in stw.WEBHOOK_CONFIGURATIONS:
        installed.create({"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name},
                          "kind": installed.kinds.of_word(word).kind, "webhooks": []})
    one = Strangers(installed, f"{namespace}-strangers")
    yield one
    one.remove()
    stw.uninstall_webhooks(installed)
    installed.delete("clusterrolebinding", f"{namespace}-on-call")
    optional.uninstall(installed)


@pytest.mark.oldest("what the API server writes")
def test_unreadable_objects_do_not_affect_others(installed, run_steward, namespace, strangers,
                                                 steward_binary):
    """Before its start and while it runs: it is ready, repairs drift, and names what it skips."""
    grants, since = rights.granted(steward_binary), rights.now()
    assert may_be_listed(grants) <= set(strangers.of), "no hostile object of these is written here"
    strangers.write("early")
    strangers.mark(grants)
    # Lists of large objects at the same time do not have to wait for each other.
    one = run_steward("--metrics-secure=true", "--memory-limit=1024")
    observer = Observer(installed, one, namespace)
    large = {(resource, "early-large") for resource in WHOLE}
    assert set(observer.unreadable(strangers.namespace)) == large
    assert set(observer.unreadable(strangers.namespace).values()) == {"it has more than 8 MiB of JSON"}
    doctor = k8s.run([steward_binary, "doctor", "--kubeconfig", installed.kubeconfig], check=False)
    for resource, name in large:
        assert f"steward skips {resource} {strangers.namespace}/{name}: it has more than 8 MiB" in doctor.stdout
    caches = {c["resource"]: c for c in observer.state()["caches"]}
    myweb.create_settled(installed, "honest", namespace)
    assert_repairs(installed, namespace, "honest")

    strangers.write("late")
    strangers.mark(grants)
    large |= {(resource, "late-large") for resource in WHOLE}
    wait.until("the late ones to be named", lambda: set(observer.unreadable(strangers.namespace)) == large)
    assert_repairs(installed, namespace, "honest")
    for resource in WHOLE:
        assert observer.count(resource) == 2
    state = observer.state()
    assert {c["resource"]: c["problem"] for c in state["caches"] if c["problem"]} == {}
    assert {name: c["failures"] for name, c in caches.items()} == {
        c["resource"]: c["failures"] for c in state["caches"]}
    assert one.readyz()[0] == 200
    assert without_hostile(installed, since) == [], "lists of steward's that this test does not attack"
    lines = {line["object"] for line in one.log() if "cannot be read" in line["msg"]}
    assert {o for o in lines if o.startswith(strangers.namespace)} == {
        f"{strangers.namespace}/{name}-large" for name in ("early", "late")}

    strangers.remove_large("early")
    strangers.remove_large("late")
    wait.until("the deleted ones to be forgotten", lambda: not observer.unreadable(strangers.namespace))
    assert observer.count("deployments") == 0


def test_unreadable_child_is_reported_by_its_owner(installed, run_steward, namespace):
    """At once, and it creates the child again when that is deleted."""
    stw.uninstall_webhooks(installed)
    one = run_steward()
    myweb.create_settled(installed, "web", namespace)
    with incident.follow("StewardObjectUnreadable", installed) as runbook:
        runbook.before(one.metrics_text())
        installed.patch("deployment", "web", namespace, [
            {"op": "add", "path": "/spec/template/spec/containers/0/env",
             "value": [{"name": "V", "value": LARGE}]}])
        about = myweb.wait_condition(installed, "web", namespace, "Ready", "ChildUnreadable", seconds=20)
        assert 'Deployment "web" cannot be read: it has more than 8 MiB of JSON' in about["message"]
        runbook.fires(one.metrics_text)
        assert f"{namespace}/web" in runbook.logs(one.log_path.read_text("utf-8"))
        installed.delete("deployment", "web", namespace)
        myweb.wait_settled(installed, "web", namespace)
        wait.until("it to be forgotten", lambda: one.metric("steward_unreadable_objects") == 0)
        runbook.ends(one.metrics_text)
