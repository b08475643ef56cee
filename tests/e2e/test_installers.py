# SPDX-License-Identifier: Apache-2.0
"""Installers change which kinds are installed, by server-side apply, while steward runs: helm and kubectl.
The cluster has no node, so steward runs beside it, with the account of the installation."""

import base64
import contextlib
import http.client
import json
import os
import shlex
import shutil
import ssl
import subprocess

import pytest
import yaml

from support import cluster as k8s
from support import certs, chart, gitops, gotools, kustomize, served, wait
from support import steward as stw
from support.cluster import as_yaml

TWO, ONE = ("App", "MyWeb"), ("App",)


@pytest.fixture(scope="module")
def bare(steward_binary):
    """A cluster of its own, with the CRDs: helm takes over no object that it has not made."""
    with k8s.of_its_own(f"installers-{os.getpid()}") as cluster:
        cluster.apply(k8s.run([steward_binary, "print", "crds", "--kinds", ",".join(TWO)]).stdout)
        cluster.wait_established()
        yield cluster


@pytest.fixture
def clean(bare):
    """Removes what an installer and steward made; the namespace stays, as its deletion takes long."""
    yield bare
    bare.kubectl("delete", "-n", stw.NAMESPACE, "-l", "app.kubernetes.io/name=steward", ",".join((
        "deployment", "service", "configmap", "serviceaccount", "role", "rolebinding", "poddisruptionbudget",
        "validatingwebhookconfiguration", "mutatingwebhookconfiguration", "clusterrole", "clusterrolebinding",
        "priorityclass", "flowschema", "prioritylevelconfiguration")))
    bare.kubectl("delete", "-n", stw.NAMESPACE, "secret,lease", "--all")


@pytest.fixture
def start(clean, steward_binary, tmp_path):
    """start(kinds): a steward with these, instead of the one before."""
    started = []

    def end():
        for one in started:
            if one.running():
                assert one.stop() == 0, one.log_tail()

    def call(kinds):
        end()
        account = clean.kubeconfig_of(stw.ACCOUNT, tmp_path / "account")
        started.append(stw.Steward(steward_binary, clean, account, tmp_path, ["--kinds", ",".join(kinds)]))
        return started[-1].start()
    yield call
    end()


