# SPDX-License-Identifier: Apache-2.0
"""A MySQL server (8.0 or newer) on loopback for tests.  Debian 12 has none, so that these tests run
only where $STEWARD_TEST_MYSQL_ROOT names a folder into which the packages of one were unpacked with
all the libraries that they need, or where mysqld is installed."""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from . import dbserver, mariadb


def _unpacked():
    root = os.environ.get("STEWARD_TEST_MYSQL_ROOT")
    return pathlib.Path(root) if root else None


def _command():
    """The beginning of a command that runs mysqld, with its own loader and libraries."""
    root = _unpacked()
    if not root:
        path = dbserver.program("mysqld")
        version = subprocess.run([path, "--version"], check=False, capture_output=True,
                                 text=True).stdout if path else ""
        return [path] if path and "MariaDB" not in version else None
    libraries = next(root.glob("usr/lib/*-linux-gnu"), None)
    if not libraries:
        return None
    return [next(libraries.glob("ld-linux*")), "--library-path",
            f"{libraries}:{libraries}/mysql/private:{root}/usr/lib/mysql/private",
            root / "usr/sbin/mysqld"]


def missing():
    """Why no server can be started here; "" when one can."""
    return "" if _command() else "there is no MySQL server (STEWARD_TEST_MYSQL_ROOT)"


def _flags():
    root = _unpacked()
    return ["--no-defaults", *(["--user=root"] if os.geteuid() == 0 else []),
            *([f"--lc-messages-dir={root}/usr/share/mysql",
               f"--plugin-dir={root}/usr/lib/mysql/plugin"] if root else [])]


@functools.cache
def _template():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="steward-mysql-"))
    import atexit
    atexit.register(shutil.rmtree, folder, True)
    subprocess.run([*map(str, _command()), *_flags(), "--initialize-insecure",
                    f"--datadir={folder}/data"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return folder / "data"


class MySQL(mariadb.MariaDB):
    """One server; `flags` go to mysqld."""

    engine = "mysql"
    template = staticmethod(_template)

    def start(self, *more):
        """Starts it (again) and waits until it answers."""
        tls = self.folder / "tls"
        self.spawn([*_command(), *_flags(), f"--datadir={self.folder}/data",
                    f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
                    "--mysqlx=OFF", "--secure-file-priv=NULL", f"--pid-file={self.folder}/pid", f"--ssl-ca={self.ca}",
                    f"--ssl-cert={tls}/tls.crt", f"--ssl-key={tls}/tls.key", "--general-log=1",
                    f"--general-log-file={self.folder}/general.log", "--disable-log-bin",
                    "--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF",
                    "--skip-name-resolve", "--max-connections=60", *self.flags, *more])
        self.wait_ready()

    def accounts(self, user):
        """Its hosts."""
        rows = self.sql(f"SELECT Host FROM mysql.user WHERE User={mariadb.quote(user)}")
        return sorted(row[0] for row in rows)

