# SPDX-License-Identifier: Apache-2.0
"""What was there before its owner is adopted as a whole or not at all, without a moment in which a
Service has no endpoint, and stays when the owner is deleted."""

import contextlib
import threading

import pytest
from support import app, etcdcluster, myweb, wait
from support.cluster import condition

pytestmark = [pytest.mark.oldest("dry runs, managed fields, selectors"),
              pytest.mark.usefixtures("pods_stay_pending")]

ADOPT = {"steward.dev/adopt": "true"}
MARK = "steward.dev/adopted-by"
KINDS = {"App": app, "MyWeb": myweb}
HELM = {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "web"}


def deployment(namespace, labels, name="web", **spec):
    """A user's Deployment of one container, which steward would name otherwise."""
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": {"team": "shop"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": {**labels, "tier": "front"}},
                                  "spec": {"containers": [{"name": "old", "image": app.IMAGE,
                                                           "command": ["old"]}]}}, **spec}}


def service(namespace, selector):
    """A user's Service."""
    return {"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": selector, "ports": [{"name": "http", "port": 80,
                                                      "targetPort": 8080}]}}


class Kubelet:
    """A node of the test's own, without a kubelet: this makes each pod that `works` ready there, and
    ends what is deleted."""

    def __init__(self, cluster, namespace, works):
        self.cluster, self.namespace, self.works = cluster, namespace, works
        self.node = f"node-{namespace}"
        self.numbers = iter(range(10, 250))

    def start(self, pod, ready=True):
        """The pod is bound to the node, and has an address."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/binding"
        self.cluster.api.call("POST", path, {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node}})
        ready = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        address = f"10.9.8.{next(self.numbers)}"
        self.cluster.patch("pod", pod, self.namespace, {"status": {
            "phase": "Running", "conditions": [ready], "podIP": address,
            "podIPs": [{"ip": address}]}}, check=False, subresource="status")

    def end(self, pod):
        """The pod is gone."""
        self.cluster.delete("pod", pod, self.namespace, wait_gone=False, grace_seconds=0)

    def work(self):
        """One look at all pods."""
        for pod in self.cluster.list("pod", self.namespace):
            if "deletionTimestamp" in pod["metadata"]:
                self.end(pod["metadata"]["name"])
            elif "podIP" not in pod["status"] and self.works(pod):
                self.start(pod["metadata"]["name"])


@contextlib.contextmanager
def kubelet(cluster, namespace, works=lambda pod: True):
    """Pods run, until the end."""
    one, done = Kubelet(cluster, namespace, works), threading.Event()
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": one.node}})

    def loop():
        while not done.wait(0.1):
            one.work()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        done.set()
        thread.join(10)
        cluster.delete("node", one.node)
        for pod in cluster.list("pod", namespace):
            one.end(pod["metadata"]["name"])


def addresses(endpoints):
    """The number of ready addresses."""
    return sum(len(s.get("addresses", [])) for s in (endpoints or {}).get("subsets", []))


def wait_served(cluster, namespace, name="web"):
    """Until the Service has two endpoints; returns them."""
    return cluster.wait_for("endpoints", name, namespace, lambda o: addresses(o) == 2)


def assert_always_served(cluster, namespace, before):
    """No version of the endpoints since `before` is without an address."""
    name = before["metadata"]["name"]
    path = (f"/api/v1/namespaces/{namespace}/endpoints"
            f"?fieldSelector=metadata.name%3D{name}&timeoutSeconds=1")
    seen = list(cluster.api.watch(path, before["metadata"]["resourceVersion"]))
    counts = [(kind, addresses(o)) for kind, o in seen]
    assert not [c for c in counts if c[0] != "MODIFIED" or c[1] == 0], counts
    assert addresses(cluster.get("endpoints", name, namespace)) > 0


def state(cluster, kind, namespace, name="web"):
    """What only its user changes."""
    now = cluster.get(kind, name, namespace)
    metadata = now["metadata"]
    return now["spec"], [metadata.get(m) for m in (
        "uid", "labels", "annotations", "ownerReferences", "generation")]


def wait_done(cluster, kind, namespace):
    """Until the owner is ready at its present generation."""
    ready = app.wait_ready if kind == "App" else myweb.wait_settled
    return ready(cluster, "web", namespace)


def manifest(kind, namespace, annotations=None, **spec):
    """The owner."""
    more = {"service": {"port": 80}} if kind == "App" else {
        "serviceType": "ClusterIP", "containerPort": 8080}
    return KINDS[kind].manifest("web", namespace, annotations, **{"replicas": 2, **more, **spec})


def wait_gone_in_background(cluster, kind, namespace):
    """Deletes the owner, and waits until the garbage collector has deleted its own children."""
    configs = {"App": "web-config", "MyWeb": "web"}
    cluster.delete(KINDS[kind].KIND, "web", namespace)
    cluster.wait_gone("configmap", configs[kind], namespace)


@pytest.mark.parametrize("labels", ({"app": "shop"}, HELM), ids=("plain", "chart"))
@pytest.mark.parametrize("kind", KINDS)
def test_adoption_never_leaves_a_service_without_endpoints(controller, installed, namespace, kind,
                                                           labels):
    with kubelet(installed, namespace):
        installed.apply(deployment(namespace, labels))
        installed.apply(service(namespace, {**labels, "tier": "front"}))
        before = wait_served(installed, namespace)
        uids = {k: installed.get(k, "web", namespace)["metadata"]["uid"]
                for k in ("deployment", "service")}
        installed.apply(manifest(kind, namespace, ADOPT))
        owner = wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)
        mark = f'{kind}/web/{owner["metadata"]["uid"]}'
        for child, uid in uids.items():
            now = installed.get(child, "web", namespace)["metadata"]
            assert (now["uid"], now["annotations"][MARK]) == (uid, mark)
            assert "ownerReferences" not in now
        taken = installed.get("deployment", "web", namespace)
        assert taken["spec"]["selector"] == {"matchLabels": labels}
        assert taken["metadata"]["labels"]["team"] == "shop"
        [container] = taken["spec"]["template"]["spec"]["containers"]
        assert container["name"] != "old" and "command" not in container
        assert installed.get("service", "web", namespace)["spec"]["selector"] == labels
        installed.wait_event("web", namespace, "Adopted", "which was there before")
        # Changes and repairs go on as for other children.
        installed.patch("service", "web", namespace, {"spec": {"selector": {"more": "x"}}})
        installed.wait_event("web", namespace, "DriftRepaired", "spec.selector.more")
        assert installed.get("service", "web", namespace)["spec"]["selector"] == labels
        before = wait_served(installed, namespace)
        wait_gone_in_background(installed, kind, namespace)
        assert_always_served(installed, namespace, before)
        assert {k: installed.get(k, "web", namespace)["metadata"]["uid"] for k in uids} == uids


@pytest.mark.parametrize("kind, condition_of_service", (("App", "ServiceReady"), ("MyWeb", "ServiceSynced")))
def test_deployment_without_mark_keeps_its_service(controller, installed, namespace, kind,
                                                   condition_of_service):
    """As by kubectl rollout undo, which replaces the annotations."""
    with kubelet(installed, namespace):
        installed.apply(deployment(namespace, HELM))
        installed.apply(service(namespace, HELM))
        installed.apply(manifest(kind, namespace, ADOPT))
        wait_done(installed, kind, namespace)
        installed.annotate(KINDS[kind].KIND, "web", namespace, {"steward.dev/adopt": None})
        before = wait_served(installed, namespace)
        installed.patch("deployment", "web", namespace, {"metadata": {"annotations": {MARK: None}}})
        told = KINDS[kind].wait_condition(installed, "web", namespace, "Ready", "NameConflict")
        assert 'Deployment "web" exists and is not controlled by this object' in told["message"]
        KINDS[kind].wait_condition(installed, "web", namespace, condition_of_service, "NameConflict")
        assert_always_served(installed, namespace, before)
        assert installed.get("service", "web", namespace)["spec"]["selector"] == HELM
        installed.annotate(KINDS[kind].KIND, "web", namespace, ADOPT)
        wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)


def forge_reference(cluster, kind, namespace):
    """A client makes the owner the controller of the adopted Deployment."""
    owner = cluster.get(KINDS[kind].KIND, "web", namespace)
    cluster.patch("deployment", "web", namespace, {"metadata": {"ownerReferences": [{
        "apiVersion": owner["apiVersion"], "kind": kind, "name": "web", "controller": True,
        "uid": owner["metadata"]["uid"]}]}})


def take_label(cluster, kind, namespace):
    """As by helm upgrade and helm rollback."""
    cluster.patch("deployment", "web", namespace, {"metadata": {"labels": {
        "app.kubernetes.io/managed-by": "Helm"}}})


@pytest.mark.parametrize("change, path, value", (
    (take_label, ("labels", "app.kubernetes.io/managed-by"), "steward"),
    (forge_reference, ("ownerReferences", 0, "controller"), True)), ids=("label", "reference"))
@pytest.mark.parametrize("kind", KINDS)
def test_adopted_deployment_that_others_change_keeps_its_pods(controller, installed, namespace, kind, change,
                                                              path, value):
    """The selector of the Deployment cannot change, so the Service keeps it, too, whatever the cache has."""
    with kubelet(installed, namespace):
        installed.apply(deployment(namespace, HELM))
        installed.apply(service(namespace, HELM))
        installed.apply(manifest(kind, namespace, ADOPT))
        wait_done(installed, kind, namespace)
        installed.annotate(KINDS[kind].KIND, "web", namespace, {"steward.dev/adopt": None})
        for replicas in (3, 2):  # what is done for these follows the annotation
            installed.patch(KINDS[kind].KIND, "web", namespace, {"spec": {"replicas": replicas}})
            wait_done(installed, kind, namespace)
        before = wait_served(installed, namespace)
        change(installed, kind, namespace)

        def is_repaired():
            now = installed.get("deployment", "web", namespace)["metadata"]
            for key in path:
                now = now[key]
            return now == value
        wait.until("the repair of the Deployment", is_repaired)
        wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)
        # One more change of the Service shows what its selector is now.
        installed.patch("service", "web", namespace, {"spec": {"selector": {"more": "x"}}})
        installed.wait_for("service", "web", namespace, lambda o: o["spec"]["selector"] == HELM)
        wait_done(installed, kind, namespace)
        wait_served(installed, namespace)
        assert installed.get("service", "web", namespace)["spec"]["selector"] == HELM
        budget = installed.get("poddisruptionbudget", "web", namespace)
        assert not budget or budget["spec"]["selector"]["matchLabels"] == HELM


@pytest.mark.parametrize("kind", KINDS)
def test_service_keeps_orphaned_pods_until_new_ones_are_available(controller, installed, namespace, kind):
    """The adopted Deployment is deleted with --cascade=orphan; the new one has the usual selector."""
    ready = threading.Event()
    with kubelet(installed, namespace, lambda pod: ready.is_set() or "shop" == pod["metadata"]["labels"].get(
            "app.kubernetes.io/name")):
        installed.apply(deployment(namespace, HELM))
        installed.apply(service(namespace, HELM))
        installed.apply(manifest(kind, namespace, ADOPT))
        wait_done(installed, kind, namespace)
        installed.annotate(KINDS[kind].KIND, "web", namespace, {"steward.dev/adopt": None})
        before = wait_served(installed, namespace)
        installed.delete("deployment", "web", namespace, propagation="Orphan")
        name = {"App": "ServiceReady", "MyWeb": "ServiceSynced"}[kind]
        said = 'Service "web" keeps its selector until pods of Deployment "web" are available'
        waits = installed.wait_for(KINDS[kind].KIND, "web", namespace,
                                   lambda o: condition(o, name).get("message") == said)
        assert (condition(waits, name)["status"], condition(waits, name)["reason"]) == ("False", "Progressing")
        assert installed.get("service", "web", namespace)["spec"]["selector"] == HELM
        ready.set()
        installed.wait_for("service", "web", namespace, lambda o: o["spec"]["selector"] == {
            "app.kubernetes.io/name": kind.lower(), "app.kubernetes.io/instance": "web"})
        wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)


@pytest.mark.parametrize("kind", KINDS)
def test_service_of_other_pods_moves_when_new_pods_are_ready(controller, installed,
                                                            namespace, kind):
    """The Service selects the pods of a Deployment of another name, so the new pods do not have its
    labels."""
    ready = threading.Event()
    with kubelet(installed, namespace,
                 lambda pod: ready.is_set() or "old" == pod["spec"]["containers"][0]["name"]):
        installed.apply(deployment(namespace, {"app": "v1"}, "web-v1"))
        installed.apply(service(namespace, {"app": "v1"}))
        before = wait_served(installed, namespace)
        installed.apply(manifest(kind, namespace, ADOPT))
        name = {"App": "ServiceReady", "MyWeb": "ServiceSynced"}[kind]
        waits = KINDS[kind].wait_condition(installed, "web", namespace, name, "AdoptionWaits")
        assert "stays as it is until the pods of Deployment \"web\" are available" in \
            waits["message"]
        assert installed.get("service", "web", namespace)["spec"]["selector"] == {"app": "v1"}
        ready.set()
        wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)
        selector = installed.get("service", "web", namespace)["spec"]["selector"]
        assert "app" not in selector and selector["app.kubernetes.io/instance"] == "web"


@pytest.mark.parametrize("kind", KINDS)
def test_pod_errors_with_adopted_selector_are_reported(controller, installed, namespace, kind):
    """The labels of the pods name another application."""
    labels = {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "other"}
    installed.apply(deployment(namespace, labels, replicas=1))
    installed.apply(manifest(kind, namespace, ADOPT, replicas=1))
    found = KINDS[kind].wait_condition(installed, "web", namespace, "Ready", "Unschedulable")
    assert "cannot be scheduled" in found["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_unadoptable_child_stops_all_writes(controller, installed, namespace, kind):
    """The selector of the Deployment has an expression: it cannot be kept, and not be changed."""
    expression = {"key": "tier", "operator": "Exists"}
    with kubelet(installed, namespace):
        installed.apply(deployment(namespace, {"app": "shop"}, selector={
            "matchLabels": {"app": "shop"}, "matchExpressions": [expression]}))
        installed.apply(service(namespace, {"app": "shop"}))
        before = wait_served(installed, namespace)
        theirs = {k: state(installed, k, namespace) for k in ("deployment", "service")}
        installed.apply(manifest(kind, namespace, ADOPT))
        stalled = KINDS[kind].wait_condition(installed, "web", namespace, "Stalled",
                                             "AdoptionRefused")
        assert 'nothing is adopted, because Deployment "web" cannot be' in stalled["message"]
        assert "its selector cannot be changed, and not be kept" in stalled["message"]
        assert f"kubectl -n {namespace} delete deployment web --cascade=orphan" in \
            stalled["message"]
        installed.wait_event("web", namespace, "AdoptionRefused", "Deployment \"web\" cannot be")
        assert {k: state(installed, k, namespace) for k in theirs} == theirs
        for config in ("web", "web-config"):
            assert installed.get("configmap", config, namespace) is None
        # The advice: pods without a Deployment serve until the new ones do.
        installed.delete("deployment", "web", namespace, propagation="Orphan")
        installed.annotate(KINDS[kind].KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
        wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)
        for old in installed.list("replicaset", namespace):
            if not old["metadata"].get("ownerReferences"):
                installed.delete("replicaset", old["metadata"]["name"], namespace)
        wait_served(installed, namespace)
        assert_always_served(installed, namespace, before)


def test_child_of_another_controller_stops_adoption(controller, installed, namespace):
    installed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "owner", "namespace": namespace}})
    uid = installed.get("configmap", "owner", namespace)["metadata"]["uid"]
    installed.apply(deployment(namespace, {"app": "shop"}, replicas=0))
    theirs = service(namespace, {"app": "shop"})
    theirs["metadata"]["ownerReferences"] = [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": True}]
    installed.apply(theirs)
    installed.apply(manifest("App", namespace, ADOPT))
    stalled = app.wait_condition(installed, "web", namespace, "Stalled", "AdoptionRefused")
    assert 'Service "web" cannot be: its controller is ConfigMap/owner' in stalled["message"]
    assert MARK not in installed.get("deployment", "web", namespace)["metadata"].get(
        "annotations", {})


def test_adopted_children_stay_with_their_first_owner(controller, installed, namespace):
    """An App and a MyWeb of one name, both told to adopt, do not take the objects from each other."""
    installed.apply([deployment(namespace, {"app": "shop"}, replicas=0),
                     service(namespace, {"app": "shop"})])
    installed.apply(manifest("App", namespace, ADOPT, replicas=0))
    wait_done(installed, "App", namespace)
    theirs = {k: state(installed, k, namespace) for k in ("deployment", "service")}
    installed.apply(manifest("MyWeb", namespace, ADOPT, replicas=0))
    stalled = myweb.wait_condition(installed, "web", namespace, "Stalled", "AdoptionRefused")
    assert 'Deployment "web" cannot be: App/web has adopted it, and is still there' in stalled["message"]
    assert {k: state(installed, k, namespace) for k in theirs} == theirs
    assert installed.get("configmap", "web", namespace) is None
    # Without its owner, it is free again.
    installed.delete(app.KIND, "web", namespace)
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
    wait_done(installed, "MyWeb", namespace)
    assert installed.get("service", "web", namespace)["metadata"]["annotations"][MARK].startswith("MyWeb/web/")


def test_service_with_changed_port_is_not_adopted(controller, installed, namespace):
    """The port of the pods has a name, which stands for another number; then the port of the Service has."""
    def refused(text):
        installed.annotate(app.KIND, "web", namespace, {"steward.dev/reconcile-at": text})
        wait.until(text, lambda: text in condition(
            installed.get(app.KIND, "web", namespace), "Stalled").get("message", ""))

    old = deployment(namespace, {"app": "shop"}, replicas=0)
    [container] = old["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "main", "containerPort": 3000}]
    theirs = service(namespace, {"app": "shop"})
    theirs["spec"]["ports"] = [{"name": "main", "port": 80, "targetPort": "main"}]
    installed.apply([old, theirs])
    installed.apply(manifest("App", namespace, ADOPT, replicas=0))
    refused("its port 80 goes to port 3000 of the pods, and the wanted one to 8080")
    installed.patch(app.KIND, "web", namespace, {"spec": {"port": 3000}})
    refused('its port 80 has the name "main", which others may use, and the wanted one "http"')
    assert MARK not in installed.get("deployment", "web", namespace)["metadata"].get("annotations", {})
    installed.patch("service", "web", namespace, {"spec": {"ports": [
        {"name": "http", "port": 80, "targetPort": "main"}]}})
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/reconcile-at": "last"})
    wait_done(installed, "App", namespace)


def test_foreign_configmap_keys_stop_adoption(controller, installed, namespace):
    installed.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {"THEIRS": "kept"},
                     "metadata": {"name": "web-config", "namespace": namespace}})
    installed.apply(manifest("App", namespace, ADOPT, replicas=0))
    stalled = app.wait_condition(installed, "web", namespace, "Stalled", "AdoptionRefused")
    assert "data.THEIRS" in stalled["message"]
    installed.patch(app.KIND, "web", namespace, {"spec": {"config": {"environment": {
        "THEIRS": "kept"}}}})
    wait_done(installed, "App", namespace)
    assert installed.get("configmap", "web-config", namespace)["data"]["THEIRS"] == "kept"


def test_adopted_deployment_keeps_autoscaled_replicas(controller, installed, namespace):
    """Neither the start value of the App's autoscaling nor one replica is written."""
    scaler = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
              "metadata": {"name": "web", "namespace": namespace},
              "spec": {"minReplicas": 1, "maxReplicas": 9, "targetCPUUtilizationPercentage": 50,
                       "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                                          "name": "web"}}}
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": namespace},
              "apiVersion": "policy/v1" if installed.minor() >= 21 else "policy/v1beta1",
              "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}}}
    with kubelet(installed, namespace):
        installed.apply([deployment(namespace, {"app": "shop"}, replicas=5), scaler, budget])
        before = installed.wait_for("deployment", "web", namespace,
                                    lambda o: o["status"].get("availableReplicas") == 5)
        installed.apply(manifest("App", namespace, ADOPT, autoscaling={
            "enabled": True, "minReplicas": 2, "maxReplicas": 7}))
        installed.wait_event("web", namespace, "Adopted", "HorizontalPodAutoscaler")
        installed.wait_for("deployment", "web", namespace,
                           lambda o: o["status"].get("updatedReplicas") == 5)
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments?timeoutSeconds=1"
        seen = installed.api.watch(path, before["metadata"]["resourceVersion"])
        assert {o["spec"]["replicas"] for _, o in seen} == {5}
        assert installed.get("hpa", "web", namespace)["spec"]["maxReplicas"] == 7
        taken = installed.get("poddisruptionbudget", "web", namespace)
        assert "minAvailable" not in taken["spec"] and MARK in taken["metadata"]["annotations"]


def test_adopted_budget_stays_with_a_single_pod(controller, installed, namespace):
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": namespace},
              "apiVersion": "policy/v1" if installed.minor() >= 21 else "policy/v1beta1",
              "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}}}
    with kubelet(installed, namespace):
        installed.apply([deployment(namespace, {"app": "shop"}), budget])
        installed.apply(manifest("App", namespace, ADOPT))
        wait_done(installed, "App", namespace)
        uid = installed.get("poddisruptionbudget", "web", namespace)["metadata"]["uid"]
        for replicas in (1, 2):
            installed.patch(app.KIND, "web", namespace, {"spec": {"replicas": replicas}})
            wait_done(installed, "App", namespace)
            kept = installed.get("poddisruptionbudget", "web", namespace)
            assert kept["metadata"]["uid"] == uid and kept["spec"]["maxUnavailable"] == 1
        installed.patch(app.KIND, "web", namespace, {"spec": {"pdb": {"enabled": False}}})
        installed.wait_gone("poddisruptionbudget", "web", namespace)


@pytest.mark.parametrize("kind", KINDS)
def test_service_is_not_adopted_with_pods_of_others(controller, installed, namespace, kind):
    """It selects by one more label than the Deployment, which the pods of another one lack."""
    with kubelet(installed, namespace):
        installed.apply(deployment(namespace, {"app": "shop"}))
        other = deployment(namespace, {"app": "shop", "tier": "back"}, "back", replicas=1)
        other["spec"]["template"]["metadata"]["labels"]["tier"] = "back"
        installed.apply(other)
        installed.apply(service(namespace, {"app": "shop", "tier": "front"}))
        before = wait_served(installed, namespace)
        installed.wait_list("a pod of the other", "pod", namespace, lambda pods: pods, selector="tier=back")
        installed.apply(manifest(kind, namespace, ADOPT))
        stalled = KINDS[kind].wait_condition(installed, "web", namespace, "Stalled", "AdoptionRefused")
        assert 'Service "web" cannot be: it selects app=shop,tier=front, and the Deployment app=shop, ' \
            "which pod back-" in stalled["message"]
        assert "give such pods other labels, or remove them" in stalled["message"]
        assert MARK not in installed.get("deployment", "web", namespace)["metadata"].get("annotations", {})
        installed.delete("deployment", "back", namespace)
        installed.wait_list("no pod of the other", "pod", namespace, lambda pods: not pods, selector="tier=back")
        installed.annotate(KINDS[kind].KIND, "web", namespace, {"steward.dev/reconcile-at": "1"})
        wait_done(installed, kind, namespace)
        assert_always_served(installed, namespace, before)


def test_foreground_deletion_keeps_adopted_children(controller, installed, namespace):
    """Also while steward is not running."""
    installed.apply(service(namespace, {"app": "shop"}))
    installed.apply(manifest("App", namespace, ADOPT, replicas=0))
    wait_done(installed, "App", namespace)
    controller.stop()
    try:
        installed.delete(app.KIND, "web", namespace, propagation="Foreground")
        installed.wait_gone("deployment", "web", namespace)
        assert installed.get("service", "web", namespace)
    finally:
        controller.start()
    # Without the annotation, a new owner of this name does not take it.
    installed.apply(manifest("App", namespace, replicas=0))
    stalled = app.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    assert 'Service "web" exists' in stalled["message"]
    installed.annotate(app.KIND, "web", namespace, ADOPT)
    wait_done(installed, "App", namespace)


def test_interrupted_adoption_is_finished(controller, installed, namespace):
    """The manager of the fields has changed, and nothing else: as after a crash between two writes."""
    with kubelet(installed, namespace):
        installed.apply([deployment(namespace, {"app": "shop"}),
                         service(namespace, {"app": "shop"})])
        before = wait_served(installed, namespace)
        installed.apply(manifest("App", namespace, ADOPT))
        wait.until("a child to be adopted", lambda: MARK in installed.get(
            "deployment", "web", namespace)["metadata"].get("annotations", {}))
        controller.kill()
        controller.start()
        wait_done(installed, "App", namespace)
        assert_always_served(installed, namespace, before)


def ingress(namespace, *hosts):
    """A user's Ingress."""
    backend = {"service": {"name": "elsewhere", "port": {"number": 80}}}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"rules": [{"host": host, "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": backend}]}} for host in hosts]}}


