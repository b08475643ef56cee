# SPDX-License-Identifier: Apache-2.0
"""Pods that log in to a database server all the time, with what a connection Secret had when they
started.

`python3 -m support.dbpods ENGINE PORT CA LOGINS-A-SECOND FOLDER` is what runs in them, from the
machine's /usr.  Each login is a line in a file of the pod's name: its user, and the error.
"""

import collections
import os
import pathlib
import signal
import sys
import threading
import time
import types

from . import dblogin, dbreaders, paths

IMAGE = "nginx:1.22"  # of the node; only its /etc matters
NAME = "clients"


def _main(engine, port, ca, rate, folder):
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGQUIT):  # the image's stop signal is SIGQUIT
        signal.signal(number, lambda *_: over.set())
    lib = dblogin.client(types.SimpleNamespace(engine=engine, port=int(port), ca=ca), "shop")
    login, at = (os.environ["user"], os.environ["password"]), time.monotonic()
    with open(pathlib.Path(folder) / os.environ["POD"], "w", encoding="utf-8", buffering=1) as file:
        while not over.wait(max(0.0, at - time.monotonic())):
            at = max(at + 1 / float(rate), time.monotonic())
            file.write(f"{login[0]} {' '.join(lib.login(*login).split())}\n")


class Pods:
    """A Deployment of such pods, which asks for restarts."""

    def __init__(self, cluster, server, namespace, secret, folder, rate=100, replicas=4):
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self.replicas = replicas
        folder.mkdir()
        found = dbreaders.reader("deployment", NAME, namespace, secret, restart_on=secret,
                                 replicas=replicas, image=IMAGE)
        found["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
        pod = found["spec"]["template"]["spec"]
        mounts = [("/usr", True), (str(paths.TOP / "tests"), True), (str(server.ca.parent), True),
                  (str(folder), False)]
        pod |= {"hostNetwork": True, "terminationGracePeriodSeconds": 30, "volumes": [
            {"name": f"v{n}", "hostPath": {"path": path}} for n, (path, _) in enumerate(mounts)]}
        pod["containers"][0] |= {
            "command": ["/usr/bin/python3", "-m", "support.dbpods", server.engine, str(server.port),
                        str(server.ca), str(rate / replicas), str(folder)],
            "env": [{"name": "PYTHONPATH", "value": str(paths.TOP / "tests")},
                    {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": f"v{n}", "mountPath": path, "readOnly": read_only}
                             for n, (path, read_only) in enumerate(mounts)]}
        self.manifest = found

    def names(self):
        """Those that are there, also while they end."""
        return {p["metadata"]["name"] for p in self.cluster.list("pods", self.namespace)}

    def started(self):
        """How many have logged in so far."""
        return sum(1 for path in self.folder.iterdir() if path.stat().st_size)

    def logins(self):
        """({user: logins}, [(pod, user, error)])"""
        users, failed = collections.Counter(), []
        for path in self.folder.iterdir():
            for line in path.read_text("utf-8").splitlines():
                user, _, error = line.partition(" ")
                users[user] += 1
                if error:
                    failed.append((path.name, user, error))
        return users, failed


if __name__ == "__main__":
    _main(*sys.argv[1:])
