# SPDX-License-Identifier: Apache-2.0
"""MyWebs in tests: manifests, and what to wait for."""

import json

from . import steward as stw
from . import wait
from .cluster import condition

KIND = "mywebs.operator.k8s-summit.org"
ACCOUNT = "system:serviceaccount:" + stw.ACCOUNT.replace("/", ":")
CHILDREN = ("configmap", "deployment", "service")
# Nothing can be pulled from there, so a pod of it never becomes ready.
NO_IMAGE = "registry.invalid/none:1.0"


def manifest(name, namespace, annotations=None, **spec):
    """A MyWeb.  Without pods (replicas 0) unless told otherwise: the real Deployment controller
    then says at once that all of them are available, on any cluster."""
    metadata = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb", "metadata": metadata,
            "spec": {"image": NO_IMAGE, "replicas": 0, "pageContentHtml": f"<p>{name}</p>", **spec}}


def is_settled(web):
    """Complete, at this generation."""
    status = web.get("status", {})
    return status.get("completed") is True and \
        status.get("observedGeneration") == web["metadata"]["generation"]


def wait_settled(cluster, name, namespace, seconds=30):
    """Until it is complete; returns the object."""
    return cluster.wait_for(KIND, name, namespace, is_settled, seconds,
                            f"MyWeb {namespace}/{name} to be complete")


def create_settled(cluster, name, namespace, **spec):
    """Creates one and waits until it is complete; returns the object."""
    cluster.apply(manifest(name, namespace, **spec))
    return wait_settled(cluster, name, namespace)


def wait_condition(cluster, name, namespace, kind, reason, seconds=30):
    """Until a condition has this reason; returns the condition."""
    web = cluster.wait_for(KIND, name, namespace, lambda o: condition(o, kind).get("reason") == reason,
                           seconds, f"{kind} of MyWeb {namespace}/{name} to say {reason}")
    return condition(web, kind)


def wait_event(cluster, name, namespace, reason, text="", seconds=20):
    """Until there is an event of this reason with this text; returns its message."""
    def look():
        return next((m for _, r, m in cluster.events(namespace, name) if r == reason and text in m),
                    None)
    return wait.until(f"event {reason} {text!r} of {namespace}/{name}", look, seconds)


def children(cluster, name, namespace):
    """{kind: object or None} of the three."""
    return {kind: cluster.get(kind, name, namespace) for kind in CHILDREN}


_given_ports = set()


def free_node_port(cluster):
    """A node port of the static band (30000-30085) that no Service has, another one each time."""
    used = {p.get("nodePort") for s in cluster.list("service") for p in s["spec"]["ports"]}
    port = next(p for p in range(30001, 30086) if p not in used | _given_ports)
    _given_ports.add(port)
    return port


def requests(cluster, namespace, changing=False):
    """What steward has asked the API server for in this namespace, as (verb, path, status): from
    the server's own audit log.  Watches span namespaces and are not in it."""
    found = []
    with open(cluster.audit_log, encoding="utf-8") as log:
        for line in log:
            if f"/namespaces/{namespace}/" not in line or ACCOUNT not in line:
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # being written
            if entry["stage"] != "ResponseComplete" or entry["user"]["username"] != ACCOUNT:
                continue
            if not changing or entry["verb"] not in ("get", "list", "watch"):
                found.append((entry["verb"], entry["requestURI"], entry["responseStatus"]["code"]))
    return found
