# SPDX-License-Identifier: Apache-2.0
"""MyWebs in tests: manifests, and what to wait for."""

KIND = "mywebs.operator.k8s-summit.org"
CHILDREN = ("configmap", "deployment", "service")
# Nothing can be pulled from there, so a pod with this image never becomes ready.
NO_IMAGE = "registry.invalid/none:1.0"


def manifest(name, namespace, annotations=None, **spec):
    """A MyWeb.  By default it has no pods (replicas 0): the real Deployment controller then reports
    at once that all of them are available, on any cluster."""
    metadata = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb", "metadata": metadata,
            "spec": {"image": NO_IMAGE, "replicas": 0, "pageContentHtml": f"<p>{name}</p>", **spec}}


def is_settled(web):
    """Whether it is complete at its current generation."""
    status = web.get("status", {})
    return status.get("completed") is True and \
        status.get("observedGeneration") == web["metadata"]["generation"]


def wait_settled(cluster, name, namespace, seconds=60):
    """Waits until it is complete; returns the object."""
    return cluster.wait_for(KIND, name, namespace, is_settled, seconds,
                            f"MyWeb {namespace}/{name} to be complete")


def create_settled(cluster, name, namespace, **spec):
    """Creates one and waits until it is complete; returns the object."""
    cluster.apply(manifest(name, namespace, **spec))
    return wait_settled(cluster, name, namespace)


def wait_condition(cluster, name, namespace, kind, reason, seconds=60):
    """Waits until a condition has this reason; returns the condition."""
    return cluster.wait_condition(KIND, name, namespace, kind, reason, seconds=seconds)


def children(cluster, name, namespace):
    """{kind: object or None} of its three children."""
    return {kind: cluster.get(kind, name, namespace) for kind in CHILDREN}


_given_ports = set()


def free_node_port(cluster):
    """A node port of the static band (30000-30085) that no Service has, another each time."""
    used = {p.get("nodePort") for s in cluster.list("service") for p in s["spec"]["ports"]}
    port = next(p for p in range(30001, 30086) if p not in used | _given_ports)
    _given_ports.add(port)
    return port
