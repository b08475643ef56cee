# SPDX-License-Identifier: Apache-2.0
"""An App's children: created, updated and deleted with it."""

import re

import pytest
from support import app
from support import steward as stw
from support import wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

SELECTOR = {"app.kubernetes.io/name": "app", "app.kubernetes.io/instance": "web"}


@pytest.mark.oldest("server-side apply")
def test_minimal_app_is_ready_with_few_requests(controller, installed, namespace):
    """The minimal App: ConfigMap, Deployment, Service, an event and the status."""
    found = app.create_ready(installed, "web", namespace)
    installed.wait_event("web", namespace, "Created",
                     'ConfigMap "web-config", Deployment "web" and Service "web"')
    made = stw.wait_requests(installed, namespace, 5)
    assert len(made) <= 6, made
    assert all(status in (200, 201) for _, _, status in made), made

    status = found["status"]
    assert [c["type"] for c in status["conditions"]] == [
        "Ready", "Available", "Progressing", "ConfigSynced", "ServiceReady", "Degraded"]
    assert condition(found, "Ready")["reason"] == "Succeeded"
    assert status["phase"] == "Running"
    assert re.fullmatch("[0-9a-f]{32}", status["configHash"])
    assert status["url"] == f"http://web.{namespace}.svc:80"
    assert status["selector"] == "app.kubernetes.io/instance=web,app.kubernetes.io/name=app"


def count(made):
    """(requests for children and the event, writes of the status) until all pods were ready.  After
    that the replica count is left to the autoscaler."""
    paths = [path for _, path, _ in made]
    given_up = next((i for i, path in enumerate(paths) if "steward-app-replicas" in path), None)
    statuses = [path for path in paths[:given_up] if "/status?" in path]
    others = [path for path in paths[:given_up] if path not in statuses]
    return len(others), len(statuses)


def may_write(pods):
    """The allowed number of status writes: one at creation, one for the autoscaler, one per pod.
    The Deployment controller of 1.20 reports pods together, that of 1.37 often one by one."""
    return 2 + pods


@pytest.mark.oldest("the Deployment controller, policy/v1beta1")
def test_app_with_all_children_needs_few_requests(controller, installed, namespace):
    """With pods that become ready one after the other, a PodDisruptionBudget and an autoscaler."""
    installed.component("stop", "scheduler")  # it would report Unschedulable
    try:
        installed.apply(app.manifest("web", namespace, replicas=1,
                                     autoscaling={"enabled": True, "maxReplicas": 4}))
        app.run_pods(installed, "web", namespace, 1)
        app.wait_ready(installed, "web", namespace)
        made = stw.requests(installed, namespace)
        others, statuses = count(made)
        assert others <= 6 and statuses <= may_write(pods=1), made
        installed.apply(app.manifest("two", namespace, replicas=2))
        app.run_pods(installed, "two", namespace, 2)
        found = app.wait_ready(installed, "two", namespace)
        made = [r for r in stw.requests(installed, namespace) if "/two" in r[1]]
        others, statuses = count(made)
        assert others <= 4 and statuses <= may_write(pods=2), made
    finally:
        installed.component("start", "scheduler")
    status = found["status"]
    assert {k: status[k] for k in ("desiredReplicas", "replicas", "readyReplicas",
                                   "availableReplicas", "updatedReplicas")} == {
        "desiredReplicas": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "updatedReplicas": 2}
    assert all(condition(found, c)["status"] == "True"
               for c in ("Ready", "Available", "ConfigSynced", "ServiceReady"))
    assert condition(found, "Degraded")["status"] == "False"
    assert status["lastGood"]["image"] == app.IMAGE
    assert status["lastGood"]["configHash"] == status["configHash"]
    assert "lastError" not in status


def test_initial_replicas_are_released_to_the_autoscaler(controller, installed, namespace):
    """Until then each child is applied once; then steward gives up the replica count."""
    installed.component("stop", "scheduler")
    try:
        installed.apply(app.manifest("web", namespace, replicas=3,
                                     autoscaling={"enabled": True, "maxReplicas": 4}))
        app.run_pods(installed, "web", namespace, 3)
        app.wait_ready(installed, "web", namespace)

        def given_up():
            made = stw.requests(installed, namespace)
            at = [i for i, (_, path, _) in enumerate(made) if "steward-app-replicas" in path]
            return (at, made) if at else None
        at, made = wait.until("the number to be given up", given_up)
        others, statuses = count(made)
        # Each try is a read and a write, and is repeated when the Deployment changes between them.
        tries, written = len(at), [i for i in at if made[i][2] < 300]
        assert len(written) == 1 and tries <= 3 and others <= 5 + 2 * tries, made
        assert statuses <= may_write(pods=3), made
        assert any("/events" in path for _, path, _ in made[:at[0]]), made
    finally:
        installed.component("start", "scheduler")


