# SPDX-License-Identifier: Apache-2.0
"""`steward validate`: the verdict of admission on files, without a cluster."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree

import pytest

from support import paths

GOOD = """\
apiVersion: operator.k8s-summit.org/v1
kind: MyWeb
metadata:
  name: {name}
spec:
  image: nginx:1.25
  pageContentHtml: <h1>Hello</h1>
"""
BAD = """\
apiVersion: operator.k8s-summit.org/v1
kind: MyWeb
metadata:
  name: bad
  namespace: team
spec:
  image: nginx latest
  nodePortNumber: 80
  mountPath: /usr/../etc
  pageContentHtml: x
"""
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n"
ACCEPTED, REFUSED, UNREADABLE = 0, 1, 2


@pytest.fixture
def validate(steward_binary, tmp_path):
    """validate(*args, stdin=None, files=None): writes files, runs the command in their folder."""
    def run(*args, stdin=None, files=None):
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = text if isinstance(text, bytes) else text.encode()
            path.write_bytes(data)
        return subprocess.run([steward_binary, "validate", *args], cwd=tmp_path, text=True,
                              input=stdin, capture_output=True, timeout=60, check=False)
    return run


def report(result):
    """The JSON report, and its first object."""
    parsed = json.loads(result.stdout)
    return parsed, parsed["objects"][0] if parsed["objects"] else None


def test_valid_file_is_accepted(validate):
    result = validate("web.yaml", files={"web.yaml": GOOD.format(name="web")})
    assert result.returncode == ACCEPTED, result
    assert result.stdout == ("web.yaml:1:1: MyWeb web accepted\n"
                             "1 object: 1 accepted, 0 refused, 0 skipped\n")
    assert result.stderr == ""


def test_findings_name_file_line_and_column(validate):
    result = validate("bad.yaml", files={"bad.yaml": BAD})
    assert result.returncode == REFUSED, result
    errors = [line for line in result.stdout.splitlines() if " error: " in line]
    assert errors == [
        'bad.yaml:7:10: error: spec.image: Invalid value: "nginx latest": '
        "not a valid image reference",
        "bad.yaml:9:14: error: spec.mountPath: Invalid value: \"/usr/../etc\": "
        "must not contain '..'",
        "bad.yaml:8:19: error: spec.nodePortNumber: Invalid value: 80: "
        "must be 0 or between 30000 and 32767",
    ]
    assert "MyWeb team/bad refused" in result.stdout


def test_json_report_lists_findings(validate):
    result = validate("-o", "json", "bad.yaml", files={"bad.yaml": BAD})
    assert result.returncode == REFUSED
    parsed, only = report(result)
    assert parsed["summary"] == {"accepted": 0, "refused": 1, "passedOver": 0, "unreadable": 0}
    assert only["verdict"] == "refused"
    assert (only["kind"], only["namespace"], only["name"]) == ("MyWeb", "team", "bad")
    port = next(e for e in only["errors"] if e["field"] == "spec.nodePortNumber")
    assert port == {"field": "spec.nodePortNumber", "reason": "FieldValueInvalid",
                    "message": "Invalid value: 80: must be 0 or between 30000 and 32767",
                    "line": 8, "column": 19}


def test_node_port_range_option_is_applied(validate):
    files = {"bad.yaml": BAD.replace("nginx latest", "nginx:1").replace("/usr/../etc", "/www")}
    assert validate("bad.yaml", files=files).returncode == REFUSED
    assert validate("--node-port-range", "80-90", "bad.yaml").returncode == ACCEPTED
    result = validate("--node-port-range=81-90", "bad.yaml")
    assert result.returncode == REFUSED
    assert "must be 0 or between 81 and 90" in result.stdout


@pytest.mark.parametrize("text", ["", "x", "1", "5-", "-5", "90-80", "0-10", "1-65536", "1-2-3"])
def test_bad_node_port_range_is_refused(validate, text):
    result = validate(f"--node-port-range={text}", "-", stdin="")
    assert result.returncode == UNREADABLE
    assert "node port range" in result.stderr


def test_standard_input_is_read(validate):
    result = validate("-", stdin=BAD)
    assert result.returncode == REFUSED
    assert "<stdin>:8:19: error: spec.nodePortNumber" in result.stdout


def test_several_documents_are_judged(validate):
    text = "---\n" + GOOD.format(name="one") + "---\n" + BAD + "---\n---\n" + GOOD.format(name="two")
    result = validate("all.yaml", files={"all.yaml": text})
    assert result.returncode == REFUSED
    assert "all.yaml:2:1: MyWeb one accepted" in result.stdout
    assert "all.yaml:17:19: error: spec.nodePortNumber" in result.stdout
    assert "MyWeb two accepted" in result.stdout
    assert result.stdout.endswith("3 objects: 2 accepted, 1 refused, 0 skipped\n")


def test_folders_are_searched(validate):
    files = {"d/a.yaml": GOOD.format(name="a"), "d/deep/b.yml": GOOD.format(name="b"),
             "d/c.json": json.dumps({"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                                     "metadata": {"name": "c"}, "spec": {"image": "nginx:1"}}),
             "d/readme.txt": "no: manifest:", "d/.git/x.yaml": BAD}
    result = validate("d/", files=files)
    assert result.returncode == ACCEPTED, result
    assert result.stdout.endswith("3 objects: 3 accepted, 0 refused, 0 skipped\n")
    assert "d/deep/b.yml:1:1: MyWeb b accepted" in result.stdout


@pytest.mark.parametrize("options, names", [
    (("-f", "d"), "ab"), (("-R", "-f", "d"), "abc"), (("-f", "d", "-R"), "abc"),
    (("--filename=d", "--recursive"), "abc"), (("-f", "d/a.yaml"), "a"),
    (("-f", "d/a.yaml", "-f", "d/b.yml"), "ab"), (("-f", "d/a.yaml,d/sub"), "ac"), (("-f", "-"), "x"),
    (("-f", "d/a.yaml", "-"), "ax"), (("-f", "d/a.yaml", "d"), "aabc"), (("d/a.yaml",), "a")])
def test_files_are_named_as_for_kubectl(validate, options, names):
    """-f FOLDER is without subfolders, as for `kubectl apply`; with -R or without an option it is with them."""
    files = {f"d/{path}": GOOD.format(name=path[-6]) for path in ("a.yaml", "sub/c.json")}
    files["d/b.yml"] = GOOD.format(name="b")
    result = validate(*options, files=files, stdin=GOOD.format(name="x"))
    assert result.returncode == ACCEPTED, result
    assert "".join(sorted(re.findall(r"MyWeb (\w) accepted", result.stdout))) == names


@pytest.mark.parametrize("options, words", [
    (("-f", "nowhere"), "nowhere: No such file"), (("-f", "d"), "there is no object"),
    (("-f", ""), "which files?"), (("-f",), "needs a value"), (("-R",), "which files?")])
def test_file_option_without_files_is_an_error(validate, options, words):
    result = validate(*options, files={"d/sub/a.yaml": BAD})
    assert result.returncode == UNREADABLE
    assert words in result.stdout + result.stderr, result


@pytest.mark.parametrize("name", [".hidden.yaml", ".yaml", ".deep/a.yaml", "deep/.a.json"])
def test_hidden_files_are_judged(validate, name):
    """kubectl apply -R applies them."""
    result = validate("d", files={"d/a.yaml": GOOD.format(name="a"), f"d/{name}": BAD})
    assert result.returncode == REFUSED
    assert f"d/{name}:1:1: MyWeb team/bad refused" in result.stdout


@pytest.mark.parametrize("around", [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {}},
    {"apiVersion": "v1", "kind": "Lis", "items2": []}])
def test_items_of_any_kind_are_judged(validate, around):
    """kubectl takes whatever has `items` for a list, and applies these alone."""
    bad = json.loads('{"apiVersion":"operator.k8s-summit.org/v1","kind":"MyWeb",'
                     '"metadata":{"name":"b"},"spec":{"image":"nginx:1","replicas":101}}')
    result = validate("-o", "json", "-", stdin=json.dumps({**around, "items": [bad, {**around, "items": [bad]}]}))
    assert result.returncode == REFUSED
    assert report(result)[0]["summary"] == {"accepted": 0, "refused": 2, "passedOver": 2, "unreadable": 0}


def test_items_beside_a_spec_are_judged_as_its_kind(validate):
    """Without a kind of their own they have that of the object around them."""
    text = GOOD.format(name="a") + 'items:\n- metadata: {name: b}\n  spec: {image: "nginx:1", replicas: 101}\n'
    result = validate("--lenient", "-", stdin=text)
    assert result.returncode == REFUSED
    assert "MyWeb a accepted" in result.stdout and "MyWeb b refused" in result.stdout


def test_list_items_are_judged(validate):
    bad = json.loads('{"apiVersion":"operator.k8s-summit.org/v1","kind":"MyWeb",'
                     '"metadata":{"name":"b"},"spec":{"image":"nginx:1","replicas":101}}')
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [bad, bad]})
    result = validate("-o", "json", "-", stdin=text)
    assert result.returncode == REFUSED
    assert report(result)[0]["summary"]["refused"] == 2


def test_other_kinds_are_skipped(validate):
    result = validate("other.yaml", files={"other.yaml": OTHER})
    assert result.returncode == ACCEPTED
    assert "ConfigMap other skipped: v1 is not a kind of steward's" in result.stdout


@pytest.mark.parametrize("text, words", [
    ("a: [1\n", "bad.yaml:"),
    ("just text\n", "not a Kubernetes object"),
    ("- a\n- b\n", "not a Kubernetes object"),
    ("kind: MyWeb\n", "not a Kubernetes object: apiVersion and kind must be set"),
    (b"a: \xff\n", "bad.yaml"),
    ("a: &x [*x]\n", "bad.yaml"),
    ("a: 1\na: 2\n", "bad.yaml:2:"),
])
def test_unreadable_input_is_an_error(validate, text, words):
    result = validate("bad.yaml", files={"bad.yaml": text})
    assert result.returncode == UNREADABLE, result
    assert words in result.stderr
    assert "1 could not be read" in result.stdout


def test_unreadable_wins_over_refused(validate):
    files = {"bad.yaml": BAD, "broken.yaml": "{", "good.yaml": GOOD.format(name="web")}
    result = validate("bad.yaml", "broken.yaml", "good.yaml", files=files)
    assert result.returncode == UNREADABLE
    assert "1 accepted, 1 refused" in result.stdout


def test_missing_file_is_an_error(validate):
    result = validate("nowhere.yaml")
    assert result.returncode == UNREADABLE
    assert "nowhere.yaml: No such file or directory" in result.stderr


def test_quiet_prints_only_findings(validate):
    files = {"good.yaml": GOOD.format(name="web"), "bad.yaml": BAD}
    assert validate("-q", "good.yaml", files=files).stdout == ""
    assert "error: spec.nodePortNumber" in validate("--quiet", "bad.yaml").stdout


@pytest.mark.parametrize("args, words", [
    ((), "which files?"),
    (("--nonsense", "x"), "nonsense"),
    (("-o", "xml", "-"), "--output is text, json, junit or sarif"),
    (("-n", "No_Name", "-"), "--namespace"),
    (("--old", "nowhere.yaml", "-"), "--old: nowhere.yaml: No such file"),
    (("--node-port-range",), "node-port-range"),
])
def test_wrong_arguments_are_an_error(validate, args, words):
    result = validate(*args, stdin="")
    assert result.returncode == UNREADABLE
    assert words in result.stderr
    assert result.stdout == ""


def test_help_is_printed(validate):
    result = validate("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: steward validate ")
    assert "--node-port-range" in result.stdout


@pytest.mark.parametrize("value", ["5", "[]", "{}", "null", "'x'", "true", "1.5", "-1", "1e99"])
@pytest.mark.parametrize("field", [
    "image", "nodePortNumber", "pageContentHtml", "replicas", "containerPort", "mountPath",
    "contentUpdate", "resources", "imagePullSecrets", "securityContext"])
def test_field_of_wrong_type_is_named(validate, field, value):
    """Never a crash, and an error always names the field."""
    lines = [line for line in GOOD.format(name="web").splitlines() if f" {field}:" not in line]
    result = validate("-", stdin="\n".join(lines) + f"\n  {field}: {value}\n")
    assert result.returncode in (ACCEPTED, REFUSED), result
    if result.returncode == REFUSED:
        assert f"spec.{field}" in result.stdout


@pytest.mark.parametrize("value", ["5", "[]", "null", "'x'", "true"])
def test_spec_of_wrong_type_is_refused(validate, value):
    text = GOOD.format(name="web").split("spec:")[0] + f"spec: {value}\n"
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    assert "error: spec" in result.stdout


def test_bad_name_is_refused(validate):
    result = validate("-", stdin=GOOD.format(name="1web"))
    assert result.returncode == REFUSED
    assert "metadata.name: Invalid value" in result.stdout
    assert "because a Service gets this name" in result.stdout


def test_missing_time_zone_database_is_named(steward_binary, tmp_path):
    """An image without zoneinfo: the zone of the user is right."""
    eru = """{apiVersion: mtsre.meitu.com/v1, kind: Eru, metadata: {name: e}, spec: {deploymentname: d,
        schedule: "0 3 * * *", timeZone: %s}}"""
    for zone, folder, words in (("Europe/Berlin", tmp_path, "unknown time zone: this program has no time zones "
                                 "but UTC, as there are none in /usr/share/zoneinfo"),
                                ("UTC", tmp_path, "Eru e accepted"), ("Europe/Berlin", None, "Eru e accepted"),
                                ("Europe/Nowhere", None, "unknown time zone\n")):
        env = {**os.environ, **({"TZDIR": str(folder)} if folder else {})}
        result = subprocess.run([steward_binary, "validate", "-"], input=eru % zone, text=True, env=env,
                                capture_output=True, timeout=60, check=False)
        assert words in result.stdout, result


def test_warnings_refuse_nothing(validate):
    text = GOOD.format(name="web").replace("nginx:1.25", "nginx") + "  colour: blue\n"
    result = validate("--lenient", "-", stdin=text)
    assert result.returncode == ACCEPTED
    assert ':latest"; rollouts are not reproducible' in result.stdout
    assert "colour" in result.stdout


def test_samples_are_accepted(steward_binary):
    result = subprocess.run([steward_binary, "validate", paths.SAMPLES], text=True,
                            capture_output=True, timeout=60, check=False)
    assert result.returncode == ACCEPTED, result.stdout + result.stderr
    assert "warning" not in result.stdout


# --- strict: nothing passes that apply refuses

def errors_of(result):
    """[(line, text)] of the errors in a text report."""
    found = []
    for line in result.stdout.splitlines():
        place, error, text = line.partition(": error: ")
        if error:
            found.append((int(place.split(":")[1]), text))
    return found


def test_unknown_fields_are_errors_at_their_own_lines(validate):
    text = GOOD.format(name="web") + """\
  replcas: 2
  resource:
    limits: {cpu: 1}
  colour: blue
