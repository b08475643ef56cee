# SPDX-License-Identifier: Apache-2.0
"""Objects as they are in the etcd of a cluster of scripts/cluster."""

import base64
import json
import urllib.request
import uuid

from . import wait

BATCH = 100  # etcd takes 128 operations in one transaction


def _call(cluster, method, body):
    request = urllib.request.Request(f"{cluster.env['STEWARD_CLUSTER_ETCD_URL']}/v3/kv/{method}",
                                     json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def _encoded(text):
    return base64.b64encode(text.encode()).decode()


def _folder(group, plural, namespace):
    return f"/registry/{group}/{plural}/{namespace}/"


def read(cluster, group, plural, namespace, name):
    """A custom resource, in the version in which it is stored."""
    key = _encoded(_folder(group, plural, namespace) + name)
    [found] = _call(cluster, "range", {"key": key})["kvs"]
    return json.loads(base64.b64decode(found["value"]))


def copy(cluster, group, plural, namespace, name, copies, batch=BATCH):
    """Copies of a custom resource under these names, for a fifth of the CPU time that the API server
    takes to create them.  `batch`: of as many at a time; etcd takes 1.5 MiB."""
    folder, original = _folder(group, plural, namespace), read(cluster, group, plural, namespace, name)

    def put(new):
        metadata = {**original["metadata"], "name": new, "uid": str(uuid.uuid4())}
        return {"requestPut": {"key": _encoded(folder + new),
                               "value": _encoded(json.dumps({**original, "metadata": metadata}))}}
    for first in range(0, len(copies), batch):
        done = _call(cluster, "txn", {"success": [put(new) for new in copies[first:first + batch]]})
        assert done["succeeded"], done


def remove(cluster, group, plural, namespace, name):
    """Deletes a custom resource in etcd; finalizers have no effect there."""
    _call(cluster, "deleterange", {"key": _encoded(_folder(group, plural, namespace) + name)})


def clear(cluster, group, plural, namespace):
    """The same for all of its namespace."""
    folder = _folder(group, plural, namespace)
    _call(cluster, "deleterange", {"key": _encoded(folder), "range_end": _encoded(folder[:-1] + "0")})


def multiply(cluster, group, plural, namespace, count, batch=BATCH):
    """Copies web-0 until there are `count` objects, and waits until the API server has all."""
    copy(cluster, group, plural, namespace, "web-0", [f"web-{i}" for i in range(1, count)], batch)
    path = f"/apis/{group}/v1/namespaces/{namespace}/{plural}?limit=1"
    wait.until("the API server to have all", lambda: count - 1 == cluster.api.do("GET", path)[
        "metadata"].get("remainingItemCount"))


def remove_namespace(cluster, group, plural, namespace):
    """Deletes it with these objects.  The namespace controller would take minutes for them, and slow down
    the tests that follow."""
    clear(cluster, group, plural, namespace)
    cluster.delete_namespace(namespace)
