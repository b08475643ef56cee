# SPDX-License-Identifier: Apache-2.0
"""scripts/bench operators: its arithmetic, and that examples/compare pins every version."""

import re
import subprocess
import tomllib

import pytest
from bench import contenders, operators, redirects
from support import paths

SAMPLE = '''version = 4

[[package]]
name = "redirect"
version = "0.1.0"
dependencies = [
 "a",
]

[[package]]
name = "a"
version = "1.2.3"
source = "registry+SOMEWHERE"
checksum = "00"
'''


@pytest.mark.parametrize("suffix, text, lines", [
    (".c", "/* one\n * two */\n#include \"a\"\n\nint a; /* why */\n// no\n", 2),
    (".go", "// no\n// +kubebuilder:rbac:groups=a\n\npackage main // yes\n", 2),
    (".rs", "//! no\n/// no\n#[derive(Clone)]\nstruct A;\n", 2),
    (".toml", "# no\n[package]\n\nname = \"a\" # yes\n", 2),
    (".build", "# no\nproject('a')\n", 1),
])
def test_code_lines_exclude_comments_and_blanks(suffix, text, lines):
    assert contenders.code_lines(text, suffix) == lines


def test_ratios_and_cells_are_formatted():
    figures = {"libsteward": {"lines": 100, "idle_rss_kib": 2048}, "kube-rs": {"lines": 250, "idle_rss_kib": 5120}}
    assert operators.ratios(figures) == {"kube-rs": {"lines": 2.5, "idle_rss_kib": 2.5}}
    assert operators.cell(5120, 1024, 1) == "5.0"
    assert operators.cell(None, 1024, 1) == "-"


def test_table_names_versions_and_sizes():
    result = {"versions": {"a": "1.0", "b": "2.0"}, "objects": 123, "count": 45,
              "figures": {"a": {"cpu_ms_each": 1.25}, "b": {"failed": "because"}}}
    text = operators.table(result)
    assert "| a 1.0 | b 2.0 |" in text and "with 123 objects" in text and "all 45 created" in text
    assert "| CPU for each created object, ms | 1.25 | - |" in text


def test_lock_file_is_restored():
    stripped = contenders.stripped_lock(SAMPLE)
    assert "registry" not in stripped
    assert contenders.restored_lock(stripped, SAMPLE) == SAMPLE
    with pytest.raises(RuntimeError):
        contenders.restored_lock(stripped, "no registry here\n")


def test_measured_example_builds_alone(tmp_path, monkeypatch):
    """It builds, needs no libsteward.so, and has Redirect alone."""
    monkeypatch.setattr(contenders, "cache", lambda: tmp_path)
    monkeypatch.delenv("STEWARD_REDIRECT", raising=False)
    program = contenders.build_steward()
    assert "libsteward" not in contenders.run(["ldd", program])
    assert contenders.run([program, "print", "crds"]).count("kind: CustomResourceDefinition") == 1


def test_missing_contender_does_not_stop_the_others(monkeypatch):
    def absent():
        raise contenders.Missing("no compiler")
    row = contenders.Contender("x", (), lambda: "1", absent, None)
    there = contenders.Contender("y", (), lambda: "1", lambda: "program", None)
    monkeypatch.setattr(contenders, "ALL", (row, there))
    built, missing = contenders.build_all(["x", "y"])
    assert list(built.values()) == ["program"] and missing == {"x": "no compiler"}


def test_condition_of_older_generation_does_not_count():
    redirect = {"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "True"}]}}
    assert not redirects.is_ready(redirect)
    redirect["status"]["observedGeneration"] = 2
    assert redirects.is_ready(redirect)
    redirect["status"]["conditions"][0]["observedGeneration"] = 1
    assert not redirects.is_ready(redirect)


def test_versions_are_pinned():
    cargo = tomllib.loads((contenders.RUST / "Cargo.toml").read_text("utf-8"))
    for name, wanted in cargo["dependencies"].items():
        version = wanted if isinstance(wanted, str) else wanted["version"]
        assert re.fullmatch(r"=\d+\.\d+\.\d+", version), name
    packages = tomllib.loads((contenders.RUST / "pinned.toml").read_text("utf-8"))["package"]
    pinned = {(p["name"], p["version"]) for p in packages}
    for name, wanted in cargo["dependencies"].items():
        version = wanted if isinstance(wanted, str) else wanted["version"]
        assert (name, version.removeprefix("=")) in pinned
    assert all("checksum" in p for p in packages if p["name"] != "redirect")
    assert re.fullmatch(r"\d+\.\d+\.\d+", contenders.go_version())
    assert (contenders.GO / "go.sum").stat().st_size


def test_no_file_names_a_registry():
    tracked = subprocess.run(["git", "-C", paths.TOP, "ls-files", "--cached", "--others", "--exclude-standard",
                              "examples"], capture_output=True, text=True, check=True).stdout.split()
    assert tracked
    for name in tracked:
        assert not name.endswith(("Cargo.lock", "package-lock.json", "yarn.lock")), name
        assert "registry+" not in (paths.TOP / name).read_text("utf-8"), name
