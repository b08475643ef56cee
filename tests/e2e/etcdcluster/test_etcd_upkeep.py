# SPDX-License-Identifier: Apache-2.0
"""Defragmentation of real databases, by request, by schedule, and to get out of NOSPACE.  Clusters of
one member without a node: the test plays the kubelet."""

import datetime
import re

import pytest
from support import agentpod, etcd, etcdbackup, gateway, wait
from support.app import set_status
from support.cluster import condition
from support.etcdcluster import DEFRAGMENT, settled
from support.etcdlocal import LocalEtcd

LINE = sorted(etcd.versions())[-1:]
MIB = 1 << 20

pytestmark = [pytest.mark.usefixtures("pods_stay_pending"),
              pytest.mark.skipif(bool(etcd.missing("3.4", *LINE)), reason="no etcd is here")]


def up(ec, **spec):
    """Creates a cluster of one member and waits until it is Ready; a Gateway to it."""
    ec.up(**spec)
    one = ec.wait_answers()
    one.timeout = 10
    return one


def leave_free_pages(one, mebibytes):
    """Puts and deletes that much, so that the database has free pages; its size."""
    for number in range(mebibytes):
        one.put(f"old/{number:03}", "x" * MIB)
    one.post("/v3/kv/deleterange", {"key": gateway.b64("old/"), "range_end": gateway.b64("old0")})
    one.post("/v3/kv/compaction", {"revision": one.status()["header"]["revision"],
                                   "physical": True})
    for number in range(3):  # pages count as free only after the next writes
        one.put("new", str(number))
        one.write_database()
    return int(one.status()["dbSize"])


def ended(ec, request=None, phase="Succeeded", seconds=60):
    """Waits until a defragmentation has ended, for this value of the annotation; its status."""
    def found(obj):
        one = obj.get("status", {}).get("defragmentation", {})
        return one.get("phase") == phase and request in (None, one.get("request"))
    return ec.wait(found, f"a defragmentation that has {phase}", seconds)["status"]["defragmentation"]


def seconds_until(text):
    """From now by this machine's clock."""
    then = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int((then - datetime.datetime.now(datetime.timezone.utc)).total_seconds())


def test_defragmentation_on_request_covers_each_member(ec):
    one = up(ec)
    size = leave_free_pages(one, 20)
    ec.annotate(DEFRAGMENT, "monday\n" * 20)
    found = ended(ec)
    [member] = found["members"]
    assert re.fullmatch("[0-9a-f]{32}", found["request"])  # its hash
    assert found["reason"] == "Requested" and member["name"] in ec.members()
    assert member["dbSizeBefore"] == size
    assert member["dbSizeAfter"] == int(one.status()["dbSize"]) < size - 15 * MIB
    assert found["reclaimedBytes"] == found["reclaimedBytesTotal"] == size - member["dbSizeAfter"]
    for reason in ("DefragmentationStarted", "Defragmented"):
        ec.cluster.wait_event(ec.name, ec.namespace, reason)
    ec.wait_settled(1)
    assert condition(ec.get(), "Degraded")["status"] == "False"

    for number in range(5):  # a tenant who wants it again and again waits ten minutes
        ec.annotate(DEFRAGMENT, f"again-{number}")
    obj = ec.wait(lambda o: o["status"]["defragmentation"].get("notBeforeTime"), "the next one to wait")
    assert obj["status"]["defragmentation"]["endTime"] == found["endTime"]
    assert obj["status"]["defragmentation"]["request"] == found["request"] and settled(obj, 1)


