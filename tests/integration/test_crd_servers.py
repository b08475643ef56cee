# SPDX-License-Identifier: Apache-2.0
"""The definitions that we ship, judged by the code of API servers of several versions (tests/oracles/crd).
It estimates what each rule costs at most, and refuses a definition whose rules may cost too much."""

import copy
import json
import pathlib
import subprocess
import sys

import pytest
import yaml

from support import chart, compared, kustomize, oracles, paths, steward, versions
from support.cluster import LOADER

WITH_RULES = ["config/server-1.29", "chart/files/crds-1.29", "olm"]
WITHOUT = ["config/default", "chart/files/crds"]


def texts_of(what):
    """The manifests of an installation in one file, or of a folder of the chart."""
    place, _, name = what.partition("/")
    if place == "config":
        return [kustomize.one_file(name)]
    return [path.read_text("utf-8") for path in sorted((pathlib.Path(chart.path()) / name).glob("*.yaml"))]


def bundle(folder):
    """The manifests of an OLM bundle."""
    subprocess.run([sys.executable, paths.SCRIPTS / "lib" / "olm.py", folder, "0.1.0",
                    "example.com/steward:1", "2026-01-01T00:00:00Z", *paths.SAMPLES.glob("*.yaml")],
                   check=True, text=True, input=kustomize.one_file("server-1.29"))
    return [path.read_text("utf-8") for path in sorted((folder / "manifests").glob("*.yaml"))]


def definitions_in(text):
    """The definitions of one file."""
    return [d for d in yaml.load_all(text, LOADER) if d and d["kind"] == "CustomResourceDefinition"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """{where: [definition]}"""
    texts = {what: texts_of(what) for what in WITHOUT + WITH_RULES if what != "olm"}
    texts["olm"] = bundle(tmp_path_factory.mktemp("olm"))
    found = {what: [d for text in some for d in definitions_in(text)] for what, some in texts.items()}
    for what, some in found.items():
        assert sorted(d["spec"]["names"]["kind"] for d in some) == sorted(steward.KINDS), what
        assert all(has_rules(d) == (what in WITH_RULES) for d in some), what
    return found


def refused(version, definitions):
    """{name: [error]} of those that an API server of this version refuses."""
    answers = subprocess.run([oracles.program("crd", version)], check=True, capture_output=True, timeout=120,
                             text=True, input="".join(json.dumps(d) + "\n" for d in definitions)).stdout
    errors = [json.loads(line) for line in answers.splitlines()]
    assert len(errors) == len(definitions)
    return {d["metadata"]["name"]: said for d, said in zip(definitions, errors) if said}


def has_rules(definition):
    return "x-kubernetes-validations" in json.dumps(definition)


def test_oldest_and_newest_servers_are_compared():
    """The oldest is the first version for which the definitions have rules."""
    minors = [int(version.split(".")[1]) for version in oracles.versions("crd")]
    assert minors[0] == 29 and {30, 31, 33, 34} <= set(minors)
    assert minors[-1] == int(versions.newest("KUBERNETES").split(".")[1])


@pytest.mark.parametrize("version", oracles.versions("crd"))
def test_shipped_definitions_are_accepted_by_server(shipped, version):
    distinct = {json.dumps(d, sort_keys=True): d for some in shipped.values() for d in some}
    assert refused(version, list(distinct.values())) == {}
    compared.note("k8s.io/apiextensions-apiserver", f"{version} (definitions)", len(distinct))


@pytest.mark.parametrize("version", oracles.versions("crd"))
def test_oracle_refuses_expensive_rules(shipped, version):
    """It refuses a rule with five nested loops, and before 1.34 one that reads all quantities, whose
    maxLength it does not use."""
    definition = copy.deepcopy(next(d for d in shipped["config/server-1.29"]
                                    if d["spec"]["names"]["kind"] == "MyWeb"))
    rules = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    limits = "self.spec.resources.limits"
    nested = "".join(f"{limits}.all({name}, " for name in "abcd") + "k != ''" + ")" * 4
    for judged in (f"isQuantity(string({limits}[k]))", nested):
        rules.append({"rule": f"!has(self.spec.resources) || !has({limits}) || {limits}.all(k, {judged})"})
    said = refused(version, [definition])[definition["metadata"]["name"]]
    place = "spec.validation.openAPIV3Schema.x-kubernetes-validations"
    quantities, loops = (any(e.startswith(f"{place}[{i}].rule: Forbidden: estimated rule cost exceeds budget")
                            for e in said) for i in (len(rules) - 2, len(rules) - 1))
    assert (quantities, loops) == (int(version.split(".")[1]) < 34, True), said
