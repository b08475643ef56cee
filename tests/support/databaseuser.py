# SPDX-License-Identifier: Apache-2.0
"""DatabaseUsers in tests: manifests, a steward with targets, and what to wait for."""

import contextlib
import json
import time

import yaml

from . import steward as stw
from . import wait
from .cluster import condition, is_ready

KIND = "databaseusers.handsomeguy.cn"
RESOURCE = ("handsomeguy.cn", "databaseusers")
ONE_KIND = ("--kinds", "DatabaseUser")
FINALIZER = "mygroup.handsomeguy.cn/databaseuser"
SHOP = [{"database": "shop", "privileges": ["SELECT", "INSERT"]}]

# The article's, with the indentation that its page lost, and `labels` as Kubernetes calls them.
SEED = """\
apiVersion: handsomeguy.cn/v1alpha1
kind: DatabaseUser
metadata:
  labels:
    target: that-database
  name: cnhandsomeguy
spec:
  user: cnhandsomeguy
  password:
    name: my-secret
    key: my-key
"""
# The article's other two: without a target, and with the `label` that Kubernetes ignores.
SEED_WITHOUT_TARGET = SEED.replace("  labels:\n    target: that-database\n", "")
SEED_WITH_LABEL = SEED.replace("  labels:\n", "  label:\n")


def manifest(name, namespace, target="main", secret=None, annotations=None, **spec):
    """A DatabaseUser; by default its account and its Secret have its name."""
    metadata = {"name": name, "namespace": namespace, "labels": {"target": target}}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "handsomeguy.cn/v1alpha1", "kind": "DatabaseUser", "metadata": metadata,
            "spec": {"user": name, "password": {"name": secret or name}, "grants": SHOP, **spec}}


