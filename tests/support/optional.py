# SPDX-License-Identifier: Apache-2.0
"""Definitions of others that a cluster may lack, and whose objects an App has as children."""

MONITOR = ("monitoring.coreos.com", "PodMonitor")
ROUTE = ("gateway.networking.k8s.io", "HTTPRoute")


def definition(group, kind):
    """A CustomResourceDefinition that accepts anything in spec and status."""
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = kind.lower() + "s"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}", "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"kind": kind, "plural": plural, "singular": kind.lower(),
                               "listKind": kind + "List"},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": {
                                       "type": "object",
                                       "properties": {"spec": any_object, "status": any_object}}}}]}}


def uninstall(cluster):
    """Deletes both definitions, and waits until they are gone."""
    for group, kind in (MONITOR, ROUTE):
        cluster.delete("crd", f"{kind.lower()}s.{group}", check=False)
