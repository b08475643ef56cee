# SPDX-License-Identifier: Apache-2.0
"""The API server's REST interface over one kept connection for each thread.

`Api` takes paths, `observe` waits with a watch; support/cluster.py takes kinds and names.
"""

import base64
import contextlib
import dataclasses
import http.client
import json
import math
import os
import queue
import select
import socket
import ssl
import tempfile
import threading
import time
import urllib.parse

import yaml

from .wait import TimedOut

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
# What a request raises when the server goes away during it.
GONE = (OSError, http.client.HTTPException)
# A check may depend on more than the object that is watched.
LOOK_AGAIN_SECONDS = 0.25


@dataclasses.dataclass
class Reply:
    """The server's answer."""

    status: int
    object: dict
    warnings: list


class Refused(AssertionError):
    """A request that had to succeed failed; the text has the request and the answer."""

    def __init__(self, method, path, reply):
        self.status, self.object = reply.status, reply.object
        super().__init__(f"{method} {path}: {reply.status} {reply.object.get('reason', '')}: "
                         f"{reply.object.get('message', reply.object)}")


class _WatchEnded(Exception):
    """The server ended a watch, or reported that its resourceVersion is too old."""


class Api:
    """Requests with the rights of a kubeconfig; `headers` are what it sends with each."""

    def __init__(self, kubeconfig):
        self.url, self.tls, self.headers = _read_kubeconfig(kubeconfig)
        self.local = threading.local()

    def connect(self):
        """A new connection."""
        return http.client.HTTPSConnection(self.url, context=self.tls, timeout=60)

    def request(self, method, path, body=None, content_type=JSON):
        """A Reply, with any status.  OSError or HTTPException: the result is unknown."""
        connection = self._kept()
        headers = dict(self.headers, **({"Content-Type": content_type} if body else {}))
        try:
            text = body if isinstance(body, bytes) else json.dumps(body) if body else None
            connection.request(method, path, text, headers)
            reply = connection.getresponse()
            text = reply.read()
        except GONE:
            connection.close()
            raise
        return Reply(reply.status, _parsed(text, reply.getheader("Content-Type", "")),
                     [_text_of_warning(w) for w in reply.headers.get_all("Warning", ())])

    def call(self, method, path, body=None, content_type=JSON):
        """(status, object).  OSError or HTTPException: the result is unknown."""
        reply = self.request(method, path, body, content_type)
        return reply.status, reply.object

    def do(self, method, path, body=None, content_type=JSON):
        """The object of a request that has to succeed."""
        reply = self.request(method, path, body, content_type)
        if reply.status >= 300:
            raise Refused(method, path, reply)
        return reply.object

    def _kept(self):
        """This thread's connection, closed when the server has closed its end: the next request then
        opens a new one."""
        if not hasattr(self.local, "connection"):
            self.local.connection = self.connect()
        connection = self.local.connection
        if connection.sock and _is_readable(connection.sock):
            connection.close()
        return connection

    def write_all(self, calls):
        """Sends (method, path, body, content type) over a few connections; all have to succeed."""
        todo = queue.Queue()
        for call in calls:
            todo.put(call)
        failures = []

        def work():
            with contextlib.suppress(queue.Empty):
                while True:
                    status, reply = self.call(*todo.get_nowait())
                    if status >= 300:
                        failures.append(reply.get("message"))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise RuntimeError(f"{len(failures)} writes were refused: {failures[0]}")

    def each(self, path):
        """All objects of a collection, in pages."""
        token = ""
        while True:
            page = self.do("GET", with_query(path, limit=500, **{"continue": token}))
            yield from page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return

    def watch(self, path, version):
        """(type, object) of a watch, until the server ends it."""
        with contextlib.closing(self.connect()) as connection:
            yield from self._events(connection, with_query(path, watch=1, resourceVersion=version))

    def _events(self, connection, path):
        connection.request("GET", path, headers=self.headers)
        reply = connection.getresponse()
        if reply.status >= 300:
            raise Refused("GET", path, Reply(reply.status, _parsed(reply.read()), []))
        for line in reply:
            event = json.loads(line)
            yield event["type"], event["object"]

    def observe(self, what, path, look, seconds=60):
        """Calls look([object, ...]) with the collection of `path`, again after each change of it,
        until it returns something true, and returns that.

        A request to a server that goes away is repeated.  An exception of look() counts as false;
        the last one is shown at the deadline, with `what`, which completes "still waiting for ...".
        """
        deadline = time.monotonic() + seconds
        state = _Looks(look)
        pause = 0.02
        while True:
            try:
                with contextlib.closing(_Collection(self, path, seconds)) as collection:
                    pause = 0.02
                    while not state.over(collection.objects.values()):
                        if time.monotonic() >= deadline:
                            raise TimedOut(f"after {seconds} s still waiting for {what}; "
                                           f"last: {state.result!r}") from state.failure
                        collection.follow(min(LOOK_AGAIN_SECONDS, deadline - time.monotonic()))
                    return state.result
            except (*GONE, ValueError, Refused, _WatchEnded) as error:
                if time.monotonic() >= deadline:
                    raise TimedOut(f"after {seconds} s still waiting for {what}: {error}") from error
                time.sleep(pause)
                pause = min(2 * pause, 0.5)


