# SPDX-License-Identifier: Apache-2.0
"""examples/redirect: two children as rows."""

import yaml

from support import library
from support.cluster import is_ready

KIND = "redirects.example.org"


def test_children(cluster, start_example, home):
    """They appear and are repaired, and the status reports it."""
    start_example("redirect")
    redirect = yaml.safe_load((library.EXAMPLES / "redirect" / "sample.yaml").read_text("utf-8"))
    redirect["metadata"]["namespace"] = home
    cluster.apply(redirect)
    ready = cluster.wait_for(KIND, "old", home, is_ready)
    types = {c["type"] for c in ready["status"]["conditions"]}
    assert types == {"Ready", "ConfigMapSynced", "ServiceSynced"}
    assert cluster.get("service", "old", home)["spec"]["ports"][0]["port"] == 80
    managed = cluster.get("configmap", "old", home)["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    assert managed == "redirect"
    cluster.patch("configmap", "old", home, {"data": {"redirect.conf": "broken"}})
    cluster.wait_for(KIND, "old", home, lambda o: o.get("status", {}).get("repairs") == 1)
    assert "https://new" in cluster.get("configmap", "old", home)["data"]["redirect.conf"]
