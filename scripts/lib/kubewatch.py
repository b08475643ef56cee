# SPDX-License-Identifier: Apache-2.0
"""Collections of an API server, kept up to date by watches: for what runs beside a cluster's node."""

import http.client
import json
import pathlib
import re
import ssl
import threading
import time
import urllib.parse

WATCH_SECONDS = 300
TIMEOUT_SECONDS = 330  # of a connection: a watch that the server does not end in time is dead
PAUSE_SECONDS = 0.5    # before a request that failed is repeated
FLOCK_SECONDS = 0.1    # changes come in flocks
# What a request raises when the server goes away during it.
GONE = (OSError, http.client.HTTPException, ValueError)


class Refused(Exception):
    """An answer that is not a success."""

    def __init__(self, status, text):
        super().__init__(f"{status} {text.decode(errors='replace')}")
        self.status = status


class Api:
    """Requests with the rights of a cluster's administrator, over a kept connection.  Not for several
    threads at once."""

    def __init__(self, cluster, url):
        """`cluster` is the folder of the cluster."""
        settings = (pathlib.Path(cluster) / "run" / "curlrc").read_text("utf-8")
        values = dict(re.findall(r'^(\w+) = "(.*)"$', settings, re.MULTILINE))
        name, _, value = values["header"].partition(": ")
        self.headers = {name: value, "Content-Type": "application/json"}
        self.connection = http.client.HTTPSConnection(
            urllib.parse.urlsplit(url).netloc, timeout=TIMEOUT_SECONDS,
            context=ssl.create_default_context(cafile=values["cacert"]))

    def open(self, method, path, body=None):
        """The answer to a request, to be read by the caller."""
        try:
            self.connection.request(method, path, json.dumps(body) if body else None, self.headers)
            reply = self.connection.getresponse()
            if reply.status >= 300:
                raise Refused(reply.status, reply.read())
            return reply
        except GONE:
            self.connection.close()
            raise

    def do(self, method, path, body=None):
        """The object that a request answers with."""
        return json.loads(self.open(method, path, body).read())


class Collection:
    """The objects of a path by (namespace, name), read by a thread of its own."""

    def __init__(self, api, path, changed):
        """`changed` is set after each change."""
        self.api, self.path, self.changed = api, path, changed
        self.objects = None  # until it was listed
        threading.Thread(target=self._run, daemon=True).start()

    def items(self):
        """All objects as they are known now."""
        return list((self.objects or {}).values())

    def _run(self):
        while True:
            try:
                self._follow(self._list())
            except (*GONE, Refused):
                self.api.connection.close()
                time.sleep(PAUSE_SECONDS)

    def _list(self):
        listed = self.api.do("GET", self.path)
        self.objects = {_key(one): one for one in listed["items"]}
        self.changed.set()
        return listed["metadata"]["resourceVersion"]

    def _follow(self, version):
        """Reads watches until one fails."""
        while True:
            query = urllib.parse.urlencode({"watch": 1, "timeoutSeconds": WATCH_SECONDS,
                                            "resourceVersion": version})
            for line in self.api.open("GET", f"{self.path}?{query}"):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ValueError(event["object"])
                one = event["object"]
                version = one["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self.objects.pop(_key(one), None)
                else:
                    self.objects[_key(one)] = one
                self.changed.set()


def _key(one):
    return one["metadata"].get("namespace", ""), one["metadata"]["name"]


def settle(cluster, url, paths, act):
    """Calls act([objects of a path, ...]) after changes, for ever.  It may raise what a request does."""
    changed = threading.Event()
    collections = [Collection(Api(cluster, url), path, changed) for path in paths]
    while True:
        changed.wait()
        time.sleep(FLOCK_SECONDS)
        changed.clear()
        if any(one.objects is None for one in collections):
            continue
        try:
            act([one.items() for one in collections])
        except (*GONE, Refused):
            time.sleep(PAUSE_SECONDS)
            changed.set()
