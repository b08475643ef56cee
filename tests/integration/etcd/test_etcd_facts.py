# SPDX-License-Identifier: Apache-2.0
"""The behaviour of etcd that EtcdCluster relies on, checked with real members of each version: a
release that differs must fail here before it damages user data."""

import pytest

from support import etcd, gateway, net, wait

pytestmark = pytest.mark.every_version("the subject is what each version does")


def patiently(ask, seconds=15):
    """Repeats a change, which the strict check refuses until all voters are connected for 5 s."""
    def accepted():
        code, answer = ask()
        assert code == 200 or "unhealthy cluster" in str(answer) or "in sync" in str(answer), answer
        return (code, answer) if code == 200 else None
    return wait.until("the change to be accepted", accepted, seconds)[1]


def alone(member):
    """Sets the flags that the pod's annotations give a member once it has been seen up."""
    member.state, member.initial = "existing", f"{member.name}={member.peer_url}"


# --- the guard against starting empty (I6)

def test_existing_member_without_data_exits(version):
    """With `existing` and no other member in the list it exits at once, on each start."""
    with etcd.Cluster(3, version) as cluster:
        member = cluster.followers()[0]
        member.stop()
        member.wipe()
        alone(member)
        for _ in range(2):
            member.start()
            assert member.ended(10) == 1
            assert "could not retrieve cluster information" in member.log_text()
        assert not (member.data / "member" / "wal").exists()


def test_only_member_without_data_exits(version):
    """A seed without its data would otherwise be a new, empty cluster under the old name."""
    with etcd.Cluster(1, version) as cluster:
        member = cluster.members[0]
        member.stop()
        member.wipe()
        alone(member)
        assert member.start().ended(10) == 1


def test_member_with_data_ignores_bootstrap_flags(version):
    """With data these flags are ignored."""
    with etcd.Cluster(3, version) as cluster:
        for member in cluster.members:
            member.stop()
            alone(member)
        for member in cluster.members:
            member.start()
        for member in cluster.members:
            member.wait_healthy()
        assert len(cluster.member_list()) == 3


def test_empty_member_with_full_list_breaks_consistency(version):
    """Why the guard is needed: it takes its old identity, but has lost its raft log and votes."""
    with etcd.Cluster(3, version) as cluster:
        member = cluster.followers()[0]
        member.stop()
        member.wipe()
        member.state = "existing"
        assert member.start().ended(20) == 2
        assert "Was the raft log corrupted, truncated, or lost?" in member.log_text()


def test_known_member_cannot_bootstrap_again(version):
    """With `new` and no data, while the others run."""
    with etcd.Cluster(3, version) as cluster:
        member = cluster.followers()[0]
        member.stop()
        member.wipe()
        assert member.start().ended(20) == 1
        assert "has already been bootstrapped" in member.log_text()


# --- leaving

def test_removed_member_exits_and_stays_down(version):
    """With status 0.  Restarted with its data it exits with 0, too; 3.5 and later exit with 1 if
    another member reports at once that it was removed."""
    with etcd.Cluster(3, version) as cluster:
        leader, member = cluster.leader(), cluster.followers()[0]
        identity = member.id
        patiently(lambda: leader.post("/v3/cluster/member/remove", {"ID": identity}))
        assert member.ended() == 0
        assert member.start().ended() in ((0,) if version == "3.4" else (0, 1))


def test_dead_voter_must_be_removed_before_adding(version):
    """A dead voter blocks additions; once it is removed, a learner is accepted."""
    with etcd.Cluster(3, version) as cluster:
        leader, dead = cluster.leader(), cluster.followers()[0]
        identity, body = dead.id, {"peerURLs": ["http://localhost:1"], "isLearner": True}
        dead.kill()

        def add():
            return leader.post("/v3/cluster/member/add", body)
        wait.stays("refused", lambda: "unhealthy cluster" in str(add()[1]), seconds=7, every=0.5)
        assert leader.post("/v3/cluster/member/remove", {"ID": identity})[0] == 200
        assert add()[0] == 200


# --- force-new-cluster

def test_force_new_cluster_keeps_the_identities(version):
    """Cluster ID, member ID and data stay.  All acknowledged writes survive, since the survivor is
    stopped by SIGTERM.  Afterwards it runs without the flag, and the cluster grows again."""
    with etcd.Cluster(3, version) as cluster:
        survivor = cluster.leader()
        cluster.ctl("put", "key", "value")
        before = survivor.status()["header"]
        for member in cluster.followers():
            member.kill()
        survivor.stop()
        alone(survivor)
        survivor.start("--force-new-cluster").wait_healthy()
        survivor.stop()
        survivor.start().wait_healthy()
        after = survivor.status()["header"]
        assert (after["cluster_id"], after["member_id"]) == (before["cluster_id"],
                                                            before["member_id"])
        assert [m["name"] for m in cluster.member_list()] == [survivor.name]
        assert cluster.ctl("get", "key").split() == ["key", "value"]
        grow(cluster, survivor)


