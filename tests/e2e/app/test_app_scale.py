# SPDX-License-Identifier: Apache-2.0
"""Who sets the number of pods: spec.replicas of the App, `kubectl scale`, or an autoscaler.  They
never overwrite each other, and the number does not jump when ownership changes."""

import threading

import pytest
from support import app, hooks, wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

AUTOSCALING = {"enabled": True, "minReplicas": 2, "maxReplicas": 9}


class Watched:
    """All values that spec.replicas of a Deployment has had, from a watch in a thread."""

    def __init__(self, cluster, name, namespace):
        self.api, self.path = cluster.api, f"/apis/apps/v1/namespaces/{namespace}/deployments"
        found = cluster.get("deployment", name, namespace)
        self.path += f"?fieldSelector=metadata.name={name}"
        self.version = found["metadata"]["resourceVersion"]
        self.values = [found["spec"]["replicas"]]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for kind, obj in self.api.watch(self.path, self.version):
            if kind in ("ADDED", "MODIFIED"):
                self.values.append(obj["spec"]["replicas"])

    def end(self, last):
        """All values, after waiting until the newest is `last`."""
        wait.until(f"the watch to tell of {last}", lambda: self.values[-1] == last)
        return self.values


@pytest.fixture
def watched(installed, namespace):
    """watched(name): starts a watch of the Deployment of this name."""
    return lambda name: Watched(installed, name, namespace)


def replicas(cluster, name, namespace):
    """spec.replicas of the Deployment."""
    return app.deployment(cluster, name, namespace)["spec"]["replicas"]


def wait_replicas(cluster, name, namespace, count, seconds=60):
    """Until spec.replicas of the Deployment is `count`."""
    cluster.wait_for("deployment", name, namespace, lambda d: d["spec"]["replicas"] == count,
                     seconds, f"{count} replicas of {namespace}/{name}")


def owners(cluster, name, namespace):
    """The field managers that own spec.replicas of the Deployment."""
    return {m["manager"] for m in cluster.get("deployment", name, namespace)["metadata"]["managedFields"]
            if "f:replicas" in m.get("fieldsV1", {}).get("f:spec", {})}


def stand_in(cluster, name, namespace, count):
    """Plays an autoscaler: writes the scale subresource of the Deployment."""
    cluster.patch("deployment", name, namespace, {"spec": {"replicas": count}}, subresource="scale")


@pytest.mark.oldest("the scale subresource")
def test_kubectl_scale_changes_the_replicas(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)
    installed.kubectl("scale", app.KIND, "web", "-n", namespace, "--replicas=3")
    wait_replicas(installed, "web", namespace, 3)
    app.run_pods(installed, "web", namespace, 3)
    app.wait_ready(installed, "web", namespace)
    scale = installed.api.do("GET", f"/apis/mycompany.com/v1/namespaces/{namespace}/apps/web/scale")
    assert scale["status"]["replicas"] == 3
    assert "app.kubernetes.io/instance=web" in scale["status"]["selector"]
    installed.kubectl("wait", app.KIND, "web", "-n", namespace, "--for=condition=Ready",
                      "--timeout=10s")
    installed.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=10s")
    installed.kubectl("scale", app.KIND, "web", "-n", namespace, "--replicas=0")
    wait_replicas(installed, "web", namespace, 0)
    found = app.wait_ready(installed, "web", namespace)
    assert condition(found, "Available")["reason"] == "NoReplicas"
    assert "repairs" not in found["status"]


def test_manual_scaling_of_the_deployment_is_reverted(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)
    stand_in(installed, "web", namespace, 4)
    installed.wait_event("web", namespace, "DriftRepaired", "spec.replicas")
    assert replicas(installed, "web", namespace) == 0


