# SPDX-License-Identifier: Apache-2.0
"""How the versions of Kubernetes differ where steward relies on them.  docs/contract.md shows this
table, and tests/contract checks each server against it.

Each entry is {name: (what, [(minor, behaviour), ...])}: a behaviour applies from that minor version
of Kubernetes 1 on, up to the next one of the list.  The versions are those of the sweep, so the
change may have come with a version between two of them.
"""

TABLE = {
    "grace-period": (
        "metadata.deletionGracePeriodSeconds of an apply that creates is",
        [(20, "dropped"), (30, "kept"), (37, "dropped")]),
    "version-guard": (
        "An apply of a new Service with metadata.resourceVersion is answered",
        [(20, "500"), (24, "201")]),
    "autoscaling": (
        "Versions of the group autoscaling",
        [(20, "v1 v2beta1 v2beta2"), (23, "v1 v2 v2beta1 v2beta2"), (25, "v1 v2 v2beta2"),
         (26, "v1 v2")]),
    "policy": (
        "Versions of the group policy",
        [(20, "v1beta1"), (21, "v1 v1beta1"), (25, "v1")]),
    "eviction": (
        "spec.unhealthyPodEvictionPolicy of a PodDisruptionBudget is",
        [(20, "dropped"), (30, "kept")]),
    "match-conditions": (
        "matchConditions of a webhook are",
        [(20, "dropped"), (30, "kept")]),
    "selector": (
        "The selector of a Service is, to server-side apply,",
        [(20, "granular"), (24, "atomic")]),
    "node-selector": (
        "The nodeSelector of a pod template is, to server-side apply,",
        [(20, "granular"), (24, "atomic")]),
    "typed-patch": (
        "An apply with a value of a wrong type is answered",
        [(20, "500")]),
    "unknown-field-in-apply": (
        "An apply of a built-in kind with a field that its schema lacks is answered",
        [(20, "500")]),
    "field-validation": (
        "An unknown field of a create is",
        [(20, "dropped silently"), (30, "dropped with a warning")]),
    "status-subresource": (
        "An entry of metadata.managedFields for a status has the member subresource:",
        [(20, "no"), (24, "yes")]),
    "ports-full": (
        "A Service for which no node port is left is answered",
        [(20, "500")]),
    "leftovers": (
        "What the server filled in below a member (a probe, a fieldRef) when an apply leaves that out",
        [(20, "stays"), (24, "goes")]),
}


def of(name, minor):
    """The behaviour of this minor version; KeyError for a name that the table lacks."""
    found = None
    for since, behaviour in TABLE[name][1]:
        if since <= minor:
            found = behaviour
    return found


def markdown():
    """The rows of the table in docs/contract.md."""
    rows = []
    for what, steps in TABLE.values():
        text = "; ".join(f"{b} from 1.{since} on" if since > 20 else b for since, b in steps)
        rows.append(f"| {what} | {text} |")
    return "\n".join(rows) + "\n"