def test_full_database_is_compacted_when_allowed(ec):
    """Old revisions are removed but the last 1000, the database is defragmented, and the alarm is
    disarmed, without a person (E15)."""
    one = up(ec, options={"quotaBackendBytes": "64Mi"}, maintenance={"recoverSpace": True})
    for _ in range(40):
        one.put("one", "x" * MIB)
    for number in range(1100):
        one.put("two", str(number))
    assert gateway.fill(one) > 0
    obj = ec.wait(lambda o: o["status"].get("defragmentation", {}).get("phase") == "Succeeded"
                  and condition(o, "AlarmActive")["status"] == "False", "space", 60)
    found = obj["status"]["defragmentation"]
    assert found["reason"] == "NoSpace" and found["reclaimedBytes"] > 20 * MIB
    newest = int(one.status()["header"]["revision"])
    assert 40 < found["compactedRevision"] <= newest - 1000
    assert one.put("three", "1") and one.get("two") == "1099"
    with pytest.raises(gateway.Refused, match="compacted"):
        one.post("/v3/kv/range", {"key": gateway.b64("two"),
                                  "revision": found["compactedRevision"] - 1})
    for reason in ("HistoryCompacted", "Defragmented", "AlarmDisarmed"):
        ec.cluster.wait_event(ec.name, ec.namespace, reason)
    ec.wait_settled(1)


@pytest.fixture
def steward_of_agents(controller, run_steward):
    """run_steward with an image for pods of backups, while no other steward runs."""
    assert controller.stop() == 0, controller.log_tail()
    run_steward(f"--agent-image={agentpod.IMAGE}")
    yield
    controller.start()


def test_only_a_running_snapshot_delays_defragmentation(steward_of_agents, installed,
                                                        namespace, tmp_path):
    """None is taken while the pod of the backup is not scheduled, or is gone and not made again, as
    the backup is suspended."""
    with LocalEtcd(installed, namespace, tmp_path) as ec:
        up(ec)
        etcdbackup.apply(ec, "disk", storageType="PVC", pvc={"claimName": "disk", "path": "db"},
                         backupPolicy={"backupIntervalInSecond": 3600})
        backup = agentpod.Owner(installed, namespace, "disk")
        backup.kind = etcdbackup.KIND
        pod = backup.wait_pod()
        assert "snapshotStartTime" not in backup.wait("Running")["status"]

        set_status(installed, pod, phase="Running", containerStatuses=[
            {"name": "snapshot", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
             "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "lastState": {}}])
        backup.wait("Running", lambda status: status.get("snapshotStartTime"))
        ec.annotate(DEFRAGMENT, "monday")
        ec.wait(lambda o: "for the end of a backup" in o["status"].get(
            "defragmentation", {}).get("message", ""), "the defragmentation to wait")
        installed.patch(backup.kind, "disk", namespace, {"spec": {"backupPolicy": {"suspend": True}}})
        installed.delete("pod", pod["metadata"]["name"], namespace)
        status = backup.wait("Suspended")["status"]
        assert "snapshotStartTime" not in status
        assert condition(backup.get(), "Ready")["status"] == "True"
        ended(ec, "monday")


def test_scheduled_defragmentation_needs_free_pages(controller, run_steward, installed,
                                                    namespace, tmp_path, clock):
    assert controller.stop() == 0, controller.log_tail()
    run_steward(clock=clock)
    with LocalEtcd(installed, namespace, tmp_path) as ec:
        one = up(ec, maintenance={"defragmentation": {
            "schedule": "0 3 * * *", "minReclaimableBytes": "15Mi"}})
        next_ = wait.until("the next instant", lambda: ec.status().get(
            "defragmentation", {}).get("nextScheduleTime"), 30)
        assert next_.endswith("T03:00:00Z")
        clock.set(seconds_until(next_) + 5)
        found = ended(ec)
        assert found["lastScheduleTime"] == next_ and found["members"] == []
        assert not any(r.startswith("Defragment") for _, r, _ in ec.cluster.events(
            ec.namespace, ec.name))

        leave_free_pages(one, 20)
        clock.set(clock.ahead + 72 * 3600)
        found = ec.wait(lambda o: o["status"]["defragmentation"]["reclaimedBytes"] > 0,
                        "three days later")["status"]["defragmentation"]
        assert found["reason"] == "Schedule" and found["lastScheduleTime"] > next_

        clock.set(seconds_until(next_) + 60)  # it was ahead: the instants of these days count
        ec.wait(lambda o: o["status"]["defragmentation"]["lastScheduleTime"] == next_, "the former day")
        ec.cluster.wait_event(ec.name, ec.namespace, "ClockWasAhead")
    controller.start()
