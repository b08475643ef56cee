# SPDX-License-Identifier: Apache-2.0
"""A MySQL server (8.0 or newer) on loopback for tests.  Debian 12 has none; scripts/bootstrap
unpacks one."""

import atexit
import functools
import os
import shutil
import subprocess

from . import dbserver, mariadb, scratch

PROGRAM = "usr/sbin/mysqld"


def missing(line):
    """Why no server of this line can be started here; "" when one can."""
    if not shutil.which("mariadb"):
        return "there is no mariadb, the client"
    return dbserver.missing("mysql", line, PROGRAM)


def _flags(installed):
    return ["--no-defaults", *(["--user=root"] if os.geteuid() == 0 else []),
            f"--lc-messages-dir={installed.root}/usr/share/mysql",
            f"--plugin-dir={installed.root}/usr/lib/mysql/plugin", "--innodb-redo-log-capacity=8M"]


@functools.cache
def _template(installed):
    """A fresh data folder, made once a run and copied for each server."""
    folder = scratch.folder("mysql")
    atexit.register(shutil.rmtree, folder, True)
    subprocess.run([installed.program, *_flags(installed), "--initialize-insecure",
                    f"--datadir={folder}/data"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return folder / "data"


class MySQL(mariadb.MariaDB):
    """One server; `flags` go to mysqld."""

    engine = "mysql"
    path = PROGRAM
    template = staticmethod(_template)

    def start(self, *more):
        """Starts it (again) and waits until it answers."""
        tls = self.folder / "tls"
        self.spawn([self.installed.program, *_flags(self.installed), f"--datadir={self.folder}/data",
                    f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
                    "--mysqlx=OFF", "--secure-file-priv=NULL", f"--pid-file={self.folder}/pid",
                    f"--ssl-ca={self.ca}", f"--ssl-cert={tls}/tls.crt", f"--ssl-key={tls}/tls.key",
                    "--general-log=1", f"--general-log-file={self.folder}/general.log",
                    "--disable-log-bin", "--innodb-flush-log-at-trx-commit=2",
                    "--performance-schema=OFF", "--skip-name-resolve", "--max-connections=60",
                    *self.flags, *more])
        self.wait_ready()

    def accounts(self, user):
        """The hosts of an account."""
        rows = self.sql(f"SELECT Host FROM mysql.user WHERE User={mariadb.quote(user)}")
        return sorted(row[0] for row in rows)
