# SPDX-License-Identifier: Apache-2.0
"""Two replicas of steward that serve the API server: as processes, or in the cluster's pods.

Both have the same methods, so that one test of failures runs on either.
"""

import contextlib
import itertools
import os
import pathlib
import re
import signal
import ssl
import time
import urllib.request

from . import paths, wait
from . import steward as stw
from .cluster import condition, is_rolled_out
from .service import Service

DEPLOYMENT = "steward-controller-manager"
PODS = "control-plane=controller-manager"
LEASE = "steward.steward.dev"
DELAY = "--shutdown-delay=2s"
_TICKS = os.sysconf("SC_CLK_TCK")


def long_run(usual, full):
    """How often a test repeats its work: `full`, the promised number, with STEWARD_TEST_LONG."""
    return full if os.environ.get("STEWARD_TEST_LONG") else usual


def memory_of(pid):
    """(resident memory now, its peak) in bytes."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text("ascii")
    return tuple(int(re.search(rf"{key}:\s+(\d+) kB", text)[1]) * 1024 for key in ("VmRSS", "VmHWM"))


def cpu_of(pid):
    """CPU seconds so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def sum_of(text, name, **labels):
    """The sum of all series of a metric with these labels, in the text of /metrics."""
    total = 0.0
    for match in re.finditer(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE):
        found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[1] or ""))
        if all(found.get(k) == v for k, v in labels.items()):
            total += float(match[2])
    return total


class Replicas:
    """What both have in common.  A replica is named by a string."""

    def __init__(self, cluster):
        self.cluster = cluster

    def names(self):
        """The names of the replicas that are not being ended."""
        raise NotImplementedError

    def pid(self, name):
        """Its process, as this machine sees it."""
        raise NotImplementedError

    def metrics(self, name):
        """The text of /metrics."""
        raise NotImplementedError

    def metric(self, name, metric, **labels):
        """The sum of all its series of a metric that have these labels."""
        return sum_of(self.metrics(name), metric, **labels)

    def holder(self):
        """The holderIdentity of the Lease; "" without a holder."""
        lease = self.cluster.get("lease", LEASE, stw.NAMESPACE) or {}
        return lease.get("spec", {}).get("holderIdentity") or ""

    def leader(self):
        """The leader; waits for one."""
        def look():
            holder = self.holder()
            return next((n for n in self.names() if self.is_holder(n, holder)), None)
        return wait.until("a replica to lead", look, 60, every=0.2)

    def is_holder(self, name, holder):
        """Whether the Lease's holderIdentity is this replica's."""
        raise NotImplementedError

    def is_ready(self, name):
        """Whether it reports that it is ready."""
        raise NotImplementedError

    def wait_webhook(self, seconds=60):
        """Waits until the API server calls them."""
        stw.wait_webhook(self.cluster, seconds)

    def reconciles(self, name):
        """How many reconciles it has run."""
        return self.metric(name, "controller_runtime_reconcile_total")

    def restarts(self):
        """How often a process was restarted without a request for it."""
        return 0

    def limit_memory(self, mib):
        """Sets the memory limit, in pods only; None: the original one.  Other resources stay."""

    def usage(self):
        """{name: (resident bytes, peak bytes, processor seconds)}"""
        return {n: (*memory_of(self.pid(n)), cpu_of(self.pid(n))) for n in self.names()}


class Beside(Replicas):
    """Processes that a support.service.Service forwards to."""

    def __init__(self, cluster, start, service, count=2):
        super().__init__(cluster)
        self.start, self.service, self.count = start, service, count
        self.running = []

    def open(self):
        """Starts them, and makes the API server call them."""
        self.refill()
        stw.install_webhooks(self.cluster, self.running[0].binary, self.service.port)
        self.wait_webhook()
        return self

    def _add(self):
        one = self.start("--leader-elect", DELAY, "--webhook-max-connections=200")
        self.service.add(one.webhook_port)
        self.running.append(one)
        return one

    def _one(self, name):
        return next(r for r in self.running if r.log_path.name == name)

    def names(self):
        return [r.log_path.name for r in self.running]

    def pid(self, name):
        return self._one(name).process.pid

    def metrics(self, name):
        return self._one(name).metrics_text()

    def is_ready(self, name):
        return self._one(name).readyz()[0] == 200

    def is_holder(self, name, holder):
        return self.metric(name, "leader_election_master_status") == 1

    def delete(self, name):
        """Ends one as a rollout does: the endpoints change a moment after it has begun to end."""
        one = self._one(name)
        one.process.send_signal(signal.SIGTERM)
        self.running.remove(one)
        wait.until("it not to be ready", lambda: one.readyz()[0] != 200, every=0.2)
        self.service.remove(one.webhook_port)
        return one

    def kill(self, name):
        """SIGKILL; the API server reaches only the others."""
        one = self._one(name)
        self.service.remove(one.webhook_port)
        self.running.remove(one)
        one.kill()

    def refill(self):
        """Starts replicas until there are `count`."""
        while len(self.running) < self.count:
            self._add()

    def roll(self):
        """Replaces each by a new one, which is ready first."""
        for name in self.names():
            self._add()
            old = self.delete(name)
            assert old.process.wait(30) == 0, old.log_tail()


