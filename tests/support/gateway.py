# SPDX-License-Identifier: Apache-2.0
"""etcd as its clients see it, through its JSON gateway; and a writer that counts."""

import base64
import http.client
import json
import threading
import time


def b64(text):
    """Keys and values in the form of the gateway."""
    return base64.b64encode(text.encode()).decode()


def text_of(encoded):
    """The inverse of b64()."""
    return base64.b64decode(encoded).decode()


class Refused(Exception):
    """etcd answered, and refused the request."""


class Gateway:
    """One address of etcd; keeps its connection.  Not for use by two threads."""

    def __init__(self, host, port=2379, tls=None, timeout=3):
        self.host, self.port, self.tls, self.timeout = host, port, tls, timeout
        self.connection = None

    def close(self):
        """Closes the connection."""
        if self.connection:
            self.connection.close()
        self.connection = None

    def post(self, path, body=None):
        """The answer as a dict.  Refused: etcd refused.  OSError: the result is unknown."""
        if self.connection is None:
            kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
            more = {"context": self.tls} if self.tls else {}
            self.connection = kind(self.host, self.port, timeout=self.timeout, **more)
        try:
            self.connection.request("POST", path, json.dumps(body or {}),
                                    {"Content-Type": "application/json"})
            reply = self.connection.getresponse()
            data = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise OSError(f"{self.host}: {error!r}") from error
        if reply.status != 200:
            raise Refused(f"{self.host} {path}: {reply.status} {data[:300]!r}")
        return json.loads(data)

    def put(self, key, value):
        """Puts, and returns the revision."""
        return int(self.post("/v3/kv/put", {"key": b64(key), "value": b64(value)})
                   ["header"]["revision"])

    def get(self, key):
        """The value, by a linearizable read; None when there is none."""
        found = self.post("/v3/kv/range", {"key": b64(key)}).get("kvs")
        return text_of(found[0].get("value", "")) if found else None

    def prefix(self, prefix, serializable=False):
        """{key: value} of all keys with this prefix."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        found, key = {}, prefix
        while True:
            answer = self.post("/v3/kv/range", {"key": b64(key), "range_end": b64(end),
                                                "limit": 2000, "serializable": serializable})
            pairs = [(text_of(p["key"]), text_of(p.get("value", ""))) for p in answer.get("kvs", [])]
            found.update(pairs)
            if not answer.get("more"):
                return found
            key = pairs[-1][0] + "\0"

    def status(self):
        """Its own status."""
        return self.post("/v3/maintenance/status")

    def write_database(self):
        """Writes what the member buffers for its database, for up to 100 ms, to the disk."""
        self.post("/v3/maintenance/hash")

    def members(self):
        """Its list of members, linearizable where it can be (etcd 3.5)."""
        return self.post("/v3/cluster/member/list", {"linearizable": True})["members"]

    def contents(self, revision):
        """{key: (value, created, changed, how often)} as this member has it at a revision.

        The hash cannot be used: /v3/maintenance/hash of the gateways of 3.4 and 3.5 is not HashKV
        but the hash of the whole file, for any revision, and that differs between members which are
        not at the same entry of the log."""
        found, key = {}, "\0"
        while True:
            answer = self.post("/v3/kv/range", {
                "key": b64(key), "range_end": b64("\0"), "limit": 200, "serializable": True,
                "revision": revision})
            pairs = answer.get("kvs", [])
            for p in pairs:
                found[text_of(p["key"])] = (text_of(p.get("value", "")), p["create_revision"],
                                            p["mod_revision"], p["version"])
            if not answer.get("more"):
                return found
            key = text_of(pairs[-1]["key"]) + "\0"


class Rotating:
    """A client that knows all members, as etcd's own clients do: after one without an answer it asks
    the next one, once."""

    def __init__(self, gateways):
        self.gateways = list(gateways)

    def _ask(self, call):
        try:
            return call(self.gateways[0])
        except (OSError, Refused):
            self.gateways.append(self.gateways.pop(0))
            return call(self.gateways[0])

    def put(self, key, value):
        """As Gateway.put."""
        return self._ask(lambda one: one.put(key, value))

    def prefix(self, prefix):
        """As Gateway.prefix."""
        return self._ask(lambda one: one.prefix(prefix))


class Writer:
    """Puts numbered keys, one after the other, and records each that was acknowledged.

    A put without an answer may have happened or not; it is not repeated, the next number follows.
    As a context manager: after a block without an exception, no acknowledged key may be missing.
    """

    def __init__(self, gateway, prefix="w/", pause=0.05):
        self.gateway, self.prefix, self.pause = gateway, prefix, pause
        self.acknowledged = []  # numbers
        self.sent = self.failures = 0
        self.longest_gap = 0.0  # seconds between two acknowledgements
        self.last_error = None
        self._last = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is None:
            self.check()

    def _run(self):
        while not self._ending.is_set():
            number, self.sent = self.sent, self.sent + 1
            try:
                self.gateway.put(f"{self.prefix}{number:08}", str(number))
            except (OSError, Refused) as error:
                self.last_error, self.failures = error, self.failures + 1
                self._ending.wait(0.1)
                continue
            now = time.monotonic()
            if self._last is not None:
                self.longest_gap = max(self.longest_gap, now - self._last)
            self._last = now
            self.acknowledged.append(number)
            self._ending.wait(self.pause)

    def stop(self):
        """Ends it; the time since the last acknowledgement counts as a gap, too."""
        self._ending.set()
        self._thread.join(30)
        if self._last is not None:
            self.longest_gap = max(self.longest_gap, time.monotonic() - self._last)

    def lost(self, gateway=None):
        """The acknowledged numbers that are not stored."""
        return self.lost_in((gateway or self.gateway).prefix(self.prefix))

    def lost_in(self, found):
        """The same, of {key: value}."""
        return [n for n in self.acknowledged if found.get(f"{self.prefix}{n:08}") != str(n)]

    def check(self, gateway=None):
        """Asserts that nothing is lost; returns how many were acknowledged."""
        assert self.acknowledged, f"nothing could be written at all: {self.last_error}"
        lost = self.lost(gateway)
        assert not lost, f"{len(lost)} of {len(self.acknowledged)} writes are lost: {lost[:10]} ..."
        return len(self.acknowledged)

    def wait_writes(self, more=5, seconds=60):
        """Waits until `more` further writes are acknowledged."""
        aim, deadline = len(self.acknowledged) + more, time.monotonic() + seconds
        while len(self.acknowledged) < aim:
            assert time.monotonic() < deadline, \
                f"nothing is written any more for {seconds} s: {self.last_error}"
            time.sleep(0.02)


def fill(client):
    """Writes until etcd reports that it is full; how many values of 1 MiB were stored, with keys
    "big/...".  For clusters whose quota is 64 MiB."""
    for number in range(200):
        try:
            client.put(f"big/{number:03}", "x" * (1 << 20))
        except Refused as error:
            assert "database space exceeded" in str(error)
            return number
        except OSError:
            continue
    raise AssertionError("200 MiB went into 64 MiB")
