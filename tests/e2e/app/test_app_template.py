# SPDX-License-Identifier: Apache-2.0
"""spec.podTemplate on an API server, which adds its defaults and owns what is removed."""

import pytest
from support import app, wait
from support import steward as stw
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

EVERYTHING = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/a": "b"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "enableServiceLinks": False,
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1024Mi"}},
                    {"name": "files", "configMap": {"name": "files"}},
                    {"name": "all", "projected": {"sources": [
                        {"secret": {"name": "s"}},
                        {"serviceAccountToken": {"path": "token"}}]}}],
        "initContainers": [{"name": "init", "image": "init:1", "command": ["true"],
                            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "containers": [
            {"name": "side", "image": "side:1", "ports": [{"containerPort": 53},
                                                          {"containerPort": 53, "protocol": "UDP"}],
             "resources": {"limits": {"memory": "1024Mi", "cpu": "1000m"}}},
            {"name": "app", "command": ["/shop"], "args": ["-v"], "imagePullPolicy": "Always",
             "envFrom": [{"secretRef": {"name": "s", "optional": True}}],
             "ports": [{"name": "admin", "containerPort": 9090}],
             "volumeMounts": [{"name": "files", "mountPath": "/files"}],
             "startupProbe": {"httpGet": {"path": "/", "port": "http"}},
             "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}}}],
    },
}


def template(cluster, namespace):
    """The pod template of the Deployment."""
    return app.deployment(cluster, "web", namespace)["spec"]["template"]


def container(cluster, namespace, name):
    """One of its containers, or None."""
    return next((c for c in template(cluster, namespace)["spec"]["containers"]
                 if c["name"] == name), None)


def assert_next_run_sends_nothing(installed, namespace):
    """Of Deployments: what is stored is as it is wanted."""
    requests = stw.quiet_requests(installed, namespace)
    installed.patch(app.KIND, "web", namespace,
                    {"metadata": {"annotations": {"steward.dev/reconcile-at": "now"}}})
    wait.stays("no other request", lambda: [
        r for r in stw.requests(installed, namespace) if r not in requests
        and "deployments" in r[1]] == [], 3, every=0.5)


@pytest.mark.oldest("server-side apply of a whole pod template, defaults of the server")
def test_full_pod_template_reaches_the_deployment(controller, installed, namespace):
    app.create_ready(installed, "web", namespace, podTemplate=EVERYTHING)
    made = template(installed, namespace)
    assert made["metadata"]["labels"]["team"] == "a"
    assert made["metadata"]["labels"]["app"] == "web"
    assert made["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert [v["name"] for v in made["spec"]["volumes"]] == ["data", "files", "all"]
    mine = container(installed, namespace, "app")
    assert mine["image"] == app.IMAGE and mine["command"] == ["/shop"]
    assert [sorted(e)[0] for e in mine["envFrom"]] == ["configMapRef", "secretRef"]
    assert [p["containerPort"] for p in mine["ports"]] == [8080, 9090]
    assert container(installed, namespace, "side")["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"}}
    # What the server adds is not taken for a difference.
    assert_next_run_sends_nothing(installed, namespace)


@pytest.mark.oldest("defaults that nobody owns after a field is removed")
def test_changed_template_removes_old_fields(controller, installed, namespace):
    """The server keeps defaults of what is removed: httpGet without a port, a volume of two types."""
    def of(probe, source):
        return {"spec": {"volumes": [{"name": "v", **source}], "containers": [
            {"name": "app", "startupProbe": probe,
             "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}}
    app.create_ready(installed, "web", namespace, podTemplate=of(
        {"httpGet": {"path": "/", "port": 8080}}, {"configMap": {"name": "c"}}))
    installed.apply(app.manifest("web", namespace, podTemplate=of(
        {"exec": {"command": ["true"]}}, {"secret": {"secretName": "s"}})))

    def changed():
        probe = container(installed, namespace, "app")["startupProbe"]
        [volume] = template(installed, namespace)["spec"]["volumes"]
        return "exec" in probe and "httpGet" not in probe and sorted(volume) == ["name", "secret"]
    wait.until("the template to change", changed)
    app.wait_ready(installed, "web", namespace)

    installed.apply(app.manifest("web", namespace))
    wait.until("the template to be empty", lambda: "volumes" not in template(
        installed, namespace)["spec"] and "startupProbe" not in container(
            installed, namespace, "app"))
    app.wait_ready(installed, "web", namespace)


@pytest.mark.oldest("refusals of an apply: paths, and members that the server does not know")
def test_server_refusal_names_the_field_of_the_app(controller, installed, namespace):
    """What this version of steward passes on is refused by the server with a path in the child."""
    def refused(text, child="Deployment", **spec):
        installed.apply(app.manifest("web", namespace, **spec))
        generation = installed.get(app.KIND, "web", namespace)["metadata"]["generation"]
        stalled = installed.wait_for(app.KIND, "web", namespace, lambda o: condition(
            o, "Stalled").get("observedGeneration") == generation)
        message = condition(stalled, "Stalled")["message"]
        assert message.startswith(f'{child} "web" could not be written') and text in message, message
        assert "spec.template" not in message

    def side(**container):
        return {"spec": {"containers": [{"name": "side", "image": "side:1", **container}]}}

    unknown = {"fromTheFuture": {"a": 1}}
    refused("spec.podTemplate.spec.containers[0].fromTheFuture: field not declared",
            podTemplate=side(fromTheFuture=1))
    refused('spec.podTemplate.spec.containers[0].volumeMounts[0].name: Not found: "none"',
            podTemplate=side(volumeMounts=[{"name": "none", "mountPath": "/x"}]))
    refused("spec.podTemplate.fromTheFuture: field not declared", podTemplate=unknown)
    refused("spec.podTemplate.metadata.fromTheFuture: field not declared", podTemplate={"metadata": unknown})
    refused("spec.podTemplate.spec.fromTheFuture: field not declared", podTemplate={"spec": unknown})
    refused("spec.tolerations[0].fromTheFuture: field not declared", tolerations=[unknown])
    refused("spec.securityContext.fromTheFuture: field not declared", securityContext=unknown)
    refused("spec.resources.fromTheFuture: field not declared",
            resources={"limits": {"memory": "64Mi"}, **unknown})
    refused("spec.strategy.fromTheFuture: field not declared", strategy=unknown)
    refused("spec.strategy.rollingUpdate.fromTheFuture: field not declared",
            strategy={"rollingUpdate": unknown})
    refused("spec.autoscaling.metrics[0].type: ", child="HorizontalPodAutoscaler",
            autoscaling={"enabled": True, "maxReplicas": 2, "metrics": [{"type": "FromTheFuture"}]})
    installed.apply(app.manifest("web", namespace))
    app.wait_condition(installed, "web", namespace, "Available", "MinimumReplicasUnavailable")


def test_resources_of_the_whole_pod(controller, installed, namespace):
    if installed.minor() < 34:
        pytest.skip("pods have no resources of their own before 1.34")
    limits = {"cpu": "1", "memory": "128Mi"}
    app.create_ready(installed, "web", namespace, podTemplate={"spec": {
        "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": limits}}})
    assert template(installed, namespace)["spec"]["resources"] == {
        "requests": {"cpu": "500m", "memory": "64Mi"}, "limits": limits}
    assert_next_run_sends_nothing(installed, namespace)
    installed.patch(app.KIND, "web", namespace, {"spec": {"replicas": 1}})
    [pod] = app.wait_pods(installed, "web", namespace, 1)
    assert pod["spec"]["resources"]["limits"] == limits


def test_drift_in_a_sidecar_is_repaired(controller, installed, namespace):
    app.create_ready(installed, "web", namespace, podTemplate=EVERYTHING)
    installed.patch("deployment", "web", namespace, [
        {"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "evil:1"}])
    wait.until("the repair", lambda: container(installed, namespace, "side")["image"] == "side:1")
    installed.wait_event("web", namespace, "DriftRepaired")


def test_stored_host_access_is_not_applied(controller, installed, namespace):
    """Stored while no webhook asked: it is not applied."""
    installed.apply(app.manifest("web", namespace, podTemplate={"spec": {
        "hostNetwork": True, "volumes": [{"name": "root", "hostPath": {"path": "/"}}]}}))
    found = app.wait_condition(installed, "web", namespace, "Ready", "InvalidSpec")
    assert "spec.podTemplate.spec.hostNetwork: Forbidden" in found["message"]
    assert "volumes[0].hostPath: Forbidden" in found["message"]
    assert installed.get("deployment", "web", namespace) is None