@pytest.mark.parametrize("child, text", [
    ("type", 'Service "web" cannot be: its type is NodePort, and the wanted one is ClusterIP'),
    ("port", 'Service "web" cannot be: its port 80 goes to port 9000 of the pods'),
    ("host", 'Ingress "web" cannot be: it has rules for other hosts or paths')])
def test_adoption_that_breaks_clients_is_refused(controller, installed, namespace, child, text):
    theirs = service(namespace, {"app": "shop"})
    if child == "type":
        theirs["spec"]["type"] = "NodePort"
    if child == "port":
        theirs["spec"]["ports"][0]["targetPort"] = 9000
    hosts = ("a.example.com", "b.example.com") if child == "host" else ("a.example.com",)
    installed.apply([theirs, ingress(namespace, *hosts)])
    installed.apply(manifest("App", namespace, ADOPT, replicas=0, ingress={"host": hosts[0]}))
    stalled = app.wait_condition(installed, "web", namespace, "Stalled", "AdoptionRefused")
    assert text in stalled["message"]
    for kind in ("service", "ingress"):
        assert MARK not in installed.get(kind, "web", namespace)["metadata"].get("annotations", {})
    assert installed.get("configmap", "web-config", namespace) is None


def test_unwanted_adopted_child_is_deleted(
        controller, installed, namespace):
    installed.apply([service(namespace, {"app": "shop"}), ingress(namespace, "a.example.com"),
                     deployment(namespace, {"app": "shop"}, replicas=0)])
    installed.apply(manifest("App", namespace, ADOPT, replicas=0,
                             ingress={"host": "a.example.com"}))
    wait.until("the Ingress to be adopted", lambda: MARK in installed.get(
        "ingress", "web", namespace)["metadata"].get("annotations", {}))
    # What was adopted stays so without the request to adopt.
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/adopt": None})
    installed.patch(app.KIND, "web", namespace, {"spec": {"ingress": None}})
    installed.wait_gone("ingress", "web", namespace)
    wait_done(installed, "App", namespace)
    # A Deployment that is created again has the usual selector, and the Service follows it.
    usual = {"app.kubernetes.io/name": "app", "app.kubernetes.io/instance": "web"}
    assert installed.get("service", "web", namespace)["spec"]["selector"] == {"app": "shop"}
    installed.delete("deployment", "web", namespace)
    installed.wait_for("service", "web", namespace, lambda o: o["spec"]["selector"] == usual)
    again = installed.wait_for("deployment", "web", namespace, lambda o: True)
    assert again["spec"]["selector"]["matchLabels"] == usual
    assert MARK not in again["metadata"].get("annotations", {})
    assert again["metadata"]["ownerReferences"][0]["kind"] == "App"
    wait_done(installed, "App", namespace)


