# SPDX-License-Identifier: Apache-2.0
"""The volumes of a real EtcdCluster are full: etcd exits, steward reports why and changes nothing,
and with space again the cluster recovers, with all acknowledged writes."""

import contextlib
import os
import pathlib
import subprocess
import threading

import pytest
from support import etcdcluster as ecs
from support import gateway, wait
from support.cluster import condition

pytestmark = pytest.mark.node

SPACE = "200m"  # two files of 64 MiB for etcd's log, and some for its database
RECOVERY_SECONDS = 420  # the kubelet waits up to 300 s before it starts an ended container again


def within_node(cluster):
    """(command prefix that enters the node's mount namespace, root of its files for this test)"""
    home = pathlib.Path(cluster.audit_log).parent
    pid = (home / "run" / "containerd.pid").read_text().split()[0]
    return ["nsenter", f"--mount=/proc/{pid}/ns/mnt", "--"], f"/proc/{pid}/root"


def volume(name, number, folder):
    """A PersistentVolume for `folder`."""
    return {"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": f"{name}-{number}"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                     "storageClassName": name, "hostPath": {"path": str(folder)},
                     "persistentVolumeReclaimPolicy": "Retain"}}


@pytest.fixture(scope="module")
def small(stage, tmp_path_factory):
    """(name of a StorageClass with three small volumes, root of their files for this test)"""
    name = f"small-{os.getpid()}"
    within, root = within_node(stage.cluster)
    with contextlib.ExitStack() as undo:
        for number in range(3):
            folder = tmp_path_factory.mktemp("small")
            subprocess.run([*within, "mount", "-t", "tmpfs", "-o", f"size={SPACE},mode=0777", name,
                            folder], check=True)
            undo.callback(subprocess.run, [*within, "umount", "-l", folder], check=True)
            stage.cluster.apply(volume(name, number, folder))
            undo.callback(stage.cluster.kubectl, "delete", "pv", f"{name}-{number}", "--wait=false")
        yield name, root


@pytest.fixture(scope="module")
def etcd(stage, small):
    """Three members on these volumes."""
    one = stage.etcd()
    one.apply(size=3, version=ecs.version("3.5"), failover={"unhealthySeconds": 300},
              storage={"size": "1Gi", "storageClassName": small[0]})
    one.wait_settled(3)
    yield one
    one.delete()


def fill(files):
    """Takes all the space that there is."""
    for file in files:
        with contextlib.suppress(OSError), open(file, "ab", buffering=0) as out:
            while True:
                out.write(b"\0" * 65536)


@contextlib.contextmanager
def full(etcd, root, *members):
    """Fills the volumes of these members, and keeps them full: etcd frees some space at its start,
    when it removes the file that it had prepared for its log."""
    files = [pathlib.Path(f"{root}{etcd.folder(member)}/filler") for member in members]
    over = threading.Event()

    def keep():
        while not over.is_set():
            fill(files)
            over.wait(0.05)
    keeper = threading.Thread(target=keep)
    try:
        fill(files)
        keeper.start()
        yield
    finally:
        over.set()
        if keeper.is_alive():
            keeper.join()
        for file in files:
            file.unlink(missing_ok=True)


def write_until_ended(etcd, number):
    """Writes large values until `number` members have exited for lack of space."""
    client = etcd.client()

    def ended():
        with contextlib.suppress(OSError, gateway.Refused):
            client.put("big/one", os.urandom(200000).hex())
        ready = [condition(pod, "ContainersReady").get("status") for pod in etcd.pods().values()]
        return ready.count("True") <= len(ready) - number
    wait.until(f"{number} members to end", ended, 60)


def says_why(obj):
    """Whether the condition Degraded reports a full volume."""
    return "its volume is full" in condition(obj, "Degraded").get("message", "")


def test_full_volume_of_one_member_is_reported(etcd, small):
    uids = etcd.uids()
    with etcd.writer() as writer:
        writer.wait_writes(20)
        with full(etcd, small[1], etcd.leader()):
            write_until_ended(etcd, 1)
            etcd.wait(says_why, "it to say that a volume is full", 60)
            assert condition(etcd.get(), "Available")["status"] == "True"
            writer.wait_writes(20)
        etcd.wait_settled(3, RECOVERY_SECONDS)
        writer.wait_writes()
    assert etcd.uids() == uids
    etcd.check_same(writer)


def test_full_volumes_of_all_members_change_nothing(etcd, small):
    uids, members = etcd.uids(), etcd.names()
    with etcd.writer(prefix="all/") as writer:
        writer.wait_writes(20)
        with full(etcd, small[1], *members):
            write_until_ended(etcd, 2)
            etcd.wait_condition("QuorumLost", "True", seconds=90)
            etcd.wait(says_why, "it to say that a volume is full", 30)
            assert etcd.uids() == uids
        etcd.wait_settled(3, RECOVERY_SECONDS)
        writer.wait_writes()
    assert etcd.uids() == uids and etcd.names() == members
    etcd.check_same(writer)