def test_fifty_apps_need_no_more_requests_each(controller, installed, namespace):
    """No more requests per App than for a single one."""
    names = [f"web{n}" for n in range(50)]
    installed.apply([app.manifest(name, namespace) for name in names])
    wait.until("all of them to be ready", lambda: all(
        app.is_ready(o) for o in installed.list(app.KIND, namespace)), 120)
    for name in names:
        installed.wait_event(name, namespace, "Created")
    made = stw.requests(installed, namespace)
    assert len(made) <= 6 * len(names), len(made)
    selectors = {str(s["spec"]["selector"]) for s in installed.list("service", namespace)}
    assert len(selectors) == len(names)  # no Service selects the pods of another App


@pytest.mark.oldest("defaults of the server")
def test_children_match_the_spec(controller, installed, namespace):
    found = app.create_ready(
        installed, "web", namespace, port=9000, replicas=0, pdb={"enabled": True},
        config={"databaseUrl": "postgres://db/shop", "logLevel": "warn",
                "environment": {"GREETING": "hello"}},
        healthCheck={"path": "/healthz", "liveness": True, "initialDelaySeconds": 3},
        service={"type": "NodePort", "port": 8000, "annotations": {"example.com/a": "b"}},
        env=[{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}])
    made = app.children(installed, "web", namespace)
    assert made["poddisruptionbudget"] is None and made["hpa"] is None
    assert made["configmap"]["data"] == {"LOG_LEVEL": "warn", "GREETING": "hello",
                                         "DATABASE_URL": "postgres://db/shop"}
    for kind in ("configmap", "deployment", "service"):
        metadata = made[kind]["metadata"]
        assert {**metadata["labels"], **SELECTOR, "app.kubernetes.io/managed-by": "steward",
                "app.kubernetes.io/version": "1.0"} == metadata["labels"]
        [owner] = metadata["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("App", found["metadata"]["uid"])
    deployment = made["deployment"]["spec"]
    assert deployment["selector"]["matchLabels"] == SELECTOR
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": 0}
    assert deployment["progressDeadlineSeconds"] == 600
    template = deployment["template"]
    assert template["metadata"]["annotations"] == {
        "mycompany.com/config-hash": found["status"]["configHash"]}
    pod = template["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert [c["whenUnsatisfiable"] for c in pod["topologySpreadConstraints"]] == [
        "ScheduleAnyway"] * 2
    [container] = pod["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": "web-config"}}]
    assert [e["name"] for e in container["env"]] == ["PORT", "NODE"]
    assert container["env"][0]["value"] == "9000"
    assert container["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": 9000, "scheme": "HTTP"}
        assert container[probe]["initialDelaySeconds"] == 3
    service = made["service"]
    assert service["spec"]["type"] == "NodePort" and service["spec"]["selector"] == SELECTOR
    assert service["metadata"]["annotations"] == {"example.com/a": "b"}
    [port] = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (8000, 9000)


def test_database_url_is_read_from_a_secret(controller, installed, namespace):
    app.create_ready(installed, "web", namespace,
                     config={"databaseUrlSecretRef": {"name": "db", "key": "url"}})
    made = app.children(installed, "web", namespace)
    assert made["configmap"]["data"] == {"LOG_LEVEL": "info"}
    [container] = made["deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["env"][1] == {"name": "DATABASE_URL", "valueFrom": {
        "secretKeyRef": {"name": "db", "key": "url"}}}


