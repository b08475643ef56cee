# SPDX-License-Identifier: Apache-2.0
"""Faults of a real EtcdCluster that only an administrator can resolve: corrupt data, a member of
another cluster, a member added by hand.  Steward changes nothing, and the commands in its messages
work when run literally."""

import os
import re
import shlex
import shutil
import subprocess

import pytest
from support import etcd as hosts
from support import etcdcluster as ecs
from support import gateway, net, wait
from support.cluster import condition

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def etcd(stage):
    """Three members, with a high limit for replacements and the shortest delay."""
    one = stage.etcd()
    one.apply(size=3, failover={"unhealthySeconds": 60, "maxPerHour": 10})
    one.wait_settled(3)
    return one


@pytest.fixture
def writes(etcd):
    """Writes acknowledged before the fault exist after it."""
    etcd.wait_settled(3)
    with etcd.writer() as one:
        one.wait_writes(20)
    yield one
    etcd.wait_settled(3, 180)
    assert one.check(etcd.served())
    with etcd.writer(prefix="after/") as more:
        more.wait_writes(20)
    etcd.check_same()
    etcd.check_claims()


def wait_stalled(etcd, reason, *words):
    """Until Stalled has this reason and these words in its message, which is returned."""
    def told(obj):
        found = condition(obj, "Stalled")
        return found.get("reason") == reason and all(w in found["message"] for w in words)
    obj = etcd.wait(told, f"Stalled to be True ({reason}, {words})", 40)
    assert condition(obj, "Ready")["status"] == "False"
    return condition(obj, "Stalled")["message"]


def check_untouched(etcd, stage, seconds=12):
    """Nothing is changed, although the spec asks for more members."""
    before, uids = ecs.changes(stage), etcd.uids()
    etcd.patch(size=5)
    wait.stays("nothing is touched", lambda: etcd.uids() == uids, seconds, 1)
    assert ecs.changes(stage) == before
    etcd.patch(size=3)


def commands(message, program):
    """The commands of this program in a message, as argument lists."""
    return [shlex.split(c)[1:] for c in re.findall(f"`({program} [^`]*)`", message)]


def ctl(etcd, *args):
    """The output of etcdctl in the leader's pod."""
    return etcd.cluster.kubectl("exec", "-n", etcd.namespace, etcd.leader(), "--", "etcdctl",
                                *args).stdout


def test_corrupt_alarm_stops_all_changes(etcd, stage, writes):
    """The alarm CORRUPT: etcd accepts no writes, and steward changes nothing until it is disarmed,
    even if the member that raised it was removed."""
    victim = etcd.followers()[0]
    number = int(etcd.members()[victim]["id"], 16)
    etcd.client().post("/v3/maintenance/alarm",
                       {"action": "ACTIVATE", "memberID": str(number), "alarm": "CORRUPT"})
    message = wait_stalled(etcd, "Corrupt", victim)
    etcd.wait_condition("AlarmActive", "True", "Corrupt")
    assert etcd.members()[victim]["alarms"] == ["CORRUPT"]
    check_untouched(etcd, stage)

    compare, remove, disarm = commands(message, "etcdctl")
    assert len(ctl(etcd, *compare).splitlines()) == 3
    ctl(etcd, *remove)
    wait_stalled(etcd, "Corrupt", f"{number:x} was removed")
    etcd.wait_condition("AlarmActive", "True", "Corrupt")
    check_untouched(etcd, stage)
    ctl(etcd, *disarm)
    etcd.wait_settled(3, 180)
    assert victim not in etcd.names()


def another_cluster(etcd, member, folder):
    """The data of a single-member cluster whose member has this name and this URL."""
    url = f"http://{member}.{etcd.name}.{etcd.namespace}.svc:2380"
    client, peer = (f"http://127.0.0.1:{net.free_port()}" for _ in range(2))
    with open(folder / "log", "wb") as log:
        one = subprocess.Popen(
            [hosts.program("3.4"), "--name", member, "--data-dir", str(folder / "data"),
             "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", url,
             "--initial-cluster", f"{member}={url}", "--initial-cluster-token", "another"],
            stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "ETCD_UNSUPPORTED_ARCH": ""})
    try:
        webhook = gateway.Gateway("127.0.0.1", int(client.rsplit(":", 1)[1]))
        wait.until("the other cluster", lambda: webhook.put("theirs", "1"), 20)
    finally:
        one.terminate()
        one.wait(20)
    return folder / "data"


def replace_data(etcd, member, data):
    """Replaces the data on its volume and kills its process."""
    target = etcd.folder(member) / "data"
    owner = target.stat()
    pid = etcd.pid(member)
    subprocess.run(["kill", "-STOP", str(pid)], check=True)
    shutil.rmtree(target)
    shutil.copytree(data, target)
    for path in [target, *target.rglob("*")]:
        os.chown(path, owner.st_uid, owner.st_gid)
    subprocess.run(["kill", "-KILL", str(pid)], check=True)


def theirs(etcd):
    """Whether a client of the Service ever reaches the other cluster, in 60 attempts."""
    return any(etcd.client().get("theirs") for _ in range(60))


def test_member_of_another_cluster_stalls(etcd, stage, writes, tmp_path):
    """Mixed-up volumes: a pod of the right name serves other data."""
    victim = etcd.followers()[0]
    replace_data(etcd, victim, another_cluster(etcd, victim, tmp_path))
    message = wait_stalled(etcd, "SplitBrain", victim)
    etcd.wait_condition("ClusterIDMismatch", "True", "SplitBrain")
    assert victim in etcd.status()["members"]["unready"]
    check_untouched(etcd, stage)
    wait.until("clients not to be led there", lambda: not theirs(etcd), 20)
    assert not theirs(etcd)

    for arguments in commands(message, "kubectl"):
        etcd.cluster.kubectl(*arguments)
    etcd.wait_settled(3, 180)
    assert victim not in etcd.names()
    etcd.wait_condition("ClusterIDMismatch", "False")


def test_manually_added_member_stops_changes(etcd, stage, writes):
    """Steward does not decide about it: it keeps members running, and changes nothing else."""
    added = wait.until("etcd to take it", lambda: etcd.client().post(
        "/v3/cluster/member/add", {"peerURLs": ["http://192.0.2.1:2380"], "isLearner": True}), 20)
    number = int(added["member"]["ID"])
    message = wait_stalled(etcd, "ForeignMember", f"{number:x}")
    check_untouched(etcd, stage)
    victim, before = etcd.followers()[0], etcd.uids()
    etcd.delete_pods(victim)
    etcd.wait_other_pod(victim, before)
    wait_stalled(etcd, "ForeignMember")

    for arguments in commands(message, "etcdctl"):
        ctl(etcd, *arguments)
    etcd.wait_settled(3)
    assert set(etcd.uids()) == set(before)
