# SPDX-License-Identifier: Apache-2.0
"""A cluster of scripts/cluster: its objects by kind and name, its components, and kubectl."""

import contextlib
import dataclasses
import json
import os
import shlex
import subprocess
import time
import unittest

import yaml

from . import kinds, merge, paths, rest, wait

# The loader in C, where Debian's PyYAML has it: CustomResourceDefinitions are long.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BUSY_SECONDS = 10
CONFLICTS_MAX = 10
WORKLOADS = ("deployment", "statefulset", "daemonset")


class CommandFailed(AssertionError):
    """A command that had to succeed failed; the text has its output."""

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


@dataclasses.dataclass
class Result:
    """The result of requests, in the form of a finished kubectl: `objects` are the server's
    answers."""

    args: list
    returncode: int = 0
    stdout: str = ""
    stderr: str = ""
    objects: list = dataclasses.field(default_factory=list)

    @property
    def object(self):
        """The answer to the only request."""
        [one] = self.objects
        return one

    def add(self, reply, said):
        """Adds a reply; `said` is what kubectl prints on success."""
        self.stderr += "".join(f"Warning: {w}\n" for w in reply.warnings)
        if reply.status < 300:
            self.objects.append(reply.object)
            self.stdout += f"{said}\n"
        else:
            self.returncode = 1
            self.stderr += (f"Error from server ({reply.object.get('reason', reply.status)}): "
                            f"{reply.object.get('message', reply.object)}\n")


