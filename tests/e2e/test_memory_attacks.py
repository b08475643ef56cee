# SPDX-License-Identifier: Apache-2.0
"""A steward with 10,000 objects in its caches, in a cgroup with the shipped limit of 128 MiB, under
the attacks on its memory that any client of the admission port can make."""

import contextlib
import os

import pytest
from support import attack, cgroup, databaseuser, etcd, etcdbackup, myweb, s3, stored, wait
from support import steward as stw

pytestmark = pytest.mark.thorough("10,000 objects are made first")

OBJECTS = 10000
LIMIT = 128 << 20


KIND = ("operator.k8s-summit.org", "mywebs")
PAUSED = {"steward.dev/paused": "true"}


def make_first(cluster, namespace, **spec):
    """A paused MyWeb with the status that says so: a steward has nothing to do for its copies."""
    cluster.create_namespace(namespace)
    cluster.create(myweb.manifest("web-0", namespace, PAUSED, **spec))
    cluster.wait_for(myweb.KIND, "web-0", namespace,
                     lambda web: web.get("status", {}).get("observedGeneration"))


@pytest.fixture(scope="module")
def objects(installed, steward_binary, tmp_path_factory):
    """10,000 MyWebs, and in four namespaces 700 with pages of 14 KiB each, all paused; and 30 of 890 KiB,
    which are not."""
    if "STEWARD_CLUSTER_ETCD_URL" not in installed.env:
        pytest.skip("the etcd of this cluster cannot be reached")
    stw.uninstall_webhooks(installed)
    many, large = f"many-{os.getpid()}", f"large-{os.getpid()}"
    fill = [f"fill-{os.getpid()}-{i}" for i in range(4)]
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("first")).start()
    make_first(installed, many)
    for namespace in fill:
        make_first(installed, namespace, pageContentHtml="p" * (14 << 10))
    assert one.stop() == 0, one.log_tail()
    stored.multiply(installed, *KIND, many, OBJECTS)
    for namespace in fill:
        stored.multiply(installed, *KIND, namespace, 700, batch=50)
    installed.create_namespace(large)
    installed.create(myweb.manifest("web-0", large, pageContentHtml="p" * (890 << 10)))
    stored.multiply(installed, *KIND, large, 30, batch=1)
    yield large
    for namespace in [many, large, *fill]:
        stored.remove_namespace(installed, *KIND, namespace)


def end(one):
    """Stops a steward that must have survived."""
    alive = one.running()
    if alive:
        assert one.stop() == 0, one.log_tail()
    assert alive, "the process was ended"


@pytest.fixture(params=["webhook", "all"])
def small(request, objects, run_steward, steward_binary, tmp_path):
    """(its admission port, the steward), inside the limit: one that reconciles nothing, and one that does."""
    assert objects
    with cgroup.limited(LIMIT) as group:
        one = run_steward(f"--role={request.param}",
                          binary=group.program(steward_binary, tmp_path / "steward-in-a-group"))
        yield attack.Port(one.webhook_port), one
        end(one)


@contextlib.contextmanager
def unfinished_backups(cluster, namespace, bucket):
    """Four, of 12 MiB, whose first part never ends."""
    proxy = s3.Proxy(bucket)
    proxy.mode, proxy.pause = "slow", 20
    with etcd.Cluster(size=1, version=sorted(etcd.versions())[-1]) as members:
        members.fill(12)
        backups = [etcdbackup.Backup(cluster, namespace, members, proxy, f"db{i}").apply() for i in range(4)]
        try:
            wait.until("an upload to begin", lambda: "POST" in [method for method, _ in proxy.log], 60)
            yield
        finally:
            for one in backups:
                cluster.delete(etcdbackup.KIND, one.name, namespace)
            proxy.close()


@pytest.fixture
def full(installed, objects, postgresql, bucket, namespace, steward_binary, tmp_path):
    """The same with DatabaseUsers whose marks have 46,000 rights each, and with EtcdBackups
    whose store does not go on."""
    assert objects
    users = [f"hoarder{i}" for i in range(4)]
    with cgroup.limited(LIMIT) as group:
        binary = group.program(steward_binary, tmp_path / "steward-in-a-group")
        dbenv = databaseuser.Environment(installed, binary, tmp_path, {"pg": postgresql}, ("--role=all",))
        dbenv.steward.start()
        postgresql.sql("CREATE DATABASE sizes")
        for user in users:
            dbenv.create(user, namespace, target="pg", grants=[{"database": "sizes", "privileges": ["CONNECT"]}])
        databaseuser.swell_marks(postgresql, users)
        for user in users:
            dbenv.poke(user, namespace)
        with unfinished_backups(installed, namespace, bucket):
            yield dbenv.steward
        end(dbenv.steward)
    stored.clear(installed, *databaseuser.RESOURCE, namespace)


@pytest.mark.parametrize("name", ["many_values", "without_end", "a_little_each"])
def test_attack_is_survived_and_other_clients_are_served(small, name):
    """During each attack; the caches are full meanwhile."""
    peer, one = small
    assert one.metric("steward_cache_objects", resource="mywebs") >= OBJECTS
    assert getattr(attack, name)(peer) == attack.ALL
    assert one.running()
    share = "steward_memory_share_bytes"
    assert one.metric(share, share="caches") > 0.9 * one.metric("steward_memory_share_limit_bytes", share="caches")


@pytest.mark.parametrize("name, much, count", [
    ("unfinished_hello", 15000, 2000), ("unfinished_hello", 1000000, 1000),
    ("unfinished_message", 19, 400), ("unfinished_message", 1000, 200)])
def test_unfinished_handshake_messages_are_survived(small, name, much, count):
    """In the handshake, and after it."""
    peer, one = small
    assert one.metric("steward_cache_objects", resource="mywebs") >= OBJECTS
    with attack.hold(count, getattr(attack, name)(peer.port, much)):
        assert attack.honest(peer, 10) == 10
    assert one.running()


def test_all_memory_shares_filled_at_once_are_survived(full):
    """Caches, connections and requests, large reconciles, answers of a database and a backup, at the same time."""
    peer, share = attack.Port(full.webhook_port), "steward_memory_share"

    def filled(name, part):
        peak, limit = (full.metric(f"{share}_{what}_bytes", share=name) for what in ("peak", "limit"))
        return peak >= part * limit
    with contextlib.ExitStack() as held:
        for port, count in (full.metrics_port, 30), (full.health_port, 120):
            held.enter_context(attack.hold(count, attack.silence(port)))
        held.enter_context(attack.hold(130, attack.unfinished_hello(full.webhook_port, 15000)))
        wait.until("the connections to be held", lambda: filled("admission", 0.25), 30)
        assert attack.without_end(peer) == attack.ALL
    # A request has three quarters of its part at most, a large reconcile here more than half of all.
    for name, part in {"caches": 0.9, "admission": 0.35, "reconciles": 0.5, "answers": 0.7,
                       "transfers": 0.9}.items():
        wait.until(f"the share {name} to be filled", lambda: not full.running() or filled(name, part), 120)
    for name, what in {"admission": "refused", "reconciles": "waits", "answers": "refused"}.items():
        assert full.metric(f"{share}_{what}_total", share=name) > 0, name
    assert attack.honest(peer, 10) == 10
    assert full.running()
