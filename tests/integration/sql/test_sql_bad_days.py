# SPDX-License-Identifier: Apache-2.0
"""lib/sql under faults: killed between any two statements, and servers that are down,
silent, read-only, or have a wrong certificate."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time

import pytest

from support import dbserver, net, pause, wait
from support.sqlprobe import account, grant


class MariaState:
    """The state of an account on MariaDB."""

    def __init__(self, server):
        self.server = server
        server.sql("CREATE DATABASE IF NOT EXISTS app; CREATE TABLE IF NOT EXISTS app.t (i INT)")
        self.grants = [grant("app", "SELECT", "INSERT"), grant("app", "UPDATE", table="t"),
                       grant("*", "PROCESS")]
        self.less = [grant("app", "SELECT")]
        self.hosts = {"hosts": ["%", "10.%"]}

    def nothing(self, user):
        """Checks that no account, mark or right is left."""
        assert self.server.accounts(user) == [] and self.server.marks(user) == {}
        for table in ("db", "tables_priv"):
            assert self.server.sql(f"SELECT COUNT(*) FROM mysql.{table} WHERE User='{user}'") == [
                ["0"]]

    def rights(self, user):
        """The rights as the server lists them."""
        return self.server.grants(user)


class PgState:
    """The state of a role on PostgreSQL."""

    def __init__(self, server):
        self.server = server
        if not server.sql("SELECT 1 FROM pg_database WHERE datname = 'bad'"):
            server.sql("CREATE DATABASE bad")
            server.sql("CREATE SCHEMA s; CREATE TABLE s.t (i int)", "bad")
        self.grants = [grant("bad", "CONNECT"), grant("bad", "USAGE", schema="s"),
                       grant("bad", "SELECT", schema="s", table="*"),
                       grant("postgres", "CREATE", schema="public")]
        self.less = [grant("bad", "CONNECT"), grant("bad", "SELECT", schema="s", table="t")]
        self.hosts = {}

    def nothing(self, user):
        """Checks that the role does not exist; rights cannot exist without it."""
        assert not self.server.exists(user)

    def rights(self, user):
        """The rights of the role in ACLs."""
        text = f"SELECT relname, relacl FROM pg_class WHERE relacl::text LIKE '%{user}=%' UNION ALL " \
            f"SELECT nspname, nspacl FROM pg_namespace WHERE nspacl::text LIKE '%{user}=%' UNION ALL " \
            f"SELECT datname, datacl FROM pg_database WHERE datacl::text LIKE '%{user}=%' ORDER BY 1"
        acls = [row[0] + ":" + part for row in self.server.sql(text, "bad")
                for part in row[1].strip("{}").split(",") if part.startswith(f"{user}=")]
        return acls + [row[0] for row in self.server.sql(
            f"SELECT nspname FROM pg_namespace WHERE nspacl::text LIKE '%{user}=%'")]


@pytest.fixture
def state(server):
    """The state for the engine of `server`."""
    return PgState(server) if server.engine == "postgresql" else MariaState(server)


PHASES = ["create", "rotate", "shrink", "grow", "delete"]


def before(state, phase, user):
    """The account before the steps in which steward is killed, or None."""
    if phase == "create":
        return None
    grants = state.less if phase == "grow" else state.grants
    return account(user, "0ld-Pa55word", grants=grants, **state.hosts)


def after(state, phase, user):
    """The account as it must be in the end."""
    grants = state.less if phase == "shrink" else state.grants
    hosts = {} if phase == "shrink" else state.hosts
    return account(user, "n3w-Pa55word", grants=grants, **hosts)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("then", ["again", "delete"])
def test_kill_after_each_statement_is_completed(state, make_probe, user, phase, then):
    """SIGKILL after the n-th statement, for all n; the next run completes the work."""
    target = state.server.target("db")
    steady = make_probe(target)
    steady.sync(**after(state, "rotate", f"{user}r"))
    expected = None
    if phase != "delete":
        steady.sync(**after(state, phase, f"{user}e"))
        expected = [r.replace(f"{user}e", "U") for r in state.rights(f"{user}e")]
        steady.drop(**after(state, phase, f"{user}e"))
    killed = 0
    for number in range(1, 40):
        name = f"{user}k{number}"
        first, last = before(state, phase, name), after(state, phase, name)
        if first:
            steady.sync(**first)
        mortal = make_probe(target, die_after=number)
        report = mortal.ask("drop" if phase == "delete" else "sync", **last)
        killed += report is None
        if phase != "delete" and then == "again":
            steady.sync(**last)
            assert [r.replace(name, "U") for r in state.rights(name)] == expected
            assert state.server.logs_in(name, "n3w-Pa55word")
            assert not state.server.logs_in(name, "0ld-Pa55word")
            settled = steady.sync(**last)
            assert settled["statements"] <= 3 and settled["foreign"] == ""
            assert not settled["given"] and not settled["revoked"]
        steady.drop(**last)
        state.nothing(name)
        if report is not None:
            break
    assert killed >= 1 and report is not None and report["result"] == 0
    # The rights of another account are unchanged.
    assert steady.sync(**after(state, "rotate", f"{user}r"))["statements"] <= 3
    steady.drop(**after(state, "rotate", f"{user}r"))


def test_mariadb_kill_before_grant_is_completed(make_probe, make_mariadb, user):
    """The connection is lost in between; when the server is back, the account is completed."""
    maria = make_mariadb()
    target = maria.target("db")
    maria.sql("CREATE DATABASE app")
    make_probe(target).sync(**account("warm-up"))
    probe = make_probe(target, pause_after=3)  # mark, CREATE USER, mark; then GRANT
    probe.send("sync", **account(user, grants=[grant("app", "SELECT")]))
    wait.until("the probe to stop", lambda: pause.stopped(probe.process.pid))
    assert maria.accounts(user) == ["%"] and maria.grants(user) == []
    maria.kill()
    os.kill(probe.process.pid, signal.SIGCONT)
    report = probe.read()
    assert report["trouble"] == "CONNECT" and report["step"] == "GRANT" and report["created"]
    assert probe.ask("sync", **account(user))["trouble"] in ("CONNECT", "CIRCUIT_OPEN")
    maria.start()
    good = account(user, grants=[grant("app", "SELECT")])
    wait.until("the account", lambda: probe.ask("sync", **good)["result"] == 0)
    assert maria.grants(user) == [f"GRANT SELECT ON `app`.* TO `{user}`@`%`"]
    assert probe.sync(**good)["statements"] == 1


def test_postgresql_kill_before_grant_is_completed(make_probe, make_postgres, user):
    """The role exists with its mark; the rights in the other database are granted later."""
    pg = make_postgres()
    pg.sql("CREATE DATABASE app")
    probe = make_probe(pg.target("db"), pause_after=1)
    good = account(user, grants=[grant("app", "CREATE", schema="public")])
    probe.send("sync", **good)
    wait.until("the probe to stop", lambda: pause.stopped(probe.process.pid))
    assert pg.exists(user)
    pg.kill()
    os.kill(probe.process.pid, signal.SIGCONT)
    assert probe.read()["trouble"] in ("CONNECT", "CIRCUIT_OPEN")
    pg.start()
    wait.until("the account", lambda: probe.ask("sync", **good)["result"] == 0)
    assert "CREATE ON app.public.*" in probe.sync(**good)["granted"]


def test_account_created_manually_meanwhile_is_not_owned(make_probe, maria, user):
    """steward was killed after its mark, then an account was created by hand: it is not owned."""
    make_probe(maria.target("db")).sync(**account("warm-up"))
    mortal = make_probe(maria.target("db"), die_after=1)
    assert mortal.ask("sync", **account(user)) is None
    assert maria.accounts(user) == [] and list(maria.marks(user)) == ["%"]
    maria.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'by-hand'")
    probe = make_probe(maria.target("db"))
    probe.fails("sync", "EXISTS", **account(user))
    probe.drop(**account(user))
    assert maria.logs_in(user, "by-hand") and maria.marks(user) == {}
    probe.fails("drop", "NOT_OURS", **account(user))


@pytest.mark.every_version("read-only servers refuse by words and numbers of their own")
def test_read_only_mariadb_is_not_written(make_probe, make_mariadb, user):
    """A replica is not written to, even if the admin could do so."""
    maria = make_mariadb()
    probe = make_probe(maria.target("db"))
    probe.sync(**account(user))
    maria.sql("SET GLOBAL read_only=1")
    assert probe.sync(**account(user))["statements"] == 1
    probe.fails("sync", "READ_ONLY", **account(user, "another-Pa55"))
    probe.fails("sync", "READ_ONLY", **account("new"))
    probe.fails("drop", "READ_ONLY", **account(user))
    maria.sql("SET GLOBAL read_only=0")
    probe.sync(**account("new"))


@pytest.mark.every_version("read-only servers refuse by words and numbers of their own")
@pytest.mark.parametrize("refusal", ["looked up", "of a statement"])
def test_demoted_server_connections_are_closed(make_probe, make_mariadb, user, refusal):
    """After a failover the address leads to the new primary, and the old one still answers."""
    maria = make_mariadb()
    probe = make_probe(maria.target("db"))
    probe.sync(**account(user))
    if refusal == "of a statement":  # of an admin whom the server stops by itself
        maria.sql("REVOKE ALL PRIVILEGES ON *.* FROM 'steward-admin'@'%'; GRANT CREATE USER, SELECT, INSERT, "
                  "UPDATE, DELETE, CREATE, RELOAD ON *.* TO 'steward-admin'@'%' WITH GRANT OPTION")
        probe.sync(**account(user))
    maria.sql("SET GLOBAL read_only=1")
    probe.fails("sync", "READ_ONLY", **account("new"))
    wait.until("no session of the admin", lambda: maria.sql(
        f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{dbserver.ADMIN}'") == [["0"]])
    maria.sql("SET GLOBAL read_only=0")
    assert probe.ask("sync", **account("new"))["result"] == 0


@pytest.mark.every_version("read-only servers refuse by words and numbers of their own")
def test_read_only_postgresql_is_not_written(make_probe, make_postgres, user):
    """The same with default_transaction_read_only."""
    pg = make_postgres()
    pg.sql("ALTER ROLE \"steward-admin\" SET default_transaction_read_only = on")
    probe = make_probe(pg.target("db"))
    probe.fails("sync", "READ_ONLY", **account(user))
    pg.sql("ALTER ROLE \"steward-admin\" RESET default_transaction_read_only")
    make_probe(pg.target("db")).sync(**account(user))


@pytest.mark.every_version("the protocol of the login")
def test_refused_admin_password_pauses_the_target(make_probe, server, tmp_path, user):
    """After a refusal the target is not used for a while; a new password is tried at once."""
    file = tmp_path / "password"
    file.write_text("not-the-Pa55word")
    target = server.target("db")
    target["admin"]["passwordFile"] = str(file)
    probe = make_probe(target)
    report = probe.fails("sync", "AUTH", **account(user))
    assert report["step"] == "CONNECT" and "not-the-Pa55word" not in str(report)
    again = probe.fails("sync", "CIRCUIT_OPEN", **account(user))
    assert "refused the login" in again["error"] and again["ms"] < 1000
    assert probe.metric("steward_sql_circuit_open{") == ['steward_sql_circuit_open{target="db"} 1']
    probe.ask("rest")  # another process leads: what this one saw last does not stay
    probe.fails("sync", "CIRCUIT_OPEN", **account(user))
    assert not probe.metric("steward_sql_circuit_open{")
    probe.ask("end rest")
    assert probe.metric("steward_sql_circuit_open{") == ['steward_sql_circuit_open{target="db"} 1']
    assert 0 < probe.ask("retry")["ms"] <= 1000
    file.write_text(dbserver.ADMIN_PASSWORD)
    probe.ask("poke")
    probe.sync(**account(user))
    assert probe.ask("retry")["ms"] == 0
    file.write_text("not-the-Pa55word")
    assert "refused the login" in probe.fails("ping", "AUTH")["error"]  # a connection is open
    assert probe.metric("steward_sql_circuit_open{") == ['steward_sql_circuit_open{target="db"} 1']
    probe.fails("ping", "CIRCUIT_OPEN")  # no login is sent
    file.write_text(dbserver.ADMIN_PASSWORD)
    assert probe.ask("ping")["result"] == 0
    stays = int(server.engine == "postgresql")  # until the next ping
    assert probe.metric("steward_sql_connections{") == [f'steward_sql_connections{{target="db"}} {stays}']
    file.write_text("")
    assert "empty" in make_probe(target).fails("sync", "AUTH", **account(user))["error"]


@pytest.mark.every_version("the protocol of the login")
def test_tls_modes_verify_ca_and_name(make_probe, server, tmp_path, user):
    """Wrong CA or name: no password is sent; weaker modes check less."""
    other = dbserver.make_ca(tmp_path / "other", "another CA")
    good = server.target("db")
    # MySQL's logins would send the plain password, and any certificate would be accepted.
    require = "AUTH" if server.engine == "mysql" else ""
    for mode, ca, host, trouble in [
            ("VerifyFull", other, "127.0.0.1", "TLS"), ("VerifyCA", other, "127.0.0.1", "TLS"),
            ("VerifyCA", server.ca, "127.0.0.1", ""), ("VerifyFull", server.ca, "127.0.0.1", ""),
            ("VerifyFull", server.ca, "localhost", ""), ("VerifyFull", None, "127.0.0.1", "TLS"),
            ("VerifyFull", tmp_path / "none", "127.0.0.1", "TLS"), ("Require", None, "127.0.0.1", require),
            ("Require", None, "localhost", require)]:
        tls = {"mode": mode, **({"caFile": str(ca)} if ca else {})}
        probe = make_probe({**good, "host": host, "tls": tls})
        if trouble:
            assert "TLS" in probe.fails("sync", trouble, **account(user))["error"].upper()
        else:
            probe.sync(**account(user))
    probe = make_probe({**good, "tls": {"mode": "Disable"}})
    if server.engine == "postgresql":
        probe.fails("sync", "AUTH", **account(user))  # pg_hba.conf has only hostssl
    else:
        probe.sync(**account(user))


@pytest.mark.parametrize("engine", ["mariadb", "postgresql"])
def test_certificate_for_another_name_is_refused_by_mode(make_probe, make_mariadb, make_postgres, engine, user):
    """A certificate of the right CA for another name: VerifyFull refuses it; VerifyCA accepts it on
    PostgreSQL (libmariadb cannot check the CA without the name).  libmariadb 3.4 does not check the
    name of a server at localhost or 127.0.0.1, so another address is used."""
    server = make_mariadb("--bind-address=127.0.0.1,127.0.0.2") if engine == "mariadb" else make_postgres()
    server.kill()
    dbserver.make_pair(server.folder / "ca", server.folder / "tls", "DNS:elsewhere.example")
    server.own_folder()
    server.start()
    target = {**server.target("db"), **({"host": "127.0.0.2"} if engine == "mariadb" else {})}
    make_probe(target).fails("sync", "TLS", **account(user))
    probe = make_probe({**target, "tls": {"mode": "VerifyCA", "caFile": str(server.ca)}})
    if engine == "mariadb":
        probe.fails("sync", "TLS", **account(user))
    else:
        probe.sync(**account(user))


def test_server_without_tls_gets_no_plain_text(make_probe, make_mariadb, user):
    """If TLS is required but not offered, nothing is sent in plain text."""
    maria = make_mariadb("--skip-ssl")
    for mode in ("Require", "VerifyFull"):
        probe = make_probe(maria.target("db", tls={"mode": mode}))
        probe.fails("sync", "TLS", **account(user))


def test_dead_servers_do_not_delay_others(make_probe, maria, pg, user):
    """One refuses connections, one does not answer: neither delays the others."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(64)
        silent = [{**server.target(f"silent-{server.engine}"), "port": hole.getsockname()[1],
                   "connectTimeoutSeconds": 3} for server in (maria, pg)]
        gone = [{**server.target(f"gone-{server.engine}"), "port": net.free_port()}
                for server in (maria, pg)]
        probe = make_probe(maria.target("my"), pg.target("pg"), *silent, *gone)
        for target in silent:
            for number in range(6):
                probe.send("sync", **{**account(user), "target": target["name"]}, id=number + 1,
                           **{"async": True})
        for target in ("my", "pg"):
            probe.send("sync", **{**account(user), "target": target}, id=100, **{"async": True})
        answers = [probe.read() for _ in range(14)]
        living = [a for a in answers if a["id"] == 100]
        assert [a["result"] for a in living] == [0, 0] and all(a["ms"] < 2000 for a in living)
        dead = [a for a in answers if a["id"] != 100]
        # One waited for the timeout; the others got an error after half a second.
        assert sorted(a["trouble"] for a in dead) == ["CIRCUIT_OPEN"] * 10 + ["CONNECT"] * 2
        assert all(a["ms"] < 2000 for a in dead if a["trouble"] == "CIRCUIT_OPEN")
        assert all(2500 < a["ms"] < 10000 for a in dead if a["trouble"] == "CONNECT")
        for target in silent:
            again = probe.fails("sync", "CIRCUIT_OPEN", **{**account(user),
                                                          "target": target["name"]})
            assert again["ms"] < 1000
        for target in gone:
            for _ in range(3):
                probe.fails("sync", "CONNECT", **{**account(user), "target": target["name"]})
            again = probe.fails("sync", "CIRCUIT_OPEN", **{**account(user),
                                                          "target": target["name"]})
            assert "cannot connect" in again["error"]


