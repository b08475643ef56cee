# SPDX-License-Identifier: Apache-2.0
"""`kubectl steward`: the same program under other names."""

import os
import shutil
import subprocess

import pytest

from support import paths


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """A folder with links as `meson install` makes them."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "steward").symlink_to(os.path.abspath(paths.steward_binary()))
    for name in ("kubectl-steward", "kubectl_complete-steward"):
        (folder / name).symlink_to("steward")
    return folder


def run(folder, *words):
    return subprocess.run(words, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                          text=True, capture_output=True, timeout=60, check=False)


@pytest.fixture(name="complete")
def fixture_complete(folder):
    """complete(*words): the candidates for the last word, and the directive."""
    def call(*words):
        done = run(folder, "kubectl_complete-steward", *words)
        assert (done.returncode, done.stderr) == (0, "")
        *lines, directive = done.stdout.splitlines()
        assert directive[0] == ":"
        return [line.split("\t")[0] for line in lines], int(directive[1:])
    return call


def test_help_shows_the_called_name(folder):
    for name, called in (("kubectl-steward", "kubectl steward"), ("steward", "steward"),
                         (f"{folder}/kubectl-steward", "kubectl steward")):
        top = run(folder, name, "--help").stdout
        assert f"\nUsage: {called} COMMAND [OPTIONS]\n" in top
        assert f"\n`{called} COMMAND --help` says more." in top
        validate = run(folder, name, "validate", "--help").stdout
        assert validate.startswith(f"Usage: {called} validate [OPTIONS]")
        assert f"| {called} validate -\n" in validate
        wrong = run(folder, name, "validate", "--nonsense")
        assert wrong.returncode == 2 and f"`{called} validate --help`" in wrong.stderr
        assert f"`{called} --help` lists them" in run(folder, name, "nonsense").stderr


def test_plugin_validates_like_the_program(folder):
    plain = run(folder, "steward", "validate", paths.SAMPLES)
    plugin = run(folder, "kubectl-steward", "validate", paths.SAMPLES)
    assert (plugin.returncode, plugin.stdout) == (plain.returncode, plain.stdout)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_runs_the_plugin(folder):
    done = run(folder, "kubectl", "steward", "validate", paths.SAMPLES)
    assert done.returncode == 0, done.stderr
    assert "MyWeb myweb-sample accepted" in done.stdout
    assert run(folder, "kubectl", "steward", "--help").stdout.count("kubectl steward") == 2


@pytest.mark.parametrize("words, found, directive", [
    (("do",), ["doctor"], 4),
    (("-",), ["--help"], 4),
    (("nonsense", ""), [], 4),
    (("audit", "etcdb"), ["etcdbackups"], 4),
    (("print", "user"), ["user-roles"], 4),
    (("validate", "--le"), ["--lenient"], 4),
    (("validate", "--ol"), ["--old="], 6),
    (("validate", "--output=j"), ["--output=json", "--output=junit"], 4),
    (("validate", "--output", "s"), ["sarif"], 4),
    (("validate", "-o", ""), ["text", "json", "junit", "sarif"], 4),
    (("validate", "--output=json", ""), [], 0),
    (("validate", "--quiet", ""), [], 0),
    (("validate", "--old", ""), [], 0),
    (("validate", "x.yaml", ""), [], 0),
    (("webhook", "--webhook-cert-path", ""), [], 16),
    (("doctor", "--context", ""), [], 4),
])
def test_plugin_completes_words(complete, words, found, directive):
    assert complete(*words) == (found, directive)


def test_plugin_completes_every_command(complete, folder):
    words, _ = complete("")
    listed = [line.split()[0] for line in run(folder, "steward", "--help").stdout.splitlines()
              if line.startswith("  ")]
    assert words == listed


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_completes_plugin_arguments(folder):
    """From Kubernetes 1.26 on."""
    done = run(folder, "kubectl", "__complete", "steward", "validate", "--output=s")
    if "__complete" in done.stderr or "sarif" not in done.stdout and ":" not in done.stdout:
        pytest.skip("this kubectl completes no plugins")
    assert "--output=sarif" in done.stdout