class Cluster:
    """An API server with an administrator's rights, and the components of scripts/cluster.

    `env` is what `scripts/cluster env` printed, as a dict.  All but kubectl() sends requests to the
    API server over a kept connection.  A `kind` is a name that kubectl knows, too.
    """

    def __init__(self, env):
        self.env = env
        self.kubeconfig = env["KUBECONFIG"]
        self.name = env.get("STEWARD_CLUSTER_NAME", "")
        self.has_node = env.get("STEWARD_CLUSTER_NODE") == "1"
        self.audit_log = os.path.join(env.get("STEWARD_CLUSTER_DIR", ""), "audit.log")
        self.api = rest.Api(self.kubeconfig)
        self.kinds = kinds.Kinds(self.api)

    def kubectl(self, *args, check=True, stdin=None, timeout=120, kubeconfig=None):
        """Runs kubectl, where that is what is tested; `stdin` is its standard input.  Returns the
        finished process."""
        env = dict(os.environ, KUBECONFIG=str(kubeconfig or self.kubeconfig))
        return run([self.env.get("KUBECTL", "kubectl"), *args], check=check, input=stdin,
                   timeout=timeout, env=env)

    def release(self):
        """The version of the API server: "1.37.2"."""
        return self.api.do("GET", "/version")["gitVersion"].removeprefix("v")

    def minor(self):
        """The 37 of Kubernetes 1.37.2."""
        return int(self.release().split(".")[1])

    # --- writing

    def apply(self, manifest, check=True, dry_run=False, validate=True):
        """What `kubectl apply` does with text, a dict or a list of dicts: it creates an object, or
        changes what differs from this manifest and from the previous one.  With validate=False
        unknown fields are pruned; otherwise they are an error."""
        query = {"fieldManager": "kubectl-client-side-apply",
                 "dryRun": "All" if dry_run else None,
                 "fieldValidation": "Strict" if validate else "Ignore"}
        return self._each("apply", manifest, lambda obj, result: self._apply(obj, query, result),
                          check)

    def create(self, manifest, check=True, dry_run=False, validate=True):
        """Creates text, a dict or a list of dicts."""
        query = {"fieldManager": "kubectl-create", "dryRun": "All" if dry_run else None,
                 "fieldValidation": "Strict" if validate else "Ignore"}

        def create(obj, result):
            self._send(result, "POST", rest.with_query(self._home(obj), **query), obj, said="created")
        return self._each("create", manifest, create, check)

    def replace(self, obj, subresource="", check=True):
        """Replaces the stored object, or its status: at the resourceVersion of `obj`, or, as
        kubectl does, at the one that is stored now, again if another client was faster."""
        path = f"{self._home(obj)}/{obj['metadata']['name']}"
        for _ in range(CONFLICTS_MAX):
            result, new = Result(["replace", path]), obj
            if "resourceVersion" not in obj["metadata"]:
                live = self.api.do("GET", path)["metadata"]["resourceVersion"]
                new = merge.merged(obj, {"metadata": {"resourceVersion": live}})
            reply = self._ask("PUT", _sub(path, subresource), new)
            if reply.status != 409 or new is obj:
                break
        result.add(reply, f"{path} replaced")
        return _checked(result, check)

    def patch(self, kind, name, namespace, patch, check=True, dry_run=False, subresource=""):
        """A JSON merge patch from a dict, or a JSON patch from a list."""
        path = rest.with_query(_sub(self._path(kind, namespace, name), subresource),
                               fieldManager="kubectl-patch", dryRun="All" if dry_run else None)
        result = Result(["patch", path, json.dumps(patch)])
        form = rest.MERGE if isinstance(patch, dict) else rest.JSON_PATCH
        self._send(result, "PATCH", path, patch, form, "patched")
        return _checked(result, check)

    def annotate(self, kind, name, namespace, annotations, check=True):
        """Sets annotations from a dict; None removes one."""
        return self.patch(kind, name, namespace, {"metadata": {"annotations": annotations}}, check)

    def create_account(self, account):
        """A new ServiceAccount "namespace/name"."""
        namespace, name = account.split("/")
        self.create({"apiVersion": "v1", "kind": "ServiceAccount",
                     "metadata": {"name": name, "namespace": namespace}})

    def create_namespace(self, name):
        """A new namespace."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def delete_namespace(self, name):
        """Deletes it with all that is in it, without waiting."""
        self.delete("namespace", name, wait_gone=False)

    def empty_namespace(self, name, kinds):
        """Deletes objects of these kinds, the workloads, the Secrets and the Services in it, without
        waiting.  It costs a sixth of the CPU time of deleting it: for that the server looks for
        objects of each kind that it knows."""
        for kind in (*kinds, *WORKLOADS, "secret"):
            path = rest.with_query(self._path(kind, name), propagationPolicy="Background")
            reply = self._ask("DELETE", path)
            if reply.status >= 300 and reply.status != 404:
                raise rest.Refused("DELETE", path, reply)
        self.delete_all("service", name, wait_gone=False)

    def cordon(self, node, unschedulable=True):
        """Makes the scheduler ignore the node, or use it again."""
        self.patch("node", node, None, {"spec": {"unschedulable": unschedulable or None}})

    def delete(self, kind, name, namespace=None, check=True, wait_gone=True, seconds=120,
               grace_seconds=None, propagation="Background"):
        """Deletes it and waits until it is gone; a missing object is not an error."""
        path = self._path(kind, namespace, name)
        result = Result(["delete", path])
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        reply = self._ask("DELETE", path, options)
        if reply.status == 404:
            return result
        result.add(reply, f"{kind} {name} deleted")
        if result.returncode == 0 and wait_gone:
            self.wait_gone(kind, name, namespace, seconds, _uid_of_deleted(reply.object))
        return _checked(result, check)

    def delete_all(self, kind, namespace=None, selector=None, wait_gone=True, seconds=120, **options):
        """Deletes all objects of a kind, or those that the labels select, one after the other, and
        waits until they are gone."""
        found = [o["metadata"] for o in self.list(kind, namespace, selector)]
        for metadata in found:
            self.delete(kind, metadata["name"], metadata.get("namespace"), wait_gone=False, **options)
        for metadata in found if wait_gone else ():
            self.wait_gone(kind, metadata["name"], metadata.get("namespace"), seconds,
                           metadata["uid"])

    # --- reading

    def get(self, kind, name, namespace=None):
        """The object as a dict, or None when there is none."""
        path = self._path(kind, namespace, name)
        reply = self._ask("GET", path)
        if reply.status == 404 and reply.object.get("reason") == "NotFound":
            return None
        if reply.status >= 300:
            raise rest.Refused("GET", path, reply)
        return reply.object

    def list(self, kind, namespace=None, selector=None):
        """All objects of a kind as dicts; of all namespaces when none is given."""
        path = rest.with_query(self._path(kind, namespace), labelSelector=selector)
        reply = self._ask("GET", path)
        if reply.status >= 300:
            raise rest.Refused("GET", path, reply)
        one = self.kinds.of_word(kind)
        return [{"apiVersion": one.version, "kind": one.kind, **o} for o in reply.object["items"]]

    def events(self, namespace, name, kind=""):
        """(type, reason, message) of all events about objects of this name, and this kind."""
        return _told(e for e in self.api.do("GET", _events_about(namespace, name))["items"]
                     if kind in ("", e["involvedObject"]["kind"]))

    # --- waiting

    def wait_for(self, kind, name, namespace, check, seconds=60, what=None):
        """Watches the object until check(object) is true, and returns the object."""
        def look(objects):
            return next((o for o in objects if check(o)), None)
        return self._observe(what or f"{kind} {namespace}/{name}", kind, namespace, look, seconds,
                             fieldSelector=f"metadata.name={name}")

    def wait_list(self, what, kind, namespace, look, seconds=60, selector=None):
        """Watches all objects of a kind until look([object, ...]) is true, and returns that."""
        return self._observe(what, kind, namespace, look, seconds, labelSelector=selector)

    def wait_gone(self, kind, name, namespace=None, seconds=60, uid=None):
        """Waits until there is no such object, or one with another UID."""
        self._observe(f"{kind} {namespace}/{name} to be gone", kind, namespace,
                      lambda objects: all(uid and o["metadata"]["uid"] != uid for o in objects),
                      seconds, fieldSelector=f"metadata.name={name}")

    def wait_condition(self, kind, name, namespace, about, *reasons, seconds=60):
        """Watches the object until its condition `about` has one of these reasons; returns that."""
        found = self.wait_for(kind, name, namespace,
                              lambda o: condition(o, about).get("reason") in reasons, seconds,
                              f"{about} of {kind} {namespace}/{name} to say {' or '.join(reasons)}")
        return condition(found, about)

    def wait_event(self, name, namespace, reason, text="", seconds=60):
        """Waits for an event with this reason and this text; returns its message."""
        def look(events):
            return next((m for _, r, m in _told(events) if r == reason and text in m), None)
        return self.api.observe(f"event {reason} {text!r} of {namespace}/{name}",
                                _events_about(namespace, name), look, seconds)

    def wait_established(self, seconds=30):
        """Waits until every CustomResourceDefinition is served."""
        self.wait_list("the kinds to be served", "crd", None, lambda crds: all(
            condition(c, "Established").get("status") == "True" for c in crds), seconds)

    # --- how

    def _path(self, kind, namespace, name=None):
        one = self.kinds.of_word(kind)
        return one.path(namespace or ("default" if name else None), name)

    def _home(self, obj):
        """The collection of an object."""
        return self.kinds.of_manifest(obj).path(obj["metadata"].get("namespace", "default"))

    def _observe(self, what, kind, namespace, look, seconds, **query):
        """Api.observe of a kind that may not be served yet."""
        wait.until(f"kind {kind} to be served", lambda: self.kinds.of_word(kind), seconds)
        path = rest.with_query(self._path(kind, namespace), **query)
        return self.api.observe(what, path, look, seconds)

    def _ask(self, *request):
        """A Reply; without an answer, one with that as its message.  A request to a server that is
        too busy, or whose kind is new, is repeated, as kubectl does."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                reply = self.api.request(*request)
            except rest.GONE as error:
                reply = rest.Reply(503, {"reason": "NoAnswer", "message": repr(error)}, [])
            if reply.status != 429 or time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        if reply.status == 404 and reply.object.get("reason") != "NotFound":
            self.kinds.forget()  # the whole resource is gone
        return reply

    def _send(self, result, method, path, body, form=rest.JSON, said=""):
        name = body["metadata"]["name"] if method == "POST" else path.split("?")[0]
        result.add(self._ask(method, path, body, form), f"{name} {said}")

    def _each(self, verb, manifest, act, check):
        """act(object, result) for each object of a manifest."""
        result = Result([verb])
        for obj in _objects(manifest):
            result.args.append(f"{obj['kind']}/{obj['metadata'].get('name')}")
            act(obj, result)
        return _checked(result, check)

    def _apply(self, obj, query, result):
        home = self._home(obj)
        text = json.dumps(obj, separators=(",", ":"), ensure_ascii=False) + "\n"
        wanted = merge.merged(obj, {"metadata": {"annotations": {merge.LAST_APPLIED: text}}})
        path = f"{home}/{obj['metadata']['name']}"
        live = self._ask("GET", path)
        if live.status == 404:
            self._send(result, "POST", rest.with_query(home, **query), wanted, said="created")
        elif live.status >= 300:
            result.add(live, "")
        else:
            patch = merge.three_way(live.object, obj, wanted)
            if patch:
                self._send(result, "PATCH", rest.with_query(path, **query), patch, rest.MERGE,
                           "configured")
            else:
                result.add(live, f"{path} unchanged")

    def component(self, action, *names):
        """scripts/cluster stop|start|kill|pause|resume of etcd, apiserver, ..."""
        return cluster_command(self.name, action, *names)

    def kubeconfig_of(self, account, path):
        """Writes a kubeconfig that acts as the ServiceAccount "namespace/name" for some hours."""
        with open(self.kubeconfig, encoding="utf-8") as file:
            config = yaml.safe_load(file)
        for user in config["users"]:
            user["user"] = {"token": self.token_of(account)}
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump(config, file)
        return path

    def token_of(self, account, seconds=6 * 3600):
        """A token of the ServiceAccount "namespace/name"."""
        namespace, name = account.split("/")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": seconds}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return self.api.do("POST", path, request)["status"]["token"]


