# SPDX-License-Identifier: Apache-2.0
"""`--kinds`: each kind alone needs no right but its own, and a kind can be left out and taken back
while its objects exist."""

import json
import os

import pytest
import yaml
from support import cluster as k8s
from support import databaseuser as dbu
from support import myweb, paths, rights, wait
from support import steward as stw

SAMPLES = paths.TOP / "config" / "samples"
# Of other projects; test_app_optional.py installs them.
NOT_INSTALLED = ("httproutes", "podmonitors")


@pytest.fixture(scope="module")
def own(steward_binary):
    """A cluster of its own with the CRDs and without steward's rights: kinds are disabled here."""
    with k8s.of_its_own(f"kinds-{os.getpid()}", "--audit") as cluster:
        cluster.apply(k8s.run([steward_binary, "print", "crds"]).stdout)
        cluster.wait_established()
        yield cluster


def grant(cluster, binary, kinds, suffix=""):
    """A namespace with the account and exactly the rights that `print rbac --kinds` prints.  Returns
    the namespace.  The names of roles for the whole cluster get its name too."""
    namespace = f"only-{'-'.join(kinds).lower()[:40]}{suffix}"
    cluster.create_namespace(namespace)
    printed = k8s.run([binary, "print", "rbac", "--kinds", ",".join(kinds), "--namespace",
                       namespace]).stdout
    objects = [o for o in yaml.safe_load_all(printed) if o]
    for obj in objects:
        if obj["kind"].startswith("ClusterRole"):
            obj["metadata"]["name"] += f"-{namespace}"
        if obj.get("roleRef", {}).get("kind") == "ClusterRole":
            obj["roleRef"]["name"] += f"-{namespace}"
    cluster.apply(objects)
    return namespace


class Only(stw.Steward):
    """A steward with some kinds, in a namespace and with an account of its own."""

    def __init__(self, binary, cluster, folder, kinds, namespace):
        account = f"{namespace}/steward-controller-manager"
        kubeconfig = cluster.kubeconfig_of(account, folder / f"{namespace}.kubeconfig")
        super().__init__(binary, cluster, kubeconfig, folder, ["--kinds", ",".join(kinds)],
                         name=namespace)
        self.namespace = namespace

    def command(self):
        """In its namespace."""
        line = super().command()
        line[line.index("--namespace") + 1] = self.namespace
        return line

    def used(self, cluster):
        """(allowed uses, forbidden uses) of its account."""
        user = f"system:serviceaccount:{self.namespace}:steward-controller-manager"
        return rights.used(cluster.audit_log, user=user)


@pytest.fixture
def start(own, steward_binary, tmp_path):
    """start(kinds, namespace): an Only, which is stopped at the latest after the test."""
    started = []

    def call(kinds, namespace):
        started.append(Only(steward_binary, own, tmp_path, kinds, namespace))
        return started[-1].start()
    yield call
    for one in started:
        if one.running():
            one.stop()


def sample(kind):
    """The object of this kind in config/samples."""
    found = [o for path in sorted(SAMPLES.glob("*.yaml"))
             for o in yaml.safe_load_all(path.read_text("utf-8")) if o and o["kind"] == kind]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("kind", rights.KINDS)
def test_single_kind_needs_only_its_own_rights(own, steward_binary, start, kind):
    """It starts and reconciles with these rights; the audit log has no refusal, nothing beyond them,
    and each resource that it may watch and that exists is watched."""
    namespace = grant(own, steward_binary, rights.KINDS[kind])
    one = start(rights.KINDS[kind], namespace)
    grants = rights.granted(steward_binary, rights.KINDS[kind], namespace)
    obj = sample(kind)
    obj["metadata"]["namespace"] = namespace
    own.apply(obj)

    def unwatched(through):
        return [g for g in rights.idle(grants, through)
                if g[3] == "watch" and g[2] not in ("leases", *NOT_INSTALLED)]
    try:
        wait.until(f"a status of the {kind}",
                   lambda: own.get(kind, obj["metadata"]["name"], namespace).get("status"), 30)
        # A watch follows its list, and the log follows both.
        wait.until("all watches in the audit log", lambda: not unwatched(one.used(own)[0]), 30)
        through, forbidden = one.used(own)
    finally:
        own.delete(kind, obj["metadata"]["name"], namespace, wait_gone=False)
        assert one.stop() == 0, one.log_tail()
    assert not forbidden
    assert rights.beyond(grants, through) == []
    assert unwatched(through) == []
    rights.leave_kind(kind, through)


