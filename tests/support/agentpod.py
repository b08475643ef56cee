# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups and EtcdRestores on volumes, whose pods no node runs: the test sets their results."""

from .app import set_status

IMAGE = "steward/agent:none"
PODS = "app.kubernetes.io/component=agent"  # a selector


class NoPods:
    """A quota that allows no pod in the namespace, until allow()."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                       "metadata": {"name": "none", "namespace": namespace},
                       "spec": {"hard": {"pods": "0"}}})
        cluster.wait_for("resourcequota", "none", namespace, lambda o: o.get("status", {}).get("hard"))

    def allow(self):
        """Removes it."""
        self.cluster.delete("resourcequota", "none", self.namespace)


class Owner:
    """An EtcdBackup or EtcdRestore, and its pod."""

    kind = None

    def __init__(self, cluster, namespace, name):
        self.cluster, self.namespace, self.name = cluster, namespace, name

    def create(self, kind, **spec):
        """kubectl apply; returns self."""
        self.cluster.apply({"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": kind,
                            "metadata": {"name": self.name, "namespace": self.namespace},
                            "spec": spec})
        return self

    def get(self):
        """The object."""
        return self.cluster.get(self.kind, self.name, self.namespace)

    def status(self):
        """Its status; {} when there is none."""
        return self.get().get("status", {})

    def wait(self, phase, also=lambda status: True):
        """Waits until it is in this phase and also(status) is true; the object."""
        def look(obj):
            status = obj.get("status", {})
            return status.get("phase") == phase and also(status)
        return self.cluster.wait_for(self.kind, self.name, self.namespace, look,
                                     what=f"it to be {phase}")

    def pod(self):
        """Its pod, or None."""
        pods = self.cluster.list("pods", self.namespace, PODS)
        return pods[0] if pods else None

    def wait_pod(self, besides=None):
        """Waits for the pod; `besides`: one with another UID than this."""
        return self._wait_pods("an agent", lambda pods: next(
            (p for p in pods if p["metadata"]["uid"] != besides), None))

    def wait_no_pod(self):
        """Until the pod is gone."""
        self._wait_pods("the pod to be gone", lambda pods: not pods)

    def _wait_pods(self, what, look):
        return self.cluster.wait_list(what, "pods", self.namespace, look, selector=PODS)

    def ended(self, pod, failed, phase=None, before=None, **containers):
        """Writes the pod's end.  `containers`: of status, {kind of list: [(name, message)]}.  `before`:
        statuses of other containers in these lists; `phase`: of the pod, if it is not that of the
        result."""
        lists = {kind: [{"name": name, "image": IMAGE, "imageID": "", "ready": False,
                         "restartCount": 0, "state": {"terminated": {
                             "exitCode": int(failed), "message": message}}}
                        for name, message in some] for kind, some in containers.items()}
        for kind, others in (before or {}).items():
            lists[kind] = others + lists.get(kind, [])
        set_status(self.cluster, pod, phase=phase or ("Failed" if failed else "Succeeded"), **lists)
