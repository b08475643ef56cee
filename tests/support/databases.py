# SPDX-License-Identifier: Apache-2.0
"""The database servers of the end-to-end tests: those of mariadb.py and postgres.py with a database
on which to grant rights, what the tests read from them, and how the tests disturb them."""

import signal

import pytest

from . import dblogin, dbserver, mariadb, mysql8, postgres, sampled

SYSTEM_USERS = {"root", "mariadb.sys", "mysql", "PUBLIC", "", dbserver.ADMIN}


class _Unruly:
    """How a server is ended, and where steward finds its admin's password."""

    def target(self, name, **more):
        """Its entry in the list of targets; the password is in a Secret."""
        admin = {"user": dbserver.ADMIN,
                 "passwordSecret": {"name": f"{name}-admin", "key": "password"}}
        return super().target(name, **{"admin": admin, **more})

    def running(self):
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Ends it in an orderly way."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


class _WithHosts(_Unruly):
    """MariaDB or MySQL, whose accounts are user@host, with the table shop.orders."""

    def __init__(self, *flags, line=None):
        self.admin_password = dbserver.ADMIN_PASSWORD
        super().__init__(*flags, line=line)
        self.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (n INT); "
                 "INSERT INTO shop.orders VALUES (1)")

    def login(self, user, password, sql=None, database="shop"):
        """Whether this login works, and may run the statement."""
        if sql is None:
            return not dblogin.client(self, database).login(user, password)
        return self.run_client("-D", database, "-e", sql, check=False, user=user,
                               password=password, tcp=True).returncode == 0

    def all_marks(self):
        """{user@host} that steward has marked as its own."""
        if not self.sql("SHOW DATABASES LIKE 'steward'"):
            return set()
        return {f"{u}@{h}" for u, h in self.sql("SELECT user, host FROM steward.accounts")}

    def limit_admin(self):
        """Leaves the admin the rights of the page, without SUPER."""
        admin, mysql = f"'{dbserver.ADMIN}'@'%'", self.engine == "mysql"
        self.sql(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {admin}; "
                 f"GRANT CREATE USER, {'CONNECTION_ADMIN' if mysql else 'CONNECTION ADMIN, RELOAD'}, PROCESS ON "
                 f"*.* TO {admin}; GRANT SELECT ON mysql.* TO {admin}; GRANT ALL ON steward.* TO {admin}; GRANT "
                 f"SELECT, INSERT, CREATE, CREATE VIEW ON shop.* TO {admin} WITH GRANT OPTION")

    def rights(self, user, host="%"):
        """SHOW GRANTS without the line that all accounts have."""
        return self.grants(user, host)


class MariaDB(_WithHosts, mariadb.MariaDB):
    """mariadbd."""

    def all_accounts(self):
        """{user@host} of all that are not part of the installation."""
        rows = self.sql("SELECT User, Host FROM mysql.global_priv")
        return {f"{u}@{h}" for u, h in rows if u not in SYSTEM_USERS}

    def set_admin_password(self, password):
        """Changes it on the server only."""
        self.sql(f"SET PASSWORD FOR '{dbserver.ADMIN}'@'%' = PASSWORD({mariadb.quote(password)})")
        self.admin_password = password


class PostgreSQL(_Unruly, postgres.Postgres):
    """postgres with the table orders in the database shop."""

    def __init__(self, *settings, line=None):
        self.admin_password = dbserver.ADMIN_PASSWORD
        super().__init__(*settings, line=line)
        self.sql("CREATE DATABASE shop")
        self.sql("CREATE TABLE orders (n INT); INSERT INTO orders VALUES (1)", "shop")

    def login(self, user, password, sql=None, database="shop"):
        """Whether this login works, and may run the statement."""
        if sql is None:
            return not dblogin.client(self, database).login(user, password)
        return self.run_client(sql, check=False, user=user, password=password, database=database,
                               tcp=True).returncode == 0

    def limit_admin(self):
        """Makes the admin what managed servers give: no superuser, and the owner of the database shop."""
        admin = f'"{dbserver.ADMIN}"'
        self.sql(f"ALTER ROLE {admin} NOSUPERUSER CREATEROLE CREATEDB; GRANT pg_signal_backend TO {admin}")
        self.sql(f"ALTER DATABASE shop OWNER TO {admin}; ALTER SCHEMA public OWNER TO {admin}; "
                 f"ALTER TABLE orders OWNER TO {admin}", "shop")

    def all_accounts(self):
        """Roles that are not part of the installation."""
        rows = self.sql("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'")
        return {r[0] for r in rows if r[0] not in SYSTEM_USERS}


class MySQL(_WithHosts, mysql8.MySQL):
    """mysqld."""

    def all_accounts(self):
        """{user@host} of all that are not part of the installation."""
        rows = self.sql("SELECT User, Host FROM mysql.user")
        return {f"{u}@{h}" for u, h in rows
                if u not in SYSTEM_USERS and not u.startswith("mysql.")}


def newest(kind):
    """(kind, release line)"""
    return kind, sampled.newest(kind.engine.upper())


def oldest(kind):
    """(kind, release line)"""
    return kind, sampled.oldest(kind.engine.upper())


# The newest and the oldest of each.
ENDS = list(dict.fromkeys(end(kind) for kind in (PostgreSQL, MariaDB, MySQL)
                          for end in (newest, oldest)))


def missing(kind, line=None):
    """Why there can be no such server, of the newest line by default; "" when there can."""
    module = {"mariadb": mariadb, "postgresql": postgres, "mysql": mysql8}[kind.engine]
    return module.missing(line or sampled.newest(kind.engine.upper()))


def running(kind, line=None):
    """The body of a fixture: such a server, until the end.  Where there can be none, tests are skipped."""
    if missing(kind, line):
        pytest.skip(missing(kind, line))
    one = kind(line=line)
    yield one
    one.close()


def _name(server):
    return f"{server[0].engine}-{server[1]}"


def each(servers):
    """A fixture of a module, for the name `server`: each of these (kind, line) in turn."""
    @pytest.fixture(scope="module", params=servers, ids=_name, name="server")
    def server(request):
        yield from running(*request.param)
    return server


def on(*servers):
    """The mark of a test that takes only these servers from the fixture."""
    return pytest.mark.parametrize("server", servers, ids=_name, indirect=True, scope="module")
