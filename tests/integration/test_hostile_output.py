# SPDX-License-Identifier: Apache-2.0
"""What others wrote, in the output of each command: names, kinds, keys, values, names of files, and
answers of an API server.

No byte of it acts on a terminal, and no line of the output is a command of a CI system or another
message of the program."""

import json
import os
import re
import subprocess
import unicodedata
import xml.etree.ElementTree

import pytest

from support import served, webhook

GROUP = "operator.k8s-summit.org/v1"
SUMMARY = re.compile(r"\d+ (objects?: \d+ accepted|could not be read)")
# GitHub trims blanks before "::"; the others look for their commands anywhere in a line.
COMMAND = re.compile(r"\s*::|.*##[a-z]*\[", re.IGNORECASE)
PAYLOADS = [
    "\n::error file=README.md,line=1::owned", "\r\n  ::add-mask::e", "\r::stop-commands::tok", "::error::x",
    "\n##vso[task.setvariable variable=x]y", " ##[error]x", "\n##teamcity[buildStatus text='x']",
    "\n1 object: 1 accepted, 0 refused, 0 skipped", "\n9 could not be read",
    "\x1b[2J\x1b[1;31m", "\x1b]0;title\x07", "\x1b]52;c;eA==\x1b\\", "\u009b31m", "\u0085::error::x",
    "\x7f\x08\x0b",
    "\u202eevil", "\u2066x\u2069", "\u200b\u200d\ufeff", "\u2028::error::x", "\u2029x", "\u00a0::error::x",
    "\u3000::error::x", "\U000e0041", "\ufffe\uffff\ufdd0", "\u00ad\u034f\u115f\ufe0f",
]
READABLE = "gr\u00fc\u00df \u65e5\u672c \U0001f600"


def shown(data):
    """The lines of an output, which neither act on a terminal nor command anything."""
    text = data.decode()  # and it is UTF-8
    bad = {c for c in text if c not in " \n" and
           (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Zs") or ord(c) & 0xFFFE == 0xFFFE
            or c in "\ufdd0\u034f\u115f\ufe0f")}
    assert not bad, f"{[hex(ord(c)) for c in bad]} in {text!r}"
    lines = text.split("\n")
    assert not [line for line in lines if COMMAND.match(line)]
    return lines


def run(steward_binary, *args, cwd=None, stdin=None):
    """(exit status, standard output, lines of both streams)"""
    done = subprocess.run([os.fsencode(steward_binary), *args], cwd=cwd, input=stdin, capture_output=True,
                          timeout=120, check=False)
    assert done.returncode in (0, 1, 2), done
    return done.returncode, done.stdout, shown(done.stdout) + shown(done.stderr)


def objects(x):
    """Objects with a payload in each place."""
    def myweb(metadata=None, spec=None, **more):
        return {"apiVersion": GROUP, "kind": "MyWeb", "metadata": {"name": "web", **(metadata or {})},
                "spec": {"image": "nginx:1.25", "pageContentHtml": "x", **(spec or {})}, **more}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a{x}", "namespace": f"b{x}"}},
        {"apiVersion": f"v1{x}", "kind": f"Foo{x}", "metadata": {"generateName": x}},
        {"apiVersion": x, "kind": x, "metadata": {"name": x}},
        {"apiVersion": GROUP, "kind": f"MyWeb{x}", "metadata": {"name": "web"}},
        {"apiVersion": f"{GROUP}{x}", "kind": "MyWeb", "metadata": {"name": "web"}},
        myweb({"name": f"web{x}", "namespace": f"ns{x}"}), myweb({"labels": {f"l{x}": f"v{x}"}}),
        myweb({"annotations": {f"steward.dev/{x}": x}}), myweb({x: 1}), myweb({"finalizers": [x]}),
        myweb(spec={"image": f"nginx{x}", f"un{x}": 1}), myweb(spec={"replicas": x, "resources": {x: {x: x}}}),
        myweb(**{x: 1}), myweb(status={x: x}), {x: x},
    ]


