# SPDX-License-Identifier: Apache-2.0
"""Errors of an App, and how its status reports them."""

import pytest
from support import app, myweb, wait
from support.cluster import NEXT_RUN, condition
from support.rest import MERGE

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

FOREIGN = {
    "configmap": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"theirs": "kept"}},
    "deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "theirs"}},
        "template": {"metadata": {"labels": {"app": "theirs"}},
                     "spec": {"containers": [{"name": "c", "image": app.IMAGE}]}}}},
    "service": {"apiVersion": "v1", "kind": "Service",
                "spec": {"ports": [{"port": 1234}], "selector": {"app": "theirs"}}},
    "poddisruptionbudget": {"kind": "PodDisruptionBudget",
                            "spec": {"selector": {"matchLabels": {"app": "theirs"}}}},
}


def quota(cluster, namespace, **hard):
    """A ResourceQuota whose use has been counted: until then it refuses nothing."""
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                   "metadata": {"name": "none", "namespace": namespace}, "spec": {"hard": hard}})
    cluster.wait_for("resourcequota", "none", namespace, lambda o: "hard" in o.get("status", {}))


def look_again(cluster, name, namespace):
    """Requests a reconcile."""
    cluster.annotate(app.KIND, name, namespace, {"steward.dev/reconcile-at": "1"})


@pytest.mark.parametrize("kind", FOREIGN)
def test_child_name_taken_by_foreign_object_stalls(controller, installed, namespace, kind):
    name = "web-config" if kind == "configmap" else "web"
    installed.apply({"apiVersion": installed.kinds.of_word(kind).version, **FOREIGN[kind],
                     "metadata": {"name": name, "namespace": namespace}})
    before = installed.get(kind, name, namespace)
    installed.apply(app.manifest("web", namespace, replicas=2))
    stalled = app.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    why = f'{before["kind"]} "{name}" exists and is not controlled by this object (owner: none)'
    assert stalled["message"] == why + NEXT_RUN
    found = installed.get(app.KIND, "web", namespace)
    assert found["status"]["phase"] == "Failed"
    assert found["status"]["lastError"] == why
    after = installed.get(kind, name, namespace)
    assert "ownerReferences" not in after["metadata"] and after["spec" if "spec" in after else "data"] \
        == before["spec" if "spec" in before else "data"]
    installed.delete(kind, name, namespace)
    if kind not in ("service", "deployment"):  # the watches report these
        look_again(installed, "web", namespace)
    installed.wait_for(app.KIND, "web", namespace, lambda o: not condition(o, "Stalled"))
    assert installed.get(kind, name, namespace)["metadata"]["ownerReferences"]


def test_younger_app_stalls_beside_myweb_of_same_name(controller, installed, namespace):
    """The younger object gets no children, and changes nothing."""
    myweb.create_settled(installed, "web", namespace)
    service = installed.get("service", "web", namespace)
    installed.apply(app.manifest("web", namespace))
    found = app.wait_condition(installed, "web", namespace, "Stalled", "NameConflict")
    assert 'Deployment "web"' in found["message"] and "(owner: MyWeb/web)" in found["message"]
    assert installed.get("service", "web", namespace)["spec"] == service["spec"]
    installed.delete(app.KIND, "web", namespace)
    assert myweb.is_settled(installed.get(myweb.KIND, "web", namespace))


def test_repaired_pod_error_leaves_the_condition(controller, installed, namespace):
    """The old pod stays until a new one is ready.  The condition is about the new one."""
    installed.apply(app.manifest("web", namespace, replicas=1))
    [old] = app.wait_pods(installed, "web", namespace, 1)
    app.set_status(installed, old, containerStatuses=app.container_status(
        waiting={"reason": "ErrImagePull", "message": "rpc error"}))
    app.wait_condition(installed, "web", namespace, "Degraded", "ImagePullBackOff")
    wait.another_second(old["metadata"]["creationTimestamp"])
    installed.patch(app.KIND, "web", namespace, {"spec": {"image": "registry.invalid/none:2.0"}})
    new = next(p for p in app.wait_pods(installed, "web", namespace, 2)
               if p["metadata"]["name"] != old["metadata"]["name"])
    app.set_status(installed, new, containerStatuses=app.container_status(
        waiting={"reason": "RunContainerError", "message": "no such program"}))
    found = app.wait_condition(installed, "web", namespace, "Degraded", "RunContainerError")
    assert new["metadata"]["name"] in found["message"]
    app.run_pod(installed, new)
    app.wait_ready(installed, "web", namespace)


def test_quota_on_services_stalls(controller, installed, namespace):
    quota(installed, namespace, services="0")
    installed.apply(app.manifest("web", namespace))
    found = app.wait_condition(installed, "web", namespace, "Stalled", "QuotaExceeded")
    assert found["message"].startswith('Service "web" could not be written')
    assert found["message"].endswith(NEXT_RUN)
    installed.delete("resourcequota", "none", namespace)
    look_again(installed, "web", namespace)
    app.wait_ready(installed, "web", namespace)


