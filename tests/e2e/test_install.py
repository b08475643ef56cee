# SPDX-License-Identifier: Apache-2.0
"""config/ is what the program prints, and a cluster accepts it."""

import contextlib
import itertools
import re
import shlex
import subprocess

import pytest
import yaml

from support import chart, databaseuser, kustomize, paths, readme, wait
from support import steward as stw
from support.cluster import as_yaml

CONFIG = kustomize.CONFIG
FOLDERS = sorted(p.parent.name for p in CONFIG.glob("*/kustomization.yaml"))
KINDS = ("mywebs.operator.k8s-summit.org", "apps.mycompany.com", "erus.mtsre.meitu.com",
         "databaseusers.handsomeguy.cn", "etcdclusters.etcd.database.coreos.com",
         "etcdbackups.etcd.database.coreos.com", "etcdrestores.etcd.database.coreos.com")


def folder_of(cluster):
    """The folder of config/ for this API server."""
    minor = cluster.minor()
    return max((f for f in FOLDERS if f.startswith("server-") and int(f[9:]) <= minor),
               key=lambda f: int(f[9:]))


def key(obj):
    return obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]


@contextlib.contextmanager
def removed_again(cluster, objects):
    """Afterwards only what the fixture `installed` needs remains."""
    try:
        yield
    finally:
        stw.uninstall_webhooks(cluster)
        for kind, namespace, name in map(key, objects):
            if kind in ("Deployment", "Service", "PodDisruptionBudget", "PriorityClass",
                        "FlowSchema", "PriorityLevelConfiguration"):
                cluster.delete(kind, name, namespace)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_builds_reproducibly_without_secrets(cluster, folder):
    """Builds are equal, have no secrets or random data, and the right namespaces."""
    text = kustomize.build(cluster, CONFIG / folder)
    assert text == kustomize.build(cluster, CONFIG / folder)
    found = [o for o in yaml.safe_load_all(text) if o]
    assert found
    assert len({key(o) for o in found}) == len(found)
    assert not [o for o in found if o["kind"] == "Secret"]
    assert not re.search(r"BEGIN [A-Z ]*(KEY|CERTIFICATE)|caBundle", text)
    for obj in found:
        allowed = (None, stw.NAMESPACE, "default" if folder == "namespaced" else None)
        assert obj["metadata"].get("namespace") in allowed, key(obj)
        assert obj["metadata"]["labels"]["app.kubernetes.io/part-of"] == "steward", key(obj)


