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