@pytest.fixture(name="hostile", scope="module")
def hostile_list():
    """A list with each payload in each place."""
    items = [one for x in [*PAYLOADS, READABLE] for one in objects(x)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode(), len(items)


def test_hostile_names_in_text_report(steward_binary, hostile):
    text, count = hostile
    _, out, lines = run(steward_binary, "validate", "-", stdin=text)
    unreadable = len(PAYLOADS) + 1
    found = [line for line in lines if SUMMARY.match(line)]
    assert found[1:] == [f"{unreadable} could not be read"]
    assert sum(map(int, re.findall(r"(\d+) (?:accepted|refused|skipped)", found[0]))) + unreadable == count
    assert f"ConfigMap b{READABLE}/a{READABLE} skipped" in out.decode()


def test_hostile_names_in_json_and_sarif_reports(steward_binary, hostile):
    text, count = hostile
    _, out, _ = run(steward_binary, "validate", "-o", "json", "-", stdin=text)
    parsed = json.loads(out)["objects"]
    assert len(parsed) == count
    assert {o["name"] for o in parsed} >= {f"a{x}" for x in PAYLOADS}  # the value is not changed
    _, out, _ = run(steward_binary, "validate", "-o", "sarif", "-", stdin=text)
    results = json.loads(out)["runs"][0]["results"]
    assert len([r for r in results if r["ruleId"] == "Unreadable"]) == len(PAYLOADS) + 1


def test_hostile_names_in_junit_report(steward_binary, hostile):
    text, count = hostile
    _, out, _ = run(steward_binary, "validate", "-o", "junit", "-", stdin=text)
    suites = xml.etree.ElementTree.fromstring(out)
    assert len(list(suites.iter("testcase"))) == count
    assert f"ConfigMap b{READABLE}/a{READABLE}" in {case.get("name") for case in suites.iter("testcase")}


@pytest.fixture(name="at_the_webhook", scope="module")
def webhook_of_this_module(steward_binary, tmp_path_factory):
    """A `steward webhook`."""
    one = webhook.Webhook(steward_binary, tmp_path_factory.mktemp("webhook")).start().keep()
    yield one
    assert one.stop() == 0


@pytest.mark.parametrize("path", [webhook.VALIDATE, webhook.MUTATE], ids=["validate", "mutate"])
def test_hostile_names_in_webhook_answers(at_the_webhook, path):
    """kubectl prints message, name, fields and messages of causes, and warnings as they are."""
    refused = warned = 0
    for x in PAYLOADS:
        for obj in objects(x):
            metadata = obj.get("metadata", {})
            body = webhook.review(obj, name=metadata.get("name", "web"))
            status, reply = at_the_webhook.post(body, path)
            response = reply["response"]
            told = response.get("status", {})
            details = told.get("details", {})
            texts = [told.get("message", ""), details.get("name", ""), *response.get("warnings", ())]
            for cause in details.get("causes", ()):
                texts += [cause["field"], cause["message"]]
            for text in texts:
                assert "\n" not in text and shown(f"* {text}".encode()), (x, obj)
            refused += not response["allowed"]
            warned += "warnings" in response
            assert status == 200
    assert refused > 100 and (warned > 50 or path == webhook.MUTATE), (refused, warned)


NAMES = [b"::error file=a::x.yaml", b"  ::error::x.yaml", b"\n::error::y.yaml", b"a\xff.yaml", b"\xc2\x9b31m.yaml",
         b"\x1b[2J.yaml", b"1 object: 1 accepted, 0 refused, 0 skipped.yaml", b"3 could not be read.yaml",
         b"##vso[x]y.yaml", b"\xe2\x80\xaea.yaml", b"\xed\xa0\x80.yaml", b"z" * 250 + b".yaml",
         "gr\u00fc\u00df.yaml".encode()]
BAD = json.dumps({"apiVersion": GROUP, "kind": "MyWeb", "metadata": {"name": "web"}, "spec": {"image": "a b"}})


@pytest.fixture(name="folder", params=[BAD, "a: [", "a: \x01"], ids=["refused", "no YAML", "no text"])
def folder_of_names(request, tmp_path):
    """Files with hostile names; each is refused or cannot be read."""
    for name in NAMES:
        with open(os.path.join(os.fsencode(tmp_path), name), "w", encoding="utf-8") as file:
            file.write(request.param)
    return tmp_path


@pytest.mark.parametrize("operands", [["."], NAMES], ids=["folder", "files"])
def test_hostile_file_names_in_reports(steward_binary, folder, operands):
    """Each is in each report, and names one file."""
    def report(form):
        return run(steward_binary, "validate", "-o", form, *operands, cwd=folder)
    status, _, lines = report("text")
    places = {line[:line.index(".yaml:")] for line in lines if ".yaml:" in line}
    assert status in (1, 2) and len(places) == len(NAMES), places
    assert len([line for line in lines if SUMMARY.match(line)]) == (1 if status == 1 else 2)
    for name in ("a\\xff.yaml:", "gr\u00fc\u00df.yaml:"):
        assert [line for line in lines if name in line]
    found = json.loads(report("json")[1])["objects"]
    assert len({o["file"] for o in found}) == len(found) == len(NAMES)
    suites = xml.etree.ElementTree.fromstring(report("junit")[1])
    assert len({case.get("file") for case in suites.iter("testcase")}) == len(NAMES)
    results = json.loads(report("sarif")[1])["runs"][0]["results"]
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results}
    assert len(uris) == len(NAMES) and {u for u in uris if u.endswith("a%FF.yaml")}


