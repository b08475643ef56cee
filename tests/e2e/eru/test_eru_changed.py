# SPDX-License-Identifier: Apache-2.0
"""spec.onlyIfChanged: an instant restarts what reads a ConfigMap or Secret that has changed."""

import pytest
from support import eru, faults, wait
from support import steward as stw
from support.eruhours import Hours, digest, reading, write

pytestmark = pytest.mark.usefixtures("no_webhooks", "kubelet")


@pytest.mark.oldest("metadata of single objects, an annotation of the pod template")
def test_changed_configmap_or_secret_triggers_the_restart(run_steward, installed, namespace, clock):
    """Also while steward was down.  The Secret is read by name, and only its metadata."""
    one = run_steward(clock=clock)
    write(installed, namespace, "ConfigMap", "files", "a")
    write(installed, namespace, "Secret", "creds", "a")
    installed.apply(reading(eru.deployment("web", namespace), "files", "creds"))
    eru.wait_available(installed, "web", namespace)
    hours = Hours(installed, clock, eru.manifest("web", namespace))
    assert hours.next() == "RolloutSucceeded"  # what the pods have read was not known
    first = digest(installed, namespace)
    assert first and eru.revision(installed, "web", namespace) == 2

    hours.leap()
    reason, status = hours.ended()
    assert (reason, status["lastResult"]) == ("SkippedNothingChanged", "Skipped")
    assert status["nextScheduleTime"] == eru.iso(hours.instant)
    installed.wait_event("web", namespace, "SkippedNothingChanged", "nothing changed that its pods")
    kinds = {e["reason"]: e["type"] for e in installed.list("events", namespace)}
    assert kinds["SkippedNothingChanged"] == "Normal"
    assert eru.revision(installed, "web", namespace) == 2

    assert one.stop() == 0, one.log_tail()
    write(installed, namespace, "ConfigMap", "files", "b")
    one = run_steward(clock=clock)
    assert hours.next() == "RolloutSucceeded"
    second = digest(installed, namespace)
    write(installed, namespace, "Secret", "creds", "b")
    assert hours.next() == "RolloutSucceeded"
    assert len({first, second, digest(installed, namespace)}) == 3
    assert hours.next() == "SkippedNothingChanged"

    installed.delete("secret", "creds", namespace)
    assert hours.next() == "SkippedInputNotFound"
    message = installed.wait_event("web", namespace, "SkippedInputNotFound")
    assert 'Secret "creds", which its pods read, does not exist' in message
    assert eru.revision(installed, "web", namespace) == 4
    assert one.stop() == 0, one.log_tail()
    reads = {(r[0], r[1].partition("?")[0]) for r in stw.requests(installed, namespace)
             if "/secrets" in r[1] or "/configmaps" in r[1]}
    base = f"/api/v1/namespaces/{namespace}"
    assert reads == {("get", f"{base}/secrets/creds"), ("get", f"{base}/configmaps/files")}


@pytest.mark.oldest("StatefulSets, label selectors of lists")
def test_only_statefulsets_with_changes_are_restarted(run_steward, installed, namespace, clock):
    """StatefulSets that a selector matches, each with a ConfigMap, and one that reads nothing."""
    run_steward(clock=clock)
    for name in ("a", "b", "c"):
        workload = eru.statefulset(name, namespace, replicas=1)
        workload["metadata"]["labels"] = {"tier": "web"}
        write(installed, namespace, "ConfigMap", name, "one")
        installed.apply(workload if name == "c" else reading(workload, configmap=name))
    for name in ("a", "b", "c"):
        installed.wait_for("statefulset", name, namespace,
                           lambda o: o.get("status", {}).get("readyReplicas") == 1)
    hours = Hours(installed, clock, eru.selecting("nightly", namespace, targetKind="StatefulSet"))
    first = eru.iso(hours.instant)
    assert hours.next() == "RolloutSucceeded"
    stamps = {n: eru.stamp(installed, n, namespace, "statefulset") for n in ("a", "b", "c")}
    assert stamps == {"a": first, "b": first, "c": None}

    write(installed, namespace, "ConfigMap", "b", "two")
    write(installed, namespace, "ConfigMap", "c", "two")
    second = eru.iso(hours.instant)
    hours.leap()
    reason, status = hours.ended()
    assert reason == "RolloutSucceeded"
    assert {w["name"]: w["reason"] for w in status["selected"]["workloads"]} == \
        {"a": "SkippedNothingChanged", "c": "SkippedNothingChanged"}
    stamps = {n: eru.stamp(installed, n, namespace, "statefulset") for n in ("a", "b", "c")}
    assert stamps == {"a": first, "b": second, "c": None}
    installed.wait_event("nightly", namespace, "SkippedNothingChanged",
                         "the pods of 2 of 3 StatefulSets")
    assert hours.next() == "SkippedNothingChanged"


@pytest.mark.oldest("preconditions of server-side apply")
def test_kill_after_restart_loses_no_change(run_steward, installed, namespace, clock, tmp_path):
    """By SIGKILL, before the status is written: the instant has one restart, and a change during it
    counts at the next."""
    one = run_steward(clock=clock)
    write(installed, namespace, "ConfigMap", "files", "a")
    installed.apply(reading(eru.deployment("web", namespace), configmap="files"))
    eru.wait_available(installed, "web", namespace)
    hours = Hours(installed, clock, eru.manifest("web", namespace))
    assert hours.next() == "RolloutSucceeded"
    assert one.stop() == 0, one.log_tail()
    write(installed, namespace, "ConfigMap", "files", "b")
    hours.leap()
    log = tmp_path / "faults.log"
    one = run_steward(ready=False, binary=faults.binary(), clock=clock,
                      env={"STEWARD_FAULT_AT": "1", "STEWARD_FAULT_LOG": str(log)})
    wait.until("its end", lambda: not one.running(), 60)
    assert log.read_text().split()[-1] == "stamp"
    assert eru.stamp(installed, "web", namespace) == eru.iso(hours.instant)
    write(installed, namespace, "ConfigMap", "files", "c")
    run_steward(clock=clock)
    assert hours.ended()[0] == "RolloutSucceeded"
    assert eru.revision(installed, "web", namespace) == 3
    assert hours.next() == "RolloutSucceeded"
    assert eru.revision(installed, "web", namespace) == 4
    assert hours.next() == "SkippedNothingChanged"
