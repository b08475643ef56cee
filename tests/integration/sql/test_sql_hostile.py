# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: names and passwords that need correct quoting (D4)."""

import random

import pytest

from support import dbserver, mariadb
from support.postgres import name as pg_name
from support.replicas import long_run
from support.sqlprobe import account, grant

COUNT = long_run(200, 1000)
PIECES = ["'", '"', "`", "\\", "''", '""', "``", "\\'", '\\"', ";", "--", "/*", "*/", "#", "%", "_",
          "\\_", "\\%", "@", "%s", "%n", "$1", ":x", "?", "\n", "\t", "\r", "\x1a", "\x7f", "é", "ß",
          "密码", "\u202e", "\u00a0", "' OR '1'='1", "'; DROP USER root; --", "\\'; DROP TABLE x; --",
          "E'", "x'00'", "0x41", "$$", "U&'", "NULL", "true", "a", "B", "9", " ", "{}", "[", "\\0",
          "\\x27", "`; SELECT 1; `", "CURRENT_USER", "PUBLIC", "ǅ", "İ", "\ufffd", "\ufeff"]
WIDE = ["😀", "𝔘", "\U0010ffff"]


def hostile(count, longest, wide, seed):
    """`count` different texts of at most `longest` characters that do not end in a blank; others for each
    seed, such as "3 mariadb 10.11.1"."""
    rng, made = random.Random(seed), set()
    pieces = PIECES + (WIDE if wide else [])
    while len(made) < count:
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 12)))[:longest]
        if len(made) % 97 == 0:
            text = (text + "x" * longest)[:longest]
        if text and not text.endswith((" ", "\u00a0")):
            made.add(text)
    return sorted(made)


def seed_of(number, server):
    """Each version of a server gets other texts."""
    return f"{number} {server.engine} {server.installed.version}"


def is_quoted(user):
    """Whether MariaDB and MySQL look for another name at a login: kinds/databaseuser refuses it."""
    return len(user) > 1 and user[0] == user[-1] == "'"


def fitting(texts, size):
    """The texts, truncated to at most `size` bytes at a character boundary."""
    out = set()
    for text in texts:
        while len(text.encode()) > size:
            text = text[:-1]
        if text:
            out.add(text)
    return sorted(out)


