# SPDX-License-Identifier: Apache-2.0
"""The Helm chart renders the same objects as config/, and applies its values."""

import copy
import functools
import json
import re
import shutil
import subprocess

import pytest
import yaml

from support import chart, gotools, paths

try:
    import jsonschema
except ImportError:
    jsonschema = None

# Labels that a release adds to its objects, and config/ does not.
OF_RELEASE = {"app.kubernetes.io/instance", "app.kubernetes.io/version",
              "app.kubernetes.io/managed-by", "helm.sh/chart"}
DEFAULTS = yaml.safe_load((chart.SOURCE / "values.yaml").read_text("utf-8"))
SCHEMA = json.loads((chart.SOURCE / "values.schema.json").read_text("utf-8"))
EVERYTHING = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True},
              "dashboard": {"enabled": True}, "networkPolicy": {"enabled": True}}


@pytest.fixture(scope="module", params=["helm", pytest.param(
    "templates", marks=[] if gotools.missing("helm") else pytest.mark.thorough("helm itself is there"))])
def render(request, tmp_path_factory):
    """render(values, crds=, namespace=, server=): the objects by (kind, namespace, name), rendered by
    helm, and by the renderer of this suite, which needs only Debian's packages.  To render the CRDs takes
    longer than all the rest."""
    folder = tmp_path_factory.mktemp("chart")
    missing = gotools.missing("helm") if request.param == "helm" else chart.missing()
    if missing:
        pytest.skip(missing)
    program = chart.Helm(folder) if request.param == "helm" else chart.build(folder)

    @functools.cache
    def rendered(question):
        values, more = json.loads(question)
        return program(values, **more)

    def run(values=None, crds=False, **more):
        values = {**({} if crds else {"crds": {"install": False}}), **(values or {})}
        found = chart.objects(rendered(json.dumps([values, more])))
        assert len({chart.key(o) for o in found}) == len(found)
        return {chart.key(o): o for o in found}
    run.texts = program
    return run


@pytest.fixture
def helm(tmp_path):
    """The real helm."""
    if gotools.missing("helm"):
        pytest.skip(gotools.missing("helm"))
    return chart.Helm(tmp_path)


@functools.cache
def _kustomized(folder):
    return subprocess.run(["kubectl", "kustomize", str(paths.TOP / "config" / folder)],
                          text=True, capture_output=True, timeout=60, check=True).stdout


def kustomized(*folders):
    """The objects of these folders of config/ by (kind, namespace, name)."""
    return {chart.key(o): o for folder in folders for o in chart.parsed(_kustomized(folder))}


def comparable(obj):
    """The object without what a release adds, and with the configuration file parsed."""
    obj = copy.deepcopy(obj)
    labels = obj["metadata"]["labels"]
    for label in OF_RELEASE | {"grafana_dashboard"}:
        labels.pop(label, None)
    if obj["kind"] == "CustomResourceDefinition":
        labels.pop("app.kubernetes.io/name", None)
    if obj["kind"] == "ConfigMap":
        obj["data"] = {k: yaml.safe_load(v) or {} for k, v in obj["data"].items()}
    if (obj["metadata"].get("annotations") or {}).pop("helm.sh/resource-policy", None):
        if not obj["metadata"]["annotations"]:
            del obj["metadata"]["annotations"]
    return obj


@pytest.mark.parametrize("server, folder", [
    ("v1.20.2", "server-1.20"), ("v1.21.0", "server-1.21"), ("v1.29.0", "server-1.29"),
    ("v1.33.1", "server-1.29")])
def test_chart_renders_the_objects_of_config(render, server, folder):
    ours = render(EVERYTHING, crds=True, server=server)
    theirs = kustomized(folder, "network-policy", "prometheus", "grafana")
    theirs.pop(("Namespace", None, "steward-system"))  # helm creates it
    if folder == "server-1.21":  # config/ has no FlowSchemas for the versions between
        ours = {k: o for k, o in ours.items()
                if k[0] not in ("FlowSchema", "PriorityLevelConfiguration")}
    config = ("ConfigMap", "steward-system", "steward-config")
    assert comparable(ours[config])["data"]["steward.yaml"] == {"logLevel": "info"}
    ours.pop(config)
    theirs.pop(config)
    assert sorted(map(str, ours)) == sorted(map(str, theirs))
    for key, obj in theirs.items():
        assert comparable(ours[key]) == comparable(obj), key