def test_paused_deployment_stays_paused_after_adoption(controller, installed, namespace):
    with kubelet(installed, namespace):
        installed.apply([deployment(namespace, {"app": "shop"}),
                         service(namespace, {"app": "shop"})])
        before = wait_served(installed, namespace)
        installed.patch("deployment", "web", namespace, {"spec": {"paused": True}})
        installed.apply(manifest("App", namespace, ADOPT))
        installed.wait_event("web", namespace, "Adopted", "Service")
        assert installed.get("deployment", "web", namespace)["spec"]["paused"] is True
        installed.patch("deployment", "web", namespace, {"spec": {"paused": None}})
        wait_done(installed, "App", namespace)
        assert_always_served(installed, namespace, before)


def test_orphaned_children_are_adopted_by_the_next_owner(controller, installed,
                                                         namespace):
    with kubelet(installed, namespace):
        installed.apply(manifest("App", namespace))
        wait_done(installed, "App", namespace)
        before = wait_served(installed, namespace)
        installed.delete(app.KIND, "web", namespace, propagation="Orphan")
        installed.apply(manifest("App", namespace, ADOPT))
        wait_done(installed, "App", namespace)
        assert MARK in installed.get("configmap", "web-config", namespace)["metadata"]["annotations"]
        assert_always_served(installed, namespace, before)