@pytest.mark.parametrize("engine", ("mariadb", "postgresql"))
def test_connection_error_names_cause_and_advice(make_probe, tmp_path, user, engine):
    """Where, and each of it once."""
    (tmp_path / "password").write_text("x")

    def error(port, host="127.0.0.1"):
        probe = make_probe({"name": "db", "engine": engine, "host": host, "port": port, "connectTimeoutSeconds": 1,
                            "tls": {"mode": "Require"},
                            "admin": {"user": "adm", "passwordFile": str(tmp_path / "password")}})
        text = probe.fails("sync", "CONNECT", **account(user))["error"]
        assert text.startswith(f'target "db" ({host}:{port}, account "adm"): cannot '), text
        assert text.count(host) == 1 and text.count("connect:") <= 1 and "?" not in text, text
        return text

    assert "connection refused: no server listens there; see whether it runs" in error(net.free_port())
    with socket.create_server(("127.0.0.1", 0)) as hole:
        assert "timed out: no answer came; see firewalls" in error(hole.getsockname()[1])
    for linger in (b"\1\0\0\0\0\0\0\0", bytes(8)):  # a reset, and an end
        with socket.create_server(("127.0.0.1", 0)) as hole:
            peer = threading.Thread(target=_end_connection, args=(hole, linger))
            peer.start()
            assert "connection reset: the server, or a proxy before it" in error(hole.getsockname()[1])
            peer.join()
    assert "see the host of the target" in (text := error(3306, "no-such-host.invalid")) or "the DNS of" in text


