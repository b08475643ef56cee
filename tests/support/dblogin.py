# SPDX-License-Identifier: Apache-2.0
"""Applications that log in to a database server, many times a second, through the servers' own client
libraries."""

import base64
import collections
import ctypes
import threading
import time

from . import wait

THREADS = 4
SECONDS = 10  # for a login


class _Client:
    """What both libraries do."""

    def login(self, user, password):
        """"" or the error."""
        conn = self.open(user, password)
        try:
            return self.error(conn)
        finally:
            self.close(conn)


def _quote(text):
    """A value of a connection string of libpq."""
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


class _Pq(_Client):
    """libpq."""

    def __init__(self, server, database):
        self.lib = ctypes.CDLL("libpq.so.5")
        for name, returned, more in (("PQconnectdb", ctypes.c_void_p, None),
                                     ("PQerrorMessage", ctypes.c_char_p, []),
                                     ("PQexec", ctypes.c_void_p, [ctypes.c_char_p]),
                                     ("PQresultStatus", ctypes.c_int, []),
                                     ("PQstatus", ctypes.c_int, []), ("PQclear", None, []),
                                     ("PQfinish", None, [])):
            function = getattr(self.lib, name)
            function.restype = returned
            function.argtypes = [ctypes.c_char_p] if more is None else [ctypes.c_void_p, *more]
        self.where = f"host=127.0.0.1 port={server.port} dbname={database} sslmode=require " \
                     f"connect_timeout={SECONDS}"

    def open(self, user, password):
        """A connection, also one that failed."""
        return self.lib.PQconnectdb(f"{self.where} user={_quote(user)} password={_quote(password)}".encode())

    def error(self, conn):
        """Of its login; "" if it works."""
        return "" if self.lib.PQstatus(conn) == 0 else self.lib.PQerrorMessage(conn).decode()

    def ping(self, conn):
        """Whether a statement works."""
        result = self.lib.PQexec(conn, b"SELECT 1")
        done = self.lib.PQresultStatus(result)
        self.lib.PQclear(result)
        return done == 2  # PGRES_TUPLES_OK

    def run(self, conn, text):
        """"" or the error."""
        result = self.lib.PQexec(conn, text.encode())
        failed = self.lib.PQresultStatus(result) not in (1, 2)  # PGRES_COMMAND_OK, PGRES_TUPLES_OK
        self.lib.PQclear(result)
        return self.lib.PQerrorMessage(conn).decode() if failed else ""

    def close(self, conn):
        """Ends it."""
        self.lib.PQfinish(conn)


# Of enum mysql_option in mysql.h.
_CONNECT_TIMEOUT, _CHARSET, _READ_TIMEOUT = 0, 7, 11


class _Maria(_Client):
    """libmariadb."""

    def __init__(self, server, database):
        self.lib = ctypes.CDLL("libmariadb.so.3")
        text, pointer = ctypes.c_char_p, ctypes.c_void_p
        for name, returned, arguments in (
                ("mysql_init", pointer, []), ("mysql_ssl_set", ctypes.c_int, [text] * 5),
                ("mysql_options", ctypes.c_int, [ctypes.c_int, pointer]),
                ("mysql_real_connect", pointer, [text, text, text, text, ctypes.c_uint, text,
                                                 ctypes.c_ulong]),
                ("mysql_error", text, []), ("mysql_ping", ctypes.c_int, []),
                ("mysql_query", ctypes.c_int, [text]), ("mysql_store_result", pointer, []),
                ("mysql_free_result", None, []),
                ("mysql_close", None, [])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = returned, [pointer, *arguments]
        self.port, self.ca, self.database = server.port, str(server.ca).encode(), database.encode()

    def open(self, user, password):
        """A connection, also one that failed."""
        conn = self.lib.mysql_init(None)
        for option in (_CONNECT_TIMEOUT, _READ_TIMEOUT):
            self.lib.mysql_options(conn, option, ctypes.byref(ctypes.c_uint(SECONDS)))
        self.lib.mysql_options(conn, _CHARSET, b"utf8mb4")
        self.lib.mysql_ssl_set(conn, None, None, self.ca, None, None)
        self.lib.mysql_real_connect(conn, b"127.0.0.1", user.encode(), password.encode(),
                                    self.database, self.port, None, 0)
        return conn

    def error(self, conn):
        """Of its login; "" if it works."""
        return self.lib.mysql_error(conn).decode()

    def ping(self, conn):
        """Whether the server answers."""
        return self.lib.mysql_ping(conn) == 0

    def run(self, conn, text):
        """"" or the error."""
        if self.lib.mysql_query(conn, text.encode()) != 0:
            return self.error(conn)
        self.lib.mysql_free_result(self.lib.mysql_store_result(conn))
        return ""

    def close(self, conn):
        """Ends it."""
        self.lib.mysql_close(conn)


class Session:
    """A session that is open in a `with` block."""

    def __init__(self, server, user, password, database=None):
        lib = client(server, database)
        self.lib, self.conn = lib, lib.open(user, password)
        assert not lib.error(self.conn), lib.error(self.conn)

    def works(self):
        """Whether the server still answers."""
        return self.lib.ping(self.conn)

    def run(self, text):
        """Runs statements, whose result is not read; they must succeed."""
        assert not self.lib.run(self.conn, text)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.lib.close(self.conn)


def client(server, database=None):
    """The client library for a server of support.databases."""
    postgresql = server.engine == "postgresql"
    database = database or ("postgres" if postgresql else "information_schema")
    return (_Pq if postgresql else _Maria)(server, database)


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
        lib = client(self.server, "shop")
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