def etcd_service(namespace, name, **spec):
    """A user's Service of an etcd that is not steward's."""
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": "old-etcd"}, "ports": [{"name": "client", "port": 2379}], **spec}}


def test_etcd_services_are_adopted_together_or_not_at_all(controller, installed, namespace):
    """The one of the members must be headless, which a Service cannot become."""
    installed.apply(etcd_service(namespace, "kv"))
    installed.apply(etcd_service(namespace, "kv-client"))
    before = installed.get("service", "kv-client", namespace)
    installed.apply(etcdcluster.manifest("kv", namespace, ADOPT, size=1))
    stalled = installed.wait_condition(etcdcluster.KIND, "kv", namespace, "Stalled", "AdoptionRefused")
    assert 'Service "kv" cannot be' in stalled["message"] and "clusterIP" in stalled["message"]
    assert installed.get("service", "kv-client", namespace) == before
    installed.wait_event("kv", namespace, "AdoptionRefused", 'Service "kv" cannot be')

    # The same if the budget, which is written later, is another one's.
    holder = installed.get("service", "kv-client", namespace)["metadata"]["uid"]
    installed.apply({"kind": "PodDisruptionBudget", "metadata": {
        "name": "kv", "namespace": namespace, "ownerReferences": [{
            "apiVersion": "v1", "kind": "Service", "name": "kv-client", "uid": holder, "controller": True}]},
        "apiVersion": "policy/v1" if installed.minor() >= 21 else "policy/v1beta1",
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "old-etcd"}}}})
    installed.patch(etcdcluster.KIND, "kv", namespace, {"spec": {"size": 3}})
    installed.wait_for(etcdcluster.KIND, "kv", namespace, lambda o: condition(
        o, "Stalled").get("observedGeneration") == o["metadata"]["generation"])
    installed.delete("service", "kv", namespace)
    installed.annotate(etcdcluster.KIND, "kv", namespace, {"steward.dev/reconcile-at": "now"})
    wait.until("the refusal", lambda: 'PodDisruptionBudget "kv" cannot be' in condition(
        installed.get(etcdcluster.KIND, "kv", namespace), "Stalled").get("message", ""))
    assert installed.get("service", "kv-client", namespace) == before
    assert installed.get("service", "kv", namespace) is None


