# SPDX-License-Identifier: Apache-2.0
"""A steward with 10,000 objects in its caches, in a cgroup with the shipped limit of 128 MiB, under
the attacks on its memory that any client of the admission port can make."""

import os

import pytest
from support import attack, cgroup, myweb, stored, wait

pytestmark = pytest.mark.thorough("10,000 objects are made first")

OBJECTS = 10000
LIMIT = 128 << 20


@pytest.fixture(scope="module")
def objects(installed):
    """10,000 MyWebs, which no steward reconciles."""
    if "STEWARD_CLUSTER_ETCD_URL" not in installed.env:
        pytest.skip("the etcd of this cluster cannot be reached")
    name, kind = f"many-{os.getpid()}", ("operator.k8s-summit.org", "mywebs")
    installed.create_namespace(name)
    installed.apply(myweb.manifest("web-0", name))
    stored.copy(installed, *kind, name, "web-0", [f"web-{number}" for number in range(1, OBJECTS)])
    path = f"/apis/{kind[0]}/v1/namespaces/{name}/mywebs?limit=1"
    wait.until("the API server to have all", lambda: OBJECTS - 1 == installed.api.do("GET", path)[
        "metadata"].get("remainingItemCount"))
    yield name
    # The namespace controller would take minutes, and slow down the tests that follow.
    stored.clear(installed, *kind, name)
    installed.delete_namespace(name)


@pytest.fixture
def small(objects, installed, run_steward, steward_binary, tmp_path):
    """(its admission port, the steward), inside the limit; it reconciles nothing."""
    assert objects
    try:
        group = cgroup.Memory(f"steward-test-{os.getpid()}", LIMIT)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    binary = tmp_path / "steward-in-a-group"
    binary.write_text(f'#!/bin/sh\necho $$ >{group.path}/cgroup.procs\nexec {steward_binary} "$@"\n')
    binary.chmod(0o755)
    one = run_steward("--role=webhook", binary=binary)
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
