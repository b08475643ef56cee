# SPDX-License-Identifier: Apache-2.0
"""A steward with 10,000 objects in its caches, in a cgroup with the shipped limit of 128 MiB, under
the attacks on its memory that any client of the admission port can make."""

import os

import pytest
from support import attack, cgroup, myweb, stored, wait
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


def make_copies(cluster, namespace, count, batch=stored.BATCH):
    """`count` MyWebs as the first one."""
    stored.copy(cluster, *KIND, namespace, "web-0", [f"web-{i}" for i in range(1, count)], batch)
    path = f"/apis/{KIND[0]}/v1/namespaces/{namespace}/mywebs?limit=1"
    wait.until("the API server to have all", lambda: count - 1 == cluster.api.do("GET", path)[
        "metadata"].get("remainingItemCount"))


def remove(cluster, namespace):
    """The namespace controller would take minutes, and slow down the tests that follow."""
    stored.clear(cluster, *KIND, namespace)
    cluster.delete_namespace(namespace)


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
    make_copies(installed, many, OBJECTS)
    for namespace in fill:
        make_copies(installed, namespace, 700, batch=50)
    installed.create_namespace(large)
    installed.create(myweb.manifest("web-0", large, pageContentHtml="p" * (890 << 10)))
    make_copies(installed, large, 30, batch=1)
    yield large
    for namespace in [many, large, *fill]:
        remove(installed, namespace)


@pytest.fixture(params=["webhook", "all"])
def small(request, objects, run_steward, steward_binary, tmp_path):
    """(its admission port, the steward), inside the limit: one that reconciles nothing, and one that does."""
    assert objects
    try:
        group = cgroup.Memory(f"steward-test-{os.getpid()}", LIMIT)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    binary = tmp_path / "steward-in-a-group"
    binary.write_text(f'#!/bin/sh\necho $$ >{group.path}/cgroup.procs\nexec {steward_binary} "$@"\n')
    binary.chmod(0o755)
    one = run_steward(f"--role={request.param}", binary=binary)
    yield attack.Port(one.webhook_port), one
    alive = one.running()
    if alive:
        assert one.stop() == 0, one.log_tail()
    print(f"peak {group.peak() / (1 << 20):.1f} MiB")
    group.close()
    assert alive, "the process was ended"


@pytest.mark.parametrize("name", ["many_values", "without_end", "a_little_each"])
def test_it_survives_and_honest_clients_are_answered(small, name):
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
def test_it_survives_handshake_messages_without_their_end(small, name, much, count):
    """In the handshake, and after it."""
    peer, one = small
    assert one.metric("steward_cache_objects", resource="mywebs") >= OBJECTS
    with attack.hold(count, getattr(attack, name)(peer.port, much)):
        assert attack.honest(peer, 10) == 10
    assert one.running()
