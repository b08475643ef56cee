# SPDX-License-Identifier: Apache-2.0
"""Applications that log in to a database server, many times a second, through the servers' own client
libraries."""

import base64
import collections
import ctypes
import ctypes.util
import threading
import time

from . import wait

THREADS = 4


class _Pq:
    """libpq."""

    def __init__(self, server):
        self.lib = ctypes.CDLL("libpq.so.5")
        self.lib.PQconnectdb.restype = ctypes.c_void_p
        self.lib.PQconnectdb.argtypes = [ctypes.c_char_p]
        self.lib.PQerrorMessage.restype = ctypes.c_char_p
        for name in ("PQstatus", "PQfinish", "PQerrorMessage"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p]
        self.where = f"host=127.0.0.1 port={server.port} dbname=shop sslmode=require connect_timeout=10"

    def login(self, user, password):
        """"" or the error."""
        conn = self.lib.PQconnectdb(f"{self.where} user='{user}' password='{password}'".encode())
        try:
            return "" if self.lib.PQstatus(conn) == 0 else self.lib.PQerrorMessage(conn).decode()
        finally:
            self.lib.PQfinish(conn)


class _Maria:
    """libmariadb."""

    def __init__(self, server):
        self.lib = ctypes.CDLL("libmariadb.so.3")
        self.lib.mysql_init.restype = ctypes.c_void_p
        self.lib.mysql_init.argtypes = [ctypes.c_void_p]
        text, pointer = ctypes.c_char_p, ctypes.c_void_p
        self.lib.mysql_ssl_set.argtypes = [pointer, text, text, text, text, text]
        self.lib.mysql_real_connect.restype = pointer
        self.lib.mysql_real_connect.argtypes = [pointer, text, text, text, text, ctypes.c_uint, text,
                                                ctypes.c_ulong]
        self.lib.mysql_error.restype = text
        for name in ("mysql_error", "mysql_close"):
            getattr(self.lib, name).argtypes = [pointer]
        self.port, self.ca = server.port, str(server.ca).encode()

    def login(self, user, password):
        """"" or the error."""
        conn = self.lib.mysql_init(None)
        try:
            self.lib.mysql_ssl_set(conn, None, None, self.ca, None, None)
            done = self.lib.mysql_real_connect(conn, b"127.0.0.1", user.encode(), password.encode(),
                                               b"shop", self.port, None, 0)
            return "" if done else self.lib.mysql_error(conn).decode()
        finally:
            self.lib.mysql_close(conn)


def client(server):
    """The client library for a server of support.databases."""
    return (_Pq if server.engine == "postgresql" else _Maria)(server)


def connection(cluster, namespace, name):
    """(user, password) of a connection Secret, or None."""
    found = cluster.get("secrets", name, namespace)
    data = (found or {}).get("data") or {}
    if not {"user", "password"} <= set(data):
        return None
    return tuple(base64.b64decode(data[k]).decode() for k in ("user", "password"))


class Applications:
    """Pods of an application: each reads the connection Secret when it starts, logs in at a steady
    rate, and is replaced every `life` seconds.  While it is in a `with` block; afterwards `logins`
    has how many there were, and `failed` those that were refused."""

    def __init__(self, cluster, server, namespace, secret, rate=40, life=1.0):
        self.cluster, self.server = cluster, server
        self.namespace, self.secret = namespace, secret
        self.every, self.life = THREADS / rate, life
        self.logins, self.failed, self.users = 0, [], collections.Counter()
        self.over, self.lock, self.threads = threading.Event(), threading.Lock(), []

    def _run(self):
        lib = client(self.server)
        started, login, at = None, None, time.monotonic()
        while not self.over.wait(max(0.0, at - time.monotonic())):
            now = time.monotonic()
            at = max(at + self.every, now)
            if login is None or now > started + self.life:
                login, started = self._read() or login, now
            if login is None:
                continue
            error = lib.login(*login)
            with self.lock:
                self.logins += 1
                self.users[login[0]] += 1
                if error:
                    self.failed.append((login[0], error.strip()))

    def _read(self):
        try:
            return connection(self.cluster, self.namespace, self.secret)
        except OSError:
            return None

    def __enter__(self):
        self.threads = [threading.Thread(target=self._run) for _ in range(THREADS)]
        for one in self.threads:
            one.start()
        wait.until("the first logins", lambda: self.logins > 4)
        return self

    def __exit__(self, *args):
        self.over.set()
        for one in self.threads:
            one.join(60)