replicas: 3
"""
    text = text.replace("  name: web\n", "  name: web\n  lables:\n    a: b\n")
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    assert sorted(errors_of(result)) == [
        (5, 'metadata.lables: Forbidden: unknown field; did you mean "labels"?'),
        (10, 'spec.replcas: Forbidden: unknown field; did you mean "replicas"?'),
        (11, 'spec.resource: Forbidden: unknown field; did you mean "resources"?'),
        (13, "spec.colour: Forbidden: unknown field"),
        (14, 'replicas: Forbidden: unknown field; did you mean "spec.replicas"?'),
    ]
    lenient = validate("--lenient", "-", stdin=text)
    assert lenient.returncode == ACCEPTED
    assert 'warning: unknown field "spec.replcas"; did you mean "replicas"?' in lenient.stdout


@pytest.mark.parametrize("metadata, words", [
    ("labels: {a: 1}", "metadata.labels[a]: Invalid value: 1: must be a string"),
    ("labels: {a: 'b c'}", "metadata.labels[a]"),
    ("labels: {'a b': c}", "metadata.labels[a b]"),
    ("labels: x", "metadata.labels: Invalid value"),
    ("annotations: {a: true}", "metadata.annotations[a]: Invalid value: true: must be a string"),
    ("namespace: No", "metadata.namespace: Invalid value"),
    ("finalizers: ['a b']", "metadata.finalizers[0]"),
    ("ownerReferences: [{kind: Pod}]", "metadata.ownerReferences[0].uid: Required value"),
    ("foo: {}", "metadata.foo: Forbidden: unknown field"),
])
def test_metadata_refused_by_the_api_server_is_refused(validate, metadata, words):
    text = GOOD.format(name="web").replace("  name: web\n", f"  name: web\n  {metadata}\n")
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    assert [t for _, t in errors_of(result) if t.startswith(words)], result.stdout


def test_container_without_a_name_is_refused(validate):
    text = """\