def test_chart_renders_reproducibly(render):
    assert render.texts(EVERYTHING) == render.texts(EVERYTHING)


def test_optional_objects_are_absent_by_default(render):
    kinds = {key[0] for key in render()}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "NetworkPolicy", "Certificate", "Issuer",
                        "Secret"}


@pytest.mark.parametrize("server, version, shares", [
    ("v1.20.2", "v1beta1", "assuredConcurrencyShares"),
    ("v1.24.0", "v1beta2", "assuredConcurrencyShares"),
    ("v1.27.9", "v1beta3", "nominalConcurrencyShares"),
    ("v1.29.0-gke.100", "v1", "nominalConcurrencyShares")])
def test_flow_control_version_follows_the_server(render, server, version, shares):
    found = render(server=server)
    level = found[("PriorityLevelConfiguration", None, "steward")]
    assert level["apiVersion"] == f"flowcontrol.apiserver.k8s.io/{version}"
    assert level["spec"]["limited"][shares] == 20
    assert len([k for k in found if k[0] == "FlowSchema"]) == 2


@pytest.mark.parametrize("server, there", [("v1.27.0", False), ("v1.28.0", True)])
def test_match_conditions_depend_on_the_server(render, server, there):
    hooks = [h for k, o in render(server=server).items() if k[0].endswith("WebhookConfiguration")
             for h in o["webhooks"]]
    asked = [h for h in hooks if "UPDATE" in h["rules"][0]["operations"]]
    assert len(asked) == 14
    assert all(("matchConditions" in h) == there for h in asked)


def test_release_namespace_reaches_every_object(render):
    found = render(EVERYTHING, crds=True, namespace="elsewhere")
    assert "steward-system" not in json.dumps(list(found.values()))
    assert {k[1] for k in found} == {None, "elsewhere"}