def test_text_truncated_inside_a_character_stays_valid(steward_binary):
    """A result is not lost because its text is no longer UTF-8."""
    long = "\u65e5" * 6000
    text = json.dumps([o for n in range(3) for o in objects("x" * n + long)])
    text = f'{{"apiVersion": "v1", "kind": "List", "items": {text}}}'.encode()
    source = b"---\n# Source: x" + long.encode() + b"\n" + BAD.encode()
    counts = {}
    for form in ("json", "junit", "sarif", "text"):
        _, out, _ = run(steward_binary, "validate", "-o", form, "-", stdin=text)
        counts[form] = out.count(b"Forbidden: unknown field")
        run(steward_binary, "validate", "-o", form, "-", stdin=source)
    assert counts["json"] == counts["sarif"] == counts["text"] > 0


@pytest.mark.parametrize("x", PAYLOADS)
def test_hostile_text_in_syntax_errors(steward_binary, tmp_path, x):
    """Messages that quote what they refuse."""
    quoted = json.dumps(x)
    (tmp_path / "twice.yaml").write_text(f"a: {{{quoted}: 1, {quoted}: 2}}\n")
    old = json.dumps({"apiVersion": "v1", "kind": x, "metadata": {"name": x}})
    (tmp_path / "old.yaml").write_text(f"---\n{old}\n---\n{old}\n")
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [{"name": x, x: x, "engine": x}]}))
    (tmp_path / "config.yaml").write_text(json.dumps({x: x}))
    for args in (["validate", "twice.yaml"], ["validate", "--old", "old.yaml", "-"], ["validate", f"no{x}"],
                 ["validate", "--old", f"no{x}", "-"], ["validate", "-n", x, "-"], ["validate", f"--{x}"],
                 ["validate", "--node-port-range", x, "-"], ["validate", "--kinds", x, "-"],
                 ["validate", "-o", x, "-"], ["validate", "--config", "targets.yaml", "-"], [x], ["print", x],
                 ["print", "crds", "--url", x], ["audit", x], ["audit", "--kubeconfig", f"no{x}"],
                 ["doctor", "--kubeconfig", f"no{x}"], ["top", "--url", x], ["webhook", "--log-level", x],
                 ["webhook", "--config", "config.yaml"], ["snapshot", x, x], ["new", x, x],
                 ["completion", x], ["uninstall", x], ["migrate", x]):
        status, _, _ = run(steward_binary, *[a.encode() for a in args], cwd=tmp_path, stdin=b"")
        assert status != 0, args


class _Api(served.Handler):
    """An API server whose every answer is hostile; `server.status` 200: lists and objects, else errors."""

    def do_GET(self):
        """One body for everything."""
        x = self.server.payload
        meta = {"name": f"n{x}", "namespace": f"s{x}", "uid": x, "resourceVersion": x, "creationTimestamp": x,
                "finalizers": [x, "steward.dev/account"], "labels": {x: x}, "annotations": {x: x}}
        condition = {"type": x, "status": x, "reason": x, "message": x}
        one = {"metadata": meta,
               "spec": {x: x, "image": x, "replicas": x, "holderIdentity": x, "names": {"kind": x},
                        "versions": [{"name": x, "storage": True, "served": True}]},
               "status": {"storedVersions": ["v0", x], "conditions": [condition]},
               "data": {x: x, "tls.crt": x}, "webhooks": [{"name": x, "clientConfig": {"caBundle": x}}],
               "gitVersion": x, "major": "1", "minor": "37", "token": x}
        body = {**one, "kind": "List", "items": [one], "message": x, "reason": x, "apiVersion": "v1"}
        self.reply(self.server.status, {"Content-Type": "application/json"}, json.dumps(body).encode())

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET


@pytest.fixture(name="api", scope="module")
def hostile_api(tmp_path_factory):
    """The server; `kubeconfig` leads to it."""
    folder = tmp_path_factory.mktemp("api")
    pair = webhook.make_pair(folder)
    server = served.Served(_Api, pair=pair)
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x",
              "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
              "clusters": [{"name": "x", "cluster": {"server": server.url,
                                                     "certificate-authority": str(pair / "tls.crt")}}],
              "users": [{"name": "x", "user": {"token": "t"}}]}
    server.kubeconfig = folder / "kubeconfig"
    server.kubeconfig.write_text(json.dumps(config))
    yield server
    server.close()


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("command", [
    "audit", "audit -o json", "doctor", "doctor -o json", "uninstall", "migrate", "migrate --yes", "top --once",
    "uninstall --yes --finalizers=release --timeout=1s"])
def test_hostile_api_server_answers_in_output(steward_binary, api, command, status):
    """Each command that reads a cluster."""
    api.status = status
    for api.payload in ("".join(PAYLOADS), "::error::x"):
        _, out, lines = run(steward_binary, *command.split(), "--kubeconfig", os.fspath(api.kubeconfig))
        if "json" in command and out:
            json.loads(out)
        assert len(api.payload) < 20 or status == 200 or [line for line in lines if "\\n::error" in line]