def forced_after_kills(cluster, version):
    """(a survivor of killed members, started with --force-new-cluster; the last revision)"""
    survivor, client = cluster.followers()[0], gateway.Gateway("localhost",
                                                               cluster.leader().client_port)
    # The leader proposes the cluster's version once all members have reported theirs.  That entry
    # after those of this test would note in the log that they were committed.
    wait.until("the cluster's version", lambda: _cluster_version(survivor) == f"{version}.0")
    for number in range(20):
        last = client.put(f"key{number}", "value")
    wait.until("the survivor to have all", lambda: revision(survivor) == last)
    assert survivor.post("/v3/maintenance/hash")[0] == 200  # writes the database first
    for member in [survivor, *cluster.members]:
        member.kill()
    alone(survivor)
    survivor.start("--snapshot-count=5000", "--force-new-cluster", "--snapshot-count=1")
    survivor.wait_healthy()
    return survivor, last


def discards(survivor):
    """Whether it discarded entries of its log."""
    return "discarding uncommitted WAL entries" in survivor.log_text()


def test_snapshot_carries_entries_of_a_killed_survivor(version):
    """A killed survivor has not noted that its last entries were committed, and --force-new-cluster
    discards them from its log, but not from its database.  With a snapshot, at which the log for
    joiners begins, they get the database.  3.5.35, and 3.6 and later, keep the entries that the
    database has.

    An election between the last write and the kill, which happens on a busy machine, also notes
    what was committed.  Then nothing is discarded, and the test is repeated."""
    for left in reversed(range(5)):
        with etcd.Cluster(3, version) as cluster:
            survivor, last = forced_after_kills(cluster, version)
            if version == "3.4" and left and not discards(survivor):
                continue
            assert discards(survivor) == (version == "3.4")
            check_joiner_has_all(cluster, survivor, last)
            return


def check_joiner_has_all(cluster, survivor, last):
    """A member that joins a survivor gets all that the survivor stores."""
    survivor.stop()
    survivor.start().wait_healthy()
    joiner = grow(cluster, survivor)
    stored, joined = (gateway.Gateway("localhost", member.client_port).contents(last)
                      for member in (survivor, joiner))
    assert set(stored) == {f"key{number}" for number in range(20)}
    assert joined == stored


def grow(cluster, survivor):
    """Adds and promotes a learner."""
    joiner = cluster.add()
    learner, = [m["ID"] for m in cluster.member_list() if m.get("isLearner")]
    patiently(lambda: survivor.post("/v3/cluster/member/promote", {"ID": learner}))
    return joiner.wait_healthy()


def revision(member):
    """The revision of a member."""
    return int(member.status()["header"]["revision"])


# --- probes

def test_health_endpoint_of_a_learner_is_good(version):
    """So readiness alone does not keep clients from using it."""
    with etcd.Cluster(1, version) as cluster:
        learner = cluster.add()
        wait.until("the learner", learner.status)
        wait.until("its health", lambda: net.http_get(learner.client_url + "/health")[0] == 200)
        code, answer = learner.post("/v3/kv/range", {"key": "AA=="})
        # 3.6 changed its gRPC code from Unavailable to FailedPrecondition.
        assert code == (503 if version in ("3.4", "3.5") else 400)
        assert "not supported for learner" in str(answer)


def test_health_endpoint_can_exclude_nospace(version):
    """The probe must exclude the alarm, else all members would become unready."""
    metrics = net.free_port()
    with etcd.Cluster(1, version, tls=True, arguments=[
            "--quota-backend-bytes", str(300 << 10),
            f"--listen-metrics-urls=http://127.0.0.1:{metrics}"]) as cluster:
        body = {"key": "YQ==", "value": "eHh4" * 12000}
        wait.until("the database to be full",
                   lambda: cluster.members[0].post("/v3/kv/put", body)[0] != 200)
        health = f"http://127.0.0.1:{metrics}/health"
        assert net.http_get(health)[0] == 503
        assert net.http_get(health + "?exclude=NOSPACE")[0] == 200


