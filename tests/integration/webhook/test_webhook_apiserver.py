# SPDX-License-Identifier: Apache-2.0
"""Admission, asked by an API server's own code: its client of webhooks, its check of their answers, and
the library that applies their patches.  The verdicts must be those of `steward validate`."""

import json
import re
import subprocess

import pytest

from support import compared, daily, judged, oracles, paths
from support.webhook import Webhook

GENERATED = 120  # new objects of each kind, and as many changes
NAMESPACE = "shop"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """[judged.Case] with the verdicts of `steward validate`."""
    folder = tmp_path_factory.mktemp("judged")
    noted = judged.cases(folder, NAMESPACE)
    every = noted + judged.generated(daily.dice("admission"), noted, GENERATED, NAMESPACE)
    judged.judge(every, folder)
    return every


def question(case):
    """One line for the oracle."""
    group, version = case.api_version.split("/")
    path = f"{group.replace('.', '-')}-{version}-{case.kind.lower()}"
    return json.dumps({"mutate": f"/mutate-{path}", "validate": f"/validate-{path}", "request": {
        "kind": {"group": group, "version": version, "kind": case.kind},
        "resource": {"group": group, "version": version, "resource": case.plural},
        "name": case.name, "namespace": NAMESPACE, "operation": "UPDATE" if case.old else "CREATE",
        "userInfo": {"username": "jane"}, "object": case.object, "oldObject": case.old}})


def ask(binary, cases, folder):
    """The oracle's answers about these cases."""
    webhook = Webhook(binary, folder).start()
    done = subprocess.run(
        [oracles.program("admission"), f"https://localhost:{webhook.port}", webhook.certs / "tls.crt",
         *sorted((paths.TOP / "config" / "crd" / "bases").glob("*.yaml"))],
        input="".join(question(case) + "\n" for case in cases), capture_output=True, text=True,
        timeout=300, check=True)
    assert webhook.stop() == 0, webhook.log_text()
    return [json.loads(line) for line in done.stdout.split("\n") if line]


@pytest.fixture(scope="module")
def asked(steward_binary, cases, tmp_path_factory):
    """The oracle's answers about all cases."""
    return ask(steward_binary, cases, tmp_path_factory.mktemp("webhook"))


def test_api_server_accepts_each_answer(cases, asked):
    assert len(asked) == len(cases)
    wrong = [(case, said["error"]) for case, said in zip(cases, asked) if "error" in said]
    assert not wrong, wrong[:5]
    compared.note("k8s.io/apiserver", f"{oracles.module_version('admission', 'k8s.io/apiserver')} "
                  "(answers of webhooks)", 2 * len(cases))


NULL_IN_A_MAP = re.compile(r"\[[^]0-9][^]]*\]: Invalid value: null: ")


def named(case):
    """The errors of `steward validate`, without those about a null in a map: an API server drops it."""
    return [error for error in case.errors if not NULL_IN_A_MAP.search(error)]


def test_webhook_verdicts_equal_those_of_validate(cases, asked):
    """Of a change, `validate` also refuses what the schema refuses, as an API server does."""
    differ = [(case, said.get("message")) for case, said in zip(cases, asked)
              if said["allowed"] == bool(named(case)) and not (case.old and said["allowed"])]
    assert not differ, "\n".join(f"{case!r}\n  admission {said}" for case, said in differ[:8])
    assert {said["allowed"] for said in asked} == {True, False}


def test_refusal_names_each_field_that_validate_names(cases, asked):
    for case, said in zip(cases, asked):
        if not said["allowed"] and not case.old:
            missing = [e for e in named(case) if re.split(r"[:\[]", e)[0] not in said["message"]]
            assert len(said["message"]) > 1000 or not missing, (case, said["message"])


def test_defaulting_is_idempotent(cases, asked, steward_binary, tmp_path):
    """The object after the patch goes through admission again, as when a user applies what kubectl shows."""
    again = [judged.Case(case.api_version, case.kind, said["object"], None)
             for case, said in zip(cases, asked) if said["allowed"] and not case.old]
    assert again
    for case, said in zip(again, ask(steward_binary, again, tmp_path), strict=True):
        assert said["allowed"], (case, said)
        assert said["object"] == case.object, case
