# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server on loopback for tests: TLS on, all statements logged, a data folder of its
own.  It refuses to run as root: if the tests do, it runs as the user postgres or nobody."""

import atexit
import ctypes
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from . import dblogin, dbserver, sampled, scratch

# psql in Debian's PATH is a Perl script that starts this program: five times as slow.
PSQL = next((str(path) for path in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql"))), "psql")
CERTIFIED = "certified"  # the role that logs in with a certificate, and no password
HBA = f"""local all all trust
hostssl all {CERTIFIED} 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 scram-sha-256
hostssl all all ::1/128 scram-sha-256
"""


def _path(line):
    return f"usr/lib/postgresql/{line}/bin/postgres"


def missing(line):
    """Why no server of this line can be started here; "" when one can."""
    return dbserver.missing("postgresql", line, _path(line))


def _user():
    return dbserver.free_user("postgres") if os.geteuid() == 0 else None


@functools.cache
def _install(line):
    """The server, in a folder that the user it runs as can read."""
    installed, user = dbserver.install("postgresql", line, _path(line)), _user()
    if not user or installed.root == pathlib.Path("/"):
        return installed
    # /dev/shm may be mounted noexec.
    folder = _kept(pathlib.Path(tempfile.mkdtemp(prefix="steward-postgres-")))
    subprocess.run(["cp", "--archive", installed.root / "usr", folder], check=True)
    return installed._replace(root=folder, program=str(folder / _path(line)))


def _kept(folder):
    """Gives a folder to the user that the servers run as; it is removed at the end of the run."""
    atexit.register(shutil.rmtree, folder, True)
    user = _user()
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


@functools.cache
def _template(installed):
    """A fresh data folder, made once a run and copied for each server."""
    folder = _kept(scratch.folder("postgres"))
    subprocess.run([*dbserver.as_user(_user()), str(pathlib.Path(installed.program).parent / "initdb"),
                    "-D", f"{folder}/data", "--no-sync", "-U", "root", "-A", "trust", "-E", "UTF8",
                    "--locale=C"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    return folder / "data"


def quote(text):
    """A string of the dialect, for statements of tests."""
    return "'" + text.replace("'", "''") + "'"


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def heir(cluster, namespace):
    """The role that gets what dropped accounts of this namespace own."""
    hashed = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    hashed.restype, hashed.argtypes = _Hash, [ctypes.c_char_p, ctypes.c_size_t]
    text = f"{cluster}/{namespace}".encode()
    return f"steward_heir_{namespace[:33]}_{hashed(text, len(text)).low:016x}"


def name(text):
    """A quoted name."""
    return '"' + text.replace('"', '""') + '"'


class Postgres(dbserver.Server):
    """One server of a release line, by default the newest; `settings` are name=value."""

    engine = "postgresql"

    def __init__(self, *settings, line=None):
        super().__init__(_install(line or sampled.newest("POSTGRESQL")))
        self.user = _user()
        self.settings = settings
        shutil.copytree(_template(self.installed), self.folder / "data")
        os.chmod(self.folder / "data", 0o700)
        (self.folder / "data" / "pg_hba.conf").write_text(HBA)
        self.own_folder()
        os.chmod(self.folder, 0o755)
        self.start()
        self.sql(f"CREATE ROLE {name(dbserver.ADMIN)} SUPERUSER LOGIN PASSWORD "
                 f"{quote(dbserver.ADMIN_PASSWORD)}")

    def start(self, *more):
        """Starts it (again) and waits until it answers."""
        tls = self.folder / "tls"
        settings = ["fsync=off", "ssl=on", f"ssl_cert_file={tls}/tls.crt",
                    f"ssl_key_file={tls}/tls.key", f"ssl_ca_file={self.ca}", "log_statement=all",
                    "max_connections=60", "max_prepared_transactions=4",
                    "listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}",
                    f"port={self.port}", "shared_buffers=16MB", *self.settings, *more]
        self.spawn([self.installed.program, "-D", self.folder / "data",
                    *(part for s in settings for part in ("-c", s))])
        self.wait_ready()

    def kill(self):
        """Immediate shutdown: SIGKILL would leave its children and shared memory."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
        if self.process:
            self.process.wait(30)

    def target(self, name, **more):
        """An entry of the list of targets; every role may be a new owner."""
        return super().target(name, **{"allowedOwners": ["*"], **more})

    def answers(self):
        """Whether it answers."""
        return self.run_client("SELECT 1", check=False).returncode == 0

    def run_client(self, text, check=True, user="root", database="postgres", password=None,
                   tcp=False):
        """psql; its result."""
        where = "host=127.0.0.1 sslmode=require" if tcp else f"host={self.folder}"
        env = {**os.environ, "PGPASSWORD": password or "", "PGUSER": user, "PGDATABASE": database,
               "PGCLIENTENCODING": "UTF8"}
        return subprocess.run([PSQL, "-X", "-A", "-t", "-q", "-F", "\t", "-v", "ON_ERROR_STOP=1",
                               "-d", f"{where} port={self.port}", "-f", "-"], check=check, env=env,
                              input=text, capture_output=True, timeout=60, text=True,
                              errors="surrogateescape")

    def sql(self, text, database="postgres"):
        """Runs statements as superuser; the rows as lists of strings."""
        result = self.run_client(text, check=False, database=database)
        assert result.returncode == 0, f"{text}: {result.stderr}"
        return [line.split("\t") for line in result.stdout.splitlines()]

    def logs_in(self, user, password, database="postgres"):
        """Whether this login works."""
        return not dblogin.client(self, database).login(user, password)

    def exists(self, role):
        """Whether there is such a role."""
        return bool(self.sql(f"SELECT 1 FROM pg_roles WHERE rolname = {quote(role)}"))

    def comment(self, role):
        """The comment on a role."""
        rows = self.sql("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = "
                        f"{quote(role)}")
        return rows[0][0] if rows else ""