@pytest.mark.oldest("server-side apply, defaults of the server")
def test_settled_app_causes_no_writes(controller, installed, namespace):
    """Also with all optional children and fields."""
    app.create_ready(installed, "plain", namespace)
    installed.apply(app.manifest(
        "full", namespace, replicas=2, healthCheck={"path": "/"},
        resources={"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"memory": "2G"}},
        autoscaling={"enabled": True, "minReplicas": 2, "maxReplicas": 4,
                     "targetCPUUtilizationPercentage": 70,
                     "targetMemoryUtilizationPercentage": 60},
        strategy={"maxSurge": 1, "maxUnavailable": "10%"},
        affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [
                {"key": "disk", "operator": "In", "values": ["ssd"]}]}}]}},
        tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        topologySpreadConstraints=[{"maxSkew": 2, "topologyKey": "kubernetes.io/hostname",
                                    "whenUnsatisfiable": "DoNotSchedule"}],
        env=[{"name": "CPUS", "valueFrom": {"resourceFieldRef": {
            "resource": "requests.cpu", "divisor": "1m"}}}]))
    app.run_pods(installed, "full", namespace, 2)
    app.wait_ready(installed, "full", namespace)
    # The events may still be pending, and the autoscaler has not yet reported missing metrics.
    for name in ("plain", "full"):
        installed.wait_event(name, namespace, "Created")
    app.wait_condition(installed, "full", namespace, "AutoscalingActive", "MetricsUnavailable", 60)
    before = stw.quiet_requests(installed, namespace)
    runs = controller.metric("controller_runtime_reconcile_total", controller="app")
    for name in ("plain", "full"):
        installed.annotate(app.KIND, name, namespace, {"steward.dev/reconcile-at": "now"})
    wait.until("two passes", lambda: controller.metric("controller_runtime_reconcile_total",
                                                       controller="app") >= runs + 2)
    wait.stays("no request", lambda: stw.requests(installed, namespace) == before, 5, every=0.5)


def test_changed_config_rolls_the_pods(controller, installed, namespace):
    first = app.create_ready(installed, "web", namespace)
    installed.patch(app.KIND, "web", namespace, {"spec": {"config": {"environment": {"A": "1"}}}})
    second = app.wait_ready(installed, "web", namespace)
    assert second["status"]["configHash"] != first["status"]["configHash"]
    made = app.children(installed, "web", namespace)
    assert made["configmap"]["data"] == {"LOG_LEVEL": "info", "A": "1"}
    assert made["deployment"]["spec"]["template"]["metadata"]["annotations"] == {
        "mycompany.com/config-hash": second["status"]["configHash"]}
    # After two changes within a second, both children have the value of the second one.
    for value in ("2", "3"):
        installed.patch(app.KIND, "web", namespace,
                        {"spec": {"config": {"environment": {"A": value}}}})
    third = app.wait_ready(installed, "web", namespace)
    made = app.children(installed, "web", namespace)
    assert made["configmap"]["data"]["A"] == "3"
    assert made["deployment"]["spec"]["template"]["metadata"]["annotations"] == {
        "mycompany.com/config-hash": third["status"]["configHash"]}
    assert "repairs" not in third["status"]


@pytest.mark.oldest("autoscaling/v2beta2, policy/v1beta1")
def test_disabled_children_are_deleted(controller, installed, namespace):
    spec = {"autoscaling": {"enabled": True, "maxReplicas": 3}}
    installed.apply(app.manifest("web", namespace, replicas=1, **spec))
    wait.until("all children", lambda: all(app.children(installed, "web", namespace).values()))
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {"enabled": False}}})
    wait.until("autoscaler and budget to go", lambda: not any(
        installed.get(kind, "web", namespace) for kind in ("hpa", "poddisruptionbudget")))
    installed.wait_event("web", namespace, "Deleted", "PodDisruptionBudget")
    assert app.deployment(installed, "web", namespace)["spec"]["replicas"] == 1
    installed.patch(app.KIND, "web", namespace, {"spec": {"replicas": 2}})
    wait.until("a budget", lambda: installed.get("poddisruptionbudget", "web", namespace))
    installed.patch(app.KIND, "web", namespace, {"spec": {"pdb": {"enabled": False}}})
    wait.until("the budget to go", lambda: not installed.get("poddisruptionbudget", "web", namespace))


