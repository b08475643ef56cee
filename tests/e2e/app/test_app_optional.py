# SPDX-License-Identifier: Apache-2.0
"""Children of definitions that a cluster may lack: a PodMonitor of the Prometheus operator, an
HTTPRoute of the Gateway API."""

import pytest

from support import app, rest, wait
from support.cluster import condition, is_ready
from support.optional import MONITOR, ROUTE, definition, uninstall

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SOON = 60  # seconds: steward looks for them every 15 s
SPEC = {"metrics": {"enabled": True, "labels": {"release": "prom"}},
        "httpRoute": {"gateway": {"name": "gw", "namespace": "infra"}, "host": "a.example.com"}}


def path_of(which, namespace, name=""):
    """The path of the App's child."""
    group, kind = which
    return f"/apis/{group}/v1/namespaces/{namespace}/{kind.lower()}s" + (f"/{name}" if name else "")


def child(cluster, which, namespace, name="web"):
    """The object, or None: also while the cluster has no such kind."""
    reply = cluster.api.request("GET", path_of(which, namespace, name))
    assert reply.status in (200, 404), reply
    return reply.object if reply.status == 200 else None


@pytest.fixture
def bare(controller, installed):
    """The cluster, without these definitions before and after the test."""
    uninstall(installed)
    yield installed
    uninstall(installed)


@pytest.mark.oldest("optional definitions; server-side apply of custom resources")
def test_optional_crds_installed_later_are_used(bare, namespace):
    """Without the definitions the App says so; with them its objects are created, repaired and
    removed; when they are uninstalled, it says so again."""
    bare.apply(app.manifest("web", namespace, **SPEC))
    told = bare.wait_for(app.KIND, "web", namespace,
                         lambda o: condition(o, "RouteSynced").get("reason") == "NotInstalled", 30)
    assert condition(told, "MonitorSynced")["reason"] == "NotInstalled"
    assert "podmonitors.monitoring.coreos.com" in condition(told, "MonitorSynced")["message"]
    assert condition(told, "Ready")["status"] == "False"
    assert "httproutes.gateway.networking.k8s.io" in condition(told, "Ready")["message"]
    bare.patch(app.KIND, "web", namespace, {"spec": {"httpRoute": None}})
    ready = app.wait_ready(bare, "web", namespace)  # metrics alone do not matter
    assert condition(ready, "MonitorSynced")["status"] == "False"
    assert not condition(ready, "RouteSynced")
    bare.patch(app.KIND, "web", namespace, {"spec": {"httpRoute": SPEC["httpRoute"]}})

    bare.apply([definition(*MONITOR), definition(*ROUTE)])
    wait.until("the PodMonitor", lambda: child(bare, MONITOR, namespace), SOON)
    wait.until("the HTTPRoute", lambda: child(bare, ROUTE, namespace), SOON)
    ready = app.wait_ready(bare, "web", namespace)
    assert condition(ready, "MonitorSynced")["status"] == "True"
    assert condition(ready, "RouteSynced")["status"] == "Unknown"
    assert "repairs" not in ready["status"]
    monitor, route = child(bare, MONITOR, namespace), child(bare, ROUTE, namespace)
    assert monitor["metadata"]["labels"]["release"] == "prom"
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "http", "path": "/metrics"}]
    assert monitor["metadata"]["ownerReferences"][0]["uid"] == ready["metadata"]["uid"]
    assert route["spec"]["hostnames"] == ["a.example.com"]
    assert route["spec"]["rules"][0]["backendRefs"][0]["name"] == "web"

    # The Gateway's answer is in the condition.
    bare.api.do("PATCH", path_of(ROUTE, namespace, "web") + "/status", {"status": {"parents": [
        {"parentRef": {"name": "gw"}, "controllerName": "example.com/c", "conditions": [
            {"type": "Accepted", "status": "False", "reason": "NoMatchingParent",
             "message": "no listener"}]}]}}, rest.MERGE)
    told = app.wait_condition(bare, "web", namespace, "RouteSynced", "RouteNotAccepted")
    assert told["message"] == "NoMatchingParent: no listener"
    # What another client changes or deletes is put back.
    bare.api.do("PATCH", path_of(ROUTE, namespace, "web"),
                {"spec": {"hostnames": ["evil.example.com"]}}, rest.MERGE)
    bare.wait_event("web", namespace, "DriftRepaired", "hostnames")
    bare.api.do("DELETE", path_of(MONITOR, namespace, "web"))
    wait.until("the PodMonitor again", lambda: child(bare, MONITOR, namespace))
    bare.patch(app.KIND, "web", namespace, {"spec": {"metrics": {"enabled": False},
                                                     "httpRoute": None}})
    wait.until("both to be removed", lambda: not child(bare, MONITOR, namespace)
               and not child(bare, ROUTE, namespace))
    ready = bare.wait_for(app.KIND, "web", namespace,
                          lambda o: is_ready(o) and not condition(o, "MonitorSynced"))
    assert not condition(ready, "RouteSynced")

    bare.patch(app.KIND, "web", namespace, {"spec": SPEC})
    wait.until("the HTTPRoute", lambda: child(bare, ROUTE, namespace))
    uninstall(bare)
    bare.wait_for(app.KIND, "web", namespace,
                  lambda o: condition(o, "RouteSynced").get("reason") == "NotInstalled"
                  and condition(o, "MonitorSynced").get("reason") == "NotInstalled", SOON)


@pytest.mark.oldest("optional definitions")
def test_foreign_podmonitor_and_httproute_are_not_touched(bare, namespace):
    """Another tenant's PodMonitor and HTTPRoute of that name are not touched."""
    bare.apply([definition(*MONITOR), definition(*ROUTE)])
    bare.wait_established()
    for group, kind in (MONITOR, ROUTE):
        wait.until("the kind to be served", lambda g=group, k=kind: bare.api.request(
            "POST", path_of((g, k), namespace), {
                "apiVersion": f"{g}/v1", "kind": k, "metadata": {"name": "web"},
                "spec": {"mine": True}}).status == 201)
    bare.apply(app.manifest("web", namespace, **SPEC))
    for about in ("RouteSynced", "MonitorSynced"):
        app.wait_condition(bare, "web", namespace, about, "NameConflict", SOON)
    bare.delete(app.KIND, "web", namespace)
    for which in (MONITOR, ROUTE):
        assert child(bare, which, namespace)["spec"] == {"mine": True}