@pytest.mark.oldest("ownership of spec.replicas")
def test_toggling_autoscaling_keeps_the_replicas(controller, installed, namespace, watched):
    """3 pods; autoscaling is switched on, scales to 7, an update rolls, autoscaling is switched
    off: the number never jumps."""
    installed.apply(app.manifest("web", namespace, replicas=3))
    wait_replicas(installed, "web", namespace, 3)
    seen = watched("web")
    assert owners(installed, "web", namespace) == {"steward-app"}
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": AUTOSCALING}})
    wait.until("the autoscaler", lambda: installed.get("hpa", "web", namespace))
    assert owners(installed, "web", namespace) == {"steward-app-replicas"}
    stand_in(installed, "web", namespace, 7)
    wait_replicas(installed, "web", namespace, 7)
    # Other changes, by steward and by another client.
    installed.patch(app.KIND, "web", namespace, {"spec": {"image": "registry.invalid/none:2.0"}})
    # A single write by steward would cover both, and would be an update instead of a repair.
    installed.wait_for("deployment", "web", namespace, lambda d: d["spec"]["template"]["spec"][
        "containers"][0]["image"] == "registry.invalid/none:2.0")
    installed.patch("deployment", "web", namespace, {"spec": {"progressDeadlineSeconds": 77}})
    installed.wait_event("web", namespace, "DriftRepaired", "progressDeadlineSeconds")
    found = installed.wait_for(app.KIND, "web", namespace,
                               lambda o: o["status"].get("desiredReplicas") == 7)
    assert found["status"]["startReplicas"] == 3
    assert "steward-app" not in owners(installed, "web", namespace)
    assert found["spec"]["replicas"] == 3

    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {"enabled": False}}})
    wait.until("the autoscaler to go", lambda: not installed.get("hpa", "web", namespace))
    found = installed.wait_for(app.KIND, "web", namespace,
                               lambda o: o["spec"]["replicas"] == 7
                               and "startReplicas" not in o["status"])
    wait.until("steward to own them again",
               lambda: "steward-app" in owners(installed, "web", namespace))
    assert set(seen.end(7)) == {3, 7}
    installed.patch(app.KIND, "web", namespace, {"spec": {"replicas": 1}}, subresource="scale")
    wait_replicas(installed, "web", namespace, 1)


def test_replicas_set_while_disabling_autoscaling_apply(controller, installed, namespace, watched):
    """spec.replicas written in the same patch takes effect."""
    installed.apply(app.manifest("web", namespace, replicas=2, autoscaling=AUTOSCALING))
    wait.until("the autoscaler", lambda: installed.get("hpa", "web", namespace))
    stand_in(installed, "web", namespace, 6)
    installed.wait_for(app.KIND, "web", namespace,
                       lambda o: o.get("status", {}).get("desiredReplicas") == 6)
    seen = watched("web")
    installed.patch(app.KIND, "web", namespace,
                    {"spec": {"replicas": 4, "autoscaling": {"enabled": False}}})
    wait_replicas(installed, "web", namespace, 4)
    assert set(seen.end(4)) <= {6, 4}


@pytest.mark.oldest("ownership of spec.replicas")
def test_autoscaled_deployment_starts_within_bounds(controller, installed, namespace, watched):
    """The Deployment is created with that number.  Steward gives up the field at its next write, or
    when an autoscaler writes another number."""
    for name, given, want in (("few", 1, 2), ("some", 5, 5), ("many", 50, 9)):
        installed.apply(app.manifest(name, namespace, replicas=given, autoscaling=AUTOSCALING))
        wait_replicas(installed, name, namespace, want)
        seen = watched(name)
        other = want - 1
        if name == "few":
            other = want
            installed.patch(app.KIND, name, namespace, {"spec": {"image": "registry.invalid/n:2"}})
        else:
            stand_in(installed, name, namespace, other)
        wait.until("the number to be given up",
                   lambda n=name: "steward-app" not in owners(installed, n, namespace))
        assert set(seen.end(other)) == {want, other}


