# SPDX-License-Identifier: Apache-2.0
"""Erus in tests: manifests, Deployments with pods marked as running, and what to wait for."""

import datetime
import threading

from . import myweb, wait
from .cluster import condition, is_rolled_out

KIND = "erus.mtsre.meitu.com"
STAMP = "mtsre.meitu.com/restarted-at"
RESTART_NOW = "mtsre.meitu.com/restart-now"
WANTED = "mtsre.meitu.com/eru"
MAX_SECONDS = 1200  # for which a Kubelet may be used
SOON = 9  # seconds: steward notices a clock that was set after at most 5, and reads it each second


def manifest(name, namespace, annotations=None, **spec):
    """An Eru for the Deployment of its name, disabled by default."""
    metadata = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "mtsre.meitu.com/v1", "kind": "Eru", "metadata": metadata,
            "spec": {"deploymentname": name, **spec}}


def deployment(name, namespace, replicas=1, annotations=None, image=myweb.NO_IMAGE):
    """A Deployment of one container."""
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"terminationGracePeriodSeconds": 0,
                                           "containers": [{"name": "main", "image": image}]}}}}


def statefulset(name, namespace, replicas=2, image=myweb.NO_IMAGE, **strategy):
    """A StatefulSet of one container, whose pods start together."""
    found = deployment(name, namespace, replicas, image=image)
    found["kind"] = "StatefulSet"
    found["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel",
                      "updateStrategy": strategy or {"type": "RollingUpdate"}}
    return found


def daemonset(name, namespace, image=myweb.NO_IMAGE):
    """A DaemonSet of one container."""
    found = deployment(name, namespace, image=image)
    found["kind"] = "DaemonSet"
    del found["spec"]["replicas"]
    return found


TIER = {"matchLabels": {"tier": "web"}}


def selecting(name, namespace, selector=None, **spec):
    """An Eru for the Deployments of labelled(), disabled by default."""
    return {**manifest(name, namespace), "spec": {"selector": selector or TIER, **spec}}


def labelled(name, namespace, tier="web", **more):
    """A Deployment that the selector TIER matches."""
    found = deployment(name, namespace, **more)
    found["metadata"]["labels"] = {"tier": tier}
    return found


class Kubelet:
    """Acts as the kubelet where there is no node: marks each pod of a namespace as ready, so that
    the real Deployment controller completes rollouts.

    Used with `with`; while `hold` is set, new pods stay unchanged.
    """

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.hold = threading.Event()
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join(10)

    def _run(self):
        self.cluster.wait_list("the end of the test", "pod", self.namespace, self._look,
                               MAX_SECONDS)

    def _look(self, pods):
        for pod in pods:
            if not self.hold.is_set() and not condition(pod, "Ready").get("status") == "True":
                self.cluster.replace({**pod, "status": self._status(pod)}, "status", check=False)
        return self.end.is_set()

    def _status(self, pod):
        """That of a pod which is ready."""
        since = pod["metadata"]["creationTimestamp"]
        return {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": since}]}


def create_available(cluster, name, namespace, **more):
    """A Deployment, rolled out (needs a running Kubelet); returns the object."""
    cluster.apply(deployment(name, namespace, **more))
    return wait_available(cluster, name, namespace)


def create_labelled(cluster, namespace, names):
    """Deployments that match, rolled out (needs a running Kubelet)."""
    for name in names:
        cluster.apply(labelled(name, namespace))
    for name in names:
        wait_available(cluster, name, namespace)


def wait_ended(cluster, name, namespace, seconds=60):
    """Waits until a restart has a result; returns the status."""
    return wait_eru(cluster, name, namespace, lambda s: s.get("lastResult") and
                    "currentRollout" not in s, seconds)["status"]


def assert_each_once(cluster, namespace, names, instant):
    """Each of these Deployments was restarted once, for this instant."""
    for name in names:
        assert stamp(cluster, name, namespace) == instant, name
        assert revision(cluster, name, namespace) == 2, name


def wait_available(cluster, name, namespace, seconds=60):
    """Waits until its rollout is complete."""
    return cluster.wait_for("deployment", name, namespace, is_rolled_out, seconds)


def stamp(cluster, name, namespace, kind="deployment"):
    """The stamp on the pod template of a workload; None when there is none."""
    template = cluster.get(kind, name, namespace)["spec"]["template"]
    return template["metadata"].get("annotations", {}).get(STAMP)


def revision(cluster, name, namespace):
    """How many pod templates a Deployment has had."""
    found = cluster.get("deployment", name, namespace)
    return int(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


def wait_eru(cluster, name, namespace, check, seconds=60, what=None):
    """Waits until check(status) is true of a reconciled Eru; returns the object."""
    def look(found):
        status = found.get("status", {})
        return status.get("observedGeneration") == found["metadata"]["generation"] and check(status)
    return cluster.wait_for(KIND, name, namespace, look, seconds,
                            what or f"Eru {namespace}/{name}")


def ready_reason(status):
    """The reason of Ready in a status."""
    return condition({"status": status}, "Ready").get("reason")


def restart_now(cluster, name, namespace, token):
    """Requests a restart by hand."""
    cluster.annotate(KIND, name, namespace, {RESTART_NOW: f"{token}"})


def next_minute(room=30):
    """(cron expression, instant) of the next whole minute that is at least `room` seconds away:
    time to write it to the Eru."""
    now = datetime.datetime.now(datetime.timezone.utc)
    at = (now + datetime.timedelta(seconds=60 + room)).replace(second=0, microsecond=0)
    return f"{at.minute} {at.hour} {at.day} {at.month} *", at


def wait_log(steward, text, times):
    """Waits until its log has `times` lines with this text."""
    wait.until(f"{times} times {text!r} in the log",
               lambda: sum(text in str(line) for line in steward.log()) >= times, every=0.2)


def iso(instant):
    """As Kubernetes writes times."""
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def wait_until(instant, seconds=2):
    """Waits until the clock is past an instant."""
    limit = (instant - datetime.datetime.now(datetime.timezone.utc)).total_seconds() + seconds
    wait.until(f"{iso(instant)}", lambda: datetime.datetime.now(datetime.timezone.utc) >= instant,
               max(limit, 1))
