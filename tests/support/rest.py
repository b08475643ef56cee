# SPDX-License-Identifier: Apache-2.0
"""The API server's REST interface, where kubectl would be too slow."""

import contextlib
import http.client
import json
import queue
import ssl
import threading
import urllib.parse

MERGE = "application/merge-patch+json"


class Api:
    """An administrator's requests, by one kept connection a thread.

    `env` is what `scripts/cluster env` printed, as a dict.
    """

    def __init__(self, env):
        self.host = urllib.parse.urlsplit(env["STEWARD_CLUSTER_APISERVER"]).netloc
        self.tls = ssl.create_default_context(cafile=env["STEWARD_CLUSTER_CA"])
        with open(env["KUBECONFIG"], encoding="utf-8") as file:
            token = next(line for line in file if "token:" in line).split(":", 1)[1]
        self.headers = {"Authorization": "Bearer " + token.strip().strip('"')}
        self.local = threading.local()

    def connect(self):
        """A new connection."""
        return http.client.HTTPSConnection(self.host, context=self.tls, timeout=60)

    def call(self, method, path, body=None, content_type="application/json"):
        """(status, object).  OSError or HTTPException: nobody knows."""
        if not hasattr(self.local, "connection"):
            self.local.connection = self.connect()
        headers = dict(self.headers, **({"Content-Type": content_type} if body else {}))
        try:
            self.local.connection.request(method, path, json.dumps(body) if body else None, headers)
            reply = self.local.connection.getresponse()
            return reply.status, json.loads(reply.read())
        except (OSError, http.client.HTTPException):
            del self.local.connection
            raise

    def write_all(self, calls):
        """Sends (method, path, body, content type) by a few connections; all have to be taken."""
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
            sep = "&" if "?" in path else "?"
            _, page = self.call("GET", f"{path}{sep}limit=500&continue={token}")
            yield from page["items"]
            token = urllib.parse.quote(page["metadata"].get("continue", ""))
            if not token:
                return

    def watch(self, path, version):
        """(type, object) of a watch, until the server ends it."""
        connection = self.connect()
        connection.request("GET", f"{path}&watch=1&resourceVersion={version}", headers=self.headers)
        reply = connection.getresponse()
        with contextlib.closing(connection):
            for line in reply:
                event = json.loads(line)
                yield event["type"], event["object"]
