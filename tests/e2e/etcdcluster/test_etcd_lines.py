# SPDX-License-Identifier: Apache-2.0
"""A real EtcdCluster changes between minor versions of etcd, up to the newest and back down as far
as etcd supports it, under write load."""

import contextlib

import pytest
from support import etcdcluster as ecs
from support import wait

pytestmark = pytest.mark.node

LINES = ("3.4", "3.5", "3.6", "3.7")


@pytest.fixture(scope="module")
def etcd(stage):
    """Three members of the oldest minor version."""
    one = stage.etcd("lines")
    one.apply(size=3, version=ecs.version(LINES[0]), upgrade={"pauseBetweenSeconds": 0})
    one.wait_settled(3)
    return one


@contextlib.contextmanager
def writing(etcd, what):
    """No write that is acknowledged meanwhile is lost."""
    with etcd.writer() as writer:
        writer.wait_writes()
        yield writer
        writer.wait_writes()
    print(f"{what}: {len(writer.acknowledged)} writes acknowledged, longest gap {writer.longest_gap:.1f} s")
    etcd.check_same(writer)


def go(etcd, line):
    """Changes the version and waits for all members; they keep their names and their data."""
    before, members = etcd.uids(), set(etcd.members())
    etcd.patch(version=ecs.version(line))
    etcd.wait_settled(3, 180, version=ecs.version(line))
    assert set(etcd.members()) == members
    assert not set(etcd.uids().values()) & set(before.values())
    assert {etcd.at(name).status()["version"] for name in members} == {ecs.version(line)}
    assert etcd.status()["clusterVersion"] == line


def wait_stored_for(etcd, line):
    """Until all members have this minor storage version, in etcd and in the status."""
    wanted = {f"{line}.0" if line >= "3.6" else None}
    wait.until(f"the members to store as {line}", lambda: {
        etcd.at(name).status().get("storageVersion") for name in etcd.members()} == wanted, 30)
    etcd.wait(lambda obj: {m.get("storageVersion") for m in obj["status"]["memberList"]} == wanted,
              "the status to say so", 90)


@pytest.mark.parametrize("line", LINES[1:])
def test_upgrade_to_next_minor(etcd, line):
    with writing(etcd, f"up to {line}"):
        go(etcd, line)
    wait_stored_for(etcd, line)


def test_downgrade_by_one_minor(etcd):
    """By one minor version; the storage version is lowered before the first replacement."""
    with writing(etcd, "down to 3.6"):
        go(etcd, "3.6")
    wait_stored_for(etcd, "3.6")


def test_downgrade_can_be_cancelled(etcd):
    """When one member already has the older version."""
    new, old = ecs.version("3.6"), ecs.version("3.5")

    def versions():
        return sorted(m["version"] for m in etcd.members().values())

    with writing(etcd, "down to 3.5 and back"):
        etcd.patch(version=old, upgrade={"pauseBetweenSeconds": 20})
        wait.until("one member to have gone", lambda: versions() == [old, new, new], 60)
        etcd.patch(version=new, upgrade={"pauseBetweenSeconds": 0})
        etcd.wait_settled(3, 120, version=new)
    wait.until("etcd to have given up the downgrade", lambda: not any(
        etcd.at(name).status().get("downgradeInfo") for name in etcd.members()), 20)
    wait_stored_for(etcd, "3.6")


def test_downgrade_below_supported_minor_stalls(etcd):
    with writing(etcd, "down to 3.5"):
        go(etcd, "3.5")
    uids = etcd.uids()
    etcd.patch(version=ecs.version("3.4"))
    etcd.wait_condition("Stalled", "True", "InvalidSpec")
    assert etcd.uids() == uids
    etcd.patch(version=ecs.version("3.5"))
    etcd.wait_settled(3)


def test_single_member_is_not_downgraded(stage):
    """It cannot be restarted without an interruption, and etcd lets no older member join; with two
    more members the downgrade works."""
    one = stage.etcd("alone")
    one.apply(size=1, version=ecs.version("3.7"), upgrade={"pauseBetweenSeconds": 0})
    one.wait_settled(1)
    uids = one.uids()
    one.patch(version=ecs.version("3.6"))
    told = one.wait_condition("Stalled", "True", "InvalidSpec")
    assert "Set spec.size to 3 first, at the present version" in told["message"]
    assert one.uids() == uids
    one.patch(version=ecs.version("3.7"), size=3)
    one.wait_settled(3)
    with writing(one, "one, three, and down to 3.6"):
        go(one, "3.6")
    assert one.cluster.wait_event("alone", one.namespace, "DowngradeEnabled")