def _end_connection(hole, linger):
    """Takes one connection, and ends it."""
    peer, _ = hole.accept()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    peer.close()


def test_statement_timeout_ends_a_silent_statement(make_probe, make_mariadb, user):
    """The server stops during a statement: the statement timeout ends it.  A ping has the connect timeout."""
    maria = make_mariadb()
    patient = make_probe(maria.target("db", statementTimeoutSeconds=600, connectTimeoutSeconds=1))
    patient.sync(**account(f"{user}-2"))
    probe = make_probe(maria.target("db", statementTimeoutSeconds=1, connectTimeoutSeconds=1))
    probe.sync(**account(user))
    maria.pause()
    start = time.monotonic()
    report = probe.fails("sync", "CONNECT", **account(user))
    assert 2 <= time.monotonic() - start < 10 and report["step"] in ("LOOKUP", "CONNECT")
    start = time.monotonic()
    patient.fails("ping", "CONNECT")
    assert time.monotonic() - start < 60
    patient.fails("sync", "CIRCUIT_OPEN", **account(f"{user}-2"))
    maria.resume()
    wait.until("it to answer again", lambda: probe.ask("sync", **account(user))["result"] == 0)


def test_failed_lookup_changes_nothing(make_probe, pg, make_mariadb, user):
    """D11: unknown does not mean absent; nothing is created, changed or dropped."""
    maria = make_mariadb()
    probe = make_probe(maria.target("db", statementTimeoutSeconds=1))
    probe.sync(**account(user))
    with_lock = maria.run_client
    import threading
    blocker = threading.Thread(target=lambda: with_lock(
        "-e", "LOCK TABLES steward.accounts WRITE; SELECT SLEEP(60)", check=False))
    blocker.start()
    [[holder]] = wait.until("the lock", lambda: maria.sql(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'"))
    for op in ("sync", "drop"):
        probe.fails(op, "LOCKED", **account(user, "another-Pa55"))
    narrow = make_probe(maria.target("db", statementTimeoutSeconds=5, maxConnections=1))
    narrow.send("sync", **account(user, "another-Pa55"), **{"async": True})
    wait.until("the only connection to be in use", lambda: maria.sql(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE USER = 'steward-admin' AND STATE LIKE 'Waiting%'"))
    narrow.fails("ping", "BUSY")  # at once, before the answer of the other call
    assert narrow.read()["trouble"] == "LOCKED"
    assert narrow.ask("ping")["result"] == 0
    maria.sql(f"KILL {holder}")
    blocker.join()
    assert maria.logs_in(user, "s3cret-Pa55")
    # The admin has lost the right to read it.
    maria.sql("REVOKE ALL PRIVILEGES ON *.* FROM 'steward-admin'@'%'")
    blind = make_probe(maria.target("db"))
    blind.fails("sync", "DENIED", **account(user, "another-Pa55"))
    blind.fails("drop", "DENIED", **account(user))
    assert maria.logs_in(user, "s3cret-Pa55")


def test_closed_idle_connections_are_replaced(make_probe, make_mariadb, user):
    """Idle connections that the server has closed are replaced without an error."""
    maria = make_mariadb()
    probe = make_probe(maria.target("db"))
    probe.sync(**account(user))
    maria.sql("SELECT CONCAT('KILL ', ID) FROM information_schema.PROCESSLIST WHERE USER="
              "'steward-admin' INTO OUTFILE '%s/kill'" % maria.folder)
    maria.sql((maria.folder / "kill").read_text())
    probe.sync(**account(user))
    maria.kill()
    maria.start()
    probe.sync(**account(user))


def test_cancel_ends_waiting_calls(make_probe, maria, user):
    """A shutdown does not wait for a server."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(8)
        silent = {**maria.target("silent"), "port": hole.getsockname()[1],
                  "connectTimeoutSeconds": 3}
        probe = make_probe(silent)
        for number in range(3):
            probe.send("sync", **account(user), id=number + 1, **{"async": True})
        probe.send("cancel")
        answers = [probe.read() for _ in range(4)]
        assert all(a.get("trouble") in (None, "CONNECT", "CIRCUIT_OPEN") for a in answers)
        report = probe.fails("sync", "CONNECT", **account(user))
        assert "stopping" in report["error"]


def test_more_calls_than_connections_are_served(make_probe, server, user):
    """More calls than connections in the pool: all are served, with at most four connections."""
    probe = make_probe(server.target("db"))
    database = [] if server.engine != "postgresql" else [grant("postgres", "CONNECT"),
                                                     grant("postgres", "CREATE", schema="public")]
    for op in ("sync", "sync", "drop"):
        for number in range(40):
            probe.send(op, **account(f"{user}-{number}", grants=database), id=number + 1,
                       **{"async": True})
        answers = [probe.read() for _ in range(40)]
        assert [a["result"] for a in answers] == [0] * 40, [a for a in answers if a["result"]][:2]
    assert probe.metric("steward_sql_connections{")[0].endswith((" 1", " 2", " 3", " 4"))


@contextlib.contextmanager
def no_free_connection(pg):
    """PostgreSQL refuses each login before it looks at the password: other clients have all."""
    startup = b"\0\3\0\0user\0root\0database\0postgres\0\0"
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.settimeout(30)
            one.connect(f"{pg.folder}/.s.PGSQL.{pg.port}")
            one.sendall(struct.pack("!I", len(startup) + 4) + startup)
            if one.recv(1) == b"E":
                yield
                return
    raise AssertionError("the server takes all connections")


@pytest.mark.every_version("when a server with too many clients refuses a login")
def test_accounts_with_two_databases_share_connections(make_probe, pg, user):
    """A connection is to one database: with the rights read back, each account needs two of them.  Calls wait
    for those of others rather than close one to make another."""
    if not pg.sql("SELECT 1 FROM pg_database WHERE datname = 'other'"):
        pg.sql("CREATE DATABASE other")

    def sessions():
        return int(pg.sql("SELECT sum(sessions) FROM pg_stat_database "
                          "WHERE datname IN ('postgres', 'other')")[0][0])
    grants = [grant("other", "CONNECT"), grant("other", "USAGE", schema="public")]
    probe = make_probe(pg.target("db", maxConnections=2))
    before = sessions()
    for number in range(30):
        probe.send("sync", **account(f"{user}-{number}", grants=grants), id=number + 1, **{"async": True})
    assert [a["result"] for a in (probe.read() for _ in range(30))] == [0] * 30
    assert probe.close() == 0
    wait.until("no session of steward", lambda: not pg.sql(
        "SELECT 1 FROM pg_stat_activity WHERE usename = 'steward-admin'"))
    assert sessions() - before <= 40, sessions() - before  # one for each account, or fewer; two without that


def test_unverifiable_new_password_is_set(make_probe, make_postgres, user):
    """The admin may not read verifiers, and whether the password is the account's cannot be tried: a
    new one is set, so that what is said to be set can log in; any other is left as it is."""
    pg = make_postgres("max_connections=16")
    pg.sql('ALTER ROLE "steward-admin" NOSUPERUSER CREATEROLE')
    probe = make_probe(pg.target("db"))
    probe.sync(**account(user))
    with no_free_connection(pg):
        assert not probe.sync(**account(user, "r0tated-Pa55"))["password_changed"]
        report = probe.sync(**account(user, "r0tated-Pa55", password_is_new=True))
        assert report["password_changed"]
        wait.until("another refused login", lambda: probe.fails("ping", "BUSY") and
                   probe.ask("retry")["full_ms"] > 0)
    wait.until("a free connection", pg.answers)
    wait.until("a login", lambda: probe.ask("ping")["result"] == 0)
    assert probe.ask("retry")["full_ms"] == 0
    wait.until("the new password", lambda: pg.logs_in(user, "r0tated-Pa55"))
    assert not probe.sync(**account(user, "r0tated-Pa55", password_is_new=True))["password_changed"]