@pytest.fixture
def helm(clean, tmp_path):
    """helm(words...) on the cluster; its output."""
    if gotools.missing("helm"):
        pytest.skip(gotools.missing("helm"))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(clean.kubeconfig)}

    def run(*words):
        done = gotools.run("helm", *words, "--namespace", stw.NAMESPACE, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    run.env = env
    return run


def entries(cluster):
    """{"m" or "v": {KIND: whether it has a caBundle}} of the entries for changes."""
    found = {}
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        found[kind[0]] = {
            next(k for k in TWO if k.lower() == hook["name"].partition(".")[0][1:]):
            bool(hook["clientConfig"].get("caBundle"))
            for hook in (cluster.get(kind, name) or {}).get("webhooks") or ()
            if hook["name"][0] != "d"}
    return found


def wait_served(cluster, kinds):
    """Until exactly the entries of these kinds are there, with a caBundle and without another owner than
    the installer."""
    wanted = {"m": dict.fromkeys(kinds, True), "v": dict.fromkeys(kinds, True)}

    def look():
        owned = any(m["manager"] == "steward-certs" for kind, name in stw.WEBHOOK_CONFIGURATIONS
                    for m in cluster.get(kind, name)["metadata"]["managedFields"])
        return not owned and entries(cluster) == wanted
    wait.until(f"webhooks of {kinds}", look, 30)


def doctor(cluster, binary, *arguments):
    """{check: (verdict, seen, advice)}"""
    result = k8s.run([binary, "doctor", "-o", "json", "--kubeconfig", cluster.kubeconfig, *arguments],
                     check=False)
    checks = {}
    for c in json.loads(result.stdout)["checks"]:
        if checks.get(c["check"], ("ok",))[0] != "fail":
            checks[c["check"]] = (c["verdict"], c["seen"], c.get("advice"))
    return checks


def follow(cluster, binary, advice, env=None):
    """Runs the command of an advice, with the programs of this test."""
    programs = {"steward": str(binary), "helm": str(gotools._find("helm") or "helm"),
                "kubectl": cluster.env.get("KUBECTL", "kubectl")}
    text = "".join(f"{name}() {{ {shlex.quote(path)} \"$@\"; }}\n" for name, path in programs.items())
    env = {**os.environ, **(env or {}), "KUBECONFIG": str(cluster.kubeconfig)}
    result = subprocess.run(["bash", "-o", "pipefail", "-c", text + advice], capture_output=True,
                            text=True, timeout=120, check=False, env=env)
    assert result.returncode == 0, f"{advice}\n{result.stdout}{result.stderr}"


@pytest.mark.oldest("server-side apply")
def test_helm_adds_and_removes_kinds(clean, helm, start, steward_binary):
    """Each upgrade succeeds and leaves exactly the webhooks of its kinds; a roll back, too."""
    def upgrade(kinds):
        helm("upgrade", "--install", "steward", chart.path(), "--create-namespace", "--set",
             "crds.install=false", "--set-json", f"kinds={json.dumps(kinds)}")
    upgrade(TWO)
    start(TWO)
    wait_served(clean, TWO)
    upgrade(ONE)
    start(ONE)
    wait_served(clean, ONE)
    seen = doctor(clean, steward_binary)
    assert seen["kinds"][0] == seen["MutatingWebhookConfiguration"][0] == "ok", seen
    helm("rollback", "steward", "1")
    start(TWO)
    wait_served(clean, TWO)

    # The advice of doctor brings a deleted configuration back, and helm goes on with it.
    kind, name = stw.WEBHOOK_CONFIGURATIONS[0]
    clean.delete(kind, name)
    verdict, text, advice = doctor(clean, steward_binary)["MutatingWebhookConfiguration"]
    assert verdict == "fail" and "is not there" in text
    assert advice.startswith("helm get manifest steward "), advice
    follow(clean, steward_binary, advice, helm.env)
    wait_served(clean, TWO)
    upgrade(ONE)
    start(ONE)
    wait_served(clean, ONE)


class _Between(served.Handler):
    """Passes each request on to the API server, and calls server.before() ahead of each write of a webhook
    configuration."""

    def _pass(self):
        api, body = self.server.api, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.command != "GET" and "webhookconfigurations/" in self.path:
            self.server.before()
        with contextlib.closing(api.connect()) as there:
            names = ("Accept", "Content-Type", "User-Agent")
            there.request(self.command, self.path, body or None, {
                **api.headers, **{n: self.headers[n] for n in names if n in self.headers}})
            answer = there.getresponse()
            self.reply(answer.status, {"Content-Type": answer.getheader("Content-Type", "text/plain")},
                       answer.read())

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _pass


@pytest.fixture
def between(clean, helm, tmp_path):
    """A server for helm.  What is put into between.before is called between its reads and its writes."""
    with served.Served(_Between) as server:
        server.api, server.before = clean.api, lambda: None
        config = tmp_path / "through.kubeconfig"
        config.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": server.url}}],
            "users": [{"name": "x", "user": {}}]}), "utf-8")
        helm.env["KUBECONFIG"] = str(config)
        yield server


@pytest.mark.parametrize("before, after, options", [
    pytest.param(TWO, ONE, (), id="remove", marks=pytest.mark.oldest("server-side apply")),
    pytest.param(ONE, TWO, ("--force-conflicts",), id="add")])
def test_certificate_renewal_during_helm_upgrade_is_kept(clean, helm, start, between, before,
                                                         after, options):
    """helm changes which webhooks there are, while steward puts a new CA into them: both writes stay, and
    each webhook trusts what steward serves."""
    def upgrade(kinds, *more):
        helm("upgrade", "--install", "steward", chart.path(), "--create-namespace", "--set",
             "crds.install=false", "--set-json", f"kinds={json.dumps(kinds)}", *more)

    def bundles():
        return {hook["clientConfig"].get("caBundle") for kind, name in stw.WEBHOOK_CONFIGURATIONS
                for hook in clean.get(kind, name)["webhooks"] if hook["name"][0] != "d"}
    upgrade(before)
    start(before)
    wait_served(clean, before)
    former, renewed = bundles(), []

    def renew():
        if not renewed:
            clean.patch("secret", certs.SECRET, stw.NAMESPACE, {"data": {"ca.key": None}})
            renewed.append(wait.until("another caBundle", lambda: bundles() - former, 30))
    between.before = renew
    upgrade(after, *options)
    assert renewed
    steward = start(after)
    wait_served(clean, after)
    [bundle] = bundles() - former
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", steward.webhook_port, context=context,
                                                        timeout=20)) as asked:
        asked.connect()


def overlay(folder, kinds):
    """A folder with an overlay of config/default with these kinds."""
    folder.mkdir()
    shutil.copytree(kustomize.CONFIG, folder / "config")
    (folder / "config" / "mine").mkdir()
    (folder / "config" / "mine" / "kustomization.yaml").write_text(yaml.safe_dump({
        "resources": ["../default"],
        "components": ["../kinds/none", *(f"../kinds/{k.lower()}" for k in kinds)]}), "utf-8")
    return folder / "config" / "mine"


