# SPDX-License-Identifier: Apache-2.0
"""A file of tests/cases that says something wrong, or nothing, fails and is named with its line."""

import json
import pathlib
import re
import subprocess

import pytest
import yaml

from support import paths
from support.cluster import LOADER

PROGRAM = paths.build() / "tests/unit/kinds/test_kinds_cases"
HEAD = """# A valid App.
base:
  metadata: {name: web, namespace: shop}
  spec: {image: "shop:1", resources: {limits: {memory: 64Mi}}}
cases:
"""
RIGHT = """- spec: {port: 0}
  errors: ["spec.port: Invalid value: 0: must be between 1 and 65535"]
"""


def said(folder, text):
    """(exit status, output) for one file."""
    file = pathlib.Path(folder) / "app" / "topic.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    done = subprocess.run([PROGRAM, file], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_right_file_passes(tmp_path):
    assert said(tmp_path, HEAD + RIGHT)[0] == 0


def test_example_of_the_page_passes(tmp_path):
    page = (paths.TOP / "docs/testing.md").read_text("utf-8")
    [example] = re.findall(r"^```\n(# spec\..*?)^```", page, re.M | re.S)
    status, output = said(tmp_path, example)
    assert status == 0, output


@pytest.mark.parametrize("cases, line, why", [
    ("- spec: {port: 0}\n  errors: ['spec.port: no']\n", 6, r"got:\nspec.port: Invalid .*\nwant:\nspec.port: no"),
    ("- spec: {port: 0}\n", 6, r"want:\nnothing"),
    ("- {}\n- spec: {port: 1}\n  errors: ['spec.port: no']\n", 7, r"cases\[1\]\ngot:\nnothing"),
    ("- spec: {port: 0}\n  errors: []\n", 6, "must be a list with entries"),
    ("- spec: {port: 0}\n  errors: ['']\n", 6, "must hold texts"),
    ("- spec: {port: 0}\n  error: [x]\n", 6, "unknown key error"),
    ("- old: {sepc: {}}\n", 6, "unknown key sepc"),
    ("- cluster: {object: {}}\n", 6, "unknown key object"),
    ("- cluster: {objects: {mywebs: shop/web}}\n", 6, "objects has an entry of another type"),
    ("- {}\nbase: {sepc: {}}\n", None, "base"),
    ("- {}\n- {}\n", 7, "the same case comes before"),
    ("- spec: {image: 'shop:1'}\n", 6, "change nothing of the base"),
    ("- spec: {port: null}\n", 6, "null removes a member that the base does not have"),
    ("- spec: {port: 1}\n  object: {}\n", 6, "has the object twice"),
    ("- delete: {}\n  spec: {port: 1}\n", 6, "only what is deleted is judged"),
    ("- defaults: {}\n", 6, "defaults must be a map with entries, or none"),
    ("- defaults: none\n", 6, "want:\nnothing"),
    ("- spec: {port: 1, port: 2}\n", 6, "twice|duplicate|already"),
    ("  []\n", 5, "must be a list with entries"),
    ("- {}\n---\ncases: []\n", 8, "one document"),
    ("- {}\ncase: []\n", None, "unknown key case"),
])
def test_wrong_case_fails_with_its_line(tmp_path, cases, line, why):
    status, output = said(tmp_path, HEAD + cases)
    assert status != 0
    assert re.search(why, output), output
    assert line is None or f"topic.yaml:{line}:" in output, output


def change(case):
    """Makes the expectation of a case wrong."""
    for key in ("errors", "warnings"):
        if key in case:
            case[key][-1] += "!"
            return
    if "defaults" in case:
        case["defaults"] = {**({} if case["defaults"] == "none" else case["defaults"]), "/spec/more": 1}
    else:
        case["errors"] = ["spec: is wrong"]


def test_every_case_can_fail(tmp_path):
    """Each case of tests/cases, with one letter more in what is expected, is reported."""
    changed = {}
    for file in sorted((paths.TOP / "tests/cases").glob("*/*.yaml")):
        topic = yaml.load(file.read_text("utf-8"), LOADER)
        for case in topic["cases"]:
            change(case)
        target = tmp_path / file.parent.name / file.name
        target.parent.mkdir(exist_ok=True)
        shared = file.parent / "shared"
        if shared.is_dir() and not (target.parent / "shared").exists():
            (target.parent / "shared").symlink_to(shared)
        target.write_text(json.dumps(topic), "utf-8")
        changed[str(target)] = len(topic["cases"])
    done = subprocess.run([PROGRAM, *changed], capture_output=True, text=True, check=False)
    reported = {file: set() for file in changed}
    for file, case in re.findall(r"^(\S+\.yaml):\d+: (cases\[\d+\])\ngot:", done.stderr, re.M):
        reported[file].add(case)
    assert sum(changed.values()) > 200
    assert {file: len(cases) for file, cases in reported.items()} == changed
