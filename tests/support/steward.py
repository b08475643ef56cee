# SPDX-License-Identifier: Apache-2.0
"""Installs steward into a cluster and runs it as a process, as its own ServiceAccount."""

import functools
import json
import os
import re
import signal
import subprocess
import time

from . import cluster as k8s
from . import net, wait

NAMESPACE = "steward-system"
ACCOUNT = f"{NAMESPACE}/steward-controller-manager"
USER = "system:serviceaccount:" + ACCOUNT.replace("/", ":")
KINDS = ("MyWeb", "App", "Eru", "DatabaseUser", "EtcdCluster", "EtcdBackup", "EtcdRestore")
WEBHOOK_CONFIGURATIONS = (
    ("mutatingwebhookconfiguration", "steward-mutating-webhook-configuration"),
    ("validatingwebhookconfiguration", "steward-validating-webhook-configuration"),
)


def install(cluster, binary):
    """CRDs, the namespace, the ServiceAccount and its rights; not the webhooks.  Returns whether
    any of the kinds is new."""
    said = cluster.apply(k8s.run([binary, "print", "crds"]).stdout).stdout
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply(k8s.run([binary, "print", "rbac"]).stdout)
    cluster.wait_established()
    return " created" in said


def install_webhooks(cluster, binary, port):
    """The webhook configurations, for a steward that listens on 127.0.0.1:port."""
    url = f"https://127.0.0.1:{port}"
    cluster.apply(k8s.run([binary, "print", "webhooks", "--url", url]).stdout)


def uninstall_webhooks(cluster):
    """Removes the webhook configurations: without a steward they would refuse everything."""
    for kind, name in WEBHOOK_CONFIGURATIONS:
        cluster.delete(kind, name)


WEBHOOK_SETTLED_SECONDS = 0.5


def _trusted(cluster):
    """Whether each configured webhook has a caBundle for steward's certificate."""
    found = [cluster.get(kind, name) or {} for kind, name in WEBHOOK_CONFIGURATIONS]
    return all(hook["clientConfig"].get("caBundle") for obj in found for hook in obj.get("webhooks", ()))


def wait_webhook(cluster, seconds=60):
    """Waits until the API server has called steward for a moment: it sees new webhook
    configurations only some time after they are written, and uses the former ones until then.  One of
    the two webhooks refuses a bad object, but both have to accept a good one."""
    good = {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
            "metadata": {"name": "webhook-probe", "namespace": "default"}, "spec": {"image": "nginx"}}
    bad = {**good, "spec": {**good["spec"], "nodePortNumber": 1}}

    asked_since = None

    def look():
        nonlocal asked_since
        reply = cluster.apply(bad, dry_run=True, check=False)
        if reply.returncode == 0 or "spec.nodePortNumber" not in reply.stderr or not _trusted(cluster) \
                or cluster.apply(good, dry_run=True, check=False).returncode != 0:
            asked_since = None
            return False
        asked_since = asked_since or time.monotonic()
        return time.monotonic() - asked_since >= WEBHOOK_SETTLED_SECONDS
    wait.until("the API server to ask steward", look, seconds)


