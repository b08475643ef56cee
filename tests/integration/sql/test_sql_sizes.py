# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: answers that would fill the memory."""

from support.sqlprobe import account, grant

SAMPLE = 5000  # STW_RIGHTS_SAMPLE
COLUMNS, TABLES = 1000, 2


def give_columns(server, database, role):
    """Gives a role 8,000 rights on columns, as another client."""
    pg = server.engine == "postgresql"
    names = ",".join(f"c{i}" for i in range(COLUMNS))
    columns = ",".join(f"c{i} bool" for i in range(COLUMNS))
    privileges = ",".join(f"{name} ({names})" for name in ("SELECT", "INSERT", "UPDATE", "REFERENCES"))
    for table in range(TABLES):
        name = f"wide{table}" if pg else f"{database}.wide{table}"
        server.sql(f"CREATE TABLE {name} ({columns}); GRANT {privileges} ON {name} TO {role} "
                   f"{'WITH GRANT OPTION' if pg else ''}", *[database] * pg)


def test_many_foreign_rights_do_not_block_changes(server, make_probe, user):
    """Managed does not need to know them.  Exact takes some at each check, and says that there are more."""
    pg = server.engine == "postgresql"
    schema = {"schema": "public"} if pg else {}
    server.sql(f"CREATE DATABASE {user}_d")
    server.sql("CREATE TABLE own (i int)" if pg else f"CREATE TABLE {user}_d.own (i int)", *[f"{user}_d"] * pg)
    probe = make_probe(server.target("db"))
    own = [grant(f"{user}_d", "SELECT", table="own", **schema)]
    probe.sync(**account(user, grants=own))
    give_columns(server, f"{user}_d", user)
    report = probe.sync(**account(user, "0ther-Pa55", grants=own))
    assert report["password_changed"] and (report["given"], report["revoked"]) == (0, 0), report
    assert server.logs_in(user, "0ther-Pa55")
    more = [grant(f"{user}_d", "SELECT", "UPDATE", table="own", **schema)]
    assert probe.sync(**account(user, grants=more))["given"] == 1
    assert probe.sync(**account(user, grants=more))["given"] == 0
    assert probe.sync(**account(user, grants=own))["revoked"] == 1
    exact = account(user, grants=own, policy="Exact")
    report, taken = probe.ask("sync", **exact), 0
    assert report["trouble"] == "FAILED" and "the next check goes on" in report["error"], report
    while report["result"] != 0:
        assert report["revoked"] >= SAMPLE and report["login_done"], report
        taken += report["revoked"]
        report = probe.ask("sync", **exact)
    assert taken + report["revoked"] == 4 * TABLES * COLUMNS, report
    report = probe.sync(**exact)
    assert report["revoked"] == 0 and report["foreign"] == "", report
    probe.drop(**exact)


def test_own_rights_are_found_among_many_others(hosted, make_probe, user):
    """Other clients' rights come first in the server's tables."""
    hosted.sql(f"CREATE DATABASE {user}_d; CREATE TABLE {user}_d.own (i int)")
    probe = make_probe(hosted.target("db"))
    own = account(user, grants=[grant(f"{user}_d", "SELECT"), grant(f"{user}_d", "UPDATE", table="own")])
    probe.sync(**own)
    numbers = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(80))
    hosted.sql(f"INSERT INTO mysql.tables_priv (Host, Db, User, Table_name, Grantor, Table_priv) SELECT '%', "
               f"'aaa', '{user}', CONCAT('t', a.n * 80 + b.n), '', 'Select' FROM ({numbers}) a, ({numbers}) b")
    try:
        report = probe.sync(**own)
        assert (report["given"], report["revoked"], report["statements"]) == (0, 0, 2), report
        less = {**own, "grants": own["grants"][:1]}
        assert probe.sync(**less)["revoked"] == 1
        assert probe.sync(**less)["revoked"] == 0
    finally:
        hosted.sql(f"DELETE FROM mysql.tables_priv WHERE User = '{user}' AND Db = 'aaa'")
    probe.drop(**own)


def test_account_with_many_options_fails_without_others(maria, make_probe, user):
    """MariaDB keeps the options of an account as JSON. Each value takes 28 bytes to read, and an answer may
    have 8 MiB."""
    probe = make_probe(maria.target("db"))
    wanted = account(user)
    assert probe.sync(**wanted)["created"]
    maria.sql("UPDATE mysql.global_priv SET Priv=CONCAT(LEFT(Priv,LENGTH(Priv)-1),',\"x\":[1',REPEAT(',1',20000),"
              f"']}}') WHERE User='{user}'")
    failed = probe.fails("sync", "LOOKUP", **wanted)
    assert "the server's answer could not be read" in failed["error"]
    assert probe.sync(**account(f"{user}b"))["created"]
    maria.sql(f"DELETE FROM mysql.global_priv WHERE User='{user}'")
