# SPDX-License-Identifier: Apache-2.0
"""The guarantees of tests/support/cluster.py, checked with a real API server."""

import os
import threading

import pytest
from support import cluster as k8s
from support import kinds, rest, wait


@pytest.fixture
def place(cluster):
    name = f"support-{os.getpid()}-{os.urandom(3).hex()}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_namespace(name)


def configmap(place, name="one", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": place},
            "data": data}


def test_apply_changes_only_differences(cluster, place):
    """A key of the previous manifest is removed; a key of another client stays."""
    first = cluster.apply(configmap(place, mine="1", gone="x"))
    assert first.stdout == "one created\n"
    cluster.patch("cm", "one", place, {"data": {"theirs": "2"}})
    cluster.apply(configmap(place, mine="3"))
    found = cluster.get("configmap", "one", place)
    assert found["data"] == {"mine": "3", "theirs": "2"}
    again = cluster.apply(configmap(place, mine="3"))
    assert again.stdout.endswith(" unchanged\n")
    assert cluster.get("configmap", "one", place)["metadata"]["resourceVersion"] == \
        found["metadata"]["resourceVersion"]


def test_kubectl_continues_from_an_apply(cluster, place):
    """Both record the manifest alike, so neither takes a field for another client's."""
    cluster.apply(configmap(place, mine="1", gone="x"))
    reply = cluster.kubectl("apply", "-f", "-", stdin=k8s.as_yaml(configmap(place, mine="1")))
    assert "configured" in reply.stdout and "missing" not in reply.stderr
    assert cluster.get("configmap", "one", place)["data"] == {"mine": "1"}
    cluster.apply(configmap(place, other="1"))
    assert cluster.get("configmap", "one", place)["data"] == {"other": "1"}


def test_a_dry_run_stores_nothing(cluster, place):
    reply = cluster.apply(configmap(place, mine="1"), dry_run=True)
    assert reply.object["data"] == {"mine": "1"} and reply.object["metadata"]["uid"]
    assert cluster.get("configmap", "one", place) is None


def test_refusal_names_the_applied_objects(cluster, place):
    bad = configmap(place, "one", **{"not a key": "x"})
    with pytest.raises(k8s.CommandFailed, match=r"apply ConfigMap/two ConfigMap/one(.|\n)*data\[not a key\]"):
        cluster.apply([configmap(place, "two", fine="1"), bad])
    assert cluster.get("configmap", "two", place)  # the others are still applied
    reply = cluster.apply(bad, check=False)
    assert reply.returncode == 1 and reply.stderr.startswith("Error from server (Invalid): ")
    with pytest.raises(rest.Refused, match="GET /api/v1/namespaces/.*/nothings: 404"):
        cluster.api.do("GET", f"/api/v1/namespaces/{place}/nothings")


def test_kind_words_are_resolved(cluster):
    for word, version, plural in (
            ("pvc", "v1", "persistentvolumeclaims"), ("deployment", "apps/v1", "deployments"),
            ("Deployments.apps", "apps/v1", "deployments"), ("events.v1.", "v1", "events"),
            ("deployments.v1.apps", "apps/v1", "deployments"), ("crd", "apiextensions.k8s.io/v1",
                                                                "customresourcedefinitions")):
        found = cluster.kinds.of_word(word)
        assert (found.version, found.plural) == (version, plural), word
    with pytest.raises(kinds.UnknownKind):
        cluster.kinds.of_word("nothing")


def test_delete_waits_until_the_object_is_gone(cluster, place):
    """It does not wait for another object of that name."""
    cluster.create(configmap(place))
    cluster.patch("configmap", "one", place, {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete("configmap", "one", place, wait_gone=False)
    with pytest.raises(wait.TimedOut):
        cluster.wait_gone("configmap", "one", place, seconds=0.5)
    cluster.patch("configmap", "one", place, {"metadata": {"finalizers": None}})
    cluster.wait_gone("configmap", "one", place)
    assert cluster.get("configmap", "one", place) is None


def test_watch_survives_an_api_server_restart(cluster, place):
    cluster.create(configmap(place, step="1"))
    seen = []

    def look(found):
        seen.append(found["data"]["step"])
        return seen[-1] == "3"

    waiter = threading.Thread(target=cluster.wait_for, args=("configmap", "one", place, look, 180))
    waiter.start()
    cluster.patch("configmap", "one", place, {"data": {"step": "2"}})
    wait.until("the watch to tell", lambda: "2" in seen)
    cluster.component("kill", "apiserver")
    cluster.component("start", "apiserver")
    cluster.patch("configmap", "one", place, {"data": {"step": "3"}})
    waiter.join(180)
    assert not waiter.is_alive() and seen[-1] == "3"


def test_wait_ends_at_its_deadline(cluster, place):
    with pytest.raises(wait.TimedOut, match="after 0.5 s still waiting for configmap"):
        cluster.wait_for("configmap", "one", place, lambda _: True, seconds=0.5)
    cluster.create(configmap(place))
    with pytest.raises(wait.TimedOut) as caught:
        cluster.wait_for("configmap", "one", place, lambda o: o["no"]["such"], seconds=0.5)
    assert isinstance(caught.value.__cause__, KeyError)
