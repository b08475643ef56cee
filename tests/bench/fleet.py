# SPDX-License-Identifier: Apache-2.0
"""A cluster and a fleet of MyWebs or Apps for the benchmarks.

Pods are not measured, and kube-controller-manager limits itself to 20 requests a second, which
would hide everything else.  It is therefore stopped, and `Deployments` marks the Deployments of the
real API server as available in its place.
"""

import contextlib
import http.client
import os
import pathlib
import queue
import sys
import tempfile
import threading
import time

from support import cluster as k8s
from support import app, myweb, wait
from support import steward as stw
from support.rest import GONE, MERGE

# The kinds of a fleet: the path of the collection, and a function that makes a manifest.
KINDS = {"MyWeb": ("/apis/operator.k8s-summit.org/v1/namespaces/fleet/mywebs", myweb.manifest),
         "App": ("/apis/mycompany.com/v1/namespaces/fleet/apps", app.manifest)}
DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dsteward"


def say(text):
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def status_kib(pid, field):
    """A line of /proc/PID/status, such as VmRSS or VmHWM."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith(field + ":")).split()[1])


def rss_kib(steward):
    """Resident memory of a steward."""
    return status_kib(steward.process.pid, "VmRSS")


def steady_rss_kib(steward, seconds=3):
    """Its resident memory, once that is stable for some seconds."""
    seen, looks = [], 2 * seconds

    def look():
        seen.append(rss_kib(steward))
        return len(seen) >= looks and max(seen[-looks:]) - min(seen[-looks:]) <= 64
    wait.until("memory to settle", look, 60 + 4 * seconds, every=0.5)
    return seen[-1]


def clear(api, *collections):
    """Removes all objects of these paths, and Services, ConfigMaps and events of namespace fleet."""
    namespace = "/namespaces/fleet/"
    for path in (*collections, f"/api/v1{namespace}services", f"/api/v1{namespace}configmaps",
                 f"/api/v1{namespace}events", f"/apis/events.k8s.io/v1{namespace}events"):
        wait.until(f"{path} to be empty", lambda p=path: _emptied(api, p), 600, every=1)


def _emptied(api, path):
    """Deletes a collection; of a large one a request may take longer than the client waits."""
    with contextlib.suppress(*GONE):
        api.do("DELETE", path)
    return not api.do("GET", path + "?limit=1")["items"]


class Deployments(threading.Thread):
    """Marks each Deployment as completely available as soon as it exists."""

    def __init__(self, api, workers=4):
        super().__init__(daemon=True)
        self.api, self.todo = api, queue.Queue()
        self.helpers = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]

    def run(self):
        for helper in self.helpers:
            helper.start()
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError):
                _, page = self.api.call("GET", DEPLOYMENTS)
                for item in page["items"]:
                    self._look(item)
                version = page["metadata"]["resourceVersion"]
                for kind, item in self.api.watch(DEPLOYMENTS, version):
                    if kind in ("ADDED", "MODIFIED"):
                        self._look(item)
            time.sleep(0.2)

    def _look(self, item):
        if item.get("status", {}).get("observedGeneration") != item["metadata"]["generation"]:
            self.todo.put(item)

    def _work(self):
        while True:
            item = self.todo.get()
            n = item["spec"]["replicas"]
            status = {"observedGeneration": item["metadata"]["generation"], "replicas": n,
                      "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n}
            path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status".format(
                **item["metadata"])
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.api.call("PATCH", path, {"status": status}, MERGE)


class Fleet:
    """Objects of one kind in a cluster of their own, and one steward process.  `env` has variables of
    its environment that differ."""

    def __init__(self, cluster, binary, folder, kind="MyWeb"):
        self.cluster, self.binary, self.folder, self.kind = cluster, binary, folder, kind
        self.api = cluster.api
        self.count = 0
        self.env = None
        self.kubeconfig = None
        self.steward = None

    def prepare(self):
        """Installs CRDs and rights, and replaces the Deployment controller."""
        stw.install(self.cluster, self.binary)
        self.kubeconfig = self.cluster.kubeconfig_of(stw.ACCOUNT, self.folder / "kubeconfig")
        self.cluster.create_namespace("fleet")
        self.cluster.component("stop", "controller-manager")
        Deployments(self.api).start()

    def start(self, *args):
        """Starts steward; returns the milliseconds from exec to ready."""
        self.steward = stw.Steward(self.binary, self.cluster, self.kubeconfig, self.folder,
                                   ["--log-level", "warn", *args], env=self.env)
        begin = time.monotonic()
        self.steward.start(ready=False)
        wait.until("steward to be ready", lambda: self.steward.readyz("")[0] == 200, 120,
                   every=0.02)
        return (time.monotonic() - begin) * 1000

    def stop(self):
        """Ends steward."""
        if self.steward and self.steward.stop() != 0:
            raise RuntimeError(self.steward.log_tail())

    def grow(self, count, **spec):
        """Creates objects until there are `count`."""
        path, manifest = KINDS[self.kind]
        self.api.write_all(("POST", path, manifest(f"web-{n:05}", "fleet", **spec))
                           for n in range(self.count, count))
        self.count = count

    def clear(self):
        """Removes all objects, children and events, since garbage collection is stopped."""
        clear(self.api, KINDS[self.kind][0], "/apis/apps/v1/namespaces/fleet/deployments")
        self.count = 0

    def completed(self):
        """How many are complete, by steward's own metric."""
        return self.steward.metric("steward_objects", kind=self.kind, condition="Ready",
                                   status="True")

    def wait_completed(self, seconds):
        """Waits until all are complete; returns the time."""
        last = [0.0]

        def look():
            done = self.completed()
            if done - last[0] >= 1000:
                say(f"  {int(done)} of {self.count} are complete")
                last[0] = done
            return done >= self.count
        wait.until(f"{self.count} {self.kind}s to be complete", look, seconds, every=1)
        return time.monotonic()


@contextlib.contextmanager
def bench_cluster():
    """(Cluster, folder): a new cluster that is removed afterwards, or that of $STEWARD_CLUSTER_NAME."""
    name = os.environ.get("STEWARD_CLUSTER_NAME") or f"bench-{os.getpid()}"
    mine = "STEWARD_CLUSTER_NAME" not in os.environ
    say(f"Cluster {name}: starting")
    # Each MyWeb has a node port, and the usual range has 2,768.
    k8s.cluster_command(name, "up", "--apiserver-arg=--service-node-port-range=10000-32767")
    try:
        with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
            yield k8s.Cluster(k8s.cluster_env(name)), pathlib.Path(folder)
    finally:
        if mine:
            k8s.cluster_command(name, "down")


@contextlib.contextmanager
def fleet(binary, kind="MyWeb"):
    """A Fleet in bench_cluster()."""
    with bench_cluster() as (cluster, folder):
        one = Fleet(cluster, binary, folder, kind)
        one.prepare()
        try:
            yield one
        finally:
            if one.steward and one.steward.running():
                one.steward.stop()