@pytest.mark.oldest("ownership of spec.replicas")
def test_scaling_during_release_of_replicas_is_kept(controller, installed, namespace, watched, hook):
    """Another client scales while steward writes the number that it has seen."""
    installed.apply(app.manifest("web", namespace, replicas=2, autoscaling=AUTOSCALING))
    wait.until("the autoscaler", lambda: installed.get("hpa", "web", namespace))
    wait_replicas(installed, "web", namespace, 2)
    seen, given_up = watched("web"), []

    def answer(request):
        if request["options"].get("fieldManager") == "steward-app-replicas":
            given_up.append(request["object"]["spec"]["replicas"])
            if len(given_up) == 1:
                stand_in(installed, "web", namespace, 7)
        return hooks.allow(request)
    hook(answer, "web")
    installed.patch(app.KIND, "web", namespace, {"spec": {"image": "registry.invalid/none:2.0"}})
    wait.until("the number to be given up",
               lambda: "steward-app" not in owners(installed, "web", namespace))
    assert given_up[0] == 2 and set(given_up[1:]) <= {7}, given_up
    values = seen.end(7)
    assert set(values) == {2, 7} and values == sorted(values), values  # never 2 again


def test_autoscaler_matches_the_spec(controller, installed, namespace):
    installed.apply(app.manifest(
        "web", namespace, replicas=1,
        autoscaling={**AUTOSCALING, "targetMemoryUtilizationPercentage": 60}))
    wait.until("the autoscaler", lambda: installed.get("hpa", "web", namespace))
    version = "v2" if installed.minor() >= 23 else "v2beta2"
    found = installed.get(f"horizontalpodautoscalers.{version}.autoscaling", "web", namespace)["spec"]
    assert found["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    assert (found["minReplicas"], found["maxReplicas"]) == (2, 9)
    assert [(m["resource"]["name"], m["resource"]["target"]["averageUtilization"])
            for m in found["metrics"]] == [("memory", 60)]
    # The real autoscaler gets no metrics here, and reports it.
    scaling = app.wait_condition(installed, "web", namespace, "AutoscalingActive",
                                 "MetricsUnavailable", 60)
    assert scaling["status"] == "False"
    # It still enforces the bounds.
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {"minReplicas": 4}}})
    wait_replicas(installed, "web", namespace, 4, 60)
    installed.patch("hpa", "web", namespace, {"spec": {"maxReplicas": 20}})
    installed.wait_event("web", namespace, "DriftRepaired", "maxReplicas")


def average(value):
    """A target of an average value."""
    return {"type": "AverageValue", "averageValue": value}


METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 55}}},
    {"type": "Pods", "pods": {"metric": {"name": "rate", "selector": {"matchLabels": {"a": "b"}}},
                              "target": average("2000m")}},
    {"type": "Object", "object": {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
        "metric": {"name": "hits"}, "target": {"type": "Value", "value": "2k"}}},
    {"type": "External", "external": {"metric": {"name": "queue"}, "target": average("30")}},
]
CONTAINER = {"type": "ContainerResource", "containerResource": {
    "name": "memory", "container": "app", "target": {"type": "Utilization",
                                                     "averageUtilization": 70}}}
BEHAVIOR = {"scaleUp": {"stabilizationWindowSeconds": 0},
            "scaleDown": {"stabilizationWindowSeconds": 600, "selectPolicy": "Min", "policies": [
                {"type": "Percent", "value": 10, "periodSeconds": 60},
                {"type": "Pods", "value": 1, "periodSeconds": 30}]}}


def autoscaler(cluster, name, namespace):
    """The HorizontalPodAutoscaler in the newest version that the server has; None: there is none."""
    version = "v2" if cluster.minor() >= 23 else "v2beta2"
    return cluster.get(f"horizontalpodautoscalers.{version}.autoscaling", name, namespace)


