# SPDX-License-Identifier: Apache-2.0
"""A real EtcdCluster is scaled up and down, also while a member is down, under write load."""

import pytest
from support import etcdcluster as ecs
from support import wait

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def etcd(stage):
    """One member."""
    one = stage.etcd()
    one.apply(size=1)
    one.wait_settled(1)
    return one


def test_scaling_1_3_5_3_1_loses_no_write(etcd):
    with etcd.writer() as writer, ecs.Witness(etcd) as witness:
        for size in (3, 5, 3, 1):
            etcd.cluster.kubectl("scale", ecs.KIND, "ec", "-n", etcd.namespace,
                                 f"--replicas={size}")
            etcd.wait_settled(size, 150)
            writer.wait_writes()
            etcd.check_claims()
            if size > 1:
                budget = etcd.cluster.get("pdb", "ec", etcd.namespace)
                assert budget["spec"]["minAvailable"] == size // 2 + 1
        witness.check_path(1, 2, 3, 4, 5, 4, 3, 2, 1)
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s")
    assert etcd.check_same()


def test_scaling_with_a_hanging_member(etcd):
    """One of three hangs: size 5 is reached with it replaced or back, and on the way down the
    member that hangs is removed first."""
    etcd.patch(size=3)
    etcd.wait_settled(3)
    with etcd.writer() as writer, ecs.Witness(etcd):
        victim = etcd.followers()[0]
        with etcd.paused(victim):
            etcd.wait(lambda o: victim in o["status"]["members"].get("unready", []),
                      "the member to be missed", 60)
            etcd.patch(size=5)
            writer.wait_writes(50)
        etcd.wait_settled(5, 180)
        victim = etcd.followers()[0]
        with etcd.paused(victim):
            etcd.wait(lambda o: victim in o["status"]["members"].get("unready", []),
                      "the member to be missed", 60)
            etcd.patch(size=3)
            wait.until(f"{victim} to be the first that goes", lambda: victim not in etcd.names(), 60)
            writer.wait_writes(20)
        etcd.wait_settled(3, 150)
        assert victim not in etcd.members()
        etcd.patch(size=1)
        etcd.wait_settled(1, 90)
        writer.wait_writes()
        etcd.check_claims()
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s")


def test_retained_volumes_stay_after_scale_down(etcd):
    """volumeRetention.whenScaled: Retain."""
    etcd.patch(size=2, volumeRetention={"whenScaled": "Retain"})
    etcd.wait_settled(2)
    claims = set(etcd.claims())
    etcd.patch(size=1)
    etcd.wait_settled(1)
    assert set(etcd.claims()) == claims


def test_unexpandable_volume_is_replaced_with_its_member(etcd):
    """The node's StorageClass does not allow expansion: with consent a member with a larger volume
    takes the place of the old one, with all data, and the old volume is deleted."""
    etcd.patch(size=1, volumeRetention={"whenScaled": "Delete"})
    etcd.wait_settled(1)
    for kept in set(etcd.claims()) - etcd.names():  # by another test
        etcd.cluster.delete("pvc", kept, etcd.namespace)
    etcd.check_claims()
    [before] = etcd.claims()
    with etcd.writer(prefix="grown/") as writer:
        etcd.patch(storage={"size": "9Gi"})
        etcd.wait_condition("Resizing", "True", "ExpansionNotAllowed")
        etcd.annotate(f"{ecs.GROUP}/replace-volumes", "9Gi")
        etcd.wait(lambda o: [m["volume"] for m in o["status"]["memberList"]] == [
            {"requested": "9Gi", "capacity": "9Gi"}], "one member with the larger volume", 120)
        etcd.wait_condition("Resizing", "False", "Idle")
        etcd.wait_settled(1)
        writer.wait_writes()
    assert before not in etcd.names()
    etcd.check_claims()
    etcd.check_same(writer)


@pytest.fixture
def expandable(stage):
    """The node's StorageClass allows expansion meanwhile.  Only the test resizes volumes."""
    [name] = [c["metadata"]["name"] for c in stage.cluster.list("storageclass")
              if c["provisioner"] == "steward.dev/folder"]
    stage.cluster.patch("storageclass", name, None, {"allowVolumeExpansion": True})
    yield
    stage.cluster.patch("storageclass", name, None, {"allowVolumeExpansion": None})


@pytest.mark.usefixtures("expandable")
def test_volumes_are_expanded_one_at_a_time(stage):
    """The next one begins when the last one has its size; no pod is recreated."""
    etcd = stage.etcd("grown")
    etcd.apply(size=3, storage={"size": "1Gi"})
    etcd.wait_settled(3)
    uids, done = etcd.uids(), []

    def next_action(obj):
        action = obj["status"].get("currentAction", {})
        return action.get("kind") == "ExpandVolume" and action["member"] not in done
    etcd.patch(storage={"size": "2Gi"})
    while len(done) < 3:
        action = etcd.wait(next_action, "the next volume", 60)["status"]["currentAction"]
        done.append(action["member"])
        wait.until("its claim to ask for more", lambda: etcd.claims()[done[-1]]["spec"]["resources"][
            "requests"]["storage"] == "2Gi", 20)
        assert {name for name, claim in etcd.claims().items()
                if claim["spec"]["resources"]["requests"]["storage"] == "2Gi"} == set(done)
        etcd.cluster.patch("pvc", done[-1], etcd.namespace, {"status": {"capacity": {
            "storage": "2Gi"}}}, subresource="status")
    etcd.wait_settled(3)
    assert etcd.uids() == uids
    etcd.delete()
