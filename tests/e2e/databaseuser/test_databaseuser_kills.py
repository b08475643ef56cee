# SPDX-License-Identifier: Apache-2.0
"""steward is killed repeatedly while it creates, changes and drops accounts, on each engine."""

import random
import time

import pytest
from support import databaseuser as dbu
from support import steward as stw
from support import wait

FIRST = "first-Passw0rd-1"


class OnMariaDB:
    """How the test reads accounts on MariaDB."""

    target = "main"
    grants = dbu.SHOP
    fewer = [{"database": "shop", "privileges": ["SELECT"]}]

    def __init__(self, request):
        self.server = request.getfixturevalue("mariadb")

    def accounts(self, prefix):
        return {a.removesuffix("@%") for a in self.server.all_accounts() if a.startswith(prefix)}

    def marks(self, prefix):
        return {a.removesuffix("@%") for a in self.server.all_marks() if a.startswith(prefix)}

    def has_fewer(self, name, password):
        return self.server.login(name, password) and \
            self.server.rights(name) == [f"GRANT SELECT ON `shop`.* TO `{name}`@`%`"]


class OnPostgreSQL:
    """The same for PostgreSQL."""

    target = "pg"
    fewer = [{"database": "shop", "privileges": ["CONNECT"]},
             {"database": "shop", "schema": "public", "privileges": ["USAGE"]}]
    grants = [*fewer, {"database": "shop", "schema": "public", "table": "orders",
                       "privileges": ["SELECT", "INSERT"]}]

    def __init__(self, request):
        self.server = request.getfixturevalue("postgresql")

    def accounts(self, prefix):
        return {a for a in self.server.all_accounts() if a.startswith(prefix)}

    def marks(self, prefix):
        return {a for a in self.accounts(prefix) if "steward" in (self.server.comment(a) or "")}

    def has_fewer(self, name, password):
        return self.server.login(name, password) and \
            not self.server.login(name, password, "SELECT * FROM orders")


@pytest.fixture(scope="module", params=[OnMariaDB, OnPostgreSQL], ids=["mariadb", "postgresql"])
def engine(request):
    return request.param(request)


@pytest.fixture(scope="module")
def dbenv(installed, steward_binary, tmp_path_factory, engine):
    """A steward with this one server as its target.  No webhook is installed."""
    stw.uninstall_webhooks(installed)
    one = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"),
                          {engine.target: engine.server}, dbu.ONE_KIND)
    one.steward.start()
    yield one
    if one.steward.running():
        assert one.steward.stop() == 0, one.steward.log_tail()


def test_random_kills_leave_no_account_behind_or_missing(engine, dbenv, shop):
    """200 reconciles - creations, rotations, fewer rights, deletions - with SIGKILL at random
    moments: afterwards no account or right is left over, and no account is missing."""
    dice = random.Random(20260101)
    names = [f"k{n:02}" for n in range(50)]
    passwords = {n: FIRST for n in names}

    def users(some, grants):
        return [dbu.manifest(n, shop, target=engine.target, grants=grants) for n in some]
    dbenv.cluster.apply([dbu.secret(n, shop, FIRST) for n in names])

    def kill_soon():
        end = time.monotonic() + dice.uniform(0.0, 0.35)
        wait.until("its last moment", lambda: time.monotonic() >= end, every=0.002)
        dbenv.steward.kill()
        dbenv.steward.start(ready=False)

    def settle():
        wait.until("all to be ready", lambda: all(
            dbu.is_ready(u) for u in dbenv.cluster.list(dbu.KIND, shop)), 120, every=0.5)

    dbenv.cluster.apply(users(names, engine.grants))  # 50 creations
    for _ in range(5):
        kill_soon()
    settle()
    for name in names:  # 50 rotations
        passwords[name] = f"rotated-{name}-Passw0rd"
    dbenv.cluster.apply([dbu.secret(n, shop, passwords[n]) for n in names])
    for _ in range(5):
        kill_soon()
    dbenv.cluster.apply(users(names, engine.fewer))  # 50 reductions of rights
    for _ in range(5):
        kill_soon()
    deleted = dice.sample(names, 25)  # and recreated later: 50 more
    for again in range(2):
        for name in deleted:
            dbenv.cluster.delete(dbu.KIND, name, shop, wait_gone=False)
        for _ in range(3):
            kill_soon()
        wait.until("the deleted to go", lambda: not {
            u["metadata"]["name"] for u in dbenv.cluster.list(dbu.KIND, shop)} & set(deleted), 120)
        if again == 0:
            dbenv.cluster.apply(users(deleted, engine.fewer))
            kill_soon()
    settle()
    left = sorted(set(names) - set(deleted))
    assert engine.accounts("k") == engine.marks("k") == set(left)
    for name in left:
        assert engine.has_fewer(name, passwords[name])
        assert not engine.server.login(name, FIRST)