@pytest.mark.oldest("autoscaling/v2beta2: metrics and behavior are in annotations")
def test_metrics_and_behavior_reach_the_autoscaler(controller, installed, namespace):
    """The autoscaler is as the spec says.  It is not written again although the server writes the
    quantities, and up to 1.22 the metrics, in another way."""
    metrics = METRICS + ([CONTAINER] if installed.minor() >= 30 else [])
    installed.apply(app.manifest("web", namespace, replicas=1, autoscaling={
        **AUTOSCALING, "metrics": metrics, "behavior": BEHAVIOR}))
    wait.until("the autoscaler", lambda: autoscaler(installed, "web", namespace))
    found = autoscaler(installed, "web", namespace)["spec"]
    assert sorted(m["type"] for m in found["metrics"]) == sorted(m["type"] for m in metrics)
    assert found["metrics"][-1]["resource"]["target"]["averageUtilization"] == 55
    of = {m["type"]: m for m in found["metrics"]}
    assert of["Pods"]["pods"]["target"] == average("2")
    assert of["Pods"]["pods"]["metric"]["selector"] == {"matchLabels": {"a": "b"}}
    assert of["Object"]["object"]["target"]["value"] == "2k"
    assert found["behavior"]["scaleDown"]["policies"] == BEHAVIOR["scaleDown"]["policies"]
    assert found["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0
    app.wait_condition(installed, "web", namespace, "AutoscalingActive", "MetricsUnavailable", 60)
    # What another client changes is repaired; a run that finds nothing to do writes nothing.
    kind = f"horizontalpodautoscalers.{'v2' if installed.minor() >= 23 else 'v2beta2'}.autoscaling"
    installed.patch(kind, "web", namespace, {"spec": {"behavior": {"scaleDown": {
        "selectPolicy": "Max"}}}})
    installed.wait_event("web", namespace, "DriftRepaired", "behavior")
    before = autoscaler(installed, "web", namespace)
    assert before["spec"]["behavior"] == found["behavior"]
    installed.patch(app.KIND, "web", namespace, {"metadata": {"annotations": {
        "steward.dev/reconcile-at": "1"}}, "spec": {"strategy": {"revisionHistoryLimit": 3}}})
    installed.wait_for("deployment", "web", namespace,
                       lambda d: d["spec"]["revisionHistoryLimit"] == 3)
    app.wait_condition(installed, "web", namespace, "AutoscalingActive", "MetricsUnavailable", 60)
    after = autoscaler(installed, "web", namespace)

    def ours(obj):
        return [m.get("time") for m in obj["metadata"]["managedFields"]
                if m["manager"] == "steward-app"]
    assert ours(after) == ours(before)
    # Without them the simple fields are all there is.
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {
        "metrics": None, "behavior": None, "targetCPUUtilizationPercentage": 65}}})
    installed.wait_for(kind, "web", namespace, lambda o: [
        m["resource"]["target"]["averageUtilization"] for m in o["spec"]["metrics"]
        if m["type"] == "Resource"] == [65] and len(o["spec"]["metrics"]) == 1)
    wait.until("the behavior to go", lambda: autoscaler(installed, "web", namespace)["spec"].get(
        "behavior", {}).get("scaleDown", {}).get("policies") in (
            None, [{"type": "Percent", "value": 100, "periodSeconds": 15}]))
    left = autoscaler(installed, "web", namespace)["spec"].get("behavior", {}).get("scaleDown", {})
    assert left.get("stabilizationWindowSeconds") != 600


def test_unknown_autoscaler_fields_are_passed_on(controller, installed, namespace):
    """The API server decides: it stores what it knows, and its refusal of the rest names the member."""
    installed.apply(app.manifest("web", namespace, autoscaling={
        **AUTOSCALING, "behavior": {"scaleUp": {"tolerance": "0.05"}}}))
    wait.until("the autoscaler", lambda: autoscaler(installed, "web", namespace)["spec"].get(
        "behavior", {}).get("scaleUp", {}).get("tolerance") == "50m")
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {"behavior": {
        "scaleUp": {"later": 1}}}}})
    stalled = app.wait_condition(installed, "web", namespace, "Stalled", "InvalidSpec")
    assert 'HorizontalPodAutoscaler "web" could not be written' in stalled["message"]
    assert "spec.autoscaling.behavior.scaleUp.later: field not declared" in stalled["message"]
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {"behavior": {
        "scaleUp": {"later": None}}}}})
    installed.wait_for(app.KIND, "web", namespace, lambda o: not condition(o, "Stalled"))
    assert "DriftRepaired" not in [reason for _, reason, _ in installed.events(namespace, "web")]


