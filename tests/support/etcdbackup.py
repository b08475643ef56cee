# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups and EtcdRestores of EtcdClusters on a node, and what they store."""

import base64
import json

from . import etcdcluster as ecs
from . import s3, wait

KIND = f"etcdbackups.{ecs.GROUP}"
RESTORE = f"etcdrestores.{ecs.GROUP}"
AGENT = "steward/agent:test"
SECRET = "aws"


def give_secret(cluster, namespace):
    """The Secret that opens the store."""
    cluster.apply({"apiVersion": "v1", "kind": "Secret",
                   "metadata": {"name": SECRET, "namespace": namespace},
                   "data": {"credentials": base64.b64encode(s3.CREDENTIALS.encode()).decode()}})


def node_door(store, cluster):
    """A door to the store where pods find it: on the node's own bridge."""
    [node] = cluster.list("nodes")
    address = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    return s3.Door(store, address)


def to_s3(door, key):
    """Where a snapshot lies, for a spec."""
    return {"s3": {"path": f"{s3.BUCKET}/{key}", "awsSecret": SECRET, "endpoint": door.url,
                   "forcePathStyle": True}}


def apply(etcd, name, **spec):
    """An EtcdBackup of an EtcdCluster: to S3, unless told otherwise."""
    etcd.cluster.apply({"apiVersion": f"{ecs.GROUP}/v1beta2", "kind": "EtcdBackup",
                        "metadata": {"name": name, "namespace": etcd.namespace},
                        "spec": {"clusterRef": {"name": etcd.name}, "storageType": "S3", **spec}})


def restore(etcd, name, **spec):
    """An EtcdRestore that makes an EtcdCluster."""
    etcd.cluster.apply({"apiVersion": f"{ecs.GROUP}/v1beta2", "kind": "EtcdRestore",
                        "metadata": {"name": name, "namespace": etcd.namespace},
                        "spec": {"etcdCluster": {"name": etcd.name}, **spec}})


def wait_phase(etcd, name, phase, seconds=60, kind=KIND):
    """Until a backup (or a restore) is so far; the object."""
    try:
        return etcd.cluster.wait_for(kind, name, etcd.namespace,
                                     lambda o: o.get("status", {}).get("phase") == phase, seconds,
                                     f"{kind} {name} to be {phase}")
    except wait.TimedOut as error:
        found = etcd.cluster.get(kind, name, etcd.namespace) or {}
        pods = etcd.cluster.kubectl("get", "pods", "-n", etcd.namespace, "-o", "wide").stdout
        raise wait.TimedOut(f"{error}\n{json.dumps(found.get('status'), indent=1)}\n"
                            f"{pods}") from error