def old_member(namespace, name):
    """A pod of an etcd that is not steward's."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": "old-etcd"}},
            "spec": {"containers": [{"name": "old", "image": app.IMAGE}]}}


def test_etcd_services_keep_endpoints_until_members_are_ready(
        controller, installed, namespace):
    """The headless one moves to a member with an address, the other one to a quorum of ready voters."""
    kind, names = etcdcluster.KIND, ("kv", "kv-client")

    def wait_adopting(text):
        waits = installed.wait_for(kind, "kv", namespace, lambda o: text in condition(
            o, "Adopting").get("message", ""))
        assert condition(waits, "Adopting")["reason"] == "AdoptionWaits"

    with kubelet(installed, namespace, lambda pod: pod["metadata"]["labels"]["app"] == "old-etcd") as node:
        installed.apply([etcd_service(namespace, "kv", clusterIP="None"), etcd_service(namespace, "kv-client"),
                         old_member(namespace, "old-0"), old_member(namespace, "old-1")])
        before = [wait_served(installed, namespace, name) for name in names]
        theirs = [state(installed, "service", namespace, name) for name in names]
        installed.apply(etcdcluster.manifest("kv", namespace, ADOPT, size=1))
        wait_adopting('Service "kv" stays as it is until a member has an address')
        [member] = installed.wait_list("a pod of a member", "pod", namespace, lambda pods: [
            p["metadata"]["name"] for p in pods], selector="etcd_cluster=kv")
        assert [state(installed, "service", namespace, name) for name in names] == theirs
        node.start(member, ready=False)
        installed.wait_event("kv", namespace, "Adopted", 'Service "kv"')
        wait_adopting('Service "kv-client" stays as it is until 1 member is ready')
        assert state(installed, "service", namespace, "kv-client") == theirs[1]
        installed.patch("pod", member, namespace, {"metadata": {"labels": {"etcd_role": "voter"}}})
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        installed.patch("pod", member, namespace, {"status": {"conditions": [ready]}}, subresource="status")
        installed.wait_event("kv", namespace, "Adopted", 'Service "kv-client"')
        installed.wait_for(kind, "kv", namespace, lambda o: not condition(o, "Adopting"))
        for one in before:
            assert_always_served(installed, namespace, one)
        installed.delete(kind, "kv", namespace)
        for name in names:
            kept = installed.get("service", name, namespace)["metadata"]
            assert MARK in kept["annotations"] and not kept.get("ownerReferences")
            assert "deletionTimestamp" not in kept