def test_single_kind_has_fewer_threads_and_metrics(own, steward_binary, start):
    namespace = grant(own, steward_binary, ("MyWeb",), "-threads")
    one = start(("MyWeb",), namespace)
    every = grant(own, steward_binary, tuple(rights.KINDS), "-threads")
    other = start(tuple(rights.KINDS), every)
    more = len(os.listdir(f"/proc/{other.process.pid}/task"))
    assert 'resource="persistentvolumeclaims"' in other.metrics_text()
    assert other.stop() == 0
    text = one.metrics_text()
    threads = len(os.listdir(f"/proc/{one.process.pid}/task"))
    left_out = [line for line in one.log() if line.get("msg", "").startswith("kinds are left out")]
    assert one.stop() == 0
    assert 'steward_kind_managed{kind="MyWeb"} 1' in text
    assert 'steward_kind_managed{kind="App"} 0' in text
    assert 'controller="app"' not in text and 'controller="myweb"' in text
    assert threads < more
    assert "steward_kind_managed" in text and 'resource="persistentvolumeclaims"' not in text
    assert left_out and "App" in left_out[0]["kinds"] and "MyWeb" not in left_out[0]["kinds"]


def doctor(cluster, binary, *arguments):
    """{verdict: [what was seen about kinds]}"""
    result = k8s.run([binary, "doctor", "-o", "json", "--kubeconfig", cluster.kubeconfig, *arguments],
                     check=False)
    seen = {}
    for check in json.loads(result.stdout)["checks"]:
        if check["check"] == "kinds":
            seen.setdefault(check["verdict"], []).append(check["seen"])
    return seen


def test_excluded_kind_is_not_changed_until_included(own, steward_binary, start):
    """Nothing is deleted, changes are not repaired meanwhile, and are afterwards."""
    both, users = ("MyWeb", "DatabaseUser"), ("DatabaseUser",)
    namespace = grant(own, steward_binary, both)
    name, key = "page", ("service", "page", namespace)
    one = start(both, namespace)
    own.apply(myweb.manifest(name, namespace))
    wait.until("its Service", lambda: own.get(*key), 30)
    assert one.stop() == 0
    uid = own.get("myweb", name, namespace)["metadata"]["uid"]

    two = start(users, namespace)
    own.delete(*key)
    own.apply(dbu.manifest("probe", namespace))
    wait.until("a status of what is managed",
               lambda: own.get(dbu.KIND, "probe", namespace).get("status"), 30)
    assert own.get(*key) is None
    assert own.get("myweb", name, namespace)["metadata"]["uid"] == uid
    seen = doctor(own, steward_binary, "--kinds=DatabaseUser", "-n", namespace)
    assert any("MyWeb is left out, but there is 1 myweb:" in text for text in seen["warn"]), seen
    own.delete(dbu.KIND, "probe", namespace)
    assert two.stop() == 0

    three = start(both, namespace)
    wait.until("its Service again", lambda: own.get(*key), 30)
    assert three.stop() == 0
    own.delete("myweb", name, namespace)


def test_finalizers_of_an_excluded_kind_are_reported(own, steward_binary):
    """doctor reports them and the webhooks that are not served; uninstall removes both, and leaves
    those of the other kinds."""
    own.delete_all(dbu.KIND)
    own.create_namespace("held")
    user = dbu.manifest("ann", "held")
    user["metadata"]["finalizers"] = [dbu.FINALIZER, "example.com/other"]
    own.apply(user)
    own.apply(k8s.run([steward_binary, "print", "webhooks", "--url", "https://127.0.0.1:1"]).stdout)
    seen = doctor(own, steward_binary, "--kinds=MyWeb")
    assert any("1 of 1 databaseuser has the finalizer" in text for text in seen["warn"]), seen
    assert any("DatabaseUser is left out, but the webhook configurations still ask about it" in text
               for text in seen["fail"]), seen

    def call(*arguments):
        return k8s.run([steward_binary, "uninstall", "--kubeconfig", own.kubeconfig,
                        "--kinds=DatabaseUser", *arguments], check=False)
    plan = call("--finalizers=release")
    assert plan.returncode == 0 and "Nothing was done" in plan.stdout, plan.stderr
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "steward-controller-manager", "namespace": stw.NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "manager", "image": "steward", "args": ["run", "--kinds=DatabaseUser",
                                                                 "--kinds=MyWeb"]}]}}}}
    own.create_namespace(stw.NAMESPACE)
    own.apply(deployment)
    runs = call("--finalizers=release", "--yes")
    assert runs.returncode == 1
    assert "runs with DatabaseUser and would put finalizers back" in runs.stderr
    assert dbu.FINALIZER in own.get(dbu.KIND, "ann", "held")["metadata"]["finalizers"]
    own.delete("deployment", "steward-controller-manager", stw.NAMESPACE)

    done = call("--finalizers=release", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.get(dbu.KIND, "ann", "held")["metadata"]["finalizers"] == ["example.com/other"]
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        names = [hook["name"] for hook in own.get(kind, name)["webhooks"]]
        assert names and not [n for n in names if "databaseuser" in n]
    stw.uninstall_webhooks(own)
    own.patch(dbu.KIND, "ann", "held", {"metadata": {"finalizers": None}})