class _Looks:
    """The last result of look()."""

    def __init__(self, look):
        self.look, self.result, self.failure = look, None, None

    def over(self, objects):
        self.failure = None
        try:
            self.result = self.look(list(objects))
        except Exception as error:
            self.result, self.failure = None, error
        return bool(self.result)


class _Collection:
    """The objects of a collection, kept up to date by a watch that a thread reads."""

    def __init__(self, api, path, seconds):
        self.api, self.path, self.seconds = api, path, seconds
        self.connection, self.changes = None, queue.SimpleQueue()
        listed = api.do("GET", path)
        kind = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
        self.objects = {_key(o): {**kind, **o} for o in listed["items"]}
        self.version = listed["metadata"]["resourceVersion"]

    def follow(self, seconds):
        """Waits up to `seconds` for a change, and applies all that have arrived."""
        if self.connection is None:
            self.connection = self.api.connect()
            threading.Thread(target=self._read, daemon=True).start()
        with contextlib.suppress(queue.Empty):
            change = self.changes.get(timeout=max(seconds, 0.001))
            while True:
                self._take(change)
                change = self.changes.get_nowait()

    def _take(self, change):
        if isinstance(change, Exception):
            raise change
        kind, obj = change
        if kind == "ERROR":
            raise _WatchEnded(obj.get("message"))
        if kind == "DELETED":
            self.objects.pop(_key(obj), None)
        else:
            self.objects[_key(obj)] = obj

    def _read(self):
        path = with_query(self.path, watch=1, resourceVersion=self.version,
                          timeoutSeconds=math.ceil(self.seconds) + 1)
        try:
            self.connection.timeout = self.seconds + 5
            for change in self.api._events(self.connection, path):
                self.changes.put(change)
            self.changes.put(_WatchEnded("the server ended the watch"))
        except Exception as error:  # for the thread that waits; unread after close()
            self.changes.put(error)

    def close(self):
        """Ends the watch, and so its thread."""
        sock = self.connection and self.connection.sock
        if sock:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


def with_query(path, **query):
    """The path with these parameters, without those that are empty."""
    query = {key: value for key, value in query.items() if value not in ("", None)}
    if not query:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urllib.parse.urlencode(query)}"


def _key(obj):
    return obj["metadata"].get("namespace"), obj["metadata"]["name"]


def _parsed(text, content_type=JSON):
    """The object of a body; what is not JSON is a message."""
    if not content_type.startswith(JSON):
        return {"message": text.decode("utf-8", "replace").strip()}
    return json.loads(text) if text else {}


def _text_of_warning(header):
    """The text of a Warning header: 299 - "text"."""
    text = header.partition('"')[2].rpartition('"')[0]
    return text.replace('\\"', '"').replace("\\\\", "\\")


def _is_readable(sock):
    """Whether an idle connection is readable, which only means that the server has closed it."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _read_kubeconfig(path):
    """(HOST:PORT, TLS context, headers) of a kubeconfig's current context."""
    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], context["cluster"])["cluster"]
    user = _named(config["users"], context["user"])["user"]
    base = os.path.dirname(os.path.abspath(path))
    tls = ssl.create_default_context()
    if cluster.get("certificate-authority-data"):
        tls.load_verify_locations(cadata=base64.b64decode(
            cluster["certificate-authority-data"]).decode())
    elif cluster.get("certificate-authority"):
        tls.load_verify_locations(os.path.join(base, cluster["certificate-authority"]))
    _give_pair(tls, user, base)
    headers = {"Authorization": f"Bearer {user['token']}"} if user.get("token") else {}
    return urllib.parse.urlsplit(cluster["server"]).netloc, tls, headers


def _named(entries, name):
    return next(e for e in entries if e["name"] == name)


def _give_pair(tls, user, base):
    """Loads the client certificate of a user who has one."""
    if user.get("client-certificate"):
        tls.load_cert_chain(*(os.path.join(base, user[k])
                              for k in ("client-certificate", "client-key")))
    elif user.get("client-certificate-data"):
        with tempfile.NamedTemporaryFile() as pair:
            for key in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[key]))
            pair.flush()
            tls.load_cert_chain(pair.name)
