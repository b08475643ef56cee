# SPDX-License-Identifier: Apache-2.0
"""A tenant of a database server who does what it can, with an account of its own, against the accounts of
others: rights by the thousand, open transactions, locks, sessions."""

import collections
import threading

from . import dblogin, dbserver
from .replicas import long_run

USER, PASSWORD = "tenant", "their-Passw0rd-1"


class Tenant:
    """Does all of it again and again while it is in a `with` block; `done` counts what the server
    accepted, and `refused` has the latest error of each deed."""

    def __init__(self, server, victims):
        self.server, self.victims = server, victims
        self.postgresql = server.engine == "postgresql"
        self.done, self.refused = collections.Counter(), {}
        self.over, self.threads = threading.Event(), []
        # 42,000 rights for each victim, or 3,200; a table of MySQL has at most 1017 columns.
        full = (7, 1500, ("SELECT", "INSERT", "UPDATE", "REFERENCES")) if self.postgresql else \
            (11, 1000, ("SELECT", "INSERT", "UPDATE", "REFERENCES"))
        self.tables, self.columns, self.privileges = long_run((4, 400, ("SELECT", "INSERT")), full)

    def __enter__(self):
        for statement in _POSTGRESQL_SETUP if self.postgresql else _MARIADB_SETUP:
            self._as_admin(statement)
        self.threads = [threading.Thread(target=self._repeat, args=deed, daemon=True)
                        for deed in self._deeds()]
        for one in self.threads:
            one.start()
        return self

    def __exit__(self, *args):
        self.over.set()
        for one in self.threads:
            one.join(60)
        for statement in _POSTGRESQL_CLEANUP if self.postgresql else _MARIADB_CLEANUP:
            self._as_admin(statement)

    def _as_admin(self, statement):
        self.server.sql(statement, *["shop"] * self.postgresql)

    def _deeds(self):
        """(name, database, statements, seconds that the session then stays open)"""
        to = ", ".join(self.victims) if self.postgresql else \
            ", ".join(f"'{v}'@'%'" for v in self.victims)
        columns = ", ".join(f"c{i}" for i in range(self.columns))
        types = ", ".join(f"c{i} bool" for i in range(self.columns))
        tables = [f"theirs.t{i}" for i in range(self.tables)]
        given = ", ".join(f"{privilege} ({columns})" for privilege in self.privileges)
        rights = [f"GRANT {given} ON {t} TO {to}" for t in tables]
        yield "tables", "shop", [f"CREATE TABLE IF NOT EXISTS {t} ({types})" for t in tables], 5
        yield "rights", "shop", rights, 0.2
        yield "taken back", "shop", [r.replace("GRANT", "REVOKE").replace(" TO ", " FROM ")
                                     for r in rights[:1]], 2
        if self.postgresql:
            yield "open transaction", "shop", [
                "BEGIN", "CREATE TABLE theirs.open (a int)",
                f"GRANT SELECT ON theirs.open TO {to}"], 3
            yield "temporary table", "shop", [
                "BEGIN", "CREATE TEMPORARY TABLE mine (a int)", f"GRANT SELECT ON mine TO {to}"], 3
            yield "template", "template1", ["SELECT 1"], 3
            yield "default rights", "shop", [
                f"ALTER DEFAULT PRIVILEGES IN SCHEMA theirs GRANT ALL ON TABLES TO {to}"], 1
            yield "locks", "shop", [f"SELECT pg_advisory_lock({n})" for n in range(64)], 3
        else:
            yield "metadata lock", "shop", ["START TRANSACTION", "SELECT count(*) FROM shop.orders"], 3
            yield "table locks", "shop", ["LOCK TABLES theirs.t0 WRITE"], 2
            yield "locks", "shop", [f"SELECT GET_LOCK('{n}', 0)" for n in (
                "steward", "steward.takeover", "main", "app", "steward/app", "steward.main.app")], 3
        for n in range(8):
            yield f"session {n}", "shop", ["SELECT 1"], 0.3

    def _repeat(self, name, database, statements, seconds):
        lib = dblogin.client(self.server, database)
        while not self.over.is_set():
            conn = lib.open(USER, PASSWORD)
            error = lib.error(conn)
            for statement in statements if not error else ():
                error = lib.run(conn, statement)
                if error:
                    break
            if error:
                self.refused[name] = error.strip()
            else:
                self.done[name] += 1
            self.over.wait(seconds)
            lib.close(conn)


# As steward's admin: the accounts of tenants are its own.
_POSTGRESQL_SETUP = (f"SET ROLE \"{dbserver.ADMIN}\"; CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'",
                     f"CREATE SCHEMA theirs AUTHORIZATION {USER}",
                     f"GRANT CONNECT, TEMPORARY ON DATABASE shop TO {USER}")
_POSTGRESQL_CLEANUP = (f"DROP OWNED BY {USER} CASCADE", f"DROP ROLE {USER}")
_MARIADB_SETUP = (f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'",
                  "CREATE DATABASE IF NOT EXISTS theirs",
                  f"GRANT ALL ON theirs.* TO '{USER}'@'%' WITH GRANT OPTION",
                  f"GRANT SELECT ON shop.* TO '{USER}'@'%'")
_MARIADB_CLEANUP = (f"DROP USER '{USER}'@'%'", "DROP DATABASE theirs")
