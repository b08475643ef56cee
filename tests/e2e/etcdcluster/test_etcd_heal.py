# SPDX-License-Identifier: Apache-2.0
"""Members of a real EtcdCluster fail, one after the other, under write load."""

import pytest
from support import wait

pytestmark = pytest.mark.node

UNHEALTHY_SECONDS = 60  # the minimum of spec.failover


@pytest.fixture(scope="module")
def etcd(stage):
    """Three members, with a high limit for replacements."""
    one = stage.etcd()
    one.apply(size=3, failover={"unhealthySeconds": UNHEALTHY_SECONDS, "maxPerHour": 10})
    one.wait_settled(3)
    return one


@pytest.fixture
def writer(etcd):
    """Writes continuously; no write is lost, and all members store the same data."""
    etcd.wait_settled(3)
    with etcd.writer() as one:
        one.wait_writes()
        yield one
        etcd.wait_settled(3, 120)
        one.wait_writes()
    print(f"{len(one.acknowledged)} writes, longest gap {one.longest_gap:.1f} s")
    etcd.check_same()


def test_killed_process_restarts_without_replacement(etcd, writer):
    """Leader or not; steward need not act."""
    uids, members = etcd.uids(), set(etcd.members())
    for name in [etcd.followers()[0], etcd.leader()]:
        count = restarts(etcd, name)
        etcd.signal(name)
        wait.until(f"{name} to be started again", lambda n=name, c=count: restarts(etcd, n) > c, 30)
        etcd.wait_settled(3)
        writer.wait_writes()
    assert etcd.uids() == uids
    assert set(etcd.members()) == members
    assert etcd.status().get("failovers", {}).get("total", 0) == 0


def restarts(etcd, name):
    """The restart count of its container."""
    return etcd.pods()[name]["status"]["containerStatuses"][0]["restartCount"]


def test_deleted_pod_is_recreated_with_its_data(etcd, writer):
    members = set(etcd.members())
    for name in [etcd.followers()[0], etcd.leader()]:
        before = etcd.uids()
        etcd.delete_pods(name)
        etcd.wait_other_pod(name, before)
        etcd.wait_settled(3)
        writer.wait_writes()
    assert set(etcd.members()) == members, "a member with its data is not replaced"


def test_loss_of_all_pods_recovers_with_data(etcd, writer):
    """E1: only the volumes are left."""
    before, members = etcd.uids(), set(etcd.members())
    etcd.delete_pods(*before)
    etcd.wait_other_pods(before)
    etcd.wait_settled(3)
    writer.wait_writes()
    assert set(etcd.members()) == members


def test_member_without_data_is_replaced(etcd, writer):
    """I6: it never starts empty; it is removed first (I3), then another one joins."""
    before = set(etcd.members())
    victim = etcd.followers()[0]
    etcd.empty(victim)
    wait.until(f"{victim} to be no member any more", lambda: victim not in etcd.names(), 120)
    etcd.wait_settled(3, 120)
    now = set(etcd.members())
    assert victim not in now and len(now & before) == 2
    etcd.check_claims()
    assert etcd.cluster.wait_event(etcd.name, etcd.namespace, "ReplacingDeadMember", victim)


def test_short_network_cut_replaces_no_member(etcd, writer):
    """30 s without its network: the two others serve, and no member is replaced."""
    members = set(etcd.members())
    victim = etcd.leader()
    with etcd.cut(victim):
        etcd.wait(lambda o: victim in o["status"]["members"].get("unready", []),
                  f"{victim} to be unready", 40)
        wait.stays("all three are members", lambda: len(etcd.listed()) == 3, 20, 2)
        writer.wait_writes(50)
    etcd.wait_settled(3)
    assert set(etcd.members()) == members


def test_long_network_cut_replaces_the_member(etcd, writer):
    """Longer than failover.unhealthySeconds: it is replaced, and later does no harm."""
    before = set(etcd.members())
    victim = etcd.followers()[0]
    with etcd.cut(victim):
        wait.until(f"{victim} to be replaced", lambda: victim not in etcd.names(),
                   UNHEALTHY_SECONDS + 60, 1)
        etcd.wait_settled(3, 120)
        writer.wait_writes(20)
    now = set(etcd.members())
    assert victim not in now and len(now & before) == 2
    etcd.wait_pods(f"pod {victim} to be gone", lambda pods: victim not in pods)
    etcd.check_claims()


def test_hanging_member_resumes(etcd, writer):
    """It keeps its connections but does not reply; then it resumes."""
    members = set(etcd.members())
    victim = etcd.leader()
    with etcd.paused(victim):
        etcd.wait(lambda o: victim in o["status"]["members"].get("unready", []),
                  f"{victim} to be unready", 40)
        writer.wait_writes(20)
    etcd.wait_settled(3)
    assert set(etcd.members()) == members


def test_lost_volume_claim_replaces_the_member(etcd, writer):
    """Deleted together with its pod: the data is gone, and the member is replaced."""
    victim = etcd.followers()[0]
    etcd.cluster.delete("pvc", victim, etcd.namespace, wait_gone=False)
    etcd.delete_pods(victim)
    wait.until(f"{victim} to be no member any more", lambda: victim not in etcd.names(), 120)
    etcd.wait_settled(3, 120)
    etcd.check_claims()