MODES = [("", "plain"), ("NO_BACKSLASH_ESCAPES", "no-backslash"),
         ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT", "ansi"), ("ORACLE", "oracle")]


@pytest.mark.parametrize("mode", [m for m, _ in MODES], ids=[i for _, i in MODES])
def test_mariadb_quoting_of_hostile_names(make_mariadb, make_probe, mode):
    """Every account has exactly the requested name and rights, and no other is changed."""
    maria = make_mariadb(f"--sql-mode={mode}")
    count = COUNT if mode in ("", "NO_BACKSLASH_ESCAPES") else 100
    users = [u for u in hostile(count, 80, False, seed_of(1, maria)) if not is_quoted(u)]
    databases = hostile(count, 30, False, seed_of(2, maria))
    passwords = secrets(count, seed_of(3, maria))
    probe = make_probe(maria.target("db"))
    before = maria.sql("SELECT HEX(User), Host, Priv FROM mysql.global_priv ORDER BY 1, 2")
    accounts = []
    for user, database, password in zip(users, databases, passwords):
        one = account(user, password, grants=[grant(database, "CREATE", "INSERT")])
        accounts.append(one)
        assert probe.sync(**one)["created"]
    rows = maria.sql("SELECT HEX(User) FROM mysql.global_priv WHERE Host = '%'")
    made = {bytes.fromhex(row[0]).decode() for row in rows} - {dbserver.ADMIN}
    assert made == set(users)
    for user, database, one in list(zip(users, databases, accounts)):
        report = probe.sync(**one)
        assert report["statements"] == 1, (user, report)
        assert report["granted"].endswith(f" ON {database}.*\n")
    for one, user, password in list(zip(accounts, users, passwords))[::17]:
        assert maria.logs_in(user, password), (user, password)
        assert probe.sync(**{**one, **account(user, password + "x")})["password_changed"]
        assert maria.logs_in(user, password + "x")
    for one in accounts:
        probe.drop(**one)
    after = maria.sql("SELECT HEX(User), Host, Priv FROM mysql.global_priv ORDER BY 1, 2")
    assert before == after
    assert maria.sql("SELECT COUNT(*) FROM steward.accounts") == [["0"]]
    assert maria.sql("SELECT COUNT(*) FROM mysql.db WHERE Host = '%'") == [["0"]]
    quiet(probe, maria)


def secrets(count, seed):
    """Hostile passwords, each with a marker to search logs for."""
    return [f"{text}S3kr{i}t" for i, text in enumerate(hostile(count, 60, True, seed))]


def quiet(probe, server):
    """Neither the server's log nor the probe's output has a password or a part of a statement."""
    heard = probe.heard()
    assert "S3kr" not in server.log_text() and "S3kr" not in heard
    for word in ("CREATE USER", "CREATE ROLE", "ALTER ROLE", "IDENTIFIED", "SCRAM-SHA"):
        assert word not in heard


@pytest.mark.parametrize("conforming", ["on", "off"])
def test_postgresql_quoting_of_hostile_names(make_postgres, make_probe, conforming):
    """The same, with backslashes that are escapes in plain strings, and without."""
    pg = make_postgres(f"standard_conforming_strings={conforming}", "backslash_quote=safe_encoding")
    count = COUNT if conforming == "on" else 200
    users = [u for u in fitting(hostile(count, 63, True, seed_of(4, pg)), 63) if not u.startswith("pg_")]
    schemas = fitting(hostile(count, 63, True, seed_of(5, pg)), 63)
    passwords = secrets(count, seed_of(6, pg))
    pg.sql("SET standard_conforming_strings = on;"
           + ";".join(f"CREATE SCHEMA {pg_name(s)}" for s in schemas))
    probe = make_probe(pg.target("db"))
    accounts = []
    for user, schema, password in zip(users, schemas, passwords):
        one = account(user, password, grants=[grant("postgres", "USAGE", schema=schema)])
        accounts.append(one)
        assert probe.sync(**one)["created"]
    rows = pg.sql("SELECT encode(convert_to(rolname, 'UTF8'), 'hex') FROM pg_roles "
                  "WHERE rolname NOT LIKE 'pg!_%' ESCAPE '!'")
    made = {bytes.fromhex(row[0]).decode() for row in rows} - {dbserver.ADMIN, "root"}
    assert made == {one["user"] for one in accounts}
    for one in accounts:
        report = probe.sync(**one)
        assert report["statements"] == 2 and report["given"] == 0, (one["user"], report)
    for one, password in list(zip(accounts, passwords))[::17]:
        assert pg.logs_in(one["user"], password), (one["user"], password)
    for one in accounts:
        probe.drop(**one)
    assert pg.sql("SELECT count(*) FROM pg_roles WHERE rolname NOT LIKE 'pg!_%' ESCAPE '!'") == [["2"]]
    quiet(probe, pg)


def test_names_the_server_would_change_are_refused(maria, pg, make_probe):
    """Refused before any statement: names that the server would truncate, fold or reinterpret."""
    my, post = make_probe(maria.target("db")), make_probe(pg.target("db"))
    for user in ("emoji😀", "blank ", "", "x" * 81):
        assert my.fails("sync", "UNSUPPORTED", **account(user))["statements"] == 0
    for host in ("a b", "é", "x" * 256, ""):
        my.fails("sync", "UNSUPPORTED", **account("h", hosts=[host]))
    for database in ("a😀", "a ", ""):
        my.fails("sync", "UNSUPPORTED", **account("h", grants=[grant(database, "SELECT")]))
    for user in ("x" * 64, "é" * 32, "", "public", "none", "pg_x"):
        assert post.fails("sync", "UNSUPPORTED", **account(user))["statements"] == 0
    # The server's own tables, with which an account could grant itself anything.
    for database in ("mysql", "MySQL", "steward", "performance_schema"):
        my.fails("sync", "UNSUPPORTED", **account("h", grants=[grant(database, "SELECT")]))
    for schema in ("pg_catalog", "information_schema", "pg_toast"):
        post.fails("sync", "UNSUPPORTED", **account("h", grants=[
            grant("postgres", "SELECT", schema=schema, table="pg_authid")]))
    my.sync(**account("é" * 80))
    assert my.sync(**account("é" * 80))["statements"] == 1
    my.drop(**account("é" * 80))
    # Another account that differs only in case, or in trailing blanks.
    my.sync(**account("Case"))
    assert my.sync(**account("case"))["created"] and maria.accounts("Case") == ["%"]
    for user in ("Case", "case"):  # the server is shared with tests of other versions of PostgreSQL
        my.drop(**account(user))
    assert mariadb.quote("it's") == "'it''s'"


def test_postgresql_connects_to_hostile_database_name(pg, make_probe, user):
    """PostgreSQL: the connection uses the same name."""
    probe = make_probe(pg.target("db"))
    for number, database in enumerate(fitting(hostile(8, 40, True, 7), 63)):
        pg.sql(f"CREATE DATABASE {pg_name(database)}")
        grants = [grant(database, "CONNECT"), grant(database, "CREATE", schema="public")]
        one = account(f"{user}-{number}", grants=grants)
        probe.sync(**one)
        assert probe.sync(**one)["statements"] == 2
        probe.drop(**one)
