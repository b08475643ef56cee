# SPDX-License-Identifier: Apache-2.0
"""A MariaDB server on loopback for tests: TLS on, general log on, a data folder of its own."""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess

from . import dblogin, dbserver, sampled, scratch

PROGRAM = "usr/sbin/mariadbd"


def missing(line=None):
    """Why no server of this line can be started here; "" when one can."""
    if not shutil.which("mariadb"):
        return "there is no mariadb, the client"
    return dbserver.missing("mariadb", line or sampled.newest("MARIADB"), PROGRAM)


def _unpacked_flags(installed):
    """The flags for the files of a server that is unpacked, not installed."""
    return [f"--basedir={installed.root}/usr", f"--plugin-dir={installed.root}/usr/lib/mysql/plugin"
            ] if installed.root != pathlib.Path("/") else []


@functools.cache
def _template(installed):
    """A fresh data folder, made once a run and copied for each server."""
    folder = scratch.folder("mariadb")
    atexit.register(shutil.rmtree, folder, True)
    subprocess.run([installed.root / "usr/bin/mariadb-install-db", "--no-defaults",
                    f"--datadir={folder}/data", "--auth-root-authentication-method=normal",
                    "--skip-test-db", "--innodb-log-file-size=8M", *_unpacked_flags(installed)[:1],
                    *_user_flag()],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "data"


def _user_flag():
    return ["--user=root"] if os.geteuid() == 0 else []


def quote(text):
    """A string of the dialect, for statements of tests."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


class MariaDB(dbserver.Server):
    """One server of a release line, by default the newest; `flags` go to mariadbd."""

    engine = "mariadb"
    path = PROGRAM
    template = staticmethod(_template)

    def __init__(self, *flags, line=None):
        super().__init__(dbserver.install(self.engine, line or sampled.newest(self.engine.upper()),
                                          self.path))
        self.flags = flags
        self.socket = self.folder / "socket"
        shutil.copytree(self.template(self.installed), self.folder / "data")
        self.start()
        self.sql(f"CREATE USER '{dbserver.ADMIN}'@'%' IDENTIFIED BY '{dbserver.ADMIN_PASSWORD}'; "
                 f"GRANT ALL PRIVILEGES ON *.* TO '{dbserver.ADMIN}'@'%' WITH GRANT OPTION")

    def start(self, *more):
        """Starts it (again) and waits until it answers."""
        tls = self.folder / "tls"
        # A server that starts removes temporary tables of other servers from a folder they share.
        self.spawn([self.installed.program, "--no-defaults", f"--datadir={self.folder}/data",
                    f"--tmpdir={self.folder}",
                    f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
                    f"--pid-file={self.folder}/pid", f"--ssl-ca={self.ca}",
                    f"--ssl-cert={tls}/tls.crt", f"--ssl-key={tls}/tls.key", "--general-log=1",
                    f"--general-log-file={self.folder}/general.log",
                    "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M",
                    "--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF",
                    "--skip-name-resolve", "--max-connections=60",
                    *_unpacked_flags(self.installed), *_user_flag(), *self.flags, *more])
        self.wait_ready()

    def target(self, name, **more):
        """An entry of the list of targets; grants on all databases are allowed."""
        return super().target(name, **{"allowAllDatabases": True, **more})

    def answers(self):
        """Whether it answers."""
        return self.run_client("-e", "SELECT 1", check=False).returncode == 0

    def run_client(self, *args, check=True, user="root", password=None, tcp=False, stdin=None,
                   host="127.0.0.1"):
        """The command line client; its result."""
        # With TLS the client reads all certificates of the machine first, which takes 35 ms of CPU.
        where = ["--protocol=tcp", f"-h{host}", f"-P{self.port}", "--ssl",
                 f"--ssl-ca={self.ca}"] if tcp else [f"--socket={self.socket}", "--skip-ssl"]
        env = {**os.environ, "MYSQL_PWD": password} if password else dict(os.environ)
        return subprocess.run(["mariadb", "--no-defaults", "--default-character-set=utf8mb4",
                               "-N", "-B", "--raw", *where, f"--user={user}", *args], check=check,
                              env=env, input=stdin, capture_output=True, timeout=60,
                              text=True, errors="surrogateescape")

    def sql(self, text):
        """Runs statements as root; the rows as lists of strings."""
        result = self.run_client(stdin=text, check=False)
        assert result.returncode == 0, f"{text}: {result.stderr}"
        return [line.split("\t") for line in result.stdout.splitlines()]

    def logs_in(self, user, password, statement=None):
        """Whether this login works, and may run the statement."""
        if statement is None:
            return not dblogin.client(self).login(user, password)
        return self.run_client("-e", statement, check=False, user=user, password=password,
                               tcp=True).returncode == 0

    def accounts(self, user):
        """The hosts of an account."""
        rows = self.sql(f"SELECT Host FROM mysql.global_priv WHERE BINARY User={quote(user)}")
        return sorted(row[0] for row in rows)

    def marks(self, user):
        """Rows of steward.accounts, by host."""
        if not self.sql("SHOW DATABASES LIKE 'steward'"):
            return {}
        rows = self.sql("SELECT host, owner, owner_uid, state, made, rights FROM steward.accounts "
                        f"WHERE HEX(user)='{user.encode().hex()}'")
        return {row[0]: row[1:] for row in rows}

    def grants(self, user, host="%"):
        """SHOW GRANTS, without verifiers."""
        rows = self.sql(f"SHOW GRANTS FOR {quote(user)}@{quote(host)}")
        lines = (row[0].split(" IDENTIFIED BY")[0] for row in rows)
        return sorted(line for line in lines if not line.startswith("GRANT USAGE"))