apiVersion: mycompany.com/v1
kind: App
metadata: {name: crash, namespace: tenant}
spec:
  image: nginx:1.22
  podTemplate:
    spec:
      containers:
      - image: sidecar:1
      - name: app
"""
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED, result.stderr
    assert [t for _, t in errors_of(result)] == [
        "spec.podTemplate.spec.containers[0].name: Required value"]


def test_output_of_kubectl_get_is_accepted(validate):
    text = GOOD.format(name="web").replace("  name: web\n", """\
  name: web
  namespace: team
  labels: {app.kubernetes.io/name: web}
  annotations: {example.com/note: "any text"}
  creationTimestamp: "2026-01-02T03:04:05Z"
  finalizers: [example.com/hold]
  generation: 3
  managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {}}}]
  resourceVersion: "17"
  uid: 0c2a7b1e-0000-0000-0000-000000000000
""") + "status: {observedGeneration: 3, conditions: [{type: Ready, status: 'True'}]}\n"
    result = validate("-", stdin=text)
    assert result.returncode == ACCEPTED, result.stdout
    result = validate("-", stdin=text.replace("observedGeneration", "observedGenration"))
    assert [t for _, t in errors_of(result)] == [
        'status.observedGenration: Forbidden: unknown field; did you mean "observedGeneration"?']


@pytest.mark.parametrize("api_version, kind, line, words", [
    ("operator.k8s-summit.org/v2", "MyWeb", 1, 'did you mean "operator.k8s-summit.org/v1"?'),
    ("operator.k8s-summit.org/v1", "MyWebs", 2, 'did you mean "MyWeb"?'),
    ("operator.k8s-summit.org/v1", "myweb", 2, 'did you mean "MyWeb"?'),
    ("operator.k8s-summit.org/v1", "Gadget", 2, 'supported values: "MyWeb"'),
    ("operator.k8s-summit.org/v1", "EtcdCluster", 1, "did you mean"),
    ("operator.k8s-sumit.org/v1", "MyWeb", 1, 'did you mean "operator.k8s-summit.org/v1"?'),
    ("v1", "MyWeb", 1, 'did you mean "operator.k8s-summit.org/v1"?'),
])
def test_wrong_kind_or_version_is_an_error(validate, api_version, kind, line, words):
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n"
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    (at, error), = errors_of(result)
    assert at == line and "Unsupported value" in error and words in error


@pytest.mark.parametrize("api_version, kind", [
    ("apps/v1", "MyWeb"), ("example.com/v1", "App"), ("v1", "Secret"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition")])
def test_similar_kinds_of_other_groups_are_skipped(validate, api_version, kind):
    result = validate("-", stdin=f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n")
    assert (result.returncode, "skipped" in result.stdout) == (ACCEPTED, True)


@pytest.mark.parametrize("text", ["", "---\n", "# Source: a\n---\n# nothing\n---\n", "\n\n", "null\n"])
def test_input_without_objects_is_an_error(validate, text):
    """The other end of the pipe has failed; `kubectl apply` refuses it, too."""
    result = validate("-", stdin=text)
    assert result.returncode == UNREADABLE
    assert "there is no object" in result.stderr


# --- the output of Helm, kustomize and kubectl

def test_helm_output_names_the_templates(validate):
    text = ("---\n# Source: shop/templates/empty.yaml\n---\n# Source: shop/templates/good.yaml\n"
            + GOOD.format(name="good") + "---\r\n# Source: shop/templates/bad.yaml\r\n# more\n" + BAD
            + "---\n" + OTHER)
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    assert "MyWeb good accepted (shop/templates/good.yaml)" in result.stdout
    assert "MyWeb team/bad refused (shop/templates/bad.yaml)" in result.stdout
    assert "ConfigMap other skipped: v1" in result.stdout
    assert [line for line, _ in errors_of(result)] == [21, 23, 22]
    parsed = json.loads(validate("-o", "json", "-", stdin=text).stdout)
    assert [o.get("source") for o in parsed["objects"]] == [
        "shop/templates/good.yaml", "shop/templates/bad.yaml", None]


def test_typed_list_is_judged(validate):
    """As `kubectl get -o yaml` prints it for one kind with `--output=yaml` by a client of its own."""
    text = """\
