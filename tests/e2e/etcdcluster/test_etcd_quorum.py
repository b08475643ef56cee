# SPDX-License-Identifier: Apache-2.0
"""A real EtcdCluster loses two members of three: steward changes nothing until they are back, or
until an administrator names the survivor whose data will be kept."""

import contextlib
import re
import shlex

import pytest
from support import etcdcluster as ecs
from support import wait
from support.cluster import condition

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def etcd(stage):
    """Three members; failover after the shortest delay."""
    one = stage.etcd()
    one.apply(size=3, failover={"unhealthySeconds": 60, "maxPerHour": 10})
    one.wait_settled(3)
    return one


def wait_lost(etcd):
    """Until QuorumLost is True; returns the object."""
    etcd.wait_condition("QuorumLost", "True", seconds=90)
    obj = etcd.get()
    assert condition(obj, "Ready")["status"] == "False"
    assert condition(obj, "Available")["status"] == "False"
    stalled = condition(obj, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "QuorumLost")
    for command in (f"kubectl -n {etcd.namespace} get pods",
                    f"kubectl -n {etcd.namespace} annotate etcdcluster ec {ecs.FORCE}="):
        assert command in stalled["message"], stalled["message"]
    return obj


def test_lost_quorum_changes_nothing_until_it_returns(etcd, stage):
    with etcd.writer() as writer:
        writer.wait_writes()
        uids, claims, members = etcd.uids(), set(etcd.claims()), set(etcd.members())
        with contextlib.ExitStack() as down:
            for name in etcd.followers():
                down.enter_context(etcd.paused(name))
            obj = wait_lost(etcd)
            assert obj["status"]["quorum"]["margin"] < 0
            before = ecs.changes(stage)
            # Longer than the delay of a failover.
            wait.stays("nothing is touched", lambda: etcd.uids() == uids and
                       set(etcd.claims()) == claims, 65, 3)
            assert ecs.changes(stage) == before
        etcd.wait_settled(3)
        writer.wait_writes()
        assert set(etcd.members()) == members
        assert etcd.cluster.wait_event("ec", etcd.namespace, "QuorumLost")
        assert etcd.cluster.wait_event("ec", etcd.namespace, "QuorumRestored")
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s")


def test_force_annotation_is_removed_with_quorum(etcd):
    """It is removed, so that it does not count in the next outage either."""
    uids = etcd.uids()
    survivor = etcd.leader()
    etcd.annotate(ecs.FORCE, survivor)
    wait.until("the annotation to be removed",
               lambda: ecs.FORCE not in etcd.get()["metadata"].get("annotations", {}), 20)
    assert etcd.cluster.wait_event("ec", etcd.namespace, "ForceIgnored", survivor)
    with contextlib.ExitStack() as down:
        for name in set(uids) - {survivor}:
            down.enter_context(etcd.paused(name))
        wait_lost(etcd)
        wait.stays("nothing is touched", lambda: etcd.uids() == uids, 8, 1)
    etcd.wait_settled(3)
    assert etcd.uids() == uids


@contextlib.contextmanager
def writers(etcd, prefix, count=3):
    """Several at once; no write acknowledged to them is missing afterwards."""
    with contextlib.ExitStack() as all_of_them:
        yield [all_of_them.enter_context(etcd.writer(prefix=f"{prefix}{number}/"))
               for number in range(count)]


def lose_two(etcd, prefix, killed=False):
    """Writes, then two members lose their data.  Returns the survivor, which may be killed in the
    same instant, the lost members, and the writers."""
    with writers(etcd, prefix) as before:
        for writer in before:
            writer.wait_writes(20)
    survivor, *lost = etcd.followers() + [etcd.leader()]
    etcd.wait_has_all(survivor)
    etcd.at(survivor).write_database()
    etcd.empty(*lost, killed=[survivor] if killed else [])
    return survivor, lost, before


def check_forced(etcd, survivor, lost, before):
    """The survivor and two others have all acknowledged writes, each of them by itself."""
    etcd.wait_settled(3, 180)
    assert survivor in etcd.names() and not set(lost) & etcd.names()
    etcd.annotate(ecs.FORCE, None)
    with etcd.writer(prefix=f"after-{survivor}/") as more:
        more.wait_writes(20)
    etcd.check_same(*before, more)
    etcd.check_claims()
    assert condition(etcd.get(), "QuorumLost")["status"] == "False"
    commands = etcd.pods()[survivor]["spec"]["containers"][0]
    assert "--force-new-cluster" not in commands.get("args", []) + commands.get("command", [])


def test_forced_new_cluster_keeps_acknowledged_writes(etcd):
    """Two of three have lost their data; the third one has all acknowledged writes."""
    survivor, lost, before = lose_two(etcd, "stopped")
    obj = wait_lost(etcd)
    assert condition(obj, "QuorumLost")["reason"] in ("MembersDown", "StorageLost")
    claims = set(etcd.claims())
    assert claims >= {survivor, *lost}

    # Run the command in its message literally.
    told = re.search(r"`kubectl ([^`]* annotate [^`]*)`", condition(obj, "Stalled")["message"])[1]
    assert told.endswith(f"={survivor}")
    how_far = etcd.at(survivor).status()
    assert (f"got farthest of those that answer (raft term {how_far['raftTerm']}, index "
            f"{how_far['raftIndex']})") in condition(obj, "Stalled")["message"]
    etcd.cluster.kubectl(*shlex.split(told))
    check_forced(etcd, survivor, lost, before)


def test_forced_new_cluster_works_from_a_killed_member(stage):
    """Its log does not note that the last entries are committed.  Its database has them, and
    afterwards each member has them.  With 3.5: the probes of 3.4 write entries of their own, which
    note it."""
    etcd = stage.etcd("killed")
    etcd.apply(size=3, version=ecs.version("3.5"))
    etcd.wait_settled(3)
    survivor, lost, before = lose_two(etcd, "killed", killed=True)
    etcd.wait_condition("QuorumLost", "True", seconds=90)
    etcd.annotate(ecs.FORCE, survivor)
    check_forced(etcd, survivor, lost, before)
    etcd.delete()