def differences(sent, stored, at=""):
    """The paths at which a stored object lacks what was sent, for instance pruned fields."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            if name not in (stored or {}):
                yield f"{at}.{name}"
            else:
                yield from differences(value, stored[name], f"{at}.{name}")
    elif isinstance(sent, list):
        if len(sent) != len(stored):
            yield at
        for i, (one, other) in enumerate(zip(sent, stored)):
            yield from differences(one, other, f"{at}[{i}]")
    elif sent != stored:
        yield f"{at}: {stored!r}"


def stored(cluster, obj):
    kind, namespace, name = key(obj)
    group, _, version = obj["apiVersion"].rpartition("/")
    return cluster.get(f"{kind}.{version}.{group}" if group else kind, name, namespace)


@pytest.mark.oldest("API versions of config/server-*, pruning")
def test_folder_is_stored_unchanged_by_the_cluster(installed):
    folder = folder_of(installed)
    objects = kustomize.objects(installed, folder)
    with removed_again(installed, objects):
        result = kustomize.apply(installed, CONFIG / folder)
        assert "deployment.apps/steward-controller-manager" in result.stdout
        for obj in objects:
            assert list(differences(obj, stored(installed, obj))) == [], key(obj)


@pytest.mark.oldest("unknown fields")
def test_unknown_field_is_detected(installed):
    """Proves that the test above can fail."""
    service = {"apiVersion": "v1", "kind": "ConfigMap", "nonsense": 1,
               "metadata": {"name": "unknown-field", "namespace": "default"}}
    installed.apply(service, validate=False)
    assert list(differences(service, stored(installed, service))) == [".nonsense"]
    installed.delete("configmap", "unknown-field", "default")


# --- one file


def test_single_file_equals_the_folder(cluster):
    whole = {key(o): o for o in yaml.safe_load_all(kustomize.one_file("default"))}
    assert whole == {key(o): o for o in kustomize.objects(cluster, "default")}


@pytest.mark.oldest("API versions, pruning")
def test_single_file_is_applied_by_kubectl(installed):
    objects = list(yaml.safe_load_all(kustomize.one_file("default")))
    with removed_again(installed, objects):
        installed.kubectl("apply", "-f", "-", stdin=kustomize.one_file("default"))
        assert stored(installed, objects[-1])["kind"] == "Deployment"


def test_single_file_deletes_webhooks_first(installed):
    kustomize.apply(installed, CONFIG / "webhook")
    try:
        result = installed.kubectl("delete", "-f", "-", "--dry-run=server", "--ignore-not-found",
                                   stdin=kustomize.one_file("default"))
    finally:
        stw.uninstall_webhooks(installed)
        installed.delete("service", "steward-webhook-service", stw.NAMESPACE)
    kinds = [line.split(".")[0].split(" ")[0] for line in result.stdout.splitlines()]
    assert kinds[:2] == ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"]
    assert "customresourcedefinition" in kinds[2:]


# --- the parts


def in_folder(cluster, folder, kind):
    return next(o for o in kustomize.objects(cluster, folder) if o["kind"] == kind)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.startswith("server-")])
def test_disruption_budget_leaves_one_replica(cluster, folder):
    deployment = in_folder(cluster, folder, "Deployment")["spec"]
    budget = in_folder(cluster, folder, "PodDisruptionBudget")["spec"]
    assert deployment["replicas"] - budget["maxUnavailable"] >= 1
    labels = deployment["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    for spread in deployment["template"]["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"].items() <= labels.items()


def test_named_ports_exist_in_the_pod(cluster):
    """In Services, probes and NetworkPolicies; the ServiceMonitor names one of the Service."""
    container = in_folder(cluster, "default", "Deployment")["spec"]["template"]["spec"][
        "containers"][0]
    ports = {p["name"] for p in container["ports"]}
    used = {container[f"{probe}Probe"]["httpGet"]["port"]
            for probe in ("startup", "liveness", "readiness")}
    services = [o for o in kustomize.objects(cluster, "default") if o["kind"] == "Service"]
    used |= {p["targetPort"] for s in services for p in s["spec"]["ports"]}
    used |= {p["port"] for o in kustomize.objects(cluster, "network-policy")
             for rule in o["spec"]["ingress"] for p in rule["ports"]}
    assert used == ports
    endpoint, = in_folder(cluster, "prometheus", "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["port"] in {p["name"] for s in services for p in s["spec"]["ports"]
                                if "metrics" in s["metadata"]["name"]}


def test_webhooks_cover_only_own_kinds(cluster):
    found = [o for o in kustomize.objects(cluster, "server-1.29")
             if o["kind"].endswith("WebhookConfiguration")]
    for configuration in found:
        validating = configuration["kind"].startswith("Validating")
        for hook in configuration["webhooks"]:
            assert hook["sideEffects"] == "None"
            assert hook["matchPolicy"] == "Equivalent"
            rule, = hook["rules"]
            resource, = rule["resources"]
            group, = rule["apiGroups"]
            assert f"{resource}.{group}" in KINDS
            closed = validating and rule["operations"] != ["DELETE"]
            assert hook["failurePolicy"] == ("Fail" if closed else "Ignore")
            assert hook["timeoutSeconds"] == (3 if closed else 2)


def test_namespace_enforces_the_restricted_standard(cluster):
    labels = in_folder(cluster, "default", "Namespace")["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"


@pytest.mark.oldest("flow control")
def test_flow_schema_matches_requests_of_steward(installed):
    """The API server's responses contain the UID of the FlowSchema."""
    folder = folder_of(installed)
    if folder == "server-1.21":
        pytest.skip("config/ has no FlowSchemas for this version")
    levels = [o for o in kustomize.objects(installed, folder)
              if o["kind"] in ("FlowSchema", "PriorityLevelConfiguration")]

    def flow_of(path):
        text = installed.kubectl("get", "--raw", path, "-v=8", kubeconfig=installed.kubeconfig_steward,
                                 check=False).stderr
        found = re.findall(r"X-Kubernetes-Pf-Flowschema-Uid: ([0-9a-f-]+)", text, re.IGNORECASE)
        return found[-1] if found else None
    with removed_again(installed, levels):
        installed.apply(levels)
        for name, path in (("steward", "/apis/operator.k8s-summit.org/v1/mywebs"),
                           ("steward-leader-election", "/apis/coordination.k8s.io/v1/namespaces/"
                            f"{stw.NAMESPACE}/leases/steward.steward.dev")):
            uid = installed.get("flowschema", name)["metadata"]["uid"]
            wait.until(f"requests to be in {name}", lambda: flow_of(path) == uid, 30, every=0.5)


