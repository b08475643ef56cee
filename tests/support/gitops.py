# SPDX-License-Identifier: Apache-2.0
"""What Flux and Argo CD send to an API server, without these programs: they need a node, an image and
more than the CPU that a test may take.

Read from their sources: fluxcd/pkg (ssa), fluxcd/kustomize-controller, argoproj/gitops-engine (pkg/sync,
pkg/utils/kube).  Each sync() gets all objects, as rendered from a repository, and returns the names of
what it has changed or removed."""

import copy
import json

from . import merge
from .cluster import as_yaml

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
# The order of Flux within its last stage; what is not listed comes between.
FIRST = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ConfigMap", "Secret",
         "Service")
LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def identity(obj):
    """What an inventory has of an object."""
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Tool:
    """One source of objects, and its inventory: what the last sync has applied."""

    KEEP = None  # (annotation, value) of what stays

    def __init__(self, cluster):
        self.cluster, self.inventory = cluster, {}

    def path(self, obj):
        """The path of an object on the server."""
        return f"{self.cluster.kinds.of_manifest(obj).path(obj['metadata'].get('namespace', 'default'))}/" \
               f"{obj['metadata']['name']}"

    def live(self, obj):
        """The object on the server, or None."""
        reply = self.cluster.api.request("GET", self.path(obj))
        return reply.object if reply.status == 200 else None

    def stale(self, objects):
        """What the last sync has applied, and this one does not, unless it is to stay; the last first."""
        now = {identity(o) for o in objects}
        return [o for key, o in reversed(self.inventory.items()) if key not in now and not self.stays(o)]

    def stays(self, obj):
        """Whether its annotation says that it is not pruned."""
        name, value = self.KEEP
        return value in ((self.live(obj) or obj)["metadata"].get("annotations") or {}).get(name, "").split(",")

    def delete(self, obj, propagation):
        """Prunes one object."""
        self.cluster.api.request("DELETE", self.path(obj), {
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation})
        return identity(obj)

    def keep(self, objects):
        """Makes these the inventory."""
        self.inventory = {identity(o): o for o in objects}


class Flux(Tool):
    """kustomize-controller: server-side apply by force, of what a dry run shows as different.  It takes
    over what kubectl has applied before, and prunes at the end, by its inventory and its labels."""

    MANAGER = "kustomize-controller"
    KEEP = ("kustomize.toolkit.fluxcd.io/prune", "disabled")
    LABELS = {"kustomize.toolkit.fluxcd.io/name": "steward",
              "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}

    def sync(self, objects):
        """Applies all, one stage after the other."""
        objects = [merge.merged(o, {"metadata": {"labels": self.LABELS}}) for o in objects]
        changed = []
        for stage in (0, 1, 2):
            changed += self._apply_all([o for o in objects if self._stage(o) == stage])
        for obj in self.stale(objects):
            there = self.live(obj)
            if there and self.LABELS.items() <= there["metadata"].get("labels", {}).items():
                changed.append(self.delete(obj, "Background"))
        self.keep(objects)
        return changed

    @staticmethod
    def _stage(obj):
        if obj["kind"] in ("Namespace", "CustomResourceDefinition"):
            return 0
        return 1 if obj["kind"].endswith("Class") else 2

    @staticmethod
    def _rank(obj):
        kind = obj["kind"]
        return (FIRST.index(kind) if kind in FIRST else 100 + LAST.index(kind) if kind in LAST else 50,
                kind, obj["metadata"]["name"])

    def _apply_all(self, objects):
        """All dry runs come before the first write of a stage."""
        different = []
        for obj in sorted(objects, key=self._rank):
            before = self.live(obj)
            if before:
                self._take_over(obj, before)
            tried = self._patch(obj, "&dryRun=All")
            if not before or self._content(before) != self._content(tried):
                different.append(obj)
        for obj in different:
            self._patch(obj, "")
        return [identity(o) for o in different]

    def _patch(self, obj, more):
        path = f"{self.path(obj)}?fieldManager={self.MANAGER}&force=true{more}"
        return self.cluster.api.do("PATCH", path, obj, APPLY)

    def _take_over(self, obj, before):
        """Removes the managers and the annotation that kubectl has left."""
        managers = before["metadata"].get("managedFields", [])
        rest = [m for m in managers if not (
            m["manager"].startswith("kubectl") or m["manager"] == "before-first-apply"
            or (m["manager"], m["operation"]) == (self.MANAGER, "Update"))]
        patch = [] if rest == managers else [
            {"op": "replace", "path": "/metadata/managedFields", "value": rest},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": before["metadata"]["resourceVersion"]}]
        if merge.LAST_APPLIED in before["metadata"].get("annotations", {}):
            name = merge.LAST_APPLIED.replace("/", "~1")
            patch.append({"op": "remove", "path": f"/metadata/annotations/{name}"})
        if patch:
            path = f"{self.path(obj)}?fieldManager={self.MANAGER}"
            self.cluster.api.do("PATCH", path, patch, JSON_PATCH)

    @staticmethod
    def _content(obj):
        """What is compared to find drift."""
        rest = copy.deepcopy(obj)
        metadata = rest.pop("metadata")
        rest.pop("status", None)
        return metadata.get("labels"), metadata.get("annotations"), rest


class ArgoCD(Tool):
    """The application controller: it prunes first, and runs the code of kubectl with its own manager:
    `auth reconcile` of roles, and `apply` of all, by default on the client (three-way merge)."""

    MANAGER = "argocd-controller"
    KEEP = ("argocd.argoproj.io/sync-options", "Prune=false")
    OPTIONS = ()

    def sync(self, objects):
        """A dry run on the client, then one phase."""
        objects = [merge.merged(o, {"metadata": {"annotations": {
            "argocd.argoproj.io/tracking-id": "steward:" + ":".join(identity(o))}}}) for o in objects]
        text = as_yaml(objects)
        before = self._versions(objects)
        self._kubectl(text, "apply", "--dry-run=client", f"--field-manager={self.MANAGER}")
        changed = [self.delete(o, "Foreground") for o in self.stale(objects) if self.live(o)]
        roles = [o for o in objects if o["apiVersion"] == "rbac.authorization.k8s.io/v1"]
        self._kubectl(as_yaml(roles), "auth", "reconcile")
        self._kubectl(text, "apply", *self.OPTIONS, f"--field-manager={self.MANAGER}")
        self.keep(objects)
        after = self._versions(objects)
        return changed + [key for key, version in after.items() if before[key] != version]

    def _kubectl(self, text, *words):
        self.cluster.kubectl(*words, "-f", "-", stdin=text)

    def _versions(self, objects):
        """{identity: the object without what a status changes}"""
        found = {identity(o): self.live(o) for o in objects}
        return {key: json.dumps([o["metadata"]["uid"], Flux._content(o)], sort_keys=True) if o else None
                for key, o in found.items()}


class ArgoCDOnTheServer(ArgoCD):
    """With the option ServerSideApply=true."""

    OPTIONS = ("--server-side", "--force-conflicts")


TOOLS = {"flux": Flux, "argocd": ArgoCD, "argocd-server": ArgoCDOnTheServer}
