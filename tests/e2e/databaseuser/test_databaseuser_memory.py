# SPDX-License-Identifier: Apache-2.0
"""DatabaseUsers that would fill the memory, and a steward in a cgroup with the shipped limit of 128 MiB."""

import os

import pytest
from support import cgroup
from support.databaseuser import KIND, Environment, give_rights, manifest, secret, swell_marks
from support import steward as stw

LIMIT = 128 << 20
COUNT = 8
PASSWORD = "p" * (680 << 10)
TEMPLATE = {f"key{i}": "{{password}}" for i in range(20)}


@pytest.fixture
def small(installed, steward_binary, tmp_path, mariadb, postgresql):
    """A Environment whose steward, once it is started, is inside the limit."""
    try:
        group = cgroup.Memory(f"steward-users-{os.getpid()}", LIMIT)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    stw.uninstall_webhooks(installed)
    binary = tmp_path / "steward-in-a-group"
    binary.write_text(f'#!/bin/sh\necho $$ >{group.path}/cgroup.procs\nexec {steward_binary} "$@"\n')
    binary.chmod(0o755)
    one = Environment(installed, binary, tmp_path, {"main": mariadb, "pg": postgresql})
    yield one
    alive = one.steward.running()
    if alive:
        assert one.steward.stop() == 0, one.steward.log_tail()
    print(f"peak {group.peak() / (1 << 20):.1f} MiB")
    group.close()
    assert alive, "the process was ended"


def test_template_repeating_long_passwords_is_refused(small, namespace):
    """Each with the key that is too much; a small user beside them becomes ready."""
    names = [f"large{i}" for i in range(COUNT)]
    for name in names:
        small.cluster.create([secret(name, namespace, PASSWORD), manifest(
            name, namespace, grants=[], connectionSecret={"name": f"{name}-c", "template": TEMPLATE})])
    small.steward.start()
    small.create("modest", namespace, grants=[])
    for name in names:
        found = small.wait_condition(name, namespace, "ConnectionSecretSynced", "InvalidSpec", seconds=120)
        assert "spec.connectionSecret.template[key1]: with this key" in found["message"], found
    assert small.steward.metric("steward_memory_share_peak_bytes", share="reconciles") >= 12 << 20
    small.cluster.delete_all(KIND, namespace)


def test_accounts_with_many_rights_fail_without_others(small, namespace, postgresql):
    """All at once, each with the reason; what they keep is within the share, and a small user becomes ready, also
    with 42,000 rights that another client gave it."""
    postgresql.sql("CREATE DATABASE sizes")
    roles = [f"hoarder{i}" for i in range(COUNT)]
    connect = {"target": "pg", "grants": [{"database": "sizes", "privileges": ["CONNECT"]}]}
    small.steward.start()
    for role in roles:
        small.create(role, namespace, **connect)
    assert small.steward.stop() == 0
    swell_marks(postgresql, roles)
    small.steward.start()
    for role in roles:
        small.cluster.wait_for(KIND, role, namespace, lambda user: any(
            "no memory now for all of its rights" in c["message"] for c in user["status"]["conditions"]))
    small.create("modest", namespace, **connect)
    give_rights(postgresql, "sizes", ["modest"])
    small.poke("modest", namespace)
    share = "steward_memory_share"
    peak = small.steward.metric(f"{share}_peak_bytes", share="answers")
    assert 4 << 20 < peak <= small.steward.metric(f"{share}_limit_bytes", share="answers")
    small.cluster.delete_all(KIND, namespace)