def secret(name, namespace, password, key="password"):
    """A Secret; without a password, one without the key."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "stringData": {key: password} if password is not None else {}}


def give_rights(server, database, roles, columns=1500, tables=7):
    """42,000 rights each, as another client, on tables of the schema "wide"."""
    names = ",".join(f"c{i}" for i in range(columns))
    types = ",".join(f"c{i} bool" for i in range(columns))
    privileges = ",".join(f"{name} ({names})" for name in ("SELECT", "INSERT", "UPDATE", "REFERENCES"))
    server.sql("CREATE SCHEMA wide", database)
    for table in range(tables):
        server.sql(f"CREATE TABLE wide.t{table} ({types}); "
                   f"GRANT {privileges} ON wide.t{table} TO {', '.join(roles)}", database)


def swell_marks(server, roles, tables=3300):
    """Puts 46,000 rights into the mark of each, as if steward had given them and they had gone since."""
    privileges = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
    rights = json.dumps([["sizes", "wide", f"t{i:04}", privileges, privileges] for i in range(tables)],
                        separators=(",", ":"))
    for role in roles:
        mark = json.loads(server.comment(role))
        mark["rights"] = []
        text = json.dumps(mark, separators=(",", ":")).replace('"rights":[]', f'"rights":{rights}')
        server.sql(f"COMMENT ON ROLE {role} IS '{text}'")


def running_dbenv(cluster, binary, folder, server, args=ONE_KIND):
    """The body of a fixture: a Environment without a webhook whose target "main" is the server.  Other kinds
    are left out, since the lists and watches of all are half of the API server's work in tests that
    kill steward again and again."""
    stw.uninstall_webhooks(cluster)
    one = Environment(cluster, binary, folder, {"main": server}, args)
    one.steward.start()
    yield one
    if one.steward.running():
        assert one.steward.stop() == 0, one.steward.log_tail()


class Environment:
    """One steward process for the cluster, with targets in its configuration file, and with `args`."""

    def __init__(self, cluster, binary, folder, servers, args=()):
        self.cluster, self.binary, self.folder = cluster, binary, folder
        self.servers = dict(servers)
        self.config = folder / "steward.yaml"
        self.steward = stw.Steward(binary, cluster, cluster.kubeconfig_steward, folder,
                                   ["--config", self.config, *args])
        self.admitting = None  # the steward of webhook()
        self.write_targets(*(s.target(name) for name, s in self.servers.items()))
        for name, server in self.servers.items():
            self.admin_secret(name, server.admin_password)

    @contextlib.contextmanager
    def at(self, clock):
        """Its stewards have this clock.Clock; none runs before and after."""
        assert not self.steward.running()
        before = self.steward.env, self.steward.args
        self.steward.env = clock.env(self.binary)
        self.steward.args = [*self.steward.args, "--sandbox=off"]  # see stw.Steward
        try:
            yield clock
        finally:
            if self.steward.running():
                assert self.steward.stop() == 0, self.steward.log_tail()
            self.steward.env, self.steward.args = before

    @contextlib.contextmanager
    def webhook(self):
        """Admission by another steward, which has these targets and reconciles nothing."""
        webhook = stw.Steward(self.binary, self.cluster, self.cluster.kubeconfig_steward, self.folder,
                              ["--config", self.config, "--role", "webhook"], name="webhook")
        stw.install_webhooks(self.cluster, self.binary, webhook.webhook_port)
        try:
            webhook.start()
            webhook.wait_webhook()
            self.admitting = webhook
            yield webhook
        finally:
            self.admitting = None
            stw.uninstall_webhooks(self.cluster)
            webhook.stop()

    def admit(self, name, namespace, **more):
        """Creates a DatabaseUser once the webhook has seen its Secret."""
        obj = manifest(name, namespace, **more)
        wait.until("the Secret to be seen", lambda: FINALIZER in self.cluster.apply(
            obj, dry_run=True).object["metadata"].get("finalizers", ()))
        self.cluster.apply(obj)

    def write_targets(self, *targets):
        """Replaces the list by another file, as a mounted ConfigMap is replaced.  A running steward
        has read it when this returns."""
        text = yaml.safe_dump({"targets": list(targets)})
        if self.config.exists() and self.config.read_text("utf-8") == text:
            return
        before = self._reloads() if self.steward.running() else None
        new = self.config.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.rename(self.config)
        if before is not None:
            wait.until("steward to read its targets", lambda: self._reloads() > before)

    def _reloads(self):
        return self.steward.metric("steward_config_reloads_total")

    def admin_secret(self, target, password):
        """Writes the admin's password to where the target reads it."""
        self.cluster.apply(secret(f"{target}-admin", stw.NAMESPACE, password))

    def create(self, name, namespace, password="first-Passw0rd-1", **more):
        """Creates a Secret and a DatabaseUser, and waits until it is ready; returns the object."""
        self.cluster.apply([secret(name, namespace, password), manifest(name, namespace, **more)])
        return self.wait_ready(name, namespace)

    def get(self, name, namespace):
        """The object, or None."""
        return self.cluster.get(KIND, name, namespace)

    def patch(self, name, namespace, **spec):
        """Changes fields of the spec."""
        self.cluster.patch(KIND, name, namespace, {"spec": spec})

    def poke(self, name, namespace):
        """Triggers a reconcile."""
        self.annotate(name, namespace, {"steward.dev/reconcile-at": f"{time.monotonic_ns()}"})

    def annotate(self, name, namespace, annotations):
        """Sets annotations from a dict; None removes one."""
        self.cluster.annotate(KIND, name, namespace, annotations)

    def wait_ready(self, name, namespace, seconds=60):
        """Waits until it is ready at its generation; returns the object."""
        return self.cluster.wait_for(KIND, name, namespace, is_ready, seconds,
                                     f"DatabaseUser {namespace}/{name} to be ready")

    def wait_condition(self, name, namespace, kind, *reasons, seconds=60):
        """Waits until a condition has one of these reasons; returns it."""
        return self.cluster.wait_condition(KIND, name, namespace, kind, *reasons, seconds=seconds)

    def wait_event(self, name, namespace, reason, text="", seconds=60):
        """Waits for an event with this reason and this text; returns its message."""
        return self.cluster.wait_event(name, namespace, reason, text, seconds)

    def has_rotated(self, name, namespace):
        """Whether the password in the Secret of its name is the only one, and applications read it."""
        user, password = self.get(name, namespace), self.cluster.get("secrets", name, namespace)
        return user["status"].get("secretResourceVersion") == password["metadata"]["resourceVersion"] \
            and condition(user, "RotationComplete").get("reason") == "Complete"

    def wait_rotated(self, name, namespace, seconds=60):
        """Waits until it has rotated to what is in the Secret now."""
        version = self.cluster.get("secrets", name, namespace)["metadata"]["resourceVersion"]
        self.cluster.wait_for(KIND, name, namespace, lambda user: user["status"].get(
            "secretResourceVersion") == version and
            condition(user, "RotationComplete").get("reason") == "Complete", seconds,
            f"the rotation of {namespace}/{name} to end")

    def delete(self, name, namespace, wait_gone=True):
        """Deletes the object, not its Secret."""
        return self.cluster.delete(KIND, name, namespace, wait_gone=wait_gone, seconds=30)

    def forget(self, namespace):
        """Removes all that is left of a test, in any state of its server."""
        for user in self.cluster.list(KIND, namespace):
            self.annotate(user["metadata"]["name"], namespace, {"steward.dev/force-delete": "true"})
        self.cluster.delete_all(KIND, namespace, seconds=60)
        if self.admitting:  # it would refuse the same account and database to the next test
            wait.until("the webhook to see the deletions", lambda: len(self.cluster.list(KIND)) ==
                       self.admitting.metric("steward_cache_objects", resource="databaseusers"))


def writes(cluster, namespace):
    """The changes that steward has made in this namespace, without events."""
    return [r for r in stw.requests(cluster, namespace, changing=True) if "/events" not in r[1]]
