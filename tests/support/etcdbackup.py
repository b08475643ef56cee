# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups and EtcdRestores of EtcdClusters on a node, and the snapshots that they store."""

import base64
import json

from . import etcdcluster as ecs
from . import s3, wait

KIND = f"etcdbackups.{ecs.GROUP}"
RESTORE = f"etcdrestores.{ecs.GROUP}"
AGENT = "steward/agent:test"
SECRET = "aws"


def give_secret(cluster, namespace):
    """Creates the Secret with the credentials of the store."""
    cluster.apply({"apiVersion": "v1", "kind": "Secret",
                   "metadata": {"name": SECRET, "namespace": namespace},
                   "data": {"credentials": base64.b64encode(s3.CREDENTIALS.encode()).decode()}})


def node_proxy(store, cluster):
    """An s3.Proxy to the store that pods can reach: on the node's own bridge."""
    [node] = cluster.list("nodes")
    address = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    return s3.Proxy(store, address)


def to_s3(proxy, key):
    """The place of a snapshot, for a spec."""
    return {"s3": {"path": f"{s3.BUCKET}/{key}", "awsSecret": SECRET, "endpoint": proxy.url,
                   "forcePathStyle": True}}


def apply(etcd, name, **spec):
    """An EtcdBackup of an EtcdCluster, by default to S3."""
    etcd.cluster.apply({"apiVersion": f"{ecs.GROUP}/v1beta2", "kind": "EtcdBackup",
                        "metadata": {"name": name, "namespace": etcd.namespace},
                        "spec": {"clusterRef": {"name": etcd.name}, "storageType": "S3", **spec}})


def restore(etcd, name, **spec):
    """An EtcdRestore that creates an EtcdCluster."""
    etcd.cluster.apply({"apiVersion": f"{ecs.GROUP}/v1beta2", "kind": "EtcdRestore",
                        "metadata": {"name": name, "namespace": etcd.namespace},
                        "spec": {"etcdCluster": {"name": etcd.name}, **spec}})


def wait_phase(etcd, name, phase, seconds=60, kind=KIND):
    """Waits until a backup (or a restore) is in this phase; the object."""
    try:
        return etcd.cluster.wait_for(kind, name, etcd.namespace,
                                     lambda o: o.get("status", {}).get("phase") == phase, seconds,
                                     f"{kind} {name} to be {phase}")
    except wait.TimedOut as error:
        found = etcd.cluster.get(kind, name, etcd.namespace) or {}
        pods = etcd.cluster.kubectl("get", "pods", "-n", etcd.namespace, "-o", "wide").stdout
        raise wait.TimedOut(f"{error}\n{json.dumps(found.get('status'), indent=1)}\n"
                            f"{pods}") from error


def remember(cluster, namespace, name, *artifacts):
    """Writes artifacts into the status of an EtcdBackup, again when steward wrote meanwhile."""
    def write():
        now = cluster.get(KIND, name, namespace)
        now["status"]["artifacts"] = list(artifacts)
        return cluster.replace(now, "status", check=False).returncode == 0
    wait.until(f"the status of EtcdBackup {name} to be written", write)


class Backup:
    """One EtcdBackup by etcdEndpoints, its Secret, and its store: no pod is needed."""

    def __init__(self, cluster, namespace, members, proxy, name="db"):
        self.cluster, self.namespace, self.name, self.proxy = cluster, namespace, name, proxy
        self.path = f"{namespace}/{name}"
        self.members = members
        self.secret(SECRET, credentials=s3.CREDENTIALS)

    def secret(self, name, **values):
        """A Secret with these texts; in a key "_" means "-", and "__" means "."."""
        data = {key.replace("__", ".").replace("_", "-"): base64.b64encode(
            value.encode()).decode() for key, value in values.items()}
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret", "data": data,
                            "metadata": {"name": name, "namespace": self.namespace}})

    def manifest(self, policy=None, **spec):
        """A backup of the members to the store; `spec` adds or replaces fields."""
        return {"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdBackup",
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": {"etcdEndpoints": [m.client_url for m in self.members.members],
                         "storageType": "S3", "backupPolicy": policy or {},
                         "s3": {"path": f"{s3.BUCKET}/{self.path}", "awsSecret": SECRET,
                                "endpoint": self.proxy.url, "forcePathStyle": True}, **spec}}

    def apply(self, policy=None, **spec):
        """kubectl apply; returns self."""
        self.cluster.apply(self.manifest(policy, **spec))
        return self

    def patch(self, **spec):
        """Changes some fields of the spec."""
        self.cluster.patch(KIND, self.name, self.namespace, {"spec": spec})

    def status(self):
        """Its status; {} when there is none."""
        return (self.cluster.get(KIND, self.name, self.namespace) or {}).get("status", {})

    def wait(self, check, seconds=30):
        """Waits until check(status) is true; the object."""
        return self.cluster.wait_for(KIND, self.name, self.namespace,
                                     lambda o: check(o.get("status", {})), seconds)

    def succeeded(self, seconds=30):
        """Waits until a backup has been made; the object."""
        return self.wait(lambda s: s.get("phase") == "Succeeded", seconds)

    def failed(self, reason, seconds=40):
        """Waits until one has failed for this reason; the object."""
        return self.wait(lambda s: s.get("phase") == "Failed" and s.get("Reason") == reason,
                         seconds)

    def objects(self):
        """{key: path} of its objects in the store."""
        return {k: v for k, v in self.proxy.s3.objects().items() if k.startswith(self.path)}
