# SPDX-License-Identifier: Apache-2.0
"""EtcdRestores on a real node: a cluster from a backup of another one, with all writes acknowledged
before the backup; and from stores that return damaged data."""

import pytest
from support import etcdbackup as backups
from support import etcdcluster as ecs
from support import gateway
from support.cluster import condition

pytestmark = pytest.mark.node

BUMP = 1000000000


@pytest.fixture(scope="module")
def proxy(bucket, installed):
    """A proxy in front of the store, reachable from pods."""
    one = backups.node_proxy(bucket, installed)
    yield one
    one.close()


@pytest.fixture(scope="module")
def saved(agent_stage, proxy):
    """A cluster of one member with a backup; `writer_` knows what both must contain."""
    one = agent_stage.etcd()
    one.apply(size=1, version=ecs.version("3.5"))
    one.wait_settled(1)
    with one.writer() as one.writer_:
        one.writer_.wait_writes(100)
    one.revision = int(one.served().status()["header"]["revision"])
    backups.apply(one, "saved", **backups.to_s3(proxy, "saved.db"))
    backups.wait_phase(one, "saved", "Succeeded")
    return one


def template(size=1):
    """The template of the restored cluster."""
    return {"size": size, "version": ecs.version("3.5")}


def check_restored(saved, new, size):
    """All keys exist, at revisions no client has seen (B5); the cluster ID is new."""
    new.wait_settled(size, 120)
    assert saved.writer_.check(new.served()) >= 100
    with new.writer(prefix="after/") as more:
        more.wait_writes(10)
    assert int(new.served().status()["header"]["revision"]) > saved.revision + BUMP
    with pytest.raises(gateway.Refused, match="compacted"):
        new.served().post("/v3/kv/range", {"key": gateway.b64("w/00000001"),
                                           "revision": saved.revision})
    assert new.status()["clusterID"] != saved.status()["clusterID"]
    new.check_same()
    new.check_claims()


def test_restore_of_a_backup_into_three_members(saved, agent_stage):
    """By the EtcdBackup's name, while the source cluster still runs, which is not changed."""
    uids = saved.uids()
    new = agent_stage.etcd("again")
    backups.restore(new, "again", backupRef={"name": "saved"}, template=template(3))
    found = backups.wait_phase(new, "again", "Succeeded", 150, backups.RESTORE)
    status = found["status"]
    assert status["succeeded"] is True and status["snapshot"]["revision"] == saved.revision
    for about in ("Ready", "SourceFetched", "SnapshotVerified", "SeedReady", "ClusterReady"):
        assert condition(found, about)["status"] == "True", about
    check_restored(saved, new, 3)
    assert saved.uids() == uids
    assert saved.writer_.check(saved.served())
    new.delete()


def test_restore_by_location_without_a_backup_object(saved, agent_stage, proxy):
    """By the location in the store, for instance after the EtcdBackup was deleted."""
    new = agent_stage.etcd("place")
    backups.restore(new, "place", backupStorageType="S3", template=template(),
                    **backups.to_s3(proxy, "saved.db"))
    found = backups.wait_phase(new, "place", "Succeeded", 120, backups.RESTORE)
    assert set(found["status"]["snapshot"]) == {"sha256", "sizeBytes"}  # all that is known
    check_restored(saved, new, 1)
    new.delete()


@pytest.mark.parametrize("mode", ["short", "flipped"])
def test_truncated_or_flipped_snapshot_creates_no_cluster(saved, agent_stage, proxy, mode):
    """One byte short, or with a bit flipped: no cluster is created from it (B3, B7)."""
    new = agent_stage.etcd(f"no-{mode}")
    proxy.mode = mode
    try:
        backups.restore(new, f"no-{mode}", backupStorageType="S3", template=template(),
                        **backups.to_s3(proxy, "saved.db"))
        found = backups.wait_phase(new, f"no-{mode}", "Failed", 90, backups.RESTORE)
    finally:
        proxy.mode = "fine"
    assert found["status"]["succeeded"] is False
    assert condition(found, "SnapshotVerified").get("status") != "True"
    assert condition(found, "Ready")["status"] == "False"
    assert new.get() is None and not new.pods()