class InPods(Replicas):
    """As `kubectl apply -k config/default` installs it."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.api, self.resources, self.addresses = cluster.api, None, {}

    def open(self):
        """Waits for both, and until the API server reaches them: kube-proxy refuses connections to
        the Service for a moment after its first pods are ready."""
        self.settle()
        self.wait_webhook()
        return self

    def settle(self, seconds=120):
        """Waits until the rollout is complete and no pod of a former one is left."""
        self.cluster.wait_for("deployment", DEPLOYMENT, stw.NAMESPACE, is_rolled_out, seconds,
                              "the rollout of steward")
        self.cluster.wait_list("the former pods to be gone", "pods", stw.NAMESPACE, lambda pods: not any(
            "deletionTimestamp" in p["metadata"] for p in pods), seconds, PODS)

    def pods(self):
        """The running pods that are not being deleted, as objects."""
        found = self.cluster.list("pods", stw.NAMESPACE, PODS)
        return [p for p in found if "deletionTimestamp" not in p["metadata"]
                and p["status"].get("phase") == "Running"]

    def names(self):
        return [p["metadata"]["name"] for p in self.pods()]

    def pid(self, name):
        """The steward process in the pod's control group."""
        uid = next(p["metadata"]["uid"] for p in self.pods() if p["metadata"]["name"] == name)
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if uid in (path / "cgroup").read_text("ascii") and \
                        (path / "cmdline").read_bytes().startswith(b"/usr/bin/steward\0"):
                    return int(path.name)
        raise LookupError(f"no process of pod {name}")

    def metrics(self, name):
        if name not in self.addresses:
            pod = next(p for p in self.pods() if p["metadata"]["name"] == name)
            port = next(p["containerPort"] for p in pod["spec"]["containers"][0]["ports"]
                        if p["name"] == "metrics")
            self.addresses[name] = f"{pod['status']['podIP']}:{port}"
        trusting = ssl.create_default_context()  # another test verifies certificates
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"https://{self.addresses[name]}/metrics",
                                         headers=self.api.headers)
        with urllib.request.urlopen(request, timeout=10, context=trusting) as reply:
            return reply.read().decode()

    def is_ready(self, name):
        pod = next(p for p in self.pods() if p["metadata"]["name"] == name)
        return condition(pod, "Ready").get("status") == "True"

    def is_holder(self, name, holder):
        return holder.split("_")[0] == name

    def delete(self, name):
        """kubectl delete pod, which makes the process end."""
        self.cluster.delete("pod", name, stw.NAMESPACE, wait_gone=False)

    def kill(self, name):
        """SIGKILL to the process, as the kernel does when memory is short; the kubelet restarts it
        in the same pod."""
        os.kill(self.pid(name), signal.SIGKILL)

    def refill(self):
        """Waits for the ReplicaSet, which does that."""
        self.settle()

    def roll(self):
        """As `kubectl rollout restart` does."""
        self._change_pods(metadata={"annotations": {
            "kubectl.kubernetes.io/restartedAt": f"{time.time_ns()}"}})

    def _change_pods(self, **template):
        """Changes the template of the pods, and waits until all are of the new one."""
        self.cluster.patch("deployment", DEPLOYMENT, stw.NAMESPACE,
                           {"spec": {"template": template}})
        self.settle()

    def limit_memory(self, mib):
        if self.resources is None:
            self.resources = self.cluster.get("deployment", DEPLOYMENT, stw.NAMESPACE)["spec"][
                "template"]["spec"]["containers"][0]["resources"]
        memory = {k: f"{mib}Mi" if mib else v["memory"] for k, v in self.resources.items()}
        [container] = self.cluster.get("deployment", DEPLOYMENT, stw.NAMESPACE)["spec"]["template"][
            "spec"]["containers"]
        resources = {k: {**container["resources"][k], "memory": v} for k, v in memory.items()}
        self._change_pods(spec={"containers": [{**container, "resources": resources}]})

    def restarts(self):
        return sum(c["restartCount"] for p in self.pods()
                   for c in p["status"].get("containerStatuses", []))


def rest(seconds):
    """Waits for this time, during which something is measured."""
    end = time.monotonic() + seconds
    wait.until(f"{seconds} s to pass", lambda: time.monotonic() >= end, seconds + 5, every=0.1)


@contextlib.contextmanager
def beside(cluster, binary, folder, clock=None):
    """An open Beside; all of it is removed at the end."""
    numbers, started, service = itertools.count(1), [], Service()

    def start(*args):
        one = stw.Steward(binary, cluster, cluster.kubeconfig_steward, folder, args,
                          name=f"replica-{next(numbers)}", clock=clock)
        started.append(one)
        return one.start()
    try:
        yield Beside(cluster, start, service).open()
    finally:
        stw.uninstall_webhooks(cluster)
        for one in started:
            one.stop()
        service.close()


@contextlib.contextmanager
def in_pods(cluster, archive):
    """An open InPods; what could disturb other tests is removed at the end."""
    cluster.component("image", str(archive))
    cluster.kubectl("apply", "-k", str(paths.TOP / "config" / "default"))
    try:
        yield InPods(cluster).open()
    finally:
        remove(cluster)


def remove(cluster):
    """Removes what is installed in pods, as far as it could disturb other tests."""
    stw.uninstall_webhooks(cluster)
    for kind, name in (("deployment", DEPLOYMENT), ("service", "steward-webhook-service"),
                       ("service", "steward-metrics-service")):
        cluster.delete(kind, name, stw.NAMESPACE)
