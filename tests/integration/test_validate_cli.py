# SPDX-License-Identifier: Apache-2.0
"""`steward validate`: the verdict of admission on files, without a cluster."""

import json
import subprocess

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


def test_accepted(validate):
    result = validate("web.yaml", files={"web.yaml": GOOD.format(name="web")})
    assert result.returncode == ACCEPTED, result
    assert result.stdout == ("web.yaml:1:1: MyWeb web accepted\n"
                             "1 object: 1 accepted, 0 refused, 0 skipped\n")
    assert result.stderr == ""


def test_all_findings_with_their_place(validate):
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


def test_json_report(validate):
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


def test_node_port_range(validate):
    files = {"bad.yaml": BAD.replace("nginx latest", "nginx:1").replace("/usr/../etc", "/www")}
    assert validate("bad.yaml", files=files).returncode == REFUSED
    assert validate("--node-port-range", "80-90", "bad.yaml").returncode == ACCEPTED
    result = validate("--node-port-range=81-90", "bad.yaml")
    assert result.returncode == REFUSED
    assert "must be 0 or between 81 and 90" in result.stdout


@pytest.mark.parametrize("text", ["", "x", "1", "5-", "-5", "90-80", "0-10", "1-65536", "1-2-3"])
def test_bad_node_port_range(validate, text):
    result = validate(f"--node-port-range={text}", "-", stdin="")
    assert result.returncode == UNREADABLE
    assert "node port range" in result.stderr


def test_standard_input(validate):
    result = validate("-", stdin=BAD)
    assert result.returncode == REFUSED
    assert "<stdin>:8:19: error: spec.nodePortNumber" in result.stdout


def test_several_documents(validate):
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
             "d/readme.txt": "no: manifest:", "d/.hidden.yaml": BAD}
    result = validate("d/", files=files)
    assert result.returncode == ACCEPTED, result
    assert result.stdout.endswith("3 objects: 3 accepted, 0 refused, 0 skipped\n")
    assert "d/deep/b.yml:1:1: MyWeb b accepted" in result.stdout


def test_a_list_is_looked_into(validate):
    bad = json.loads('{"apiVersion":"operator.k8s-summit.org/v1","kind":"MyWeb",'
                     '"metadata":{"name":"b"},"spec":{"image":"nginx:1","replicas":101}}')
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [bad, bad]})
    result = validate("-o", "json", "-", stdin=text)
    assert result.returncode == REFUSED
    assert report(result)[0]["summary"]["refused"] == 2


def test_other_kinds_are_passed_over(validate):
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
def test_unreadable(validate, text, words):
    result = validate("bad.yaml", files={"bad.yaml": text})
    assert result.returncode == UNREADABLE, result
    assert words in result.stderr
    assert "1 could not be read" in result.stdout


def test_unreadable_wins_over_refused(validate):
    files = {"bad.yaml": BAD, "broken.yaml": "{", "good.yaml": GOOD.format(name="web")}
    result = validate("bad.yaml", "broken.yaml", "good.yaml", files=files)
    assert result.returncode == UNREADABLE
    assert "1 accepted, 1 refused" in result.stdout


def test_a_file_that_is_not_there(validate):
    result = validate("nowhere.yaml")
    assert result.returncode == UNREADABLE
    assert "nowhere.yaml: No such file or directory" in result.stderr


def test_quiet(validate):
    files = {"good.yaml": GOOD.format(name="web"), "bad.yaml": BAD}
    assert validate("-q", "good.yaml", files=files).stdout == ""
    assert "error: spec.nodePortNumber" in validate("--quiet", "bad.yaml").stdout


@pytest.mark.parametrize("args, words", [
    ((), "which files?"),
    (("--nonsense", "x"), "nonsense"),
    (("-o", "xml", "-"), "--output is text or json"),
    (("--node-port-range",), "node-port-range"),
])
def test_called_wrongly(validate, args, words):
    result = validate(*args, stdin="")
    assert result.returncode == UNREADABLE
    assert words in result.stderr
    assert result.stdout == ""


def test_help(validate):
    result = validate("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: steward validate ")
    assert "--node-port-range" in result.stdout


@pytest.mark.parametrize("value", ["5", "[]", "{}", "null", "'x'", "true", "1.5", "-1", "1e99"])
@pytest.mark.parametrize("field", [
    "image", "nodePortNumber", "pageContentHtml", "replicas", "containerPort", "mountPath",
    "contentUpdate", "resources", "imagePullSecrets", "securityContext"])
def test_every_field_with_every_type(validate, field, value):
    """Never a crash, and an error always names the field."""
    lines = [line for line in GOOD.format(name="web").splitlines() if f" {field}:" not in line]
    result = validate("-", stdin="\n".join(lines) + f"\n  {field}: {value}\n")
    assert result.returncode in (ACCEPTED, REFUSED), result
    if result.returncode == REFUSED:
        assert f"spec.{field}" in result.stdout


@pytest.mark.parametrize("value", ["5", "[]", "null", "'x'", "true"])
def test_a_spec_of_every_type(validate, value):
    text = GOOD.format(name="web").split("spec:")[0] + f"spec: {value}\n"
    result = validate("-", stdin=text)
    assert result.returncode == REFUSED
    assert "error: spec" in result.stdout


def test_bad_names(validate):
    result = validate("-", stdin=GOOD.format(name="1web"))
    assert result.returncode == REFUSED
    assert "metadata.name: Invalid value" in result.stdout
    assert "because a Service gets this name" in result.stdout


def test_warnings_refuse_nothing(validate):
    text = GOOD.format(name="web").replace("nginx:1.25", "nginx") + "  colour: blue\n"
    result = validate("-", stdin=text)
    assert result.returncode == ACCEPTED
    assert ':latest"; rollouts are not reproducible' in result.stdout
    assert "colour" in result.stdout


def test_samples_are_accepted(steward_binary):
    result = subprocess.run([steward_binary, "validate", paths.SAMPLES], text=True,
                            capture_output=True, timeout=60, check=False)
    assert result.returncode == ACCEPTED, result.stdout + result.stderr
    assert "warning" not in result.stdout