@pytest.mark.oldest("autoscaling/v2beta2: metrics are in annotations")
def test_restart_finds_no_drift_in_the_autoscaler(controller, installed, namespace):
    """Although the server has written the quantities in another way, which no status remembers."""
    installed.apply(app.manifest("web", namespace, replicas=1, autoscaling={
        **AUTOSCALING, "metrics": METRICS}))
    app.wait_condition(installed, "web", namespace, "AutoscalingActive", "MetricsUnavailable", 60)
    assert controller.stop() == 0
    controller.start()
    app.create_ready(installed, "last", namespace)
    assert "repairs" not in installed.get(app.KIND, "web", namespace)["status"]
    assert "DriftRepaired" not in {reason for _, reason, _ in installed.events(namespace, "web")}


@pytest.mark.oldest("metrics that the server does not have")
def test_unsupported_container_metric_is_reported(controller, installed, namespace):
    """Up to 1.26 metrics of one container are off; the App says so, and its pods run."""
    installed.apply(app.manifest("web", namespace, replicas=1, autoscaling={
        **AUTOSCALING, "metrics": [CONTAINER]}))
    if installed.minor() >= 30:
        wait.until("the autoscaler", lambda: autoscaler(installed, "web", namespace))
        return
    told = installed.wait_for(
        app.KIND, "web", namespace,
        lambda o: condition(o, "AutoscalingActive").get("status") == "False", 30)
    assert "metric" in condition(told, "AutoscalingActive")["message"], told["status"]
    assert condition(told, "Ready")["status"] == "False"


@pytest.mark.oldest("autoscaling/v2beta2")
def test_foreign_autoscaler_of_the_deployment_is_not_fought(controller, installed, namespace, watched):
    """For instance by hand or by KEDA: it sets the number, and steward does not fight it."""
    installed.apply(app.manifest("web", namespace, replicas=3))
    wait_replicas(installed, "web", namespace, 3)
    installed.wait_for(app.KIND, "web", namespace, lambda o: condition(o, "Available"))
    seen = watched("web")
    installed.apply({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
                     "metadata": {"name": "theirs", "namespace": namespace},
                     "spec": {"minReplicas": 2, "maxReplicas": 9, "scaleTargetRef": {
                         "apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
    stand_in(installed, "web", namespace, 6)
    told = app.wait_condition(installed, "web", namespace, "AutoscalingActive", "ForeignAutoscaler")
    assert '"theirs", which is not of this App' in told["message"]
    stand_in(installed, "web", namespace, 5)
    installed.patch(app.KIND, "web", namespace, {"spec": {"image": "registry.invalid/none:2.0"}})
    found = installed.wait_for(app.KIND, "web", namespace,
                               lambda o: o["status"].get("desiredReplicas") == 5 and
                               o["status"]["observedGeneration"] == o["metadata"]["generation"])
    assert "steward-app" not in owners(installed, "web", namespace)
    assert "repairs" not in found["status"]
    # Once it is deleted, the number stays, and the App owns it again.
    installed.delete("hpa", "theirs", namespace)
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
    installed.wait_for(app.KIND, "web", namespace,
                       lambda o: o["spec"]["replicas"] == 5 and not condition(o, "AutoscalingActive"))
    assert set(seen.end(5)) == {3, 6, 5}


def test_autoscaler_of_another_owner_is_not_touched(controller, installed, namespace):
    """One of the same name with another owner is not touched."""
    installed.apply({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
                     "metadata": {"name": "web", "namespace": namespace},
                     "spec": {"maxReplicas": 2, "scaleTargetRef": {
                         "apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}}})
    installed.apply(app.manifest("web", namespace, replicas=1, autoscaling=AUTOSCALING))
    found = app.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    assert found["message"].startswith('HorizontalPodAutoscaler "web" exists and is not controlled')
    installed.patch(app.KIND, "web", namespace, {"spec": {"autoscaling": {"enabled": False}}})
    installed.wait_for(app.KIND, "web", namespace, lambda o: not condition(o, "Stalled"))
    assert installed.get("hpa", "web", namespace)["spec"]["maxReplicas"] == 2
