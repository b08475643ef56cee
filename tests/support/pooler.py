# SPDX-License-Identifier: Apache-2.0
"""Debian's PgBouncer in transaction mode, before a PostgreSQL server: each transaction of a client may get
another session of the server."""

import contextlib
import shutil
import socket
import subprocess

from . import dbserver, net, scratch, wait


@contextlib.contextmanager
def before(server, **passwords):
    """Its port.  `passwords` are those of accounts that log in beside the admin."""
    program = dbserver.program("pgbouncer")
    assert program, "pgbouncer is missing: scripts/bootstrap test"
    folder, port = scratch.folder("pgbouncer"), net.free_port()
    tls = server.folder / "tls"
    for name in ("tls.crt", "tls.key"):
        (folder / name).write_bytes((tls / name).read_bytes())
    users = {dbserver.ADMIN: dbserver.ADMIN_PASSWORD, **passwords}
    (folder / "users").write_text("".join(f'"{u}" "{p}"\n' for u, p in users.items()))
    (folder / "ini").write_text(f"""[databases]
* = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {folder}/users
pool_mode = transaction
server_tls_sslmode = require
client_tls_sslmode = require
client_tls_key_file = {folder}/tls.key
client_tls_cert_file = {folder}/tls.crt
ignore_startup_parameters = extra_float_digits,options
logfile = {folder}/log
default_pool_size = 20
""")
    for path in (folder, *folder.iterdir()) if server.user else ():
        shutil.chown(path, server.user.pw_uid, server.user.pw_gid)
    process = subprocess.Popen([*dbserver.as_user(server.user), program, folder / "ini"], cwd="/",
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait.until("PgBouncer to listen", lambda: _listens(port))
        yield port
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def _listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