def test_quota_on_pods_degrades(controller, installed, namespace):
    quota(installed, namespace, pods="1")
    installed.apply(app.manifest("web", namespace, replicas=2))
    app.run_pods(installed, "web", namespace, 1)
    found = app.wait_condition(installed, "web", namespace, "Degraded", "QuotaExceeded")
    assert found["status"] == "True" and "exceeded quota: none" in found["message"]
    web = installed.wait_for(app.KIND, "web", namespace,
                             lambda o: o["status"].get("availableReplicas") == 1)
    assert condition(web, "Stalled")["reason"] == "QuotaExceeded"
    assert condition(web, "Ready")["reason"] == "QuotaExceeded"
    assert web["status"]["phase"] == "Degraded"


TROUBLES = [
    ("ImagePullBackOff", {"waiting": {"reason": "ErrImagePull", "message": "rpc error"}},
     f'cannot pull image "{app.IMAGE}"'),
    ("CrashLoopBackOff", {"waiting": {"reason": "CrashLoopBackOff"}, "restarts": 4,
                          "last": {"terminated": {"exitCode": 3, "reason": "Error"}}},
     "ends again and again, with exit code 3"),
    ("OOMKilled", {"waiting": {"reason": "CrashLoopBackOff"}, "restarts": 4,
                   "last": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
     "was killed because it used more memory than its limit"),
    ("SecretNotFound", {"waiting": {"reason": "CreateContainerConfigError",
                                    "message": 'secret "db" not found'}}, 'secret "db" not found'),
    ("CreateContainerConfigError", {"waiting": {
        "reason": "CreateContainerConfigError",
        "message": "container has runAsNonRoot and image will run as root"}}, "will run as root"),
]


@pytest.mark.parametrize("reason, state, text", TROUBLES, ids=[t[0] for t in TROUBLES])
def test_pod_error_is_reported_as_degraded(controller, installed, namespace, reason, state, text):
    installed.apply(app.manifest("web", namespace, replicas=1))
    [pod] = app.wait_pods(installed, "web", namespace, 1)
    app.set_status(installed, pod, containerStatuses=app.container_status(**state))
    found = app.wait_condition(installed, "web", namespace, "Degraded", reason)
    assert found["status"] == "True"
    assert found["message"].startswith(f'container app of pod {pod["metadata"]["name"]}')
    assert text in found["message"]
    assert installed.wait_event("web", namespace, reason, text) == found["message"]
    # The Deployment may not yet report that its pod is unavailable.
    web = installed.wait_for(app.KIND, "web", namespace, lambda o: o["status"]["phase"] == "Degraded")
    ready = condition(web, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", reason)
    assert text in ready["message"] and text in web["status"]["lastError"]
    assert condition(web, "Reconciling")["status"] == "True"
    assert (condition(web, "ConfigSynced")["reason"] == "SecretNotFound") == \
        (reason == "SecretNotFound")
    # When the pod is healthy again, nothing remains in the status.
    app.run_pod(installed, pod)
    web = app.wait_ready(installed, "web", namespace)
    assert condition(web, "Degraded")["status"] == "False"
    assert "lastError" not in web["status"] and web["status"]["phase"] == "Running"
    # Healthy pods are not cached; pods of other tests may still be terminating.
    wait.until("no pod to be in the cache",
               lambda: controller.metric("steward_cache_objects", resource="pods") == 0, 30)


def test_unschedulable_pod_is_reported(controller, installed, namespace):
    """The real scheduler finds no node: all are cordoned."""
    installed.apply(app.manifest("web", namespace, replicas=1))
    found = app.wait_condition(installed, "web", namespace, "Degraded", "Unschedulable")
    assert "cannot be scheduled" in found["message"]


def test_stuck_rollout_stalls_after_the_deadline(controller, installed, namespace):
    """The old pod keeps running.  After the deadline the App is Stalled."""
    installed.apply(app.manifest("web", namespace, replicas=1,
                                 strategy={"progressDeadlineSeconds": 2}))
    app.run_pods(installed, "web", namespace, 1)
    good = app.wait_ready(installed, "web", namespace)["status"]["lastGood"]
    installed.patch(app.KIND, "web", namespace, {"spec": {"image": "registry.invalid/none:2.0"}})
    found = app.wait_condition(installed, "web", namespace, "Stalled", "ProgressDeadlineExceeded")
    assert "has timed out progressing" in found["message"]
    web = installed.get(app.KIND, "web", namespace)
    assert condition(web, "Progressing")["status"] == "False"
    assert condition(web, "Available")["status"] == "True"
    assert web["status"]["phase"] == "Degraded"
    assert web["status"]["lastGood"] == good and good["image"] == app.IMAGE
    installed.patch(app.KIND, "web", namespace, {"spec": {"image": good["image"]}})
    app.wait_ready(installed, "web", namespace)


def test_stored_limit_below_request_stalls(controller, installed, namespace):
    """Stored while no webhook was installed: the same error message, and no child."""
    installed.apply(app.manifest("web", namespace, resources={
        "requests": {"cpu": "1"}, "limits": {"cpu": "500m"}}))
    found = app.wait_condition(installed, "web", namespace, "Stalled", "InvalidSpec")
    assert found["message"] == 'spec.resources.requests[cpu]: Invalid value: "1": must be less than ' \
                               'or equal to cpu limit'
    assert not any(app.children(installed, "web", namespace).values())
    assert installed.get(app.KIND, "web", namespace)["status"]["phase"] == "Failed"
    installed.patch(app.KIND, "web", namespace, {"spec": {"resources": {"limits": {"cpu": "2"}}}})
    app.wait_ready(installed, "web", namespace)


EDITS = [
    ("configmap", "web-config", {"data": {"LOG_LEVEL": "debug"},
                                 "metadata": {"annotations": {"theirs": "x"}}}, "data.LOG_LEVEL"),
    ("deployment", "web", {"spec": {"paused": False, "minReadySeconds": 1,
                                    "progressDeadlineSeconds": 5}}, "progressDeadlineSeconds"),
    ("service", "web", {"spec": {"type": "NodePort", "sessionAffinity": "ClientIP"}}, "spec.type"),
    ("poddisruptionbudget", "web", {"metadata": {"annotations": {"theirs": "x"}, "labels": {
        "app.kubernetes.io/component": "x"}}}, "app.kubernetes.io/component"),
]


@pytest.mark.parametrize("kind, name, patch, field", EDITS, ids=[e[0] for e in EDITS])
def test_only_edits_of_owned_fields_are_reverted(controller, installed, namespace, kind, name, patch,
                                                 field):
    """A change of a field that steward owns is reverted, with an event; another field is kept."""
    installed.apply(app.manifest("web", namespace, replicas=2))
    app.run_pods(installed, "web", namespace, 2)
    app.wait_ready(installed, "web", namespace)
    installed.patch(kind, name, namespace, patch)
    message = installed.wait_event("web", namespace, "DriftRepaired", field)
    assert f'"{name}", which had been changed' in message
    web = installed.wait_for(app.KIND, "web", namespace,
                             lambda o: o["status"].get("repairs") == 1 and app.is_ready(o))
    assert field in web["status"]["lastRepair"]["fields"]
    after = installed.get(kind, name, namespace)
    kept = {"configmap": lambda o: o["metadata"]["annotations"]["theirs"] == "x",
            "deployment": lambda o: o["spec"]["minReadySeconds"] == 1,
            "service": lambda o: o["spec"]["sessionAffinity"] == "ClientIP",
            "poddisruptionbudget": lambda o: o["metadata"]["annotations"]["theirs"] == "x"}
    assert kept[kind](after)


@pytest.mark.parametrize("kind", ["configmap", "deployment", "service", "poddisruptionbudget"])
def test_deleted_child_is_recreated(controller, installed, namespace, kind):
    name = "web-config" if kind == "configmap" else "web"
    installed.apply(app.manifest("web", namespace, replicas=2))
    app.run_pods(installed, "web", namespace, 2)
    app.wait_ready(installed, "web", namespace)
    uid = installed.get(kind, name, namespace)["metadata"]["uid"]
    installed.delete(kind, name, namespace, wait_gone=False)
    installed.wait_for(kind, name, namespace, lambda o: o["metadata"]["uid"] != uid)
    installed.wait_event("web", namespace, "DriftRepaired", f'"{name}", which had been deleted')


def test_repeated_foreign_edits_stop_repairs(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)

    api = installed.api
    config = f"/api/v1/namespaces/{namespace}/configmaps/web-config"
    path = f"/apis/mycompany.com/v1/namespaces/{namespace}/apps/web"

    def stalled():
        return condition(api.call("GET", path)[1], "Stalled").get("reason")

    for n in range(30):
        assert api.call("PATCH", config, {"data": {"LOG_LEVEL": f"mine {n}"}}, MERGE)[0] == 200
        wait.until("a repair or the end of patience", lambda: stalled() == "HotLoop" or api.call(
            "GET", config)[1]["data"]["LOG_LEVEL"] == "info", every=0.02)
        if stalled():
            break
    assert stalled() == "HotLoop" and n >= 15


def test_paused_app_is_not_repaired(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/paused": "true"})
    ready = app.wait_condition(installed, "web", namespace, "Ready", "Paused")
    assert ready["status"] == "True"
    assert installed.get(app.KIND, "web", namespace)["status"]["phase"] == "Paused"
    installed.patch("configmap", "web-config", namespace, {"data": {"LOG_LEVEL": "mine"}})
    wait.stays("as it was edited", lambda: installed.get(
        "configmap", "web-config", namespace)["data"]["LOG_LEVEL"] == "mine", 1)
    installed.annotate(app.KIND, "web", namespace, {"steward.dev/paused": None})
    app.wait_condition(installed, "web", namespace, "Ready", "Succeeded")
    # The finalizer of another controller blocks the deletion.
    installed.patch(app.KIND, "web", namespace, {"metadata": {"finalizers": ["example.com/hold"]}})
    installed.delete(app.KIND, "web", namespace, wait_gone=False)
    installed.wait_for(app.KIND, "web", namespace, lambda o: o["status"]["phase"] == "Terminating")
    installed.patch(app.KIND, "web", namespace, {"metadata": {"finalizers": None}})
