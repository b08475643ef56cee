# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups of malicious users, or of users that collide: endpoints inside the network, two
objects with one path, and what retention removes."""

import http.server
import threading

import pytest

from support import etcd, replicas, s3, wait
from support import steward as stw
from support.cluster import condition
from support.etcdbackup import Backup

KIND = "etcdbackups.etcd.database.coreos.com"
WORDS = "what-the-victim-says"


@pytest.fixture(scope="module")
def members():
    line = sorted(etcd.versions())[-1:]
    if not line:
        pytest.skip("no etcd is here: run 'scripts/bootstrap etcd'")
    with etcd.Cluster(size=1, version=line[0]) as cluster:
        cluster.ctl("put", "k", "v")
        yield cluster


@pytest.fixture
def proxy(bucket):
    proxy = s3.Proxy(bucket)
    yield proxy
    proxy.close()


@pytest.fixture
def backup(installed, namespace, members, proxy):
    return Backup(installed, namespace, members, proxy)


class Victim(http.server.ThreadingHTTPServer):
    """An HTTP server on loopback, which only steward can reach; records each connection."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.2", 0), _Answer)
        self.calls = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        """Its URL."""
        return f"http://127.0.0.2:{self.server_address[1]}"

    def get_request(self):
        """Records a connection."""
        self.calls.append("connection")
        return super().get_request()


class _Answer(http.server.BaseHTTPRequestHandler):
    def _answer(self):
        body = f"<Error><Code>{WORDS}</Code><Message>{WORDS}</Message></Error>".encode()
        self.send_response(403, WORDS)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = _answer

    def log_message(self, *_):
        """Prints nothing."""


@pytest.fixture
def victim():
    one = Victim()
    yield one
    one.shutdown()
    one.server_close()


def test_internal_store_endpoint_leaks_nothing(controller, backup, victim):
    """s3.endpoint names a server that only steward can reach."""
    spec = backup.manifest()["spec"]["s3"]
    backup.apply(s3={**spec, "endpoint": victim.url})
    found = backup.wait(lambda s: s.get("lastError"), 60)
    assert not victim.calls and WORDS not in str(found["status"])
    assert condition(found, "StoreReachable")["reason"] == "EndpointNotAllowed"


def test_internal_etcd_endpoint_leaks_nothing(controller, backup, victim):
    """The same for etcdEndpoints."""
    backup.apply(etcdEndpoints=[victim.url])
    found = backup.wait(lambda s: s.get("lastError"), 60)
    assert not victim.calls and WORDS not in str(found["status"])
    assert condition(found, "SourceReachable")["reason"] == "EndpointNotAllowed"


def test_retention_deletes_only_own_snapshots(controller, installed, backup, members, proxy):
    """Snapshots with the same prefix of another cluster ID, another object, or no owner stay."""
    backup.apply({"backupIntervalInSecond": 60, "maxBackups": 1})
    first = backup.succeeded()["status"]["artifacts"][0]["uri"]
    uid = installed.get(KIND, backup.name, backup.namespace)["metadata"]["uid"]
    assert first.endswith(f"_{uid}")
    base = f"{backup.path}_v000000000001_2020-01-01-00:00:0"
    foreign = [f"{base}1", f"{base}2_00000000000000aa_some-other-uid",
               f"{base}3_00000000000000aa_{uid}"]
    mine = first.rsplit("_", 2)[1]
    old = f"{base}4_{mine}_{uid}"
    for key in (*foreign, old):
        put(proxy, key)
    assert set(foreign) < set(backup.objects())
    wait.until("another backup", lambda: len(backup.status().get("artifacts", [])) > 1, 120)
    wait.until("the old one to go", lambda: old not in backup.objects(), 30)
    left = set(backup.objects())
    assert set(foreign) < left


def put(proxy, key):
    """Stores an object, as another client of the bucket."""
    import hashlib
    import subprocess
    import tempfile
    with tempfile.NamedTemporaryFile() as file:
        file.write(hashlib.sha256(key.encode()).digest())
        file.flush()
        subprocess.run(["curl", "-fsS", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                        "--path-as-is", "--aws-sigv4", "aws:amz:us-east-1:s3",
                        "--user", f"{s3.ACCESS_KEY}:{s3.SECRET_KEY}", "-T", file.name,
                        f"{proxy.url}/{s3.BUCKET}/{key.replace(':', '%3A')}"], check=True)


