# SPDX-License-Identifier: Apache-2.0
"""examples/redirect: two children as rows."""

import yaml

from support import library, wait
from support.cluster import is_ready

KIND = "redirects.example.org"


OPERATOR = "redirect.example.org"


def sample(home):
    """The Redirect of the example, in this namespace."""
    redirect = yaml.safe_load((library.EXAMPLES / "redirect" / "sample.yaml").read_text("utf-8"))
    redirect["metadata"]["namespace"] = home
    return redirect


def test_children_are_created_and_repaired(cluster, start_example, home):
    """They appear and are repaired, and the status reports it."""
    start_example("redirect")
    cluster.apply(sample(home))
    ready = cluster.wait_for(KIND, "old", home, is_ready)
    types = {c["type"] for c in ready["status"]["conditions"]}
    assert types == {"Ready", "ConfigMapSynced", "ServiceSynced"}
    assert cluster.get("service", "old", home)["spec"]["ports"][0]["port"] == 80
    managed = cluster.get("configmap", "old", home)["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    assert managed == "redirect"
    cluster.patch("configmap", "old", home, {"data": {"redirect.conf": "broken"}})
    cluster.wait_for(KIND, "old", home, lambda o: o.get("status", {}).get("repairs") == 1)
    assert "https://new" in cluster.get("configmap", "old", home)["data"]["redirect.conf"]


def test_children_are_adopted_together_or_not_at_all(cluster, start_example, home):
    """The guarantee of the library, for a kind that only states its children."""
    def theirs():
        return [cluster.get(kind, "old", home) for kind in ("configmap", "service")]

    start_example("redirect")
    metadata = {"name": "old", "namespace": home, "labels": {"team": "web"}}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "holder", "namespace": home}})
    holder = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "controller": True,
              "uid": cluster.get("configmap", "holder", home)["metadata"]["uid"]}
    cluster.apply([
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mine": "kept"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "ownerReferences": [holder]},
         "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}}])
    before = theirs()
    redirect = sample(home)
    redirect["metadata"]["annotations"] = {f"{OPERATOR}/adopt": "true"}
    cluster.apply(redirect)
    stalled = cluster.wait_condition(KIND, "old", home, "Stalled", "AdoptionRefused")
    assert 'nothing is adopted, because Service "old" cannot be: its controller is ConfigMap/holder' in \
        stalled["message"]
    cluster.wait_event("old", home, "AdoptionRefused", 'Service "old"')
    assert theirs() == before

    cluster.patch("service", "old", home, {"metadata": {"ownerReferences": None}})
    cluster.annotate(KIND, "old", home, {f"{OPERATOR}/reconcile-at": "now"})
    ready = cluster.wait_for(KIND, "old", home, is_ready)
    mark = f'Redirect/old/{ready["metadata"]["uid"]}'
    now = theirs()
    assert [o["metadata"]["uid"] for o in now] == [o["metadata"]["uid"] for o in before]
    for one in now:
        metadata = one["metadata"]
        assert metadata["annotations"][f"{OPERATOR}/adopted-by"] == mark
        assert "ownerReferences" not in metadata and metadata["labels"]["team"] == "web"
    assert now[0]["data"]["mine"] == "kept" and "https://new" in now[0]["data"]["redirect.conf"]
    assert "app" not in now[1]["spec"]["selector"]
    # Repairs go on, and the deletion of the owner leaves both.
    cluster.patch("configmap", "old", home, {"data": {"redirect.conf": "broken"}})
    wait.until("the repair", lambda: "https://new" in theirs()[0]["data"]["redirect.conf"])
    cluster.delete(KIND, "old", home, propagation="Foreground")
    assert all("deletionTimestamp" not in o["metadata"] for o in theirs())
