# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: answers that would fill the memory."""

from support.sqlprobe import account, grant

COLUMNS, TABLES = 1600, 5


def make_rights(pg, database, role):
    """Gives a role 64,000 rights on columns, as another client."""
    names = ",".join(f"c{i}" for i in range(COLUMNS))
    columns = ",".join(f"c{i} bool" for i in range(COLUMNS))
    privileges = ",".join(f"{name} ({names})" for name in ("SELECT", "INSERT", "UPDATE", "REFERENCES"))
    for table in range(TABLES):
        pg.sql(f"CREATE TABLE wide{table} ({columns}); "
               f"GRANT {privileges} ON wide{table} TO {role} WITH GRANT OPTION", database)


def test_account_with_too_many_foreign_rights_fails_alone(make_postgres, make_probe):
    """Another client has given it 64,000 rights: it is refused with the reason, the next account is made."""
    pg = make_postgres()
    pg.sql("CREATE DATABASE sizes")
    probe = make_probe(pg.target("db"))
    wanted = account("hoarder", grants=[grant("sizes", "CONNECT")])
    assert probe.sync(**wanted)["created"]
    make_rights(pg, "sizes", "hoarder")
    failed = probe.fails("sync", "UNSUPPORTED", **wanted)
    assert "more rights on the server than are compared: over 50000" in failed["error"]
    assert probe.sync(**account("modest", grants=[grant("sizes", "CONNECT")]))["created"]
    probe.drop(**wanted)


def test_account_with_very_many_options_fails_alone(maria, make_probe, user):
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
