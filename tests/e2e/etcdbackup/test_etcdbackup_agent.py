# SPDX-License-Identifier: Apache-2.0
"""An EtcdBackup onto a volume when its pod ends, is deleted, or lingers: each backup counts once.
The pods are not scheduled; the tests write their status."""

import json
import time

import pytest
from support import agentpod, etcdbackup, faults, wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

HOLD = "steward.dev/held-by-a-test"  # a finalizer


class Volume(agentpod.Owner):
    """An EtcdBackup onto a PersistentVolumeClaim."""

    kind = etcdbackup.KIND

    def apply(self, **policy):
        return self.create("EtcdBackup", etcdEndpoints=["http://192.0.2.1:2379"], storageType="PVC",
                           backupPolicy=policy, pvc={"claimName": "disk", "path": "deep/db"})

    def end(self, pod, revision=7, **more):
        """Ends the pod with a backup; or without one, if a fault is given."""
        failed = "fault" in more
        report = {"ok": not failed, "key": f"db_v{revision:012}_2026-01-02-03:04:05",
                  "revision": revision, "sizeBytes": 4096, "sha256": "ab" * 32,
                  "etcdVersion": "3.5.16", "endpoint": "http://192.0.2.1:2379",
                  "time": int(time.time()), "verified": not failed, **more}
        self.ended(pod, failed, containerStatuses=[("snapshot", json.dumps(report))])

    def hold(self, pod, held=True):
        """A finalizer keeps the pod after its deletion."""
        self.cluster.patch("pod", pod["metadata"]["name"], self.namespace,
                           {"metadata": {"finalizers": [HOLD] if held else None}})

    def poke(self):
        """Triggers a reconcile."""
        self.cluster.annotate(self.kind, self.name, self.namespace,
                              {"steward.dev/reconcile-at": f"{time.monotonic()}"})


@pytest.fixture
def volume(installed, namespace):
    return Volume(installed, namespace, "disk")


@pytest.fixture
def steward_(run_steward):
    return run_steward(f"--agent-image={agentpod.IMAGE}")


def test_one_that_has_ended_counts_once_however_long_it_lingers(steward_, volume):
    pod = volume.apply().wait_pod()
    volume.wait("Running")
    volume.hold(pod)
    volume.end(pod)
    done = volume.wait("Succeeded")["status"]
    assert [a["revision"] for a in done["artifacts"]] == [7]
    wait.until("it to be deleted", lambda: "deletionTimestamp" in volume.pod()["metadata"])

    def same():
        volume.poke()
        return volume.status() == done
    wait.stays("what was taken in", same, 2, every=0.2)
    volume.hold(pod, held=False)
    volume.wait_no_pod()
    wait.stays("no other backup", lambda: not volume.pod() and volume.status() == done, 2)
    assert steward_.metric("steward_etcd_backups_total", result="succeeded") == 1


def test_one_that_failed_counts_once(steward_, volume):
    pod = volume.apply().wait_pod()
    volume.hold(pod)
    volume.end(pod, fault="Store", reason="StoreFull", error="no space")
    failed = volume.wait("Failed")["status"]
    assert failed["consecutiveFailures"] == 1 and failed["Reason"] == "StoreFull"
    assert condition(volume.get(), "StoreReachable")["reason"] == "StoreFull"

    def same():
        volume.poke()
        return volume.status() == failed
    wait.stays("one failure", same, 2, every=0.2)
    volume.hold(pod, held=False)
    volume.wait_no_pod()


def test_one_that_somebody_deletes_is_made_again(steward_, volume):
    pod = volume.apply().wait_pod()
    volume.cluster.delete("pod", pod["metadata"]["name"], volume.namespace, wait_gone=False,
                          grace_seconds=0)
    other = volume.wait_pod(besides=pod["metadata"]["uid"])
    volume.end(other, revision=8)
    assert [a["revision"] for a in volume.wait("Succeeded")["status"]["artifacts"]] == [8]


def test_one_that_lingers_does_not_end_the_next(run_steward, volume, clock):
    """An old result does not count for the instant that has become due since."""
    run_steward(f"--agent-image={agentpod.IMAGE}", clock=clock)
    pod = volume.apply(backupIntervalInSecond=60).wait_pod()
    volume.hold(pod)
    volume.end(pod)
    done = volume.wait("Succeeded")["status"]
    clock.set(clock.ahead + 61)
    wait.stays("the old one", lambda: volume.poke() or volume.status()["artifacts"] ==
               done["artifacts"], 3, every=0.3)
    volume.hold(pod, held=False)
    other = volume.wait_pod(besides=pod["metadata"]["uid"])
    volume.end(other, revision=9)
    found = volume.wait("Succeeded", lambda s: len(s["artifacts"]) == 2)["status"]
    assert [a["revision"] for a in found["artifacts"]] == [9, 7]
    assert found["lastScheduleTime"] > done["lastScheduleTime"]


@pytest.mark.parametrize("outcome", ["Succeeded", "Failed"])
def test_a_steward_that_dies_behind_each_write(run_steward, volume, tmp_path, outcome):
    """During a whole backup: no result is counted twice, no pod is left."""
    log = tmp_path / "faults.log"
    fault = {} if outcome == "Succeeded" else {"fault": "Source", "reason": "NoHealthyEndpoint",
                                               "error": "nobody there"}
    deaths, ended = [], []
    volume.apply()

    def died_or_done(one):
        pod = volume.pod()
        if pod and not ended:
            ended.append(volume.end(pod, **fault))
        return not one.running() or volume.status().get("phase") == outcome and not volume.pod()

    def one_life():
        log.write_text("")
        one = run_steward(f"--agent-image={agentpod.IMAGE}", ready=False, binary=faults.binary(),
                          env={"STEWARD_FAULT_AT": "1", "STEWARD_FAULT_LOG": str(log)})
        try:
            wait.until("its end", lambda: died_or_done(one))
            # The condition may have become true just before the death: wait for that.
            if not wait.happens(lambda: not one.running(), 2):
                return False
        finally:
            one.kill()
        deaths.append(log.read_text().split()[1])
        return True
    while one_life():
        assert len(deaths) < 20, deaths
    print(f"{outcome}: killed {len(deaths)} times: {' '.join(deaths)}")
    assert {"status", "agent", "delete"} <= set(deaths)
    status = volume.status()
    if outcome == "Succeeded":
        assert [a["revision"] for a in status["artifacts"]] == [7]
    else:
        assert status["consecutiveFailures"] == 1
