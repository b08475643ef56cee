# SPDX-License-Identifier: Apache-2.0
"""A cluster of scripts/cluster, and kubectl on it."""

import contextlib
import json
import os
import shlex
import subprocess
import unittest

import yaml

from . import paths, wait


class CommandFailed(AssertionError):
    """A command that had to succeed did not; says what it printed."""

    def __init__(self, result):
        self.result = result
        command = " ".join(shlex.quote(str(a)) for a in result.args)
        super().__init__(f"$ {command}\nexit status {result.returncode}\n"
                         f"{result.stdout}{result.stderr}")


def run(args, check=True, timeout=120, **kwargs):
    """subprocess.run on text, with output captured and a deadline."""
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=timeout,
                            check=False, **kwargs)
    if check and result.returncode != 0:
        raise CommandFailed(result)
    return result


def as_yaml(manifest):
    """A manifest given as text, as a dict or as a list of dicts, as YAML text."""
    if isinstance(manifest, str):
        return manifest
    documents = manifest if isinstance(manifest, list) else [manifest]
    return yaml.safe_dump_all(documents, sort_keys=False)


class Cluster:
    """kubectl with an administrator's rights, and the components of scripts/cluster.

    `env` is what `scripts/cluster env` printed, as a dict.
    """

    def __init__(self, env):
        self.env = env
        self.kubeconfig = env["KUBECONFIG"]
        self.name = env.get("STEWARD_CLUSTER_NAME", "")
        self.has_node = env.get("STEWARD_CLUSTER_NODE") == "1"
        self.audit_log = os.path.join(env.get("STEWARD_CLUSTER_DIR", ""), "audit.log")

    def kubectl(self, *args, check=True, stdin=None, timeout=120, kubeconfig=None):
        """Runs kubectl; `stdin` is its standard input.  Returns the finished process."""
        env = dict(os.environ, KUBECONFIG=str(kubeconfig or self.kubeconfig))
        return run([self.env.get("KUBECTL", "kubectl"), *args], check=check, input=stdin,
                   timeout=timeout, env=env)

    def apply(self, manifest, *args, check=True):
        """kubectl apply of text, a dict or a list of dicts."""
        return self.kubectl("apply", "-f", "-", *args, stdin=as_yaml(manifest), check=check)

    def get(self, kind, name, namespace=None):
        """The object as a dict, or None when there is none."""
        where = ["-n", namespace] if namespace else []
        result = self.kubectl("get", kind, name, *where, "-o", "json", "--ignore-not-found")
        return json.loads(result.stdout) if result.stdout else None

    def list(self, kind, namespace=None, selector=None):
        """All objects of a kind as dicts; of all namespaces when none is given."""
        where = ["-n", namespace] if namespace else ["-A"]
        where += ["-l", selector] if selector else []
        return json.loads(self.kubectl("get", kind, *where, "-o", "json").stdout)["items"]

    def patch(self, kind, name, namespace, patch, *args, check=True):
        """A JSON merge patch, from a dict."""
        return self.kubectl("patch", kind, name, "-n", namespace, "--type=merge",
                            "-p", json.dumps(patch), *args, check=check)

    def delete(self, kind, name, namespace=None, *args, check=True):
        """Deletes and waits until it is gone; no object is fine."""
        where = ["-n", namespace] if namespace else []
        return self.kubectl("delete", kind, name, *where, "--ignore-not-found", *args, check=check)

    def events(self, namespace, name):
        """(type, reason, message) of all events about objects of this name."""
        return [(e.get("type"), e.get("reason"), e.get("message"))
                for e in self.list("events.v1.", namespace) if e["involvedObject"]["name"] == name]

    def wait_for(self, kind, name, namespace, check, seconds=60, what=None):
        """Polls the object until check(object) is true, and returns the object."""
        def look():
            found = self.get(kind, name, namespace)
            return found if found and check(found) else None
        return wait.until(what or f"{kind} {namespace}/{name}", look, seconds, every=0.1)

    def wait_condition(self, kind, name, namespace, about, *reasons, seconds=60):
        """Polls the object until its condition `about` has one of these reasons; returns that."""
        found = self.wait_for(kind, name, namespace,
                              lambda o: condition(o, about).get("reason") in reasons, seconds,
                              f"{about} of {kind} {namespace}/{name} to say {' or '.join(reasons)}")
        return condition(found, about)

    def wait_event(self, name, namespace, reason, text="", seconds=60):
        """Until there is an event of this reason with this text; returns its message."""
        def look():
            return next((m for _, r, m in self.events(namespace, name)
                         if r == reason and text in m), None)
        return wait.until(f"event {reason} {text!r} of {namespace}/{name}", look, seconds)

    def component(self, action, *names):
        """scripts/cluster stop|start|kill|pause|resume of etcd, apiserver, ..."""
        return cluster_command(self.name, action, *names)

    def kubeconfig_of(self, account, path):
        """Writes a kubeconfig that acts as the ServiceAccount "namespace/name" for some hours."""
        namespace, name = account.split("/")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 6 * 3600}}
        url = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        reply = self.kubectl("create", "--raw", url, "-f", "-", stdin=json.dumps(request))
        config = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten",
                                         "-o", "json").stdout)
        user = config["contexts"][0]["context"]["user"]
        config["users"] = [{"name": user,
                            "user": {"token": json.loads(reply.stdout)["status"]["token"]}}]
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump(config, file)
        return path


def _private(path, flags):
    return os.open(path, flags, 0o600)


def condition(obj, kind):
    """The metav1.Condition of this type as a dict; {} when there is none."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(obj):
    """Ready, at this generation."""
    return condition(obj, "Ready").get("status") == "True" and \
        obj["status"].get("observedGeneration") == obj["metadata"]["generation"]


def cluster_command(name, *args, check=True, timeout=900):
    """Runs scripts/cluster for the cluster of this name."""
    command = [paths.SCRIPTS / "cluster", args[0], *(["--name", name] if name else []), *args[1:]]
    return run(command, check=check, timeout=timeout)


@contextlib.contextmanager
def of_its_own(name, *args):
    """A cluster for one test or module, that may do to it what it likes; taken down at the end."""
    if os.environ.get("USE_EXISTING_CLUSTER") == "true":
        raise unittest.SkipTest("it needs a cluster of its own")
    cluster_command(name, "up", *args)
    try:
        yield Cluster(cluster_env(name))
    finally:
        cluster_command(name, "down")


def cluster_env(name):
    """What `scripts/cluster env` prints, as a dict."""
    env = {}
    for line in cluster_command(name, "env").stdout.splitlines():
        assignment = shlex.split(line)[1]
        key, _, value = assignment.partition("=")
        env[key] = value
    return env
