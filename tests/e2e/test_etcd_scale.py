# SPDX-License-Identifier: Apache-2.0
"""A real EtcdCluster is scaled up and down, also while a member is down, and somebody writes."""

import threading

import pytest
from support import etcdcluster as ecs
from support import gateway, wait

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def etcd(stage):
    """One member."""
    one = stage.etcd()
    one.apply(size=1)
    one.wait_settled(1)
    return one


class Witness:
    """Looks at etcd's own list all the time: what it must never show is in `wrong`."""

    def __init__(self, etcd):
        self.client, self.wrong, self.sizes = etcd.client(), [], []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self._ending.set()
        self._thread.join(20)
        if kind is None:
            assert not self.wrong, self.wrong
            assert self.sizes, "nothing was seen at all"

    def _run(self):
        while not self._ending.wait(0.2):
            try:
                members = self.client.members()
            except (OSError, gateway.Refused):
                continue
            learners = [m for m in members if m.get("isLearner")]
            if len(learners) > 1:
                self.wrong.append(("more than one learner", members))
            voters = len(members) - len(learners)
            if not self.sizes or self.sizes[-1] != voters:
                if self.sizes and abs(self.sizes[-1] - voters) > 1:
                    self.wrong.append(("two changes at once", self.sizes[-1], voters))
                self.sizes.append(voters)


def test_1_3_5_3_1(etcd):
    with etcd.writer() as writer, Witness(etcd) as witness:
        for size in (3, 5, 3, 1):
            etcd.cluster.kubectl("scale", ecs.KIND, "ec", "-n", etcd.namespace,
                                 f"--replicas={size}")
            etcd.wait_settled(size, 150)
            writer.wait_writes()
            etcd.check_claims()
            if size > 1:
                budget = etcd.cluster.get("pdb", "ec", etcd.namespace)
                assert budget["spec"]["minAvailable"] == size // 2 + 1
        assert witness.sizes == [1, 2, 3, 4, 5, 4, 3, 2, 1]
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s")
    assert etcd.check_same()


def test_the_same_while_a_member_is_down(etcd):
    """One of three hangs: 5 is reached with it replaced or back, and on the way down the one that
    is down goes first."""
    etcd.patch(size=3)
    etcd.wait_settled(3)
    with etcd.writer() as writer, Witness(etcd):
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


def test_kept_volumes(etcd):
    """volumeRetention.whenScaled: Retain."""
    etcd.patch(size=2, volumeRetention={"whenScaled": "Retain"})
    etcd.wait_settled(2)
    claims = set(etcd.claims())
    etcd.patch(size=1)
    etcd.wait_settled(1)
    assert set(etcd.claims()) == claims
