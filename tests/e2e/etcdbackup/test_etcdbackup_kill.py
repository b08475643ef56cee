# SPDX-License-Identifier: Apache-2.0
"""steward is killed after every single call, to the API server, to etcd and to the store, during a
multipart backup; the next process leaves no incomplete object or upload."""

import hashlib

import pytest
from support import etcd, faults, s3double, wait
from support.etcdbackup import SECRET, Backup

CALLS_MAX = 40
ONE_KIND = ("--kinds", "EtcdBackup")  # a start then costs the API server a tenth


@pytest.fixture(scope="module")
def members():
    """One member, whose snapshot has more than one part."""
    if etcd.missing("3.5"):
        pytest.skip(etcd.missing("3.5"))
    with etcd.Cluster(size=1, version="3.5") as cluster:
        for i in range(10):
            cluster.ctl("put", f"k{i}", "v" * (100 << 10))
        for i in range(10):  # more data, in old revisions: a command line is limited in length
            for _ in range(9):
                cluster.ctl("put", f"k{i}", "w" * (100 << 10))
        yield cluster


@pytest.fixture
def store():
    """A store in memory, which lists unfinished uploads."""
    one = s3double.S3Double()
    yield one
    one.close()


class Dying(Backup):
    """An EtcdBackup to the store in memory."""

    def __init__(self, cluster, namespace, members, store, name):
        super().__init__(cluster, namespace, members, store, name)
        self.secret(SECRET, credentials=s3double.CREDENTIALS)

    def kept(self):
        """{key: bytes} of its own objects."""
        return {k: v for k, v in self.proxy.objects.items() if k.startswith(self.path)}


@pytest.mark.parametrize("policy", [{}, {"backupIntervalInSecond": 3600}], ids=["once", "interval"])
def test_kill_after_each_call_completes_the_backup(controller, run_steward, installed, namespace, members, store,
                                                   tmp_path, policy):
    log, calls = tmp_path / "faults.log", []
    assert controller.stop() == 0, controller.log_tail()
    for at in range(1, CALLS_MAX):
        backup = Dying(installed, namespace, members, store, f"at{at}").apply(policy)
        log.write_text("")
        one = run_steward(*ONE_KIND, ready=False, binary=faults.binary(),
                          env={"STEWARD_FAULT_AT": str(at), "STEWARD_FAULT_LOG": str(log)})
        wait.until("its end", lambda: not one.running() or
                   backup.status().get("phase") == "Succeeded", 60)
        survived = one.running()
        one.kill()
        if not survived:
            calls.append(log.read_text().split()[-1])
            last = run_steward(*ONE_KIND)
            backup.succeeded(60)
            assert last.stop() == 0, last.log_tail()
        [artifact] = backup.status()["artifacts"]
        data = backup.kept()[artifact["uri"].split("/", 3)[3]]
        assert artifact["verified"] and hashlib.sha256(data).hexdigest() == artifact["sha256"]
        assert policy or list(backup.kept()) == [backup.path]
        for whole in backup.kept().values():
            assert hashlib.sha256(whole[:-32]).digest() == whole[-32:]
        assert not store.uploads, f"left over behind call {at}: {calls[-1:]}"
        if survived:
            break
    print(f"{policy}: killed behind {len(calls)} calls: {' '.join(calls)}")
    assert {"status", "etcd", "store"} <= set(calls) and calls.count("store") >= 5
