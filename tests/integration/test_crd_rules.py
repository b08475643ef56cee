# SPDX-License-Identifier: Apache-2.0
"""The rules of the definitions, applied to objects by the code of API servers of several versions
(tests/oracles/crd), and judged by `steward validate`.  tests/contract/test_cel.py asks real API servers."""

import json
import random
import subprocess

import pytest
import yaml

from support import compared, judged, oracles, paths
from support.cluster import LOADER

NAMESPACE = "rules"
OLDEST = oracles.versions("crd")[:2]  # the second is the first one whose schema accepts unchanged values
GENERATED = 8  # new objects of each kind, and as many changes
QUANTITIES = 300
SEED = 20


def printed(*options):
    """{kind: definition} of `steward print crds`."""
    text = subprocess.run([paths.steward_binary(), "print", "crds", *options], check=True,
                          capture_output=True, text=True).stdout
    return {d["spec"]["names"]["kind"]: d for d in yaml.load_all(text, LOADER) if d}


def ask(version, definitions, questions):
    """The errors of each question, from an API server of this version with these definitions."""
    kinds = {question["object"]["kind"] for question in questions}
    definitions = [d for kind, d in definitions.items() if kind in kinds]
    lines = [json.dumps(one) + "\n" for one in [*definitions, *questions]]
    said = subprocess.run([oracles.program("crd", version)], input="".join(lines), text=True, check=True,
                          stdout=subprocess.PIPE, timeout=300).stdout.splitlines()
    answers = [json.loads(line) for line in said]
    assert len(answers) == len(lines) and not any(answers[:len(definitions)])
    return answers[len(definitions):]


def stored(version, all_cases):
    """The cases whose old object an API server without rules stores."""
    plain = printed()
    for definition in plain.values():
        del definition["spec"]["versions"][0]["subresources"]  # the object is stored with its status
    changes = [c for c in all_cases if c.old]
    unstored = {id(c) for c, errors in zip(changes, ask(version, plain, [{"object": c.old} for c in changes]))
                if errors}
    return [c for c in all_cases if id(c) not in unstored]


def answered(version, all_cases):
    """The cases, with the answers of an API server of this version."""
    found = stored(version, all_cases)
    questions = [{"object": c.object, **({"old": c.old} if c.old else {})} for c in found]
    for case, errors in zip(found, ask(version, printed("--rules"), questions)):
        case.answer = judged.Answer(422 if errors else 200, "; ".join(errors))
    return found


@pytest.fixture(scope="module")
def all_cases(tmp_path_factory):
    """What the unit tests judge, and what is generated from it, with the verdicts of steward."""
    folder = tmp_path_factory.mktemp("judged")
    noted = judged.cases(folder, NAMESPACE)
    assert len(noted) > 800
    every = noted + judged.generated(random.Random(SEED), noted, GENERATED, NAMESPACE)
    judged.judge(every, folder)
    return every


@pytest.fixture(scope="module")
def of_quantities(tmp_path_factory):
    """MyWebs with quantities of every form."""
    every = judged.of_quantities(random.Random(SEED), QUANTITIES, NAMESPACE)
    judged.judge(every, tmp_path_factory.mktemp("quantities"))
    return every


def minor_of(version):
    return int(version.split(".")[1])


def judged_new(version, all_cases):
    """(cases, bad new objects, those of them that are accepted); no good one is refused."""
    cases = answered(version, all_cases)
    stricter = judged.stricter(cases, minor_of(version))
    assert stricter == [], stricter[:5]
    bad, accepted = judged.new_refused(cases)
    print(f"{version}: {len(bad) - len(accepted)} of {len(bad)} bad new objects are refused")
    compared.note("k8s.io/apiextensions-apiserver", f"{version} (rules of definitions)", len(cases))
    return cases, bad, accepted


@pytest.mark.parametrize("version", OLDEST)
def test_rules_refuse_bad_objects_and_no_good_ones(all_cases, version):
    """At least 100 of 108 bad new objects, and all bad changes that CEL can see."""
    cases, bad, accepted = judged_new(version, all_cases)
    assert len(bad) > 400 and 108 * len(accepted) <= 8 * len(bad), accepted
    changes, accepted = judged.changes_refused(cases)
    assert len(changes) > 60 and accepted == [], accepted[:5]


def test_rule_compares_with_the_running_version():
    """Also if the old spec names none, as steward does."""
    old = {"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster", "spec": {},
           "metadata": {"name": "db", "namespace": NAMESPACE}, "status": {"currentVersion": "3.3.27"}}
    [errors] = ask(OLDEST[0], printed("--rules"),
                   [{"object": {**old, "spec": {"version": "3.5.22"}}, "old": old}])
    assert any("one minor at a time" in e for e in errors)


@pytest.mark.parametrize("version", oracles.versions("crd"))
def test_quantity_rules_refuse_no_valid_quantity(of_quantities, version):
    """Eight of ten bad ones are refused."""
    cases, bad, accepted = judged_new(version, of_quantities)
    assert len(bad) > QUANTITIES / 4 and 5 * len(accepted) <= len(bad), accepted[:20]
    assert sum(not c.refused for c in cases) > QUANTITIES / 10
