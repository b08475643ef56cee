# SPDX-License-Identifier: Apache-2.0
"""Objects as they are in the etcd of a cluster of scripts/cluster."""

import base64
import json
import urllib.request


def read(cluster, group, plural, namespace, name):
    """A custom resource, in the version in which it is stored."""
    key = base64.b64encode(f"/registry/{group}/{plural}/{namespace}/{name}".encode()).decode()
    request = urllib.request.Request(cluster.env["STEWARD_CLUSTER_ETCD_URL"] + "/v3/kv/range",
                                     json.dumps({"key": key}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        [found] = json.load(reply)["kvs"]
    return json.loads(base64.b64decode(found["value"]))