def test_younger_object_waits_for_the_path(controller, installed, backup, namespace, members, proxy):
    """Without admission: the younger one does nothing until the path is free."""
    backup.apply().succeeded()
    other = Backup(installed, namespace, members, proxy, name="db2")
    other.path = backup.path
    other.apply()
    found = installed.wait_condition(KIND, "db2", namespace, "Stalled", "PathInUse", seconds=30)
    assert '"db"' in found["message"]
    assert not other.status().get("artifacts")
    installed.delete(KIND, backup.name, namespace)
    other.succeeded(60)


def test_second_object_on_a_path_is_refused(installed, run_steward, backup, namespace, members,
                                            proxy):
    """Refused; the message has the name of the other object only if it is in the same namespace."""
    run_steward("--role=webhook", webhook=True)
    backup.apply()
    other = Backup(installed, namespace, members, proxy, name="db2")
    other.path = backup.path

    def refusal(where):
        reply = installed.apply({**other.manifest(), "metadata": {
            "name": "db2", "namespace": where}}, dry_run=True, check=False)
        return reply.stderr if reply.returncode else ""
    said = wait.until("the path to be known", lambda: refusal(namespace), 30)
    assert 'spec.s3.path: Forbidden: EtcdBackup "db" stores there' in said
    said = refusal("default")
    assert "an EtcdBackup of another namespace stores there" in said and namespace not in said
    stw.uninstall_webhooks(installed)


WAITING = 60
LARGE = 800 << 10


def test_waiting_backups_hold_no_memory_or_all_slots(controller, installed, namespace, members,
                                                     proxy, bucket):
    """Each has a Secret of 800 KiB, and a store that does not answer.  One of another namespace is made
    meanwhile."""
    before = replicas.memory_of(controller.process.pid)[0]
    victim = f"{namespace}-victim"
    installed.create({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "large", "namespace": namespace}, "stringData": {
            "credentials": s3.CREDENTIALS, "ca.crt": "x" * LARGE}})
    proxy.mode, proxy.pause = "slow", 60
    fine = s3.Proxy(bucket)
    installed.create_namespace(victim)
    try:
        hostile = [Backup(installed, namespace, members, proxy, f"slow{i}") for i in range(WAITING)]
        for one in hostile:
            manifest = one.manifest()
            manifest["spec"]["s3"]["awsSecret"] = "large"
            installed.create(manifest)
        for one in hostile:
            one.wait(lambda s: s.get("phase") == "Running", 60)
        assert sum("waits for others" in condition(one.wait(bool), "Ready")["message"]
                   for one in hostile) == WAITING - 1
        Backup(installed, victim, members, fine).apply().succeeded(30)
        assert replicas.memory_of(controller.process.pid)[0] - before < WAITING * LARGE / 3
    finally:
        fine.close()
        for one in hostile:
            installed.delete(KIND, one.name, namespace)
        installed.delete_namespace(victim)


@pytest.mark.thorough("a minute passes until a transfer is too slow")
def test_slow_transfers_of_others_end_for_a_waiting_one(controller, installed, namespace, proxy, bucket):
    """Two namespaces have all places, and a store that takes 32 KiB a second: never slow enough for the
    deadlines of a request."""
    assert controller.running()
    spaces = [f"{namespace}-slow{i}" for i in range(2)]
    proxy.mode, proxy.pause = "slow", 20
    fine = s3.Proxy(bucket)
    with etcd.Cluster(size=1, version=sorted(etcd.versions())[-1]) as large:
        large.fill(12)
        try:
            for space in spaces:
                installed.create_namespace(space)
                Backup(installed, space, large, proxy).apply()
            for space in spaces:
                Backup(installed, space, large, proxy).wait(lambda s: s.get("phase") == "Running")
            wait.until("both uploads to begin", lambda: sum(call[0] == "POST" for call in proxy.log) == 2, 30)
            honest = Backup(installed, namespace, large, fine).apply()
            waits = honest.wait(lambda s: s.get("phase") == "Running")
            told = condition(waits, "Ready")["message"]
            assert "waits for others: at most 1 of a namespace, and 2 of all" in told
            honest.succeeded(150)
            ended = [Backup(installed, space, large, proxy).status() for space in spaces]
            assert "TooSlow" in [status.get("Reason") for status in ended], ended
        finally:
            fine.close()
            for space in spaces:
                installed.delete(KIND, "db", space)
                installed.delete_namespace(space)