@pytest.mark.oldest("unhealthyPodEvictionPolicy")
def test_unready_pods_do_not_block_a_drain(controller, installed, namespace,
                                           pods_stay_pending):
    """Where the server has the field; an older one drops it."""
    installed.apply(app.manifest("web", namespace, replicas=2))
    pods = app.wait_pods(installed, "web", namespace, 2)
    for pod in pods:
        app.set_status(installed, pod, phase="Running", conditions=[
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    budget = installed.wait_for("poddisruptionbudget", "web", namespace,
                                lambda o: o.get("status", {}).get("expectedPods") == 2)
    if installed.minor() < 27:
        assert "unhealthyPodEvictionPolicy" not in budget["spec"]
        return
    name = pods[0]["metadata"]["name"]
    status, answer = installed.api.call(
        "POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction",
         "metadata": {"name": name, "namespace": namespace}})
    assert status == 201, answer


@pytest.mark.oldest("pruning by server-side apply")
def test_fields_removed_from_the_spec_leave_the_children(controller, installed, namespace):
    app.create_ready(installed, "web", namespace, healthCheck={"path": "/x"},
                     securityContext={"runAsUser": 101, "runAsNonRoot": False},
                     service={"annotations": {"example.com/a": "b"}},
                     env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                          {"name": "B", "valueFrom": {"resourceFieldRef": {
                              "resource": "requests.cpu"}}}])
    installed.patch(app.KIND, "web", namespace,
                    {"spec": {"healthCheck": None, "securityContext": None, "service": None,
                              "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}]}})
    app.wait_ready(installed, "web", namespace)
    made = app.children(installed, "web", namespace)
    [container] = made["deployment"]["spec"]["template"]["spec"]["containers"]
    assert "readinessProbe" not in container
    assert container["env"][1:] == [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}]
    assert "runAsUser" not in container["securityContext"]
    assert "runAsNonRoot" not in container["securityContext"]
    assert "annotations" not in made["service"]["metadata"]


@pytest.mark.oldest("selectors of Services are maps whose keys have owners on some versions only")
@pytest.mark.parametrize("kind, name, patch, field, lost", [
    ("service", "web", {"spec": {"selector": {"tier": "hand"}}}, "spec.selector.tier",
     ["spec", "selector", "tier"]),
    ("configmap", "web-config", {"data": {"LD_PRELOAD": "/tmp/x.so"}}, "data.LD_PRELOAD",
     ["data", "LD_PRELOAD"]),
], ids=["selector", "envFrom"])
def test_foreign_selector_and_configmap_keys_are_removed(controller, installed, namespace, kind, name,
                                                         patch, field, lost):
    """A Service with one more label in its selector selects nothing.  Each key of the ConfigMap is
    a variable of the pods.  A change of the spec at the same time removes the key as well."""
    app.create_ready(installed, "web", namespace, config={"logLevel": "warn"})
    before = installed.get(kind, name, namespace)
    installed.patch(kind, name, namespace, patch)
    message = installed.wait_event("web", namespace, "DriftRepaired", field)
    assert f'{before["kind"]} "{name}"' in message

    def has_gone():
        at = installed.get(kind, name, namespace)
        for part in lost[:-1]:
            at = at[part]
        return lost[-1] not in at
    wait.until("the key to go", has_gone)
    made = stw.quiet_requests(installed, namespace)
    wait.stays("no request", lambda: stw.requests(installed, namespace) == made, 2, every=0.5)


@pytest.mark.oldest("garbage collection")
def test_children_are_deleted_with_the_app(controller, installed, namespace):
    installed.apply(app.manifest("web", namespace, replicas=2,
                                 autoscaling={"enabled": True, "maxReplicas": 3}))
    wait.until("all children", lambda: all(app.children(installed, "web", namespace).values()))
    installed.delete(app.KIND, "web", namespace)
    wait.until("the garbage collector to take the children",
               lambda: not any(app.children(installed, "web", namespace).values()), 60)


@pytest.mark.oldest("server-side apply of a strategy that changes its type")
def test_update_strategy_reaches_the_deployment(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)

    def strategy():
        spec = app.deployment(installed, "web", namespace)["spec"]
        return spec["strategy"], spec.get("minReadySeconds"), spec["revisionHistoryLimit"]
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}
    assert strategy() == (rolling, None, 10)
    installed.patch(app.KIND, "web", namespace, {"spec": {"strategy": {
        "type": "Recreate", "minReadySeconds": 3, "revisionHistoryLimit": 2}}})
    wait.until("Recreate", lambda: strategy() == ({"type": "Recreate"}, 3, 2))
    installed.patch(app.KIND, "web", namespace, {"spec": {"strategy": None}})
    wait.until("RollingUpdate", lambda: strategy() == (rolling, None, 10))
    app.wait_ready(installed, "web", namespace)


@pytest.mark.oldest("Ingresses of networking.k8s.io/v1")
def test_ingress_is_created_changed_and_removed(controller, installed, namespace):
    found = app.create_ready(installed, "web", namespace, ingress={"host": "shop.example.com"})
    assert condition(found, "IngressSynced")["status"] == "True"
    assert found["status"]["ingressUrl"] == "http://shop.example.com/"
    made = installed.get("ingress", "web", namespace)
    [rule] = made["spec"]["rules"]
    assert rule["host"] == "shop.example.com"
    assert rule["http"]["paths"] == [{"path": "/", "pathType": "Prefix", "backend": {
        "service": {"name": "web", "port": {"name": "http"}}}}]
    assert "tls" not in made["spec"]

    installed.patch("ingress", "web", namespace, [
        {"op": "replace", "path": "/spec/rules/0/host", "value": "evil.example.com"}])
    installed.wait_event("web", namespace, "DriftRepaired", "spec.rules")
    wait.until("the repair", lambda: installed.get("ingress", "web", namespace)[
        "spec"]["rules"][0]["host"] == "shop.example.com")

    installed.patch(app.KIND, "web", namespace, {"spec": {"ingress": {
        "path": "/shop", "className": "nginx", "tls": {"secretName": "cert"}}}})
    wait.until("the change", lambda: installed.get("ingress", "web", namespace)["spec"].get(
        "tls") == [{"hosts": ["shop.example.com"], "secretName": "cert"}])
    assert installed.get("ingress", "web", namespace)["spec"]["ingressClassName"] == "nginx"
    installed.wait_for(app.KIND, "web", namespace, lambda o: o["status"].get(
        "ingressUrl") == "https://shop.example.com/shop", 30)

    installed.patch(app.KIND, "web", namespace, {"spec": {"ingress": None}})
    installed.wait_gone("ingress", "web", namespace)
    found = app.wait_ready(installed, "web", namespace)
    assert "ingressUrl" not in found["status"]
    assert "IngressSynced" not in [c["type"] for c in found["status"]["conditions"]]


@pytest.mark.oldest("the status of Ingresses")
def test_missing_ingress_class_is_reported(controller, installed, namespace):
    """The condition names the class until a controller has given the Ingress an address."""
    found = app.create_ready(installed, "web", namespace, ingress={
        "host": "shop.example.com", "className": "no-such-class"})
    told = condition(found, "IngressSynced")
    assert (told["status"], told["reason"]) == ("True", "NoAddress")
    assert 'IngressClass "no-such-class" exists' in told["message"]
    installed.patch(app.KIND, "web", namespace, {"spec": {"ingress": {"className": None}}})
    installed.wait_for(app.KIND, "web", namespace, lambda o: "default IngressClass" in condition(
        o, "IngressSynced")["message"], 30)
    installed.patch("ingress", "web", namespace, {"status": {"loadBalancer": {
        "ingress": [{"ip": "192.0.2.7"}]}}}, subresource="status")
    app.wait_condition(installed, "web", namespace, "IngressSynced", "Synced")
    installed.patch("ingress", "web", namespace, {"status": {"loadBalancer": {"ingress": None}}},
                    subresource="status")
    app.wait_condition(installed, "web", namespace, "IngressSynced", "NoAddress")
    assert "repairs" not in installed.get(app.KIND, "web", namespace)["status"]


def test_ingress_of_another_owner_is_not_touched(controller, installed, namespace):
    other = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
             "metadata": {"name": "web", "namespace": namespace},
             "spec": {"defaultBackend": {"service": {"name": "other", "port": {"number": 80}}}}}
    installed.apply(other)
    app.create_ready(installed, "web", namespace)
    installed.patch(app.KIND, "web", namespace, {"spec": {"ingress": {"host": "a.example.com"}}})
    app.wait_condition(installed, "web", namespace, "IngressSynced", "NameConflict")
    installed.patch(app.KIND, "web", namespace, {"spec": {"ingress": None}})
    app.wait_ready(installed, "web", namespace)
    assert "rules" not in installed.get("ingress", "web", namespace)["spec"]
