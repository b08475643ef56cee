# SPDX-License-Identifier: Apache-2.0
"""Apps in tests: manifests, what to wait for, and pods with a status that the test sets."""

import time

from . import wait
from .cluster import is_ready

KIND = "apps.mycompany.com"
# Nothing can be pulled from there, so a pod with this image never becomes ready.
IMAGE = "registry.invalid/none:1.0"
RESOURCES = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}}


def manifest(name, namespace, annotations=None, **spec):
    """An App.  By default it has no pods (replicas 0): the real Deployment controller then reports
    at once that all of them are available, on any cluster."""
    metadata = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "mycompany.com/v1", "kind": "App", "metadata": metadata,
            "spec": {"image": IMAGE, "replicas": 0, "resources": RESOURCES, **spec}}


def wait_ready(cluster, name, namespace, seconds=60):
    """Until it is ready; returns the object."""
    return cluster.wait_for(KIND, name, namespace, is_ready, seconds,
                            f"App {namespace}/{name} to be ready")


def create_ready(cluster, name, namespace, **spec):
    """Creates one and waits until it is ready; returns the object."""
    cluster.apply(manifest(name, namespace, **spec))
    return wait_ready(cluster, name, namespace)


def wait_condition(cluster, name, namespace, kind, reason, seconds=60):
    """Until a condition has this reason; returns the condition."""
    return cluster.wait_condition(KIND, name, namespace, kind, reason, seconds=seconds)


def deployment(cluster, name, namespace):
    """The Deployment of an App."""
    return cluster.get("deployment", name, namespace)


def children(cluster, name, namespace):
    """{kind: object or None} of all that an App can have."""
    names = {"configmap": f"{name}-config", "deployment": name, "service": name,
             "poddisruptionbudget": name, "hpa": name}
    return {kind: cluster.get(kind, child, namespace) for kind, child in names.items()}


def pods(cluster, name, namespace):
    """The pods of an App that are not being deleted."""
    return _staying(cluster.list("pod", namespace, _labelled(name)))


def _labelled(name):
    return f"app.kubernetes.io/instance={name}"


def _staying(found):
    return [p for p in found if "deletionTimestamp" not in p["metadata"]]


def wait_pods(cluster, name, namespace, count):
    """Waits until there are `count` pods; returns them."""
    def look(found):
        found = _staying(found)
        return found if len(found) == count else None
    return cluster.wait_list(f"{count} pods of {namespace}/{name}", "pod", namespace, look,
                             selector=_labelled(name))


def set_status(cluster, pod, **status):
    """Acts as the kubelet: writes a pod's status, again after a conflict."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]

    def write():
        now = cluster.get("pod", name, namespace)
        now["status"].update(status)
        cluster.replace(now, "status")
        return True
    wait.until(f"the status of pod {name} to be written", write)


def window(start, end):
    """An entry of restartOnChange.windows: from one time (seconds since the epoch) to another, less than
    a day later."""
    start, end = (time.gmtime(at) for at in (start, end))
    return {"days": [time.strftime("%a", start)], "start": time.strftime("%H:%M", start),
            "end": time.strftime("%H:%M", end)}


def container_status(ready=False, restarts=0, **state):
    """status.containerStatuses of an App's one container."""
    last = state.pop("last", {})
    return [{"name": "app", "image": IMAGE, "imageID": "", "ready": ready, "state": state,
             "restartCount": restarts, "lastState": last}]


def run_pod(cluster, pod):
    """Sets the pod to running and ready."""
    started = "2026-01-01T00:00:00Z"
    set_status(cluster, pod, phase="Running", conditions=[
        {"type": "Ready", "status": "True", "lastTransitionTime": started}],
        containerStatuses=container_status(True, running={"startedAt": started}))


def run_pods(cluster, name, namespace, count):
    """Waits for `count` pods, and sets all of them to running."""
    for pod in wait_pods(cluster, name, namespace, count):
        run_pod(cluster, pod)