apiVersion: operator.k8s-summit.org/v1
kind: MyWebList
metadata: {resourceVersion: ""}
items:
- metadata: {name: a}
  spec: {image: "nginx:1", imag: x, pageContentHtml: y}
- apiVersion: v1
  kind: List
  items:
  - apiVersion: operator.k8s-summit.org/v1
    kind: MyWeb
    metadata: {name: b}
    spec:
      image: nginx 1
"""
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    found = errors_of(result)
    assert (6, 'spec.imag: Forbidden: unknown field; did you mean "image"?') in found
    assert [line for line, t in found if t.startswith("spec.image: Invalid value")] == [14]
    assert "2 objects: 0 accepted, 2 refused, 0 skipped" in result.stdout


def test_deeply_nested_lists_are_an_error(validate):
    inner = {"apiVersion": "v1", "kind": "List", "items": []}
    for _ in range(12):
        inner = {"apiVersion": "v1", "kind": "List", "items": [inner]}
    result = validate("-", stdin=json.dumps(inner))
    assert result.returncode == UNREADABLE
    assert "nested too deeply" in result.stderr


# --- --old

def sample(name):
    with open(f"{paths.SAMPLES}/{name}", encoding="utf-8") as file:
        return file.read()


def test_old_option_judges_the_transition(validate):
    new = sample("etcd_v1beta2_etcdbackup.yaml")
    assert validate("new.yaml", files={"new.yaml": new, "old.yaml": new}).returncode == ACCEPTED
    same = validate("--old", "old.yaml", "new.yaml")
    assert same.returncode == ACCEPTED and "not in --old" not in same.stdout
    missing = validate("--old", "old.yaml", "-n", "elsewhere", "new.yaml")
    assert missing.returncode == ACCEPTED
    other = validate("--old", "old.yaml", "-", stdin=GOOD.format(name="web"))
    assert "warning: not in --old: checked as a new object" in other.stdout


def test_immutable_field_may_not_change(validate):
    new = sample("etcd_v1beta2_etcdrestore.yaml")
    changed = new.replace("size: 3", "size: 5")
    assert changed != new
    files = {"old.yaml": new, "new.yaml": changed}
    assert validate("new.yaml", files=files).returncode == ACCEPTED
    result = validate("--old", "old.yaml", "new.yaml")
    assert result.returncode == REFUSED
    assert [t for _, t in errors_of(result) if "immutable" in t], result.stdout


def test_old_option_reads_lists_and_namespaces(validate):
    """kubectl prints a List, with the namespace that the manifest does not name."""
    thing = {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
             "metadata": {"name": "web", "namespace": "team"},
             "spec": {"image": "nginx latest", "pageContentHtml": "x"}}
    files = {"old.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": [thing]})}
    new = GOOD.format(name="web").replace("nginx:1.25", "nginx latest")
    assert validate("-", stdin=new, files=files).returncode == REFUSED
    unchanged = validate("--old", "old.json", "-n", "team", "-", stdin=new)
    assert unchanged.returncode == ACCEPTED  # the same ratchet as at admission
    assert "not refused, because it has not changed" in unchanged.stdout
    assert validate("--old", "old.json", "-", stdin=new).returncode == REFUSED
    worse = new + "  replcas: 3\n"  # an unknown field has no ratchet
    assert validate("--old", "old.json", "-n", "team", "-", stdin=worse).returncode == REFUSED


KEPT = ["deletionTimestamp", "deletionGracePeriodSeconds", "uid", "resourceVersion"]


@pytest.mark.parametrize("old, new, refused", [
    ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, KEPT[:1]),
    ({}, {"deletionGracePeriodSeconds": 5}, KEPT[1:2]),
    ({"uid": "a"}, {"uid": "b"}, KEPT[2:3]), ({}, {"uid": "b"}, []), ({"uid": "a"}, {"uid": "a"}, []),
    ({"uid": "a"}, {}, []), ({"resourceVersion": "5"}, {"resourceVersion": "4"}, KEPT[3:]),
    ({"resourceVersion": "5"}, {"resourceVersion": ""}, []),
    ({"generation": 5, "creationTimestamp": "2026-01-01T00:00:00Z", "selfLink": "/a", "managedFields": []},
     {"generation": 9, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/b",
      "managedFields": [{"manager": "a"}]},
     []),
])
def test_server_set_metadata_skips_no_check(validate, old, new, refused):
    """Each is refused or ignored, and all else is judged as without it."""
    def myweb(metadata, **spec):
        return json.dumps({"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                           "metadata": {"name": "web", **metadata},
                           "spec": {"image": "nginx:1", "pageContentHtml": "x", **spec}})
    files = {"old.json": myweb(old), "good.json": myweb(new, replicas=2), "bad.json": myweb(new, image="a b", x=1)}
    good = validate("--old", "old.json", "good.json", files=files)
    assert [t.partition(":")[0] for _, t in errors_of(good)] == [f"metadata.{name}" for name in refused]
    bad = [t for _, t in errors_of(validate("--old", "old.json", "bad.json"))]
    assert 'spec.image: Invalid value: "a b": not a valid image reference' in bad
    assert "spec.x: Forbidden: unknown field" in bad and len(bad) == 2 + len(refused)


@pytest.mark.parametrize("change, refused", [
    ({}, None), ({"finalizers": []}, None),
    ({"finalizers": ["example.com/b"]}, "metadata.finalizers[0]: Forbidden"),
    ({"deletionTimestamp": None}, None), ({"deletionTimestamp": "2026-01-01T01:00:00+01:00"}, None),
    ({"deletionTimestamp": "2026-01-01T00:00:01Z"}, "metadata.deletionTimestamp: Invalid value"),
])
def test_object_being_deleted_is_checked_by_schema_only(validate, change, refused):
    """As the API server does: its webhooks are not called, so that finalizers can be removed."""
    metadata = {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/a"]}
    spec = {"image": "a b", "pageContentHtml": "x", "nodePortNumber": "x"}

    def myweb(metadata, spec):
        return json.dumps({"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                           "metadata": {k: v for k, v in metadata.items() if v is not None}, "spec": spec})
    files = {"old.json": myweb(metadata, spec),
             "new.json": myweb({**metadata, **change}, {**spec, "image": "c d"}),
             "bad.json": myweb({**metadata, **change}, {**spec, "nodePortNumber": [], "x": 1})}
    result = validate("--old", "old.json", "new.json", files=files)
    assert [t.startswith(refused or "-") for _, t in errors_of(result)] == [True] * bool(refused), result.stdout
    assert "not refused, because it is being deleted" in result.stdout
    bad = [t.partition(":")[0] for _, t in errors_of(validate("--old", "old.json", "bad.json"))]
    assert {"spec.nodePortNumber", "spec.x"} <= set(bad)


@pytest.mark.parametrize("text, words", [
    ("a: [", "--old: old.yaml:"),
    (GOOD.format(name="a") + "---\n" + GOOD.format(name="a"), "is there twice"),
])
def test_invalid_old_file_is_an_error(validate, text, words):
    result = validate("--old", "old.yaml", "-", stdin=GOOD.format(name="a"), files={"old.yaml": text})
    assert result.returncode == UNREADABLE
    assert words in result.stderr


# --- for CI systems

MIXED = {"good.yaml": GOOD.format(name="good"), "other.yaml": OTHER, "broken.yaml": "a: [\n",
         "a <b> & c.yaml": BAD.replace("pageContentHtml: x", 'pageContentHtml: x\n  "<&\\u0007>": 1')}


def test_junit_report_lists_findings(validate):
    result = validate("-o", "junit", *MIXED, files=MIXED)
    assert (result.returncode, result.stderr) == (UNREADABLE, "")
    suites = xml.etree.ElementTree.fromstring(result.stdout)
    counts = {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    assert suites.tag == "testsuites" and suites.attrib == counts
    cases = {case.get("name"): case for case in suites.iter("testcase")}
    assert [(n, [e.tag for e in c]) for n, c in cases.items()] == [
        ("MyWeb good", []), ("ConfigMap other", ["skipped"]), ("document", ["error"]),
        ("MyWeb team/bad", ["failure"])]
    bad = cases["MyWeb team/bad"]
    assert (bad.get("file"), bad.get("classname"), bad.get("line")) == (
        "a <b> & c.yaml", "a <b> & c.yaml", "1")
    assert "a <b> & c.yaml:8:19: spec.nodePortNumber: Invalid value: 80" in bad[0].text
    assert "spec.<&\\x07>" in bad[0].text
    assert "broken.yaml:" in cases["document"][0].get("message")


def test_sarif_report_lists_findings(validate):
    result = validate("-o", "sarif", *MIXED, files=MIXED)
    assert (result.returncode, result.stderr) == (UNREADABLE, "")
    parsed = json.loads(result.stdout)
    run, = parsed["runs"]
    assert parsed["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "steward"
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {r["ruleId"] for r in run["results"]} <= rules
    places = [(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
               r["locations"][0]["physicalLocation"]["region"]["startLine"], r["ruleId"])
              for r in run["results"]]
    assert ("a%20%3Cb%3E%20%26%20c.yaml", 8, "FieldValueInvalid") in places
    assert ("broken.yaml", 2, "Unreadable") in places
    assert not [r for r in run["results"] if r["level"] not in ("error", "warning")]


def test_sarif_of_helm_names_the_template(validate):
    text = "---\n# Source: shop/templates/bad.yaml\n" + BAD
    parsed = json.loads(validate("-o", "sarif", "-", stdin=text).stdout)
    assert {json.dumps(r["locations"]) for r in parsed["runs"][0]["results"]} == {
        '[{"physicalLocation": {"artifactLocation": {"uri": "shop/templates/bad.yaml"}}}]'}


def test_exit_codes_are_documented(validate):
    text = validate("--help").stdout
    assert "Exit status: 0 all accepted, 1 something was refused, 2 something could not be read" in text


def test_many_unknown_fields_are_checked_quickly(validate):
    """The guess costs a bounded time: 1000 unknown members, each of them like all fields."""
    members = "".join(f"  replicax{i}: 1\n" for i in range(900))
    result = validate("-", stdin=GOOD.format(name="web") + members)
    assert result.returncode == REFUSED
    assert len(errors_of(result)) == 100


def test_many_documents_take_linear_time(validate):
    """30,000 documents take seconds, not the square of their size."""
    text = "".join(f"---\n# Source: t{i}.yaml\n{{apiVersion: v1, kind: A, metadata: {{name: a{i}, "
                   f"labels: {{x: {'y' * 60}}}}}}}\n" for i in range(30000))
    result = validate("-o", "json", "-", stdin=text)
    assert result.returncode == ACCEPTED
    assert json.loads(result.stdout)["objects"][-1]["source"] == "t29999.yaml"