def deployment(found, namespace="steward-system"):
    pod = found[("Deployment", namespace, "steward-controller-manager")]["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def test_namespaced_rights_equal_those_printed(render, steward_binary):
    found = render({"namespaces": ["a", "b"]})
    text = subprocess.run([steward_binary, "print", "rbac", "--namespaces", "a,b"], text=True,
                          capture_output=True, timeout=60, check=True).stdout
    printed = {chart.key(o): o for o in yaml.safe_load_all(text) if o}
    ours = {k: o for k, o in found.items()
            if re.search("Role|ServiceAccount", k[0]) and not k[2].endswith(
                ("admin-role", "editor-role", "viewer-role"))}
    assert {k: comparable(o) for k, o in ours.items()} == \
        {k: comparable(o) for k, o in printed.items()}
    assert {"--namespaces=a,b", "--metrics-bind-address=0"} <= set(deployment(found)[1]["args"])


def test_insecure_metrics_set_flag_and_scheme(render):
    found = render({"namespaces": ["a"], "metrics": {"secure": False},
                    "serviceMonitor": {"enabled": True}})
    assert "--metrics-secure=false" in deployment(found)[1]["args"]
    endpoint, = found[("ServiceMonitor", "steward-system", "steward-metrics-monitor")]["spec"][
        "endpoints"]
    assert endpoint == {"port": "https", "scheme": "http", "path": "/metrics", "honorLabels": True}
    assert not [k for k in found if k[2].startswith("steward-metrics-auth")]


@pytest.mark.parametrize("values, argument", [
    ({"image": {"repository": "r/steward", "tag": "9"}, "namespaces": ["a"]},
     "--agent-image=r/steward:9"),
    ({"image": {"digest": "sha256:" + "0" * 64}, "namespaces": ["a"]},
     "--agent-image=steward@sha256:" + "0" * 64),
    ({"agentImage": "other:1"}, "--agent-image=other:1"),
    ({"workers": 8}, "--workers=8"),
    ({"logFormat": "text"}, "--log-format=text"),
    ({"nodePortRange": "30000-30099"}, "--node-port-range=30000-30099"),
    ({"storeEndpoints": ["*", "!192.0.2.0/28", "*.s3.example.com", "fd00::/8"]},
     "--store-endpoints=*,!192.0.2.0/28,*.s3.example.com,fd00::/8"),
    ({"imageRegistries": ["r.example.com:5000", "http://[fd00::1]:5000", "default=h.example.com"]},
     "--image-registries=r.example.com:5000,http://[fd00::1]:5000,default=h.example.com"),
    ({"metrics": {"enabled": False}}, "--metrics-bind-address=0"),
    ({"extraArgs": ["--webhook-idle-timeout=30s"]}, "--webhook-idle-timeout=30s"),
    ({"traces": {"endpoint": "http://c:4318"}}, "--traces-endpoint=http://c:4318"),
    ({"certificate": {"mode": "cert-manager"}}, "--webhook-cert-path=/etc/steward-tls")])
def test_value_sets_its_flag(render, steward_binary, values, argument):
    """Each value sets its flag, and steward accepts it."""
    arguments = deployment(render(values))[1]["args"]
    assert argument in arguments
    result = subprocess.run([steward_binary, *arguments, "--help"], capture_output=True, text=True,
                            timeout=30, check=False)
    assert result.returncode == 0, result.stderr


def test_extra_env_reaches_the_container(render):
    secret = {"name": "OTEL_EXPORTER_OTLP_HEADERS",
              "valueFrom": {"secretKeyRef": {"name": "collector", "key": "headers"}}}
    assert deployment(render({"extraEnv": [secret]}))[1]["env"] == [secret]


def test_targets_reach_the_configuration_file(render):
    targets = [{"name": "orders", "engine": "mariadb", "host": "db", "maxUsers": 5,
                "admin": {"user": "steward", "passwordSecret": {"name": "s", "key": "password"}}}]
    found = render({"targets": targets, "logLevel": "debug"})
    text = found[("ConfigMap", "steward-system", "steward-config")]["data"]["steward.yaml"]
    assert yaml.safe_load(text) == {"logLevel": "debug", "targets": targets}


def test_cert_manager_certificate_is_rendered(render):
    found = render({"certificate": {"mode": "cert-manager"}})
    certificate = found[("Certificate", "steward-system", "steward-webhook")]
    assert certificate["spec"]["issuerRef"] == {"kind": "Issuer", "name": "steward-selfsigned"}
    assert ("Issuer", "steward-system", "steward-selfsigned") in found
    for key, obj in found.items():
        if key[0].endswith("WebhookConfiguration"):
            assert obj["metadata"]["annotations"] == {
                "cert-manager.io/inject-ca-from": "steward-system/steward-webhook"}
    pod, container = deployment(found)
    assert {"name": "tls", "secret": {"secretName": certificate["spec"]["secretName"]}} \
        in pod["volumes"]
    assert container["volumeMounts"][1]["mountPath"] == "/etc/steward-tls"


def test_own_issuer_is_referenced(render):
    found = render({"certificate": {"mode": "cert-manager",
                                    "issuerRef": {"kind": "ClusterIssuer", "name": "corp"}}})
    assert not [k for k in found if k[0] == "Issuer"]
    assert found[("Certificate", "steward-system", "steward-webhook")]["spec"]["issuerRef"] == {
        "kind": "ClusterIssuer", "name": "corp"}


def test_secret_certificate_needs_a_ca_bundle(render):
    with pytest.raises(chart.Refused, match="caBundle is needed|at '/certificate/caBundle': minLength"):
        render({"certificate": {"mode": "secret"}})
    found = render({"certificate": {"mode": "secret", "caBundle": "QUJD"}})
    hooks = [h for k, o in found.items() if k[0].endswith("WebhookConfiguration")
             for h in o["webhooks"]]
    assert {h["clientConfig"]["caBundle"] for h in hooks} == {"QUJD"}


def test_optional_parts_can_be_disabled(render):
    found = render({"crds": {"install": False}, "userRoles": {"create": False},
                    "podDisruptionBudget": {"enabled": False}, "flowControl": {"enabled": False},
                    "metrics": {"enabled": False}, "topologySpreadConstraints": None,
                    "priorityClass": {"create": False, "name": "system-cluster-critical"}})
    kinds = {k[0] for k in found}
    assert not kinds & {"CustomResourceDefinition", "PodDisruptionBudget", "FlowSchema",
                        "PriorityClass"}
    pod, container = deployment(found)
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert "topologySpreadConstraints" not in pod
    assert [p["name"] for p in container["ports"]] == ["webhook", "probes"]
    assert ("ClusterRole", None, "steward-editor-role") not in found


def test_uninstall_hook_is_restricted(render):
    """The hook's Job: its flags exist, and its pod is as restricted as the Deployment's."""
    found = {o["kind"]: o for o in chart.objects(render.texts(), "pre-delete")}
    assert set(found) == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
                          "RoleBinding", "Job"}
    weights = {k: int(o["metadata"]["annotations"]["helm.sh/hook-weight"])
               for k, o in found.items()}
    assert max(w for k, w in weights.items() if k != "Job") < weights["Job"]
    pod = found["Job"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert found["Job"]["spec"]["template"]["metadata"]["labels"].get("control-plane") is None
    assert chart.objects(render.texts({"uninstall": {"hook": False}}), "pre-delete") == []


def test_crds_are_kept_by_default(render):
    """Whatever installs them, and removes what left its source."""
    stay = {"argocd.argoproj.io/sync-options": "Delete=false,Prune=false",
            "helm.sh/resource-policy": "keep", "kustomize.toolkit.fluxcd.io/prune": "disabled"}

    def kept(values):
        return [o["metadata"].get("annotations") or {}
                for k, o in render(values, crds=True).items() if k[0] == "CustomResourceDefinition"]
    assert kept({}) == [stay] * 7 and kept({"crds": {"keep": False}}) == [{}] * 7


def test_failure_policy_and_runbook_links_are_set(render):
    found = render({**EVERYTHING, "webhooks": {"failurePolicy": "Ignore", "timeoutSeconds": 5},
                    "prometheusRule": {"enabled": True, "labels": {"release": "p"},
                                       "runbookBase": "https://example.org/"},
                    "serviceMonitor": {"enabled": True, "interval": "15s"},
                    "networkPolicy": {"enabled": True, "metricsNamespaceLabels": {"a": "b", "metrics": None}}})
    validating = found[("ValidatingWebhookConfiguration", None,
                        "steward-validating-webhook-configuration")]["webhooks"]
    assert {h["failurePolicy"] for h in validating} == {"Ignore"}
    rules = found[("PrometheusRule", "steward-system", "steward-rules")]
    assert rules["metadata"]["labels"]["release"] == "p"
    for rule in rules["spec"]["groups"][0]["rules"]:
        assert rule["annotations"]["runbook_url"].startswith("https://example.org/docs/")
    monitor = found[("ServiceMonitor", "steward-system", "steward-metrics-monitor")]
    assert monitor["spec"]["endpoints"][0]["interval"] == "15s"
    policy = found[("NetworkPolicy", "steward-system", "steward-allow-metrics-traffic")]
    assert policy["spec"]["ingress"][0]["from"] == [
        {"namespaceSelector": {"matchLabels": {"a": "b"}}}]


def test_pods_meet_the_restricted_standard(render):
    pod, container = deployment(render())
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False,
                                            "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}


def test_notes_name_the_namespace(render):
    notes = getattr(render.texts, "notes", None)
    text = notes({}, namespace="elsewhere") if notes else \
        render.texts({}, namespace="elsewhere")["templates/NOTES.txt"]
    assert "kubectl -n elsewhere rollout status" in text


@pytest.mark.parametrize("server", ["v1.20.2", "v1.21.0", "v1.27.9", "v1.37.2"])
@pytest.mark.parametrize("values", [
    {}, EVERYTHING, {"namespaces": ["a", "b"]}, {"certificate": {"mode": "cert-manager"}},
    {"certificate": {"mode": "secret", "caBundle": "QUJD"}}], ids=[
        "defaults", "everything", "namespaces", "cert-manager", "secret"])
def test_helm_lint_passes(helm, values, server):
    assert "0 chart(s) failed" in helm.lint(values, server)


# --- scripts/render


def test_render_replaces_only_its_own_chart(tmp_path):
    def run(*words):
        done = subprocess.run([paths.SCRIPTS / "render", *map(str, words)], text=True, capture_output=True,
                              timeout=60, check=False)
        return done.returncode, done.stderr

    folder = tmp_path / "chart"
    assert run("chart", folder) == (0, "")
    (folder / "files" / "old.yaml").touch()
    assert run("chart", folder) == (0, "")
    assert not (folder / "files" / "old.yaml").exists()
    (tmp_path / "mine").touch()
    status, said = run("chart", tmp_path)
    assert status == 1 and f"{tmp_path} exists and is not a chart of this command" in said
    assert (tmp_path / "mine").exists()
    status, said = run("install", tmp_path)
    assert status == 1 and f"{tmp_path} has no kustomization.yaml" in said
    assert run("charts")[0] == run()[0] == run("chart")[0] == 2


# --- kustomize


@pytest.mark.parametrize("folder", sorted(
    path.parent.name for path in (paths.TOP / "config").glob("*/kustomization.yaml")))
def test_newest_kustomize_builds_what_kubectl_does(folder):
    if gotools.missing("kustomize"):
        pytest.skip(gotools.missing("kustomize"))
    result = gotools.run("kustomize", "build", paths.TOP / "config" / folder)
    assert (result.returncode, result.stderr) == (0, "")
    built = {chart.key(o): o for o in yaml.safe_load_all(result.stdout) if o}
    assert built and built == kustomized(folder)


# --- values


def check(values):
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(values, SCHEMA, cls=jsonschema.Draft7Validator)


def merged(over, base):
    return {**base, **{k: merged(v, base[k]) if isinstance(v, dict) and isinstance(base.get(k), dict)
                       else v for k, v in over.items()}}


needs_jsonschema = pytest.mark.skipif(jsonschema is None, reason="python3-jsonschema is not installed")


@needs_jsonschema
def test_values_schema_accepts_the_defaults():
    check(DEFAULTS)


def paths_of(schema, at=()):
    for name, below in schema.get("properties", {}).items():
        yield at + (name,)
        yield from paths_of(below, at + (name,))


def test_values_and_schema_have_the_same_keys():
    known = {p[0] for p in paths_of(SCHEMA)} - {"global"}
    assert known == set(DEFAULTS)
    for name, value in DEFAULTS.items():
        properties = SCHEMA["properties"][name].get("properties")
        if isinstance(value, dict) and properties:
            extra = {"claims"} if name == "resources" else set()
            assert set(properties) - extra == set(value), name


def test_every_value_is_used_in_a_template():
    text = "".join(p.read_text("utf-8") for p in (chart.SOURCE / "templates").iterdir())
    used = set(re.findall(r"\.Values\.(\w+)", text))
    assert used == set(DEFAULTS)


REFUSED = [
    {"replica": 2}, {"replicas": "two"}, {"logLevel": "loud"}, {"image": {"pullPolicy": "Maybe"}},
    {"namespaces": ["Upper"]}, {"namespaces": ["a", "a"]}, {"workers": 0},
    {"targets": [{"name": "x"}]}, {"extraArgs": ["surplus"]},
    {"traces": {"endpoint": "c:4318"}}, {"traces": {"endpoint": "http://u:p@c"}},
    {"extraEnv": [{"value": "x"}]}, {"certificate": {"mode": "secret"}},
    {"certificate": {"mode": "none"}}, {"webhooks": {"timeoutSeconds": 31}},
    {"image": {"digest": "sha256:12"}}, {"storeEndpoints": ["https://s3"]},
    {"imageRegistries": ["*.example.com"]}, {"imageRegistries": ["ftp://r.example.com"]},
    {"imageRegistries": ["r.example.com/x"]}, {"imageRegistries": ["a,b"]},
    {"storeEndpoints": ["a,b"]}, {"storeEndpoints": ["!host"]}, {"resources": {"request": {}}},
    {"targets": [{"name": "x", "engine": "mariadb", "host": "h",
                  "admin": {"user": "u", "password": "in the open"}}]}]


@needs_jsonschema
@pytest.mark.parametrize("values", REFUSED)
def test_values_schema_refuses_bad_values(values):
    with pytest.raises(jsonschema.ValidationError):
        check(merged(values, DEFAULTS))


@pytest.mark.parametrize("values", REFUSED)
def test_helm_refuses_bad_values(helm, values):
    """helm has its own schema validator."""
    with pytest.raises(chart.Refused, match="schema"):
        helm(values)


KINDS = sorted(p.stem for p in (chart.SOURCE / "files" / "kinds").glob("*.yaml"))
CHOICES = [["DatabaseUser"], ["DatabaseUser", "App"], ["EtcdCluster", "EtcdRestore"], KINDS]


def _rules(objects):
    """{(kind, name): rules in a form that can be compared} of all roles."""
    return {(o["kind"], o["metadata"]["name"]): sorted(json.dumps(r, sort_keys=True)
                                                       for r in o["rules"])
            for o in objects if "rules" in o and o["kind"] in ("Role", "ClusterRole") and o["rules"]}


@pytest.mark.parametrize("kinds", CHOICES, ids=",".join)
def test_chart_renders_only_chosen_kinds(render, steward_binary, kinds):
    """Exactly the CRDs, webhooks and rights that the program prints for these kinds."""
    rendered = list(render({"kinds": kinds, "uninstall": {"hook": False}}, crds=True).values())

    def printed(what):
        text = subprocess.run([steward_binary, "print", what, "--kinds", ",".join(kinds)],
                              check=True, capture_output=True, timeout=60).stdout
        return [o for o in yaml.safe_load_all(text) if o]

    def names(objects, kind):
        return sorted(o["metadata"]["name"] for o in objects if o["kind"] == kind)
    crd = "CustomResourceDefinition"
    assert names(rendered, crd) == names(printed("crds"), crd)
    hooks = {o["kind"]: [h["name"] for h in o["webhooks"]] for o in rendered if "webhooks" in o}
    assert hooks == {o["kind"]: [h["name"] for h in o["webhooks"]] for o in printed("webhooks")}
    expected = _rules(printed("rbac") + printed("user-roles"))
    assert {k: v for k, v in _rules(rendered).items() if k in expected} == expected
    assert {k[1] for k in set(_rules(rendered)) - set(expected)} == {
        "steward-metrics-reader", "steward-debug-reader"}
    deployment = next(o for o in rendered if o["kind"] == "Deployment")
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--kinds={','.join(kinds)}" in args


def test_kind_that_needs_another_is_refused(render):
    with pytest.raises(chart.Refused, match="EtcdRestore needs EtcdCluster"):
        render({"kinds": ["EtcdRestore"]})


@pytest.mark.skipif(jsonschema is None, reason="needs python3-jsonschema")
def test_values_schema_lists_all_kinds():
    assert sorted(SCHEMA["properties"]["kinds"]["items"]["enum"]) == KINDS


@pytest.mark.parametrize("kinds", CHOICES, ids=",".join)
def test_kustomize_components_equal_printed_kinds(steward_binary, tmp_path, kinds):
    """config/kinds/none and a component for each kind are what the program prints for these kinds."""
    if gotools.missing("kustomize"):
        pytest.skip(gotools.missing("kustomize"))
    top = paths.TOP / "config"
    folder = tmp_path / "config" / "mine"
    shutil.copytree(top, tmp_path / "config", dirs_exist_ok=True)
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({
        "resources": ["../default"],
        "components": ["../kinds/none", *(f"../kinds/{k.lower()}" for k in kinds)]}), "utf-8")
    result = gotools.run("kustomize", "build", folder)
    assert result.returncode == 0, result.stderr
    built = [o for o in yaml.safe_load_all(result.stdout) if o]

    def printed(what):
        text = subprocess.run([steward_binary, "print", what, "--kinds", ",".join(kinds)],
                              check=True, capture_output=True, timeout=60).stdout
        return [o for o in yaml.safe_load_all(text) if o]

    def unique(rules):
        return {k: sorted(set(v)) for k, v in rules.items()}
    expected = unique(_rules(printed("rbac") + printed("user-roles")))
    assert {k: v for k, v in unique(_rules(built)).items() if k in expected} == expected
    assert {k[1] for k in set(_rules(built)) - set(expected)} <= {"steward-metrics-reader",
                                                              "steward-debug-reader"}
    for kind in ("CustomResourceDefinition",):
        assert (sorted(o["metadata"]["name"] for o in built if o["kind"] == kind)
                == sorted(o["metadata"]["name"] for o in printed("crds")))
    hooks = {o["kind"]: sorted(h["name"] for h in o["webhooks"]) for o in built if "webhooks" in o}
    assert hooks == {o["kind"]: sorted(h["name"] for h in o["webhooks"])
                     for o in printed("webhooks")}
    deployment = next(o for o in built if o["kind"] == "Deployment")
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [a for a in args if a.startswith("--kinds=")] == [f"--kinds={k}" for k in kinds]
