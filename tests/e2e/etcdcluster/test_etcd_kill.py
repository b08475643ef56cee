# SPDX-License-Identifier: Apache-2.0
"""I14: steward is killed after every single write, to the API server or to etcd, while it grows,
shrinks, heals and upgrades a real EtcdCluster, and recovers one from a single member after a lost
quorum; under write load all the time."""

import pytest
from support import etcd as processes
from support import etcdcluster as ecs
from support import faults
from support import steward as stw

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def stage(installed, tmp_path_factory):
    """A stage with a steward that can be made to die."""
    if processes.missing("3.4", "3.5"):
        pytest.skip(processes.missing("3.4", "3.5"))
    stw.uninstall_webhooks(installed)
    with ecs.Stage(installed, faults.binary(), tmp_path_factory.mktemp("stage"), *ecs.ONE_KIND) as one:
        yield one


@pytest.fixture(scope="module")
def etcd(stage):
    """A cluster of one member, created by stewards that died, too."""
    stage.steward.kill()
    one = stage.etcd()
    one.apply(size=1, version=ecs.version("3.4"), upgrade={"pauseBetweenSeconds": 0},
              failover={"unhealthySeconds": 60, "maxPerHour": 10})
    deaths = faults.Dying(stage).until(lambda: ecs.settled(one.get(), 1)).deaths
    check_deaths("bootstrap", deaths, "create", "guard", "status")
    stage.start()
    one.wait_settled(1)
    return one


def check_deaths(what, deaths, *kinds):
    """It died after each of these kinds of writes."""
    print(f"{what}: killed {len(deaths)} times: {' '.join(deaths)}")
    assert set(kinds) <= set(deaths), deaths


@pytest.fixture
def dying(stage, etcd):
    """dying(what, done, *kinds): stewards die until done(object); then one settles it."""
    def run(what, done, *kinds):
        deaths = faults.Dying(stage).until(lambda: done(etcd.get())).deaths
        check_deaths(what, deaths, *kinds)
        stage.start()
        etcd.wait_settled()

    with etcd.writer() as writer, ecs.Witness(etcd):
        writer.wait_writes()
        stage.steward.kill()
        yield run
        writer.wait_writes()
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s")
    etcd.check_same(writer)
    etcd.check_claims()


def test_scale_up_survives_kills(etcd, dying):
    etcd.patch(size=3)
    dying("1 -> 3", lambda o: ecs.settled(o, 3), "create", "etcd", "guard", "status")


def test_member_replacement_survives_kills(etcd, dying):
    victim = etcd.followers()[0]
    etcd.empty(victim)
    dying("a member without data", lambda o: ecs.settled(o, 3) and victim not in etcd.names(),
          "create", "delete", "etcd", "guard", "status")


def test_upgrade_survives_kills(etcd, dying):
    members = etcd.names()
    etcd.patch(version=ecs.version("3.5"))
    dying("3.4 -> 3.5", lambda o: ecs.settled(o, 3, ecs.version("3.5")), "create", "delete",
          "etcd", "status")
    assert etcd.names() == members


def test_defragmentation_survives_kills(etcd, dying):
    """Each member once, and the members stay: what a dead steward had begun is recognised."""
    members = etcd.names()
    etcd.annotate(ecs.DEFRAGMENT, "now")
    dying("defragmentation", lambda o: ecs.settled(o, 3) and ecs.defragmented(o, "now"),
          "etcd", "status")
    found = etcd.status()["defragmentation"]
    assert {m["name"] for m in found["members"]} == etcd.names() == members, found
    assert all("dbSizeAfter" in m for m in found["members"]), found


def test_forced_new_cluster_survives_kills(etcd, stage):
    """Two of three have lost their data: the complete recovery with the third one."""
    etcd.patch(size=3)
    etcd.wait_settled(3)
    with etcd.writer(prefix="before/") as writer:
        writer.wait_writes(50)
    survivor, *lost = etcd.followers() + [etcd.leader()]
    etcd.wait_has_all(survivor)
    for name in lost:
        etcd.empty(name)
    etcd.wait_condition("QuorumLost", "True", seconds=90)
    stage.steward.kill()
    etcd.annotate(ecs.FORCE, survivor)
    deaths = faults.Dying(stage).until(lambda: ecs.settled(etcd.get(), 3)).deaths
    check_deaths("a forced new cluster", deaths, "annotation", "create", "delete", "etcd", "guard",
                 "status")
    stage.start()
    etcd.wait_settled(3)
    assert survivor in etcd.names() and not set(lost) & etcd.names()
    assert ecs.FORCE not in etcd.get()["metadata"].get("annotations", {})
    with etcd.writer(prefix="after/") as more:
        more.wait_writes(20)
    etcd.check_same(writer, more)
    etcd.check_claims()


def test_scale_down_survives_kills(etcd, dying):
    etcd.patch(size=1)
    dying("3 -> 1", lambda o: ecs.settled(o, 1), "delete", "etcd", "status")