def _private(path, flags):
    return os.open(path, flags, 0o600)


def _objects(manifest):
    """The objects of text, of a dict or of a list of dicts; a List is flattened."""
    if isinstance(manifest, str):
        manifest = list(yaml.load_all(manifest, LOADER))
    for obj in manifest if isinstance(manifest, list) else [manifest]:
        if obj and "items" in obj:
            yield from obj["items"]
        elif obj:
            yield obj


def _checked(result, check):
    if check and result.returncode != 0:
        raise CommandFailed(result)
    return result


def _sub(path, subresource):
    return f"{path}/{subresource}" if subresource else path


def _uid_of_deleted(reply):
    """The UID in the answer to a DELETE: of the object, or of the details of a Status."""
    return reply.get("details", reply.get("metadata", {})).get("uid")


def _events_about(namespace, name):
    return f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}"


def _told(events):
    return [(e.get("type"), e.get("reason"), e.get("message")) for e in events]


# How a message ends, when what was refused is tried again each minute.
NEXT_RUN = (" (tried again within 1 minute, or at once when the annotation steward.dev/reconcile-at "
            "changes)")


def condition(obj, kind):
    """The metav1.Condition of this type as a dict; {} when there is none."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(obj):
    """Whether it is Ready at its current generation."""
    return condition(obj, "Ready").get("status") == "True" and \
        obj["status"].get("observedGeneration") == obj["metadata"]["generation"]


def is_rolled_out(deployment):
    """Whether all its pods have its current template and are available, and there are no others."""
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and \
        status.get("updatedReplicas", 0) == status.get("availableReplicas", 0) == \
        status.get("replicas", 0) == wanted


def cluster_command(name, *args, check=True, timeout=900):
    """Runs scripts/cluster for the cluster of this name."""
    command = [paths.SCRIPTS / "cluster", args[0], *(["--name", name] if name else []), *args[1:]]
    return run(command, check=check, timeout=timeout)


@contextlib.contextmanager
def of_its_own(name, *args):
    """A cluster for one test or module, which may do anything to it; taken down at the end.  It has
    the version of the cluster that the tests were given."""
    if os.environ.get("USE_EXISTING_CLUSTER") == "true":
        raise unittest.SkipTest("it needs a cluster of its own")
    given = os.environ.get("STEWARD_CLUSTER_NAME")
    version = ["--kubernetes", cluster_env(given)["STEWARD_CLUSTER_KUBERNETES"]] if given else []
    cluster_command(name, "up", *version, *args)
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