@pytest.mark.oldest("server-side apply")
def test_kubectl_server_side_apply_removes_a_component(clean, start, steward_binary, tmp_path):
    """A component is taken out, as in docs/operations.md."""
    def apply(kinds, number):
        text = kustomize.build(clean, overlay(tmp_path / str(number), kinds))
        text = as_yaml([o for o in yaml.safe_load_all(text) if o["kind"] != "CustomResourceDefinition"])
        clean.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    for number, kinds in enumerate((TWO, ONE)):
        apply(kinds, number)
        start(kinds)
        wait_served(clean, kinds)

    # Whatever is missing or left over is put right by the advice of doctor.
    kind, name = stw.WEBHOOK_CONFIGURATIONS[1]
    clean.delete(kind, name)
    advice = doctor(clean, steward_binary)["ValidatingWebhookConfiguration"][2]
    assert "print webhooks" in advice and "--kinds=" in advice
    follow(clean, steward_binary, advice)
    wait_served(clean, ONE)
    index = next(i for i, hook in enumerate(clean.get(kind, name)["webhooks"]) if hook["name"][0] == "v")
    clean.patch(kind, name, None, [{"op": "remove", "path": f"/webhooks/{index}"}])
    verdict, seen, advice = doctor(clean, steward_binary)["ValidatingWebhookConfiguration"]
    assert verdict == "fail" and "it has no webhook for " in seen
    follow(clean, steward_binary, advice)
    wait_served(clean, ONE)


LONG = bool(os.environ.get("STEWARD_TEST_LONG"))
# What a tool applies in each of its syncs; the rest is applied once.  With STEWARD_TEST_LONG: everything.
SYNCED = ("CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
          "ConfigMap", "ClusterRole")


@pytest.fixture(scope="module")
def rendered(bare, tmp_path_factory):
    """rendered(kinds): the objects of config/ with these kinds, and one more for TWO."""
    found = {}

    def render(kinds):
        if kinds not in found:
            text = kustomize.build(bare, overlay(tmp_path_factory.mktemp("rendered") / "top", kinds))
            extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": "extra", "namespace": stw.NAMESPACE, "labels": {"app.kubernetes.io/name": "steward"}}}
            found[kinds] = [*yaml.safe_load_all(text), *[extra] * (kinds == TWO)]
        return found[kinds]
    return render


OLDEST = pytest.mark.oldest("server-side apply, and three-way merges of kubectl")
TOOLS = [pytest.param(tool, marks=OLDEST if LONG or tool == "flux" else ())
         for tool in gitops.TOOLS if LONG or tool != "argocd-server"]


@pytest.mark.parametrize("tool", TOOLS)
def test_gitops_tools_add_and_remove_kinds(clean, start, rendered, tool):
    """The requests of Flux and Argo CD, not their programs: see support/gitops.py.  Their next look finds
    no difference in what steward has written, so they do not fight; what left the repository is gone, except
    the CRD, with which all objects of the kind would go."""
    def objects(kinds):  # a dry run of kubectl on the client fails on a CRD that it has not applied before
        return [o for o in rendered(kinds) if (LONG or o["kind"] in SYNCED) and (
            tool == "flux" or o["kind"] != "CustomResourceDefinition")]

    one = gitops.TOOLS[tool](clean)
    if not LONG:
        clean.apply([o for o in rendered(TWO) if o["kind"] not in (*SYNCED, "Deployment")])
    for kinds in (TWO, ONE):
        assert one.sync(objects(kinds))
        if LONG or kinds == TWO:
            start(kinds)
        wait_served(clean, kinds)
        if LONG or kinds == TWO:
            assert one.sync(objects(kinds)) == []
        assert entries(clean) == {"m": dict.fromkeys(kinds, True), "v": dict.fromkeys(kinds, True)}
    assert clean.get("configmap", "extra", stw.NAMESPACE) is None
    assert "deletionTimestamp" not in clean.get("customresourcedefinition", "mywebs.operator.k8s-summit.org")[
        "metadata"]


@pytest.mark.oldest("server-side apply")
@pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client", "server"])
def test_documented_command_removes_webhooks_of_a_kind(clean, steward_binary, options):
    """It removes them, whatever client has applied them, and leaves those of the other kinds."""
    text = k8s.run([steward_binary, "print", "webhooks", "--kinds", ",".join(TWO)]).stdout
    clean.kubectl("apply", *options, "-f", "-", stdin=text)
    verdict, seen, advice = doctor(clean, steward_binary, "--kinds=MyWeb")["kinds"]
    assert verdict == "fail" and "App is left out, but the webhook configurations still ask" in seen
    follow(clean, steward_binary, advice)
    assert set(entries(clean)["m"]) == set(entries(clean)["v"]) == {"MyWeb"}
    assert doctor(clean, steward_binary, "--kinds=MyWeb")["kinds"][0] == "ok"