def test_deployment_uses_existing_flags_and_ports(cluster, steward_binary):
    """Its flags exist, its ports are the defaults, its grace period is longer than a shutdown."""
    deployment = next(o for o in kustomize.objects(cluster, "manager") if o["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    result = subprocess.run([steward_binary, *container["args"], "--help"], capture_output=True,
                            text=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr
    for port in container["ports"]:
        assert f":{port['containerPort']}" in result.stdout
    assert pod["terminationGracePeriodSeconds"] >= 5 + 20 + 10


def rules(role):
    """Each (group, resource, verb) that a role allows."""
    for rule in role.get("rules") or []:
        yield from itertools.product(rule.get("apiGroups", []), rule.get("resources", []),
                                     rule["verbs"])


@pytest.mark.oldest("rights")
def test_service_account_has_no_further_rights(installed):
    """It creates pods and certificates for EtcdClusters, and cannot grant rights."""
    for verb, what in (("patch", "secrets"), ("delete", "secrets"), ("deletecollection", "pods"),
                       ("create", "pods --subresource=exec"), ("get", "nodes"),
                       ("create", "serviceaccounts --subresource=token"), ("impersonate", "users"),
                       ("delete", "namespaces"),
                       ("create", "clusterrolebindings"), ("escalate", "clusterroles")):
        result = installed.kubectl("auth", "can-i", verb, *what.split(), "-n", "kube-system",
                                   check=False, kubeconfig=installed.kubeconfig_steward)
        assert result.stdout.strip() == "no", f"{verb} {what}"


ROLES = {
    # role: (verbs on objects, verbs on scale)
    "view": ({"get", "list", "watch"}, {"get"}),
    "edit": ({"get", "list", "watch", "create", "update", "patch", "delete"},
             {"get", "update", "patch"}),
    "admin": ({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
              {"get", "update", "patch"}),
}


def scaled(cluster):
    """The plurals of kinds that have a replica count."""
    return [crd["spec"]["names"]["plural"] for crd in kustomize.objects(cluster, "crd")
            if "scale" in crd["spec"]["versions"][0]["subresources"]]


@pytest.fixture(scope="module")
def user_roles(installed):
    installed.kubectl("apply", "-f", str(CONFIG / "rbac" / "user_roles.yaml"))
    return installed


@pytest.mark.oldest("aggregation of roles")
@pytest.mark.parametrize("role", ROLES)
def test_user_roles_aggregate_to_built_in_roles(user_roles, role):
    """For all kinds, and with exactly the verbs of that role."""
    def granted():
        found = user_roles.get("clusterrole", role)
        return {(r, verb) for group, r, verb in rules(found) if f"{r.split('/')[0]}.{group}" in KINDS}
    on_objects, on_scale = ROLES[role]
    wanted = {(k.split(".")[0], verb) for k in KINDS for verb in on_objects}
    wanted |= {(k.split(".")[0] + "/status", "get") for k in KINDS}
    wanted |= {(f"{plural}/scale", verb) for plural in scaled(user_roles) for verb in on_scale}
    wait.until(f"the role {role} to have them", lambda: granted() >= wanted, 20)
    assert granted() == wanted


# --- the chart


@pytest.mark.oldest("API versions of the chart, pruning")
def test_chart_is_accepted_by_the_cluster(installed, tmp_path):
    """Rendered for its version, with all optional objects of kinds that it knows."""
    if chart.missing():
        pytest.skip(chart.missing())
    version = installed.api.do("GET", "/version")
    rendered = chart.build(tmp_path)({"networkPolicy": {"enabled": True},
                                      "dashboard": {"enabled": True},
                                      "targets": [{"name": "orders", "engine": "mariadb",
                                                   "host": "db", "admin": {"user": "steward"}}]},
                                     server=version["gitVersion"])
    objects = chart.objects(rendered)
    with removed_again(installed, objects):
        installed.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                          stdin=as_yaml(objects))
        for obj in objects:
            assert list(differences(obj, stored(installed, obj))) == [], key(obj)
    for obj in objects:
        if obj["kind"] in ("NetworkPolicy", "ConfigMap"):
            installed.delete(obj["kind"], obj["metadata"]["name"], stw.NAMESPACE)
    stw.install(installed, paths.steward_binary())


# --- the commands in docs/operations.md


OPERATIONS = "docs/operations.md"


def told(start):
    """The shell commands of its examples that begin with `start`."""
    lines = "".join(readme.blocks("sh", OPERATIONS)).splitlines()
    found = [line for line in lines if line.startswith(start)]
    assert found
    return found


def test_documented_folders_exist():
    text = (paths.TOP / OPERATIONS).read_text("utf-8")
    folders = set(re.findall(r"`config/([\w.-]+)`", text))
    assert {f for f in FOLDERS if f.startswith("server-")} | {"grafana", "prometheus"} <= folders
    assert folders <= {p.name for p in CONFIG.iterdir()}


def test_documented_overlay_builds(cluster, tmp_path):
    """It builds, and has the changes that the page describes."""
    text, = [b for b in readme.blocks("yaml", OPERATIONS) if b.startswith("# kustomization.yaml")]
    (tmp_path / "config").symlink_to(CONFIG)
    (tmp_path / "kustomization.yaml").write_text(text, "utf-8")
    text = kustomize.build(cluster, tmp_path, "--load-restrictor=LoadRestrictionsNone")
    found = {key(o): o for o in yaml.safe_load_all(text) if o}
    pod = found[("Deployment", stw.NAMESPACE, "steward-controller-manager")]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/steward:0.1.0"
    config = found[("ConfigMap", stw.NAMESPACE, "steward-config")]["data"]["steward.yaml"]
    assert yaml.safe_load(config) == {"logLevel": "debug"}


def test_documented_image_replacement_works():
    command, = told("scripts/render install")
    text = subprocess.run(command.rpartition(" | ")[0], shell=True, cwd=paths.TOP, text=True, check=True,
                          capture_output=True).stdout
    assert "image: REGISTRY/steward:0.1.0\n" in text
    assert "image: steward:" not in text


def test_documented_helm_values_exist():
    values = yaml.safe_load((paths.TOP / "chart" / "values.yaml").read_text("utf-8"))
    for command in told("helm "):
        for path in re.findall(r"--set ([\w.]+)=", command):
            found = values
            for name in path.split("."):
                found = found[name]
    assert "crds.keep" in (paths.TOP / OPERATIONS).read_text("utf-8")
    assert "keep" in values["crds"]


def test_documented_removal_works(installed, steward_binary):
    """The commands of that section; as a dry run where other tests need the objects."""
    user = databaseuser.manifest("held", "default")
    user["metadata"]["finalizers"] = [databaseuser.FINALIZER]
    tell, do = told("steward uninstall")
    whole, hooks, users = told("kubectl delete ")[-3:]
    patch, = told("kubectl patch ")
    objects = kustomize.objects(installed, "default")
    with removed_again(installed, objects):
        installed.apply(user)
        kustomize.apply(installed, CONFIG / "default")
        for command in (tell, do.replace("wait", "release")):  # no steward runs that could clean up
            result = subprocess.run([steward_binary, *command.split()[1:], "--kubeconfig",
                                     installed.kubeconfig], text=True, capture_output=True,
                                    timeout=120, check=False)
            assert result.returncode == 0, result.stdout + result.stderr
        assert "removed the finalizer from" in result.stdout
        result = installed.kubectl(*whole.replace("config/default", str(CONFIG / "default"))
                                   .split()[1:], "--dry-run=server")
        assert len(result.stdout.splitlines()) == len(objects) - 2  # the webhooks are gone

        installed.apply(user)
        kustomize.apply(installed, CONFIG / "webhook")
        installed.kubectl(*hooks.split()[1:])
        for kind, name in stw.WEBHOOK_CONFIGURATIONS:
            assert installed.get(kind, name) is None
        installed.kubectl(*users.split()[1:])
        assert installed.get(databaseuser.KIND, "held", "default")
        installed.kubectl(*shlex.split(patch.replace("NAMESPACE", "default")
                                       .replace("NAME", "held"))[1:])
        wait.until("it to be gone",
                   lambda: not installed.get(databaseuser.KIND, "held", "default"), 20)


def test_chart_removal_hook_has_sufficient_rights(installed, steward_binary, tmp_path):
    """The account of its hook may do what `steward uninstall` does when no steward runs."""
    if chart.missing():
        pytest.skip(chart.missing())
    hook = chart.objects(chart.build(tmp_path)(), "pre-delete")
    job = next(o for o in hook if o["kind"] == "Job")
    rights = [o for o in hook if o is not job]
    user = databaseuser.manifest("held", "default")
    user["metadata"]["finalizers"] = [databaseuser.FINALIZER]
    release = kustomize.objects(installed, "default")
    with removed_again(installed, release):
        installed.apply(user)
        kustomize.apply(installed, CONFIG / "default")
        installed.apply(rights)
        try:
            installed.apply(job, dry_run=True)
            account = installed.kubeconfig_of(f"{stw.NAMESPACE}/steward-uninstall",
                                              tmp_path / "account")
            args = job["spec"]["template"]["spec"]["containers"][0]["args"]
            result = subprocess.run([steward_binary, *args, "--kubeconfig", account], text=True,
                                    capture_output=True, timeout=120, check=False)
            assert result.returncode == 0, result.stdout + result.stderr
            assert "removed the finalizer from" in result.stdout
            for kind, name in stw.WEBHOOK_CONFIGURATIONS:
                assert installed.get(kind, name) is None
            found = installed.get(databaseuser.KIND, "held", "default")
            assert "finalizers" not in found["metadata"]
        finally:
            for obj in rights:
                installed.delete(obj["kind"], obj["metadata"]["name"],
                                 obj["metadata"].get("namespace"))
            stw.uninstall_webhooks(installed)
            installed.delete(databaseuser.KIND, "held", "default")
