# SPDX-License-Identifier: Apache-2.0
"""`steward validate` prints what the README shows."""

import os
import re
import subprocess

import pytest
import yaml

from support import paths, readme


@pytest.mark.parametrize("command, output", readme.commands("steward"))
def test_steward_prints_what_the_readme_shows(steward_binary, tmp_path, command, output):
    for name, text in readme.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "steward").symlink_to(steward_binary)
    env = dict(os.environ, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    result = subprocess.run(command, shell=True, cwd=tmp_path, env=env, text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert result.stdout == output


def _objects(text):
    """The objects of a YAML text, or of the part of a page that is one."""
    try:
        return [o for o in yaml.safe_load_all(text) if isinstance(o, dict) and "metadata" in o]
    except yaml.YAMLError:
        return []


def _names(objects):
    """What an object and those that are made for it are called, on the cluster and on a database server."""
    for obj in objects:
        spec = obj.get("spec", {})
        yield obj["metadata"].get("name")
        yield from (spec.get(field) for field in ("user", "deploymentname") if spec.get(field))
        yield (spec.get("etcdCluster") or {}).get("name")


def test_samples_do_not_conflict_with_page_examples():
    """After config/samples the examples of the pages do what is shown: no name and no node port is taken."""
    samples = [o for path in paths.SAMPLES.glob("*.yaml") for o in _objects(path.read_text("utf-8"))]
    pages = [path.read_text("utf-8") for path in (*(paths.TOP / "docs").glob("*.md"), paths.TOP / "README.md")]
    shown = [o for page in pages for block in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
             for o in _objects(block)]
    assert len(samples) == 8 and len(shown) > 30
    assert not ({*_names(samples)} - {None}) & {*_names(shown)}
    ports = {o["spec"]["nodePortNumber"] for o in samples if "nodePortNumber" in o.get("spec", {})}
    assert ports and not ports & {int(port) for page in pages for port in re.findall(r"\b3[0-2]\d{3}\b", page)}


def test_readme_has_commands_to_test():
    assert readme.commands("steward") and readme.commands("kubectl")


def test_security_page_names_existing_tests():
    """docs/security.md names tests that exist."""
    text = (paths.TOP / "docs" / "security.md").read_text("utf-8")
    named = re.findall(r"`((?:unit|cases|integration|e2e|contract|rights)/[\w/]+\.(?:py|c|yaml))"
                       r"(?:::(\w+))?`", text)
    assert len(named) > 60
    for file, test in named:
        code = (paths.TOP / "tests" / file).read_text("utf-8")
        assert not test or re.search(rf"^def {test}\(", code, re.M), f"{file}::{test}"
    rows = [line for line in text.partition("## From the network")[2].partition("## Once it has")[0]
            .splitlines() if line.startswith("| ") and not line.startswith("| attempt")]
    assert rows and all("`" in row.rsplit("|", 2)[1] for row in rows), "a claim without a test"
