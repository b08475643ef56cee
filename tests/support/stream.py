# SPDX-License-Identifier: Apache-2.0
"""Creates, updates and deletes good and bad objects all the time, and counts the results."""

import collections
import contextlib
import http.client
import itertools
import json
import os
import threading
import time

from . import app, eru, myweb, wait
from .rest import MERGE

# For each kind: the path of its resource, a manifest, a valid change of its spec, an invalid one
# that the schema does not detect, and steward's message about that.  The last names a field that
# only the mutating webhook fills in.
Kind = collections.namedtuple("Kind", "group plural manifest good bad words filled")
KINDS = (
    Kind("operator.k8s-summit.org/v1", "mywebs", myweb.manifest, {"pageContentHtml": "<p>new</p>"},
         {"nodePortNumber": 80}, "must be 0 or between", "resources"),
    Kind("mycompany.com/v1", "apps", app.manifest, {"image": "registry.invalid/none:1.1"},
         {"config": {"databaseUrl": "db"}}, "must be a URL such as", None),
    Kind("mtsre.meitu.com/v1", "erus", eru.manifest, {"enabled": True, "schedule": "0 4 * * *"},
         {"enabled": True, "schedule": "0 25 * * *"}, "spec.schedule", None),
)

GONE = (OSError, http.client.HTTPException)
# The calls of all threads together; an outage of 20 ms is met by one of them.  More would take the CPU
# from other workers.  With STEWARD_TEST_LONG there is no limit.
CALLS_A_SECOND = 50


class Stream:
    """Threads that create, change and delete, each object also with two bad requests.

    asked     calls made
    failed    valid calls that failed, and bad ones refused without steward's message
    accepted  bad calls that were allowed
    unfilled  objects without the mutating webhook's default
    away      calls without an answer, counted apart where `outages` are expected
    """

    def __init__(self, cluster, namespace, threads=3, outages=False, kinds=KINDS):
        self.api, self.namespace, self.outages, self.kinds = cluster.api, namespace, outages, kinds
        self.asked, self.away = 0, 0
        self.failed, self.accepted, self.unfilled, self.seconds = [], [], [], []
        self.over, self.lock = threading.Event(), threading.Lock()
        self.began = self.free = time.monotonic()
        self.apart = 0 if os.environ.get("STEWARD_TEST_LONG") else 1 / CALLS_A_SECOND
        self.threads = [threading.Thread(target=self._run, args=(n,), daemon=True)
                        for n in range(threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.flow()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Starts no more calls, and waits for those in progress."""
        self.over.set()
        for thread in self.threads:
            thread.join(timeout=90)

    def flow(self, calls=20, seconds=120):
        """Waits until `calls` more calls were made."""
        asked = self.asked
        wait.until(f"{calls} more calls", lambda: self.asked >= asked + calls, seconds)

    def check(self):
        """Ends it; asserts that nothing went wrong."""
        self.end()
        print(self.summary())
        assert not self.accepted, f"{len(self.accepted)} bad objects were accepted: {self.accepted[:3]}"
        assert not self.failed, f"{len(self.failed)} of {self.asked} failed: {self.failed[:3]}"
        assert not self.unfilled, f"{len(self.unfilled)} lack a default: {self.unfilled[:3]}"
        assert self.asked > 0

    def median(self):
        """Median seconds of a call."""
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else 0

    def summary(self):
        """One line for people."""
        took = sorted(self.seconds) or [0]
        rate = self.asked / max(time.monotonic() - self.began, 0.001)
        return (f"{self.asked} calls ({rate:.0f}/s, median {took[len(took) // 2] * 1000:.0f} ms, "
                f"99% {took[len(took) * 99 // 100] * 1000:.0f} ms, most {took[-1] * 1000:.0f} ms), "
                f"{len(self.failed)} failed, {len(self.accepted)} bad ones accepted, "
                f"{len(self.unfilled)} without defaults, {self.away} met no API server")

    def _run(self, number):
        for turn in itertools.count():
            kind = self.kinds[turn % len(self.kinds)]
            if self.over.is_set():
                return
            with contextlib.suppress(_NoAnswer):
                self._one(kind, f"s{number}-{turn}")

    def _one(self, kind, name):
        """The life of one object; three of its five calls are valid."""
        many = f"/apis/{kind.group}/namespaces/{self.namespace}/{kind.plural}"
        one = f"{many}/{name}"
        self._refused(kind, "POST", many, kind.manifest(name, self.namespace, **kind.bad))
        made = self._taken("POST", many, kind.manifest(name, self.namespace))
        if not made:
            return
        if kind.filled and kind.filled not in made["spec"]:
            self.unfilled.append(f"{self._when()} {one}")
        self._taken("PATCH", one, {"spec": kind.good})
        self._refused(kind, "PATCH", one, {"spec": kind.bad})
        self._taken("DELETE", one)

    def _taken(self, method, path, body=None):
        status, reply = self._call(method, path, body)
        # After an outage the result of a call may be unknown.
        unsure = self.outages and status in (404, 409)
        if status < 300:
            return reply
        if not unsure:
            self.failed.append(f"{self._when()} {method} {path}: {status} {reply.get('message')}")
        return None

    def _refused(self, kind, method, path, body):
        status, reply = self._call(method, path, body)
        if status < 300:
            self.accepted.append(f"{self._when()} {method} {path}")
            self._call("DELETE", path if method == "PATCH" else f"{path}/{body['metadata']['name']}")
        elif kind.words not in reply.get("message", "") and not (self.outages and status == 404):
            self.failed.append(f"{self._when()} {method} {path}: {status} {reply.get('message')}")

    def _take_turn(self):
        """Waits until the next call may begin.  After slow calls there is no burst."""
        with self.lock:
            begin = max(self.free, time.monotonic())
            self.free = begin + self.apart
        self.over.wait(max(0, begin - time.monotonic()))

    def _call(self, method, path, body=None):
        self._take_turn()
        began = time.monotonic()
        try:
            status, reply = self.api.call(method, path, body,
                                          MERGE if method == "PATCH" else "application/json")
        except (*GONE, json.JSONDecodeError) as error:
            status, reply = 0, {"message": repr(error)}
        if self.outages and self._is_outage(status, reply):
            self.away += 1
            self.over.wait(0.05)
            raise _NoAnswer
        with self.lock:
            self.asked += 1
            self.seconds.append(time.monotonic() - began)
        return status, reply

    @staticmethod
    def _is_outage(status, reply):
        """No answer, or one of an API server that is about to end or not ready yet."""
        said = str(reply.get("message", ""))
        return status == 0 or "not yet ready to handle request" in said or \
            (status in (429, 500, 503, 504) and "webhook" not in said)

    def _when(self):
        return f"{time.monotonic() - self.began:.2f}s"


class _NoAnswer(Exception):
    """The API server is away, which is expected."""


class AdmittedUnasked:
    """How often the API server admitted an object because the mutating webhook did not answer: only
    its log shows that."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.before = self._count()

    def _count(self):
        return self.cluster.component("log", "apiserver").stdout.count("failing open")

    def check(self):
        """Asserts that this has not happened since the object was made."""
        assert self._count() == self.before
