# SPDX-License-Identifier: Apache-2.0
"""examples/externalthing: a record of a service over HTTP, and a service that is down or hostile."""

import json
import time

import pytest

from support import things, wait
from support.cluster import condition, is_ready

KIND = "externalthings.example.org"
TOKEN = "hunter2-this-is-the-token"


def thing(name, namespace, **spec):
    """An ExternalThing."""
    return {"apiVersion": "example.org/v1", "kind": "ExternalThing",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"value": "one", "checkSeconds": 1, **spec}}


@pytest.fixture(scope="module")
def service():
    """A support.things.Service."""
    with things.Service(TOKEN) as one:
        yield one


@pytest.fixture(scope="module")
def operator(service, start_example):
    """The operator of this service."""
    return start_example("externalthing", env={"EXTERNALTHING_URL": service.url,
                                               "EXTERNALTHING_TOKEN": TOKEN})


@pytest.fixture
def ready(cluster, operator, service, home):
    """ready(name): a thing whose record is there; returns (the object, the record's path)."""
    service.mode = ""

    def make(name):
        cluster.apply(thing(name, home))
        found = cluster.wait_for(KIND, name, home, is_ready)
        return found, "/api/things/" + found["metadata"]["uid"]
    yield make
    service.mode = ""
    cluster.delete_all(KIND, home)


def is_failed(obj):
    """The service fails, and the status tells when it is tried again."""
    about = condition(obj, "RecordSynced") or {}
    return about.get("reason") == "ServiceFailed" and "nextTime" in obj["status"].get("retry", {})


def test_record_follows_the_object(cluster, service, ready, home):
    """Created, updated, repaired, deleted: the record follows the object."""
    found, path = ready("a")
    assert service.records[path] == {"owner": f"{home}/a", "value": "one"}
    assert found["status"]["record"] == service.url + "/things/" + found["metadata"]["uid"]
    assert found["metadata"]["finalizers"] == ["example.org/externalthing"]
    cluster.wait_event("a", home, "Created")
    cluster.patch(KIND, "a", home, {"spec": {"value": 'with "quotes" and ü'}})
    wait.until("the update", lambda: service.records[path]["value"] == 'with "quotes" and ü')
    cluster.wait_event("a", home, "Updated")
    cluster.wait_for(KIND, "a", home, lambda o: is_ready(o) and o["status"]["observedGeneration"] ==
                     o["metadata"]["generation"])
    service.records[path]["value"] = "broken"
    wait.until("the repair", lambda: service.records[path]["value"] != "broken")
    del service.records[path]
    wait.until("the repair", lambda: path in service.records)
    cluster.wait_event("a", home, "DriftRepaired")
    cluster.delete(KIND, "a", home)
    assert path not in service.records


def test_settled_record_is_not_written(cluster, service, ready, home):
    """While nothing differs, it is compared and not written."""
    found, path = ready("a")
    cluster.wait_for(KIND, "a", home, is_ready)
    since = len(service.calls)
    wait.until("three comparisons", lambda: len(
        [c for c in service.calls[since:] if c[1] == path]) >= 3)
    assert {c[0] for c in service.calls[since:] if c[1] == path} == {"GET"}
    assert cluster.get(KIND, "a", home)["status"] == found["status"]


@pytest.mark.parametrize("mode, text", [("down", "status 503"), ("garbage", "not a record"),
                                        ("huge", "too long"), ("redirect", "status 302")])
def test_service_failure_is_reported_and_recovers(cluster, operator, service, ready, home, mode, text):
    """A service that fails or lies: a condition, status.retry, no write; and it recovers."""
    _, path = ready("a")
    service.mode = mode
    found = cluster.wait_for(KIND, "a", home, is_failed)
    assert text in condition(found, "Ready")["message"]
    assert condition(found, "Ready")["status"] == "False"
    assert found["status"]["retry"]["count"] >= 1
    since = len(service.calls)
    wait.until("another try", lambda: len(service.calls) > since)
    assert not [c for c in service.calls[since:] if c[0] != "GET" or "elsewhere" in c[1]]
    assert service.records[path]["value"] == "one"
    service.mode = ""
    cluster.wait_for(KIND, "a", home, lambda o: is_ready(o) and "retry" not in o["status"])
    assert operator.healthz()[0] == 200


def test_silent_service_does_not_block_others(cluster, service, ready, home):
    """A service that does not answer takes 10 s of one worker, and others go on."""
    ready("a")
    service.mode = "never"
    began = time.monotonic()
    wait.until("a request", lambda: service.calls[-1:] and service.mode == "never")
    found = cluster.wait_for(KIND, "a", home, is_failed, 40)
    assert "imeout" in condition(found, "Ready")["message"]
    assert time.monotonic() - began < 35
    service.mode = ""
    service.let_go.set()
    service.let_go.clear()
    ready("b")
    cluster.wait_for(KIND, "a", home, is_ready)


def test_deletion_waits_for_the_service(cluster, service, ready, home):
    """The object stays until its record is deleted, and says why."""
    _, path = ready("a")
    service.mode = "down"
    cluster.delete(KIND, "a", home, wait_gone=False)
    found = cluster.wait_for(KIND, "a", home,
                             lambda o: "deletionTimestamp" in o["metadata"] and is_failed(o))
    assert "DELETE" in condition(found, "RecordSynced")["message"]
    assert path in service.records
    service.mode = ""
    cluster.wait_gone(KIND, "a", home)
    assert path not in service.records


def test_missing_record_does_not_block_deletion(cluster, service, ready, home):
    """The record was deleted by another client, just before."""
    _, path = ready("a")
    service.records.clear()
    cluster.delete(KIND, "a", home)
    assert path not in service.records


def test_missing_service_configuration_is_reported(cluster, start_example, operator, home):
    """An operator without configuration reports it, and starts."""
    assert operator.stop() == 0
    other = start_example("externalthing", env={"EXTERNALTHING_URL": ""})
    try:
        cluster.apply(thing("a", home))
        found = cluster.wait_for(KIND, "a", home, is_failed)
        assert "EXTERNALTHING_URL" in condition(found, "Ready")["message"]
    finally:
        assert other.stop() == 0
        operator.start()
    cluster.wait_for(KIND, "a", home, is_ready)
    cluster.delete(KIND, "a", home)


def test_service_token_is_never_shown(cluster, operator, service, ready, home):
    """The service repeats the token in its answers.  Neither logs, events nor objects show it."""
    ready("a")
    for mode in ("down", "garbage"):
        service.mode = mode
        cluster.wait_for(KIND, "a", home, lambda o: is_failed(o) and (
            "503" if mode == "down" else "record") in condition(o, "Ready")["message"])
        service.mode = ""
        cluster.wait_for(KIND, "a", home, is_ready)
    assert all(granted for _, _, granted in service.calls)
    shown = [operator.log_path.read_text("utf-8", "replace"), operator.metrics_text(),
             json.dumps(cluster.get(KIND, "a", home)), json.dumps(cluster.events(home, "a"))]
    assert not [text for text in shown if TOKEN in text]
    with open(f"/proc/{operator.process.pid}/cmdline", "rb") as file:
        assert TOKEN.encode() not in file.read()
