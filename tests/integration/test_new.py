# SPDX-License-Identifier: Apache-2.0
"""`steward new`: the names that it takes, and that it leaves nothing half done."""

import os
import stat
import subprocess

import pytest
import yaml

KIND = "example.org/v1/Greeting"


@pytest.fixture
def new(steward_binary, tmp_path):
    """Runs it in an empty folder."""
    def call(*words):
        return subprocess.run([steward_binary, "new", *words], cwd=tmp_path, capture_output=True,
                              text=True, timeout=60, check=False)
    return call


def test_new_writes_a_project(new, tmp_path):
    done = new("greeter", KIND)
    assert done.returncode == 0, done.stderr
    assert "cd greeter && meson setup build && meson test -C build" in done.stdout
    top = tmp_path / "greeter"
    files = {str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()}
    assert files >= {"meson.build", "README.md", "Dockerfile", ".gitignore", "src/main.c",
                     "src/the_operator.c", "tests/reconcile.c",
                     "src/greeting.c", "src/greeting.h", "tests/test_greeting.c",
                     "config/kustomization.yaml", ".github/workflows/ci.yml"}
    for path in top.rglob("*"):
        if path.is_file():
            text = path.read_text("ascii")
            assert not any(f"@{word}@" in text for word in (
                "PROJECT", "IDENT", "GROUP", "VERSION", "KIND", "LOWER", "UPPER", "PLURAL")), path
            if path.suffix in (".yaml", ".yml"):
                assert list(yaml.safe_load_all(text)), path
    for script in ("scripts/manifests", "tests/cluster"):
        assert os.stat(top / script).st_mode & stat.S_IXUSR
        subprocess.run(["sh", "-n", top / script], check=True, timeout=60)
        subprocess.run(["shellcheck", top / script], check=True, timeout=60)


@pytest.mark.parametrize("words, text", [
    ([], "needs a project and GROUP/VERSION/KIND"),
    (["greeter"], "needs a project"),
    (["Greeter", KIND], 'project "Greeter": must start with a letter'),
    (["../greeter", KIND], "must start with a letter and hold only a-z"),
    (["g" * 39, KIND], "at most 38"),
    (["greeter", "example.org/Greeting"], "is not GROUP/VERSION/KIND"),
    (["greeter", "example/v1/Greeting"], "must be a domain that you own"),
    (["greeter", "apps.k8s.io/v1/Greeting"], "belong to Kubernetes"),
    (["greeter", "example.org/1/Greeting"], "must be like v1"),
    (["greeter", "example.org/v1gamma1/Greeting"], "must be like v1"),
    (["greeter", "example.org/v1/greeting"], "must be in CamelCase"),
    (["greeter", "example.org/v1/Greet-ing"], "must be in CamelCase"),
    (["greeter", "example.org/v1/Double"], '"double" is a word of C'),
    (["greeter", "example.org/v1/Stw"], '"stw" is a word of C or libsteward'),
    (["all", KIND], 'project "all": is a target of meson'),
    (["tests", KIND], 'project "tests": is a target of meson'),
    (["manifests", KIND], 'project "manifests": is a target of meson'),
    (["meson-lamp", KIND], 'project "meson-lamp": is a target of meson'),
    (["greeter", "k8s.io/v1/Greeting"], "belong to Kubernetes"),
    (["greeter", "a." * 45 + "example.org/v1/Greeting"], "at most 100 characters"),
    (["greeter", KIND, "--plural=Greetings"], 'plural "Greetings"'),
], ids=str)
def test_invalid_arguments_are_refused(new, tmp_path, words, text):
    done = new(*words)
    assert done.returncode == 2 and text in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind, plural", [
    ("Greeting", "greetings"), ("Policy", "policies"), ("Gateway", "gateways"),
    ("Ingress", "ingresses"), ("Box", "boxes"), ("Switchboard", "switchboards"),
    ("Patch", "patches")])
def test_plural_is_derived_from_the_kind(new, tmp_path, kind, plural):
    assert new("one", f"example.org/v1/{kind}").returncode == 0
    [source] = (tmp_path / "one" / "src").glob(f"{kind.lower()}.c")
    assert f'.plural = "{plural}"' in source.read_text("ascii")


def test_existing_folder_is_not_touched(new, tmp_path):
    """Nothing in it is touched."""
    (tmp_path / "greeter").mkdir()
    (tmp_path / "greeter" / "mine").write_text("x", "utf-8")
    done = new("greeter", KIND)
    assert done.returncode == 1 and "greeter exists" in done.stderr
    assert [path.name for path in (tmp_path / "greeter").iterdir()] == ["mine"]
    assert new("greeter", KIND, "--folder=other").returncode == 0
    assert (tmp_path / "other" / "meson.build").exists()


def test_uncreatable_folder_is_an_error(new):
    done = new("greeter", KIND, "--folder=no/such/place")
    assert done.returncode == 1 and "cannot create no/such/place" in done.stderr
