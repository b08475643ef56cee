# SPDX-License-Identifier: Apache-2.0
"""A real EtcdCluster is upgraded from one version to the next under write load."""

import shutil

import pytest
from support import cluster as k8s
from support import etcdcluster as ecs
from support import wait
from support.cluster import condition

pytestmark = pytest.mark.node

OLD, NEW = "3.4", "3.5"
ABSENT = "3.5.97"  # no such image
BROKEN = "3.5.98"  # an image whose etcd exits immediately


@pytest.fixture(scope="module")
def etcd(stage):
    """Three members of the old version."""
    one = stage.etcd()
    one.apply(size=3, version=ecs.version(OLD), upgrade={"pauseBetweenSeconds": 0})
    one.wait_settled(3)
    return one


@pytest.fixture
def writer(etcd):
    """Writes continuously; no write is lost."""
    with etcd.writer() as one:
        one.wait_writes()
        yield one
        etcd.wait_settled(3, 120)
        one.wait_writes()
    print(f"{len(one.acknowledged)} writes, longest gap {one.longest_gap:.1f} s")
    etcd.check_same(one)


def wait_stalled(etcd, text):
    """Until it is Stalled with this text: it may still be Stalled for the version before."""
    def found(obj):
        one = condition(obj, "Stalled")
        return (one.get("status"), one.get("reason")) == ("True", "InvalidSpec") \
            and text in one["message"]
    etcd.wait(found, f"EtcdCluster {etcd.name} to be stalled: {text}")


def test_cluster_without_data_may_change_to_any_version(stage):
    """It has no data: any version may follow, also one that is not one step away."""
    one = stage.etcd("typo")
    one.apply(size=1, version="3.7.97")
    one.wait_condition("Degraded", "True", "ImagePullBackOff")
    one.wait_condition("Ready", "False", "ImagePullBackOff")
    assert one.status()["neverRan"]
    one.patch(version=ecs.version(NEW))
    one.wait_settled(1, version=ecs.version(NEW))
    assert "neverRan" not in one.status()
    one.delete()


def test_skipped_minor_stalls(etcd):
    """By the reconciler, as no webhook is installed here."""
    uids = etcd.uids()
    for version, text in (("3.6.1", "upgrade one minor at a time"),
                          ("3.4.1", "is not supported")):
        etcd.patch(version=version)
        wait_stalled(etcd, text)
    assert etcd.uids() == uids
    etcd.patch(version=ecs.version(OLD))
    etcd.wait_settled(3)


def test_upgrade_recreates_the_leader_last(etcd, writer):
    before, leader, members = etcd.uids(), etcd.leader(), set(etcd.members())
    etcd.patch(version=ecs.version(NEW))
    etcd.wait_condition("Upgrading", "True", seconds=30)
    etcd.wait_settled(3, 180, version=ecs.version(NEW))
    assert set(etcd.members()) == members, "members keep their names and their data"
    assert not set(etcd.uids().values()) & set(before.values())
    made = {n: p["metadata"]["creationTimestamp"] for n, p in etcd.pods().items()}
    assert max(made, key=made.get) == leader
    assert {etcd.at(n).status()["version"] for n in etcd.pods()} == {ecs.version(NEW)}
    assert etcd.cluster.wait_event("ec", etcd.namespace, "LeaderMoved")
    assert etcd.cluster.wait_event("ec", etcd.namespace, "UpgradeFinished")
    assert condition(etcd.get(), "Upgrading")["status"] == "False"


def test_unsupported_downgrade_stalls(etcd, writer):
    uids = etcd.uids()
    etcd.patch(version=ecs.version(OLD))
    wait_stalled(etcd, "is not supported")
    assert etcd.uids() == uids
    etcd.patch(version=ecs.version(NEW))
    etcd.wait_settled(3)


@pytest.mark.parametrize("version", [ABSENT, BROKEN])
def test_failing_member_stops_the_upgrade(etcd, writer, version, tmp_path):
    """The two others are not changed, and the version can be set back."""
    if version == BROKEN:
        give_broken_image(etcd.cluster, tmp_path)
    before = etcd.uids()
    etcd.patch(version=version)
    etcd.wait_pods("one pod to be recreated", lambda pods: len(
        {p["metadata"]["uid"] for p in pods.values()} & set(before.values())) == 2)
    etcd.wait(lambda o: o["status"]["quorum"]["healthy"] == 2, "one member to be down", 60)
    writer.wait_writes(50)
    wait.stays("the others are not touched", lambda: len(set(etcd.uids().values()) &
                                                        set(before.values())) >= 2, 20, 2)
    assert len(etcd.listed()) == 3
    etcd.patch(version=ecs.version(NEW))
    etcd.wait_settled(3, 90)
    assert {etcd.at(n).status()["version"] for n in etcd.pods()} == {ecs.version(NEW)}


def give_broken_image(cluster, folder):
    """Loads an image of that version whose etcd exits with status 1."""
    shutil.copy("/usr/bin/false", folder / "etcd")
    tar = folder / "broken.tar"
    k8s.cluster_command(cluster.name, "pack", "--user=65532", f"{ecs.REPOSITORY}:v{BROKEN}", tar,
                        folder / "etcd")
    k8s.cluster_command(cluster.name, "image", tar)


def test_changed_pod_option_rolls_the_leader_last(etcd, writer):
    """A change of a field of the pod, not of the version."""
    before, members = etcd.uids(), set(etcd.members())
    etcd.patch(options={"snapshotCount": 5000})
    etcd.wait_other_pods(before, 150)
    etcd.wait_settled(3, 60)
    assert set(etcd.members()) == members
    for pod in etcd.pods().values():
        assert "--snapshot-count=5000" in pod["spec"]["containers"][0]["args"]