class _AuditLog:
    """The requests of steward's account, by namespace; continues from its last position."""

    def __init__(self, path):
        self.path, self.offset, self.found = path, 0, {}

    def of(self, namespace):
        """[(verb, path, status), ...] of a namespace."""
        with open(self.path, "rb") as log:
            log.seek(self.offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break  # being written
                self.offset += len(line)
                if USER.encode() in line:
                    self._take(json.loads(line))
        return list(self.found.get(namespace, ()))

    def _take(self, entry):
        place = re.search("/namespaces/([^/]+)/", entry["requestURI"])
        if place and entry["stage"] == "ResponseComplete" and entry["user"]["username"] == USER:
            self.found.setdefault(place[1], []).append(
                (entry["verb"], entry["requestURI"], entry["responseStatus"]["code"]))


_audit_log = functools.cache(_AuditLog)


# Kinds of others that steward looks for again and again until they are installed.
OPTIONAL = ("/httproutes", "/podmonitors")


def requests(cluster, namespace, changing=False):
    """steward's requests to the API server in this namespace, as (verb, path, status), from the
    server's own audit log.  Watches span namespaces and are not in it; those of a steward that is
    confined to its namespace are, except lists of kinds that are not installed."""
    return [r for r in _audit_log(cluster.audit_log).of(namespace)
            if not (r[0] == "list" and r[1].partition("?")[0].endswith(OPTIONAL))
            and (not changing or r[0] not in ("get", "list", "watch"))]


def wait_requests(cluster, namespace, least):
    """requests(), as soon as there are `least`: the audit log lags a moment."""
    def look():
        found = requests(cluster, namespace)
        return found if len(found) >= least else None
    return wait.until(f"{least} requests of steward", look)


def quiet_requests(cluster, namespace):
    """requests(), once there was none for a second."""
    seen, since = None, time.monotonic()

    def look():
        nonlocal seen, since
        found = requests(cluster, namespace)
        if found != seen:
            seen, since = found, time.monotonic()
        return time.monotonic() - since >= 1
    wait.until("steward to have nothing to do", look)
    return seen


# The stores of tests are on loopback, where objects may not direct steward by default.
_STORES = ["--store-endpoints", "*,127.0.0.1"]


class Steward:
    """One `steward run`, on ports of its own on loopback.

    cluster     its cluster
    kubeconfig  its identity: the ServiceAccount's, unless a test is about missing rights
    folder      for its log
    clock       a support.clock.Clock, to replace the machine's clock
    env         more variables of its environment
    """

    def __init__(self, binary, cluster, kubeconfig, folder, args=(), name="steward", clock=None,
                 env=None):
        self.binary, self.cluster = binary, cluster
        self.env = {**(clock.env(binary) if clock else os.environ), **(env or {})}
        self.kubeconfig = kubeconfig
        # libfaketime reads its file again and again, in any folder.
        self.args = [*(["--sandbox=off"] if clock else []), *args]
        self.log_path = folder / f"{name}.log"
        self.webhook_port, self.health_port, self.metrics_port = (net.free_port() for _ in range(3))
        self.process = None

    def command(self):
        """The command line it is started with."""
        return [str(a) for a in [
            self.binary, "run", "--kubeconfig", self.kubeconfig, "--namespace", NAMESPACE,
            "--webhook-bind-address", f"127.0.0.1:{self.webhook_port}",
            "--webhook-hosts", "127.0.0.1,localhost",
            "--health-probe-bind-address", f"127.0.0.1:{self.health_port}",
            "--metrics-bind-address", f"127.0.0.1:{self.metrics_port}", "--metrics-secure=false",
            "--log-level", "debug", *_STORES, *self.args]]

    def start(self, ready=True):
        """Starts it and, unless ready is false, waits until /readyz returns 200."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True,
                                            env=self.env)
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self, seconds=60):
        """Waits until /readyz returns 200; fails at once when the process has ended."""
        def look():
            if not self.running():
                raise RuntimeError(f"steward ended:\n{self.log_tail()}")
            return self.readyz()[0] == 200
        try:
            wait.until("steward to be ready", look, seconds)
        except wait.TimedOut as error:
            raise wait.TimedOut(f"{error}\n{self.readyz()[1]}\n{self.log_tail()}") from error

    def wait_webhook(self, seconds=60):
        """Waits until the API server calls this steward."""
        wait_webhook(self.cluster, seconds)

    def running(self):
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self, sig=signal.SIGTERM, seconds=60):
        """Sends the signal, waits for the end, and returns the exit status."""
        if self.running():
            self.process.send_signal(sig)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"steward did not end within {seconds} s of {sig.name}:\n"
                                 f"{self.log_tail()}") from None

    def kill(self):
        """SIGKILL, as a crash would."""
        return self.stop(signal.SIGKILL)

    def readyz(self, query="?verbose"):
        """(status, text) of /readyz."""
        return net.http_get(f"http://127.0.0.1:{self.health_port}/readyz{query}")

    def healthz(self):
        """(status, text) of /healthz."""
        return net.http_get(f"http://127.0.0.1:{self.health_port}/healthz")

    def metrics_text(self):
        """/metrics as it is."""
        status, text = net.http_get(f"http://127.0.0.1:{self.metrics_port}/metrics")
        assert status == 200, text
        return text

    def metric(self, name, **labels):
        """The sum of all series of a metric that have these labels."""
        total = 0.0
        for line in self.metrics_text().splitlines():
            match = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
            if not match or match[1] != name:
                continue
            found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            if all(found.get(k) == v for k, v in labels.items()):
                total += float(match[3])
        return total

    def log(self):
        """Every line of its log that is JSON, as a dict."""
        lines = []
        for line in self.log_path.read_text("utf-8", "replace").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        return lines

    def log_tail(self, lines=30):
        """The end of its log, for messages."""
        return "\n".join(self.log_path.read_text("utf-8", "replace").splitlines()[-lines:])
