# SPDX-License-Identifier: Apache-2.0
"""A steward with 10,000 objects in its caches, in a cgroup with the shipped limit of 128 MiB, under
the attacks on its memory that any client of the admission port can make."""

import contextlib
import os
import threading
import time

import pytest
from support import attack, cgroup, myweb, rest

pytestmark = pytest.mark.thorough("10,000 objects are made first")

OBJECTS = 10000
LIMIT = 128 << 20


@pytest.fixture(scope="module")
def objects(installed):
    """10,000 MyWebs, which no steward reconciles."""
    name = f"many-{os.getpid()}"
    installed.create_namespace(name)
    path = f"/apis/operator.k8s-summit.org/v1/namespaces/{name}/mywebs"
    failed = []

    def make(first):
        for number in range(first, OBJECTS, 4):
            status, _ = installed.api.call("POST", path, myweb.manifest(f"web-{number}", name))
            if status != 201:
                failed.append(status)
    threads = [threading.Thread(target=make, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[:5]
    yield name
    # The namespace controller would take minutes, and slow down the tests that follow.
    deadline = time.monotonic() + 300
    while installed.api.call("GET", path + "?limit=1")[1]["items"]:
        assert time.monotonic() < deadline
        with contextlib.suppress(*rest.GONE):  # the server ends a request that takes a minute
            installed.api.call("DELETE", path)
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
