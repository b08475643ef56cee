# SPDX-License-Identifier: Apache-2.0
"""A leader is suspended during a reconcile, another one leads meanwhile, and the first one is
resumed: it must not write anything from what it read before."""

import signal
import subprocess

import pytest
from support import databaseuser as dbu
from support import steward as stw
from support import wait

FIRST, SECOND, THIRD = (f"{n}-Passw0rd-1" for n in ("first", "second", "third"))
LEASE = "steward.steward.dev"


class OnMariaDB:
    """How to block a lookup of steward in MariaDB."""

    command = ["mariadb", "--no-defaults", "-N", "-B", "--unbuffered", "--user=root"]
    hold = "LOCK TABLES steward.accounts WRITE; SELECT 'held';\n"
    waits = ("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%' "
             "AND INFO LIKE '%steward%'")
    sessions = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER='{admin}' ORDER BY ID"
    fixture, target, grants = "mariadb", "main", dbu.SHOP

    def where(self, server):
        return [f"--socket={server.socket}"]


class OnPostgreSQL:
    """The same for PostgreSQL."""

    command = ["psql", "-X", "-A", "-t", "-q"]
    hold = "BEGIN; LOCK TABLE pg_shdescription IN ACCESS EXCLUSIVE MODE; SELECT 'held';\n"
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    sessions = "SELECT pid FROM pg_stat_activity WHERE usename = '{admin}' ORDER BY pid"
    fixture, target = "postgresql", "pg"
    grants = [{"database": "shop", "privileges": ["CONNECT"]}]

    def where(self, server):
        return ["-d", f"host={server.folder} port={server.port} user=root dbname=postgres"]


class Hold:
    """A session of the superuser that holds a lock."""

    def __init__(self, engine, server):
        self.client = subprocess.Popen([*engine.command, *engine.where(server)], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.client.stdin.write(engine.hold)
        self.client.stdin.flush()
        assert self.client.stdout.readline().strip() == "held"

    def release(self):
        """Ends the session, which releases the lock."""
        self.client.stdin.close()
        self.client.wait(20)


@pytest.fixture(scope="module", params=[OnMariaDB, OnPostgreSQL], ids=["mariadb", "postgresql"])
def engine(request):
    return request.param()


@pytest.fixture(scope="module")
def dbenv(installed, steward_binary, tmp_path_factory, request, engine):
    """Two replicas with the same target."""
    stw.uninstall_webhooks(installed)
    server = request.getfixturevalue(engine.fixture)
    folder = tmp_path_factory.mktemp("dbenv")
    one = dbu.Environment(installed, steward_binary, folder, {engine.target: server})
    one.server = server
    one.replicas = [stw.Steward(steward_binary, installed, installed.kubeconfig_steward, folder,
                                ["--config", one.config, "--leader-elect"], name=f"replica-{n}")
                    for n in (1, 2)]
    one.replicas[0].start()
    wait.until("the first to lead", lambda: leads(one.replicas[0]), 60, every=0.2)
    one.replicas[1].start()
    yield one
    for replica in one.replicas:
        if replica.running():
            replica.process.send_signal(signal.SIGCONT)
            replica.stop()


@pytest.fixture
def shop(dbenv, namespace):
    yield namespace
    dbenv.forget(namespace)


def leads(replica):
    """Whether it leads, by its own metrics."""
    return replica.metric("leader_election_master_status") == 1


def sessions(engine, dbenv):
    """The sessions of steward on the server."""
    from support import dbserver
    return [row[0] for row in dbenv.server.sql(engine.sessions.format(admin=dbserver.ADMIN))]


def test_resumed_leader_does_not_restore_an_old_password(dbenv, engine, shop):
    """The suspended leader has read the second password; while it sleeps the third one is set."""
    old, new = dbenv.replicas
    dbenv.create("payments", shop, FIRST, target=engine.target, grants=engine.grants)
    assert dbenv.server.logs_in("payments", FIRST)
    hold = Hold(engine, dbenv.server)
    dbenv.cluster.apply(dbu.secret("payments", shop, SECOND))
    wait.until("the leader's lookup to be held up",
               lambda: dbenv.server.sql(engine.waits)[0][0] != "0", 30, every=0.1)
    old.process.send_signal(signal.SIGSTOP)
    before = sessions(engine, dbenv)
    hold.release()
    dbenv.cluster.apply(dbu.secret("payments", shop, THIRD))
    wait.until("the other to lead", lambda: leads(new), 60, every=0.2)
    wait.until("the third password", lambda: dbenv.server.logs_in("payments", THIRD), 60)
    left = set(before) & set(sessions(engine, dbenv))
    old.process.send_signal(signal.SIGCONT)
    wait.until("the first to find out", lambda: not leads(old) and "no longer leading" in
               old.log_path.read_text("utf-8"), 60, every=0.1)
    wait.until("its workers to be idle", lambda: old.metric(
        "controller_runtime_active_workers", controller="databaseuser") == 0, 30, every=0.1)
    assert dbenv.server.logs_in("payments", THIRD)
    assert not dbenv.server.logs_in("payments", SECOND)
    dbenv.wait_ready("payments", shop)
    assert not left, "the new leader wrote while the old one's sessions were open"
