# SPDX-License-Identifier: Apache-2.0
"""A MariaDB and a PostgreSQL of Debian's packages, started by the tests on loopback, each with a data
folder of its own."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

from . import cluster as k8s
from . import net, wait

ADMIN, ADMIN_PASSWORD = "steward", "admin-Pass-0123456789"
SYSTEM_USERS = {"root", "mariadb.sys", "mysql", "PUBLIC", "", ADMIN}
POSTGRES_FOLDERS = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))


def _as(user):
    """What to put before a command so that it does not run as root: PostgreSQL refuses to."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] \
        if os.geteuid() == 0 else []


class Server:
    """One database server; the engines say how it is made, started and asked."""

    engine = ""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port = net.free_port()
        self.process = None
        self.admin_password = ADMIN_PASSWORD

    def command(self):
        """The command line of the server."""
        raise NotImplementedError

    def query(self, sql, database=None):
        """Runs statements as the superuser and returns the rows, as lists of texts."""
        raise NotImplementedError

    def start(self):
        """Starts it and waits until it answers."""
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True,
                                            cwd=self.folder)

        def look():
            assert self.process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            with contextlib.suppress(k8s.CommandFailed):
                return self.query("SELECT 1")
        wait.until(f"{self.engine} to answer", look, 60)
        return self

    def _end(self, sig):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(sig)
            self.process.wait(60)
        self.process = None

    def stop(self):
        """Ends it in order; no client keeps it up."""
        self._end(signal.SIGTERM)

    def kill(self):
        """As a machine that loses power."""
        self._end(signal.SIGKILL)

    def pause(self):
        """Takes connections and never answers."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        """Goes on."""
        self.process.send_signal(signal.SIGCONT)

    def target(self, name, secret=None, **more):
        """Its entry in the list of targets of steward's configuration."""
        return {"name": name, "engine": self.engine, "host": "127.0.0.1", "port": self.port,
                "admin": {"user": ADMIN,
                          "passwordSecret": {"name": secret or f"{name}-admin", "key": "password"}},
                "tls": {"mode": "Disable"}, **more}


class MariaDB(Server):
    """mariadbd."""

    engine = "mariadb"

    def create(self):
        """The data folder, an admin for steward, and a database to give rights on."""
        root = ["--user=root"] if os.geteuid() == 0 else []
        k8s.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", *root,
                 "--auth-root-authentication-method=normal", "--skip-test-db"])
        self.start()
        self.query(f"CREATE USER {ADMIN}@'%' IDENTIFIED BY '{ADMIN_PASSWORD}';"
                   f"GRANT ALL PRIVILEGES ON *.* TO {ADMIN}@'%' WITH GRANT OPTION;"
                   "CREATE DATABASE shop; CREATE TABLE shop.orders (n INT);"
                   "INSERT INTO shop.orders VALUES (1)")
        return self

    def command(self):
        root = ["--user=root"] if os.geteuid() == 0 else []
        return ["mariadbd", "--no-defaults", *root, f"--datadir={self.folder}/data",
                f"--socket={self.folder}/socket", f"--port={self.port}", "--bind-address=127.0.0.1",
                f"--pid-file={self.folder}/pid", "--skip-name-resolve", "--max-connections=100",
                "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=32M",
                "--performance-schema=OFF"]

    def query(self, sql, database=None):
        output = k8s.run(["mariadb", "--no-defaults", "-uroot", f"-S{self.folder}/socket", "-N", "-B",
                          *([database] if database else []), "-e", sql], timeout=30).stdout
        return [line.split("\t") for line in output.splitlines()]

    def login(self, user, password, sql="SELECT 1", database="shop"):
        """Whether a client that logs in so may run this."""
        return k8s.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", f"-u{user}",
                        f"-p{password}", "-D", database, "-e", sql], check=False,
                       timeout=30).returncode == 0

    def accounts(self):
        """{user@host} of all that are no part of the installation."""
        rows = self.query("SELECT User, Host FROM mysql.user")
        return {f"{u}@{h}" for u, h in rows if u not in SYSTEM_USERS}

    def rights(self, user, host="%"):
        """The lines of SHOW GRANTS but the first, which names the account."""
        return sorted(r[0] for r in self.query(f"SHOW GRANTS FOR `{user}`@`{host}`")[1:])

    def marks(self):
        """{user@host} that steward has marked as its own."""
        if not self.query("SHOW TABLES FROM information_schema LIKE 'x'; SELECT table_name FROM "
                          "information_schema.tables WHERE table_schema = 'steward'"):
            return set()
        return {f"{u}@{h}" for u, h in self.query("SELECT user, host FROM steward.accounts")}

    def set_admin_password(self, password):
        """On the server only."""
        self.query(f"SET PASSWORD FOR {ADMIN}@'%' = PASSWORD('{password}')")
        self.admin_password = password

    def read_only(self, on):
        """As a replica; the admin may not write then."""
        self.query(f"REVOKE READ_ONLY ADMIN ON *.* FROM {ADMIN}@'%';"
                   f"SET GLOBAL read_only = {int(on)}")


class PostgreSQL(Server):
    """postgres, as a user that is not root."""

    engine = "postgresql"

    def create(self):
        """The data folder, an admin for steward, and a database to give rights on."""
        self.data = self.folder / "data"
        self.data.mkdir()
        if os.geteuid() == 0:
            self.folder.chmod(0o755)
            shutil.chown(self.data, "nobody", "nogroup")
        k8s.run([*_as("nobody"), self.program("initdb"), "-D", self.data, "-U", "root", "--auth=trust",
                 "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"], cwd=self.data)
        (self.data / "pg_hba.conf").write_text("local all all trust\n"
                                               "host all all 127.0.0.1/32 scram-sha-256\n")
        self.start()
        self.query(f"CREATE ROLE {ADMIN} SUPERUSER LOGIN PASSWORD '{ADMIN_PASSWORD}'")
        self.query("CREATE DATABASE shop")
        self.query("CREATE TABLE orders (n INT); INSERT INTO orders VALUES (1)", "shop")
        return self

    @staticmethod
    def program(name):
        """Debian keeps them out of the way."""
        return str(POSTGRES_FOLDERS[-1] / name)

    def command(self):
        return [*_as("nobody"), self.program("postgres"), "-D", str(self.data), "-p", str(self.port),
                "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.data}",
                "-c", "fsync=off", "-c", "max_connections=60"]

    def query(self, sql, database="postgres"):
        output = k8s.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-F", "\t",
                          "-h", self.data, "-p", str(self.port), "-U", "root", "-d", database,
                          "-c", sql], timeout=30).stdout
        return [line.split("\t") for line in output.splitlines()]

    def login(self, user, password, sql="SELECT 1", database="shop"):
        """Whether a client that logs in so may run this."""
        return k8s.run(["psql", "-X", "-h", "127.0.0.1", "-p", str(self.port), "-U", user,
                        "-d", database, "-c", sql], check=False, timeout=30,
                       env={**os.environ, "PGPASSWORD": password}).returncode == 0

    def accounts(self):
        """Roles that are no part of the installation."""
        rows = self.query("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'")
        return {r[0] for r in rows if r[0] not in SYSTEM_USERS}


def mariadb_there():
    """Whether the packages are installed."""
    return all(shutil.which(p) for p in ("mariadbd", "mariadb-install-db", "mariadb"))


def postgresql_there():
    """Whether the packages are installed."""
    return bool(POSTGRES_FOLDERS) and bool(shutil.which("psql"))
