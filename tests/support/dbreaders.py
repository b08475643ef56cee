# SPDX-License-Identifier: Apache-2.0
"""Workloads that read the connection Secret of a DatabaseUser."""

import yaml

from . import cluster as k8s
from . import eru
from . import steward as stw
from .eru import daemonset, deployment, statefulset

RESTART_ON = "steward.dev/restart-on"
RESTARTED_FOR = "steward.dev/restarted-for"
BUILD = {"deployment": deployment, "statefulset": statefulset, "daemonset": daemonset}


def reader(kind, name, namespace, secret, restart_on=None, **more):
    """A workload with the Secret in the environment of its pods; by default without the annotation
    by which it asks for restarts."""
    found = BUILD[kind](name, namespace, **more)
    if restart_on:
        found["metadata"]["annotations"] = {RESTART_ON: restart_on}
    found["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": secret}}]
    return found


def stamp(cluster, kind, name, namespace):
    """What steward has written to the pod template of a workload; None: nothing."""
    template = cluster.get(kind, name, namespace)["spec"]["template"]
    return (template["metadata"].get("annotations") or {}).get(RESTARTED_FOR)


class Kubelet(eru.Kubelet):
    """Also says since when the containers run."""

    def _status(self, pod):
        since = pod["metadata"]["creationTimestamp"]
        return {**super()._status(pod), "containerStatuses": [
            {"name": c["name"], "image": c["image"], "imageID": "", "ready": True,
             "restartCount": 0, "started": True, "state": {"running": {"startedAt": since}}}
            for c in pod["spec"]["containers"]]}


class Account:
    """A ServiceAccount with the rights of a steward that has only the kind DatabaseUser, where `verbs`
    of what it may do with workloads and pods are missing."""

    def __init__(self, cluster, binary, name):
        self.cluster, self.binary, self.name = cluster, binary, name
        cluster.create_account(f"{stw.NAMESPACE}/{name}")

    def may_not(self, *verbs):
        """Changes its rights."""
        said = k8s.run([self.binary, "print", "rbac", "--kinds", "DatabaseUser"]).stdout
        self.cluster.apply([self._limited(r, set(verbs)) for r in yaml.safe_load_all(said)
                            if r["kind"] not in ("ServiceAccount", "Namespace")])

    def _limited(self, role, verbs):
        role["metadata"]["name"] = f"{self.name}-{role['metadata']['name']}"
        for rule in role.get("rules", ()):
            if "apps" in rule["apiGroups"] or "pods" in rule["resources"]:
                rule["verbs"] = [v for v in rule["verbs"] if v not in verbs]
        if "rules" in role:
            role["rules"] = [r for r in role["rules"] if r["verbs"]]
        if "roleRef" in role:
            role["roleRef"]["name"] = f"{self.name}-{role['roleRef']['name']}"
            role["subjects"][0]["name"] = self.name
        return role

    def kubeconfig(self, folder):
        """Acts as this account."""
        return self.cluster.kubeconfig_of(f"{stw.NAMESPACE}/{self.name}", folder / self.name)

    def close(self):
        """Removes it."""
        for kind in ("clusterrolebinding", "clusterrole"):
            for one in self.cluster.list(kind):
                if one["metadata"]["name"].startswith(f"{self.name}-"):
                    self.cluster.delete(kind, one["metadata"]["name"])
        for kind in ("rolebinding", "role"):
            for one in self.cluster.list(kind, stw.NAMESPACE):
                if one["metadata"]["name"].startswith(f"{self.name}-"):
                    self.cluster.delete(kind, one["metadata"]["name"], stw.NAMESPACE)
        self.cluster.delete("serviceaccount", self.name, stw.NAMESPACE)