def test_health_endpoint_fails_without_quorum(version):
    """Unready, but alive in versions with /livez."""
    with etcd.Cluster(3, version) as cluster:
        alive = cluster.members[0]
        for member in cluster.members[1:]:
            member.kill()
        wait.until("the quorum to be missed",
                   lambda: net.http_get(alive.client_url + "/health", 20)[0] == 503)
        livez = net.http_get(alive.client_url + "/livez")[0]
        assert livez == (404 if version == "3.4" else 200)


# --- versions

def test_newer_minor_joins_and_older_does_not():
    """3.5 joins 3.4 as a learner; the cluster's version follows the last member; no downgrade."""
    with etcd.Cluster(1, "3.4") as cluster:
        seed = cluster.members[0]
        newer = cluster.add(version="3.5")
        learner, = [m["ID"] for m in cluster.member_list() if m.get("isLearner")]
        patiently(lambda: seed.post("/v3/cluster/member/promote", {"ID": learner}))
        newer.wait_healthy()
        assert _cluster_version(newer) == "3.4.0"
        seed.stop()
        seed.start(version="3.5").wait_healthy()
        wait.until("the cluster's version to rise", lambda: _cluster_version(seed) == "3.5.0")
        seed.stop()
        assert seed.start(version="3.4").ended() == 1
        assert "invalid downgrade" in seed.log_text()
        seed.start(version="3.5").wait_healthy()
        older = cluster.new_member(version="3.4")
        body = {"peerURLs": [older.peer_url], "isLearner": True}
        patiently(lambda: seed.post("/v3/cluster/member/add", body))
        cluster.joins(older)
        assert older.start().ended() == 1
        assert "incompatible with current running cluster" in older.log_text()


def test_health_probes_of_34_remain_in_the_log():
    """The log contains them until a snapshot replaces it."""
    with etcd.Cluster(1, "3.4") as cluster:
        one = cluster.members[0]
        assert net.http_get(one.client_url + "/health")[0] == 200
        one.stop()
        one.start(version="3.5").wait_healthy()
        one.stop()
        assert one.start(version="3.6").ended() == 2
        assert "detected disallowed v2 WAL" in one.log_text()
        one.start("--snapshot-count=1", version="3.5").wait_healthy()
        wait.until("a snapshot of raft", lambda: any((one.data / "member" / "snap").glob("*.snap")))
        one.stop()
        one.start(version="3.6").wait_healthy()


@pytest.mark.parametrize("line, older", [
    pytest.param("3.6", "3.5", marks=pytest.mark.thorough("3.7 shows the same")), ("3.7", "3.6")])
def test_downgrade_goes_member_by_member(line, older):
    """After etcd has prepared its data, members go back one by one; older ones cannot join."""
    def downgrade(**what):
        return cluster.members[0].post("/v3/maintenance/downgrade", what)

    def stored():
        return {m.status().get("storageVersion") for m in cluster.members}

    with etcd.Cluster(3, line) as cluster:
        first = cluster.members[0]
        wait.until("data of the line", lambda: stored() == {f"{line}.0"}, 60)
        first.stop()
        assert first.start(version=older).ended() != 0
        first.start(version=line).wait_healthy()
        assert "invalid downgrade target" in downgrade(action="ENABLE", version="3.4.0")[1]["message"]
        assert downgrade(action="ENABLE", version=f"{older}.0")[0] == 200
        code, said = downgrade(action="ENABLE", version=f"{older}.0")
        assert code == 400 and "downgrade job in progress" in said["message"]
        wait.until("data of the older line", lambda: stored() == {f"{older}.0"})
        assert first.status()["downgradeInfo"] == {"enabled": True, "targetVersion": f"{older}.0"}
        joiner = cluster.new_member(version=older)
        body = {"peerURLs": [joiner.peer_url], "isLearner": True}
        patiently(lambda: first.post("/v3/cluster/member/add", body))
        cluster.joins(joiner)
        assert joiner.start().ended() == 1
        assert "incompatible with current running cluster" in joiner.log_text()
        joiner_id, = [m["ID"] for m in cluster.member_list() if m.get("isLearner")]
        patiently(lambda: first.post("/v3/cluster/member/remove", {"ID": joiner_id}))
        for member in cluster.members:
            if member is not joiner:
                member.stop()
                member.start(version=older).wait_healthy()
        wait.until("the end of the downgrade", lambda: not any(
            m.status().get("downgradeInfo") for m in cluster.members if m is not joiner))


def _cluster_version(member):
    import json
    return json.loads(net.http_get(member.client_url + "/version")[1])["etcdcluster"]
