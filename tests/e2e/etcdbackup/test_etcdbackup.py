# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups of a real etcd to a real store, and errors of both; by etcdEndpoints, so that no pod
is needed."""

import datetime
import hashlib
import re
import time

import pytest

from support import etcd, etcdbackup, incident, s3, wait
from support.cluster import condition
from support.etcdbackup import Backup

KIND = "etcdbackups.etcd.database.coreos.com"


@pytest.fixture(scope="module")
def members():
    line = sorted(etcd.versions())[-1:]
    if not line:
        pytest.skip("no etcd is here: run 'scripts/bootstrap etcd'")
    with etcd.Cluster(size=3, version=line[0]) as cluster:
        for i in range(20):
            cluster.ctl("put", f"k{i}", "v" * 100)
        yield cluster


@pytest.fixture
def proxy(bucket):
    proxy = s3.Proxy(bucket)
    yield proxy
    proxy.close()


@pytest.fixture
def backup(installed, namespace, members, proxy):
    return Backup(installed, namespace, members, proxy)


@pytest.fixture
def alone(controller, run_steward):
    """run_steward, while no other steward reconciles the same objects."""
    assert controller.stop() == 0, controller.log_tail()
    yield run_steward
    controller.start()


@pytest.mark.oldest("ownership of the status, a whole life")
def test_one_shot_backup_runs_once(controller, installed, backup, proxy):
    found = backup.apply().succeeded()
    status = found["status"]
    [artifact] = status["artifacts"]
    assert artifact["uri"] == f"s3://{s3.BUCKET}/{backup.path}" and artifact["verified"]
    data = backup.objects()[backup.path].read_bytes()
    assert artifact["sizeBytes"] == len(data)
    assert artifact["sha256"] == hashlib.sha256(data).hexdigest()
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    assert status["succeeded"] and status["etcdRevision"] == artifact["revision"] >= 21
    assert "nextScheduleTime" not in status
    for kind in ("Ready", "SourceReachable", "StoreReachable", "Verified", "ScheduleValid"):
        assert condition(found, kind)["status"] == "True", kind
    assert not condition(found, "Reconciling") and not condition(found, "Stalled")
    installed.wait_event(backup.name, backup.namespace, "BackupSucceeded")
    before = len(proxy.log)
    installed.annotate(KIND, backup.name, backup.namespace, {"steward.dev/reconcile-at": "now"})
    wait.stays("no other backup", lambda: len(proxy.log) == before, 2)
    assert backup.status() == status
    for given, expected in (("now", "False"), (None, None)):
        installed.annotate(KIND, backup.name, backup.namespace, {"steward.dev/backup-at": given})
        installed.wait_for(KIND, backup.name, backup.namespace, lambda o, expected=expected: (
            condition(o, "RequestFollowed") or {}).get("status") == expected,
            what="it to say whether it ignores a request")
    assert controller.metric("steward_etcd_backup_last_verified_timestamp_seconds",
                             namespace=backup.namespace, cluster=backup.name) > 1e9
    installed.delete(KIND, backup.name, backup.namespace)
    wait.until("the gauge of what is gone to go", lambda: f'namespace="{backup.namespace}"' not in
               controller.metrics_text())


@pytest.mark.oldest("ownership of the status")
def test_interval_backup_applies_retention(controller, installed, backup, members):
    backup.apply({"backupIntervalInSecond": 60, "maxBackups": 2})
    first = backup.succeeded()["status"]
    assert re.search(r"_v\d{12}_\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d_[0-9a-f]{16}_[0-9a-f-]{36}$",
                     first["artifacts"][0]["uri"])
    last, following = (datetime.datetime.fromisoformat(first[k].rstrip("Z"))
                       for k in ("lastScheduleTime", "nextScheduleTime"))
    assert (following - last).total_seconds() == 60
    assert condition(backup.wait(lambda s: True), "RetentionApplied")["status"] == "True"


def test_interval_continues_and_old_backups_are_deleted(alone, installed, backup, members, clock):
    def look(n):
        # steward notices a change of the clock within a second; the annotation triggers a look now.
        # Signatures contain the time: a store refuses one that is a quarter of an hour ahead.
        installed.annotate(KIND, backup.name, backup.namespace,
                           {"steward.dev/reconcile-at": f"{time.monotonic()}"})
        found = installed.get(KIND, backup.name, backup.namespace)
        again = found["status"].get("retry", {}).get("nextTime")
        if again:  # the attempt was too slow: the next is 30 s later by the fake clock
            clock.leap(datetime.datetime.fromisoformat(again), before=0)
        done = found["status"]["phase"] == "Succeeded"
        return found if done and len(found["status"]["artifacts"]) >= n else None

    alone(clock=clock)
    backup.apply({"backupIntervalInSecond": 60, "maxBackups": 2})
    backup.succeeded()
    for n in range(2, 5):
        members.ctl("put", "more", str(n))
        clock.set(clock.ahead + 61)
        found = wait.until(f"backup {n}", lambda n=n: look(n), 40, every=1)
        assert len(backup.objects()) == 2
    revisions = [a["revision"] for a in found["status"]["artifacts"]]
    assert revisions == sorted(revisions, reverse=True)
    assert found["status"]["prunedCount"] == len(revisions) - 2
    kept = {a["uri"].split("/", 3)[3] for a in found["status"]["artifacts"][:2]}
    assert set(backup.objects()) == kept


def test_scheduled_backup_waits_for_its_time(controller, installed, backup, proxy):
    backup.apply({"schedule": "0 0 1 1 *", "timeZone": "Asia/Shanghai"})
    found = backup.wait(lambda s: s.get("nextScheduleTime"))
    assert found["status"]["nextScheduleTime"].endswith("-12-31T16:00:00Z")
    assert found["status"]["phase"] == "Pending" and condition(found, "Ready")["status"] == "True"
    assert not proxy.log
    backup.patch(backupPolicy={"suspend": True})
    backup.wait(lambda s: "nextScheduleTime" not in s)
    # One now, also while the schedule is suspended.
    installed.annotate(KIND, backup.name, backup.namespace, {"steward.dev/backup-at": "before-upgrade"})
    found = backup.wait(lambda s: s.get("request", {}).get("succeeded") == "before-upgrade")
    status = found["status"]
    assert status["request"]["time"] == status["lastScheduleTime"] and len(status["artifacts"]) == 1
    installed.wait_event(backup.name, backup.namespace, "BackupRequested")
    before = len(proxy.log)
    installed.annotate(KIND, backup.name, backup.namespace, {"steward.dev/reconcile-at": "now"})
    wait.stays("no other backup", lambda: len(proxy.log) == before, 2)


@pytest.mark.parametrize("mode, reason", [("down", "ConnectFailed"), ("denied", "AccessDenied"),
                                          ("full", "StoreFull"), ("cut", "ConnectFailed")])
def test_store_error_is_reported_and_recovers(controller, installed, backup, proxy, mode, reason):
    proxy.mode, proxy.cut_bytes = mode, 1000
    found = backup.apply().failed(reason)
    assert condition(found, "StoreReachable")["reason"] == reason
    assert condition(found, "SourceReachable")["status"] == "True"
    assert condition(found, "Ready")["status"] == "False" and condition(found, "Reconciling")
    assert found["status"]["consecutiveFailures"] == 1 and found["status"]["lastError"]
    assert found["status"]["retry"]["nextTime"] and not found["status"]["succeeded"]
    assert not backup.objects()
    installed.wait_event(backup.name, backup.namespace, reason)
    proxy.mode = "fine"
    found = backup.succeeded(60)
    assert found["status"]["consecutiveFailures"] == 0 and "lastError" not in found["status"]
    assert "retry" not in found["status"]
    assert s3.SECRET_KEY not in str(found) + controller.log_tail(1000)


@pytest.mark.parametrize("mode, reason", [("short", "SizeMismatch"), ("flipped", "HashMismatch")])
def test_corrupted_upload_is_not_verified(controller, installed, backup, proxy, mode, reason):
    proxy.mode = mode
    found = backup.apply().failed(reason)
    assert condition(found, "Verified")["reason"] == reason
    assert condition(found, "StoreReachable")["status"] == "True"
    assert not found["status"].get("artifacts") and not backup.objects()


def test_unreachable_endpoints_fail_the_backup(controller, installed, backup):
    found = backup.apply(etcdEndpoints=["http://127.0.0.1:1"]).failed("NoHealthyEndpoint")
    assert condition(found, "SourceReachable")["reason"] == "NoHealthyEndpoint"
    assert not condition(found, "StoreReachable")


def test_dead_endpoint_is_skipped(controller, installed, backup, members):
    urls = ["http://127.0.0.1:1", *(m.client_url for m in members.members)]
    found = backup.apply(etcdEndpoints=urls).succeeded()
    assert found["status"]["sourceEndpoint"] in urls[1:]


def test_missing_cluster_is_reported(controller, installed, backup):
    manifest = backup.manifest()
    del manifest["spec"]["etcdEndpoints"]
    manifest["spec"]["clusterRef"] = {"name": "nobody"}
    installed.apply(manifest)
    found = backup.failed("ClusterNotFound")
    assert condition(found, "SourceReachable")["reason"] == "ClusterNotFound"


@pytest.mark.parametrize("data", [None, {}, {"credentials": "W2RlZmF1bHRdCg=="}])
def test_missing_or_invalid_secret_fails_the_backup(controller, installed, backup, data):
    installed.delete("secret", "aws", backup.namespace)
    if data is not None:
        installed.apply({"apiVersion": "v1", "kind": "Secret", "data": data,
                         "metadata": {"name": "aws", "namespace": backup.namespace}})
    with incident.follow("StewardBackupFailed", installed) as runbook:
        runbook.before(controller.metrics_text())
        backup.apply().failed("SecretMissing" if data is None else "SecretInvalid")
        runbook.fires(controller.metrics_text)
        [row] = [r for r in runbook.kubectl("get etcdbackups").splitlines() if r.startswith(backup.namespace)]
        assert row.split()[-2] == "False", row
        assert not condition({"status": backup.status()}, "SourceReachable")
        # A correct Secret triggers an attempt at once, before the next one is due in half a minute.
        failed = backup.status()
        backup.secret("aws", credentials=s3.CREDENTIALS)
        found = backup.succeeded(20)
        assert found["status"]["lastSuccessDate"] < failed["retry"]["nextTime"]


def test_invalid_backup_does_not_affect_others(controller, installed, namespace, members, proxy):
    """Stored without admission: its status reports the error, and others are reconciled (B6)."""
    bad = Backup(installed, namespace, members, proxy, "bad").apply({"schedule": "61 * * * *"})
    found = bad.wait(lambda s: condition({"status": s}, "Stalled"))
    assert condition(found, "Stalled")["reason"] == "InvalidSpec"
    assert "spec.backupPolicy.schedule" in condition(found, "Stalled")["message"]
    Backup(installed, namespace, members, proxy, "good").apply().succeeded()
    assert controller.running()


def test_cluster_reports_failing_backups(controller, installed, backup, pods_stay_pending):
    """Reported by a condition of the cluster, without a look into the store (B1)."""
    installed.apply({"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
                     "metadata": {"name": "orders", "namespace": backup.namespace},
                     "spec": {"size": 1, "version": "3.5.16"}})
    manifest = backup.manifest({"backupIntervalInSecond": 3600})
    del manifest["spec"]["etcdEndpoints"]
    manifest["spec"]["clusterRef"] = {"name": "orders"}
    installed.apply(manifest)
    backup.failed("NoHealthyEndpoint")
    told = installed.wait_condition("etcdclusters.etcd.database.coreos.com", "orders",
                                    backup.namespace, "BackupReady", "BackupFailing")
    assert told["status"] == "False" and backup.name in told["message"]


def artifact(age, **more):
    """An artifact of a status: a backup made `age` seconds ago."""
    made = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age)
    return {"uri": "s3://b/k", "revision": 7, "sizeBytes": 1, "verified": True,
            "time": made.strftime("%Y-%m-%dT%H:%M:%SZ"), **more}


def test_cluster_reports_old_backups(controller, installed, backup, pods_stay_pending):
    """A suspended schedule causes no failure, but is as bad (B1)."""
    installed.apply({"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
                     "metadata": {"name": "orders", "namespace": backup.namespace},
                     "spec": {"size": 1, "version": "3.5.16"}})
    manifest = backup.manifest({"backupIntervalInSecond": 3600, "suspend": True})
    del manifest["spec"]["etcdEndpoints"]
    manifest["spec"]["clusterRef"] = {"name": "orders"}
    installed.apply(manifest)
    backup.wait(lambda s: s.get("phase"))
    for made, reason in (([artifact(60)], "BackupFresh"), ([artifact(7100)], "BackupFresh"),
                         ([artifact(7300)], "BackupStale"),
                         ([artifact(-30 * 86400)], "BackupStale"),  # by a clock that was ahead
                         ([artifact(60, verified=False), artifact(7300)], "BackupStale"),
                         ([artifact(60, verified=False)], "NeverSucceeded")):
        etcdbackup.remember(installed, backup.namespace, backup.name, *made)
        told = installed.wait_condition("etcdclusters.etcd.database.coreos.com", "orders",
                                        backup.namespace, "BackupReady", reason, seconds=15)
        assert (told["status"] == "True") == (reason == "BackupFresh")


def test_volume_backup_without_agent_image_stalls(controller, installed, backup):
    manifest = backup.manifest()
    del manifest["spec"]["s3"]
    manifest["spec"].update(storageType="PVC", pvc={"claimName": "disk", "path": "a/db"})
    installed.apply(manifest)
    found = backup.wait(lambda s: condition({"status": s}, "Stalled"))
    assert condition(found, "Stalled")["reason"] == "AgentImageMissing"


def test_interrupted_backup_is_started_again(alone, installed, backup, proxy):
    """A backup in progress is started again; a completed one is not repeated."""
    one = alone()
    proxy.mode, proxy.pause = "slow", 2
    backup.apply()
    wait.until("an upload to begin", lambda: [m for m, _ in proxy.log if m == "PUT"], 20)
    one.kill()
    assert backup.status()["phase"] == "Running"
    proxy.mode = "fine"
    alone()
    backup.succeeded()
    assert list(backup.objects()) == [backup.path]


def test_deleted_backup_stops_its_upload(controller, installed, backup, proxy):
    proxy.mode, proxy.pause = "slow", 3
    backup.apply()
    wait.until("an upload to begin", lambda: [m for m, _ in proxy.log if m == "PUT"], 20)
    installed.delete(KIND, backup.name, backup.namespace)
    wait.until("it to be gone", lambda: not backup.status(), 10)


def test_shutdown_does_not_wait_for_an_upload(alone, installed, backup, proxy):
    one = alone()
    proxy.mode, proxy.pause = "slow", 20
    backup.apply()
    wait.until("an upload to begin", lambda: [m for m, _ in proxy.log if m == "PUT"], 20)
    assert one.stop(seconds=10) == 0


def test_slow_uploads_do_not_block_reconciles(controller, installed, namespace, members, proxy, bucket):
    """Transfers run in threads of their own and do not block reconciling."""
    proxy.mode, proxy.pause = "slow", 3
    for i in range(8):
        Backup(installed, namespace, members, proxy, f"slow{i}").apply()
    wait.until("uploads to begin", lambda: [m for m, _ in proxy.log if m == "PUT"], 20)
    fine = s3.Proxy(bucket)
    try:
        other = Backup(installed, namespace, members, fine, "waits")
        other.apply({"schedule": "0 0 1 1 *"})
        assert other.wait(lambda s: s.get("nextScheduleTime"), 10)
    finally:
        fine.close()
    proxy.mode = "fine"
    for i in range(8):
        Backup(installed, namespace, members, proxy, f"slow{i}").succeeded(60)
