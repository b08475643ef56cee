# SPDX-License-Identifier: Apache-2.0
"""scripts/release: what it refuses before it builds anything."""

import subprocess

import pytest

from support import paths


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone with the scripts of this work tree, so that its changes do not matter."""
    folder = tmp_path_factory.mktemp("clone") / "steward"
    subprocess.run(["git", "clone", "--quiet", "--shared", paths.TOP, folder], check=True)
    subprocess.run(["cp", "-r", paths.SCRIPTS, folder], check=True)
    subprocess.run(["git", "-C", folder, "add", "--all"], check=True)
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit",
                    "--quiet", "--allow-empty", "--message=now"], check=True)
    return folder


def refused(clone, *words):
    """(exit status, errors)"""
    done = subprocess.run([clone / "scripts" / "release", *map(str, words)], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("words, problem", [
    ((), "which VERSION?"),
    (("0.1",), "VERSION is like 0.1.0, not '0.1'"),
    (("0.1.0", "0.2.0"), "unexpected '0.2.0'"),
    (("0.1.0", "--keys", "x"), "unknown option '--keys'"),
    (("0.1.0", "--key"), "--key needs a value"),
    (("0.1.0", "--image", "example.com/steward:1"), "--image is a repository without a tag"),
    (("0.1.0", "--image", "a|b"), "--image is a repository without a tag"),
])
def test_wrong_arguments_are_an_error(clone, words, problem):
    status, errors = refused(clone, *words)
    assert status == 2
    assert problem in errors


def test_missing_commit_is_refused(clone):
    status, errors = refused(clone, "0.1.0", "--commit", "nowhere")
    assert status == 1
    assert "there is no commit 'nowhere'" in errors


def test_uncommitted_changes_are_refused(clone):
    readme = clone / "README.md"
    text = readme.read_text("utf-8")
    readme.write_text(text + "more", "utf-8")
    try:
        status, errors = refused(clone, "0.1.0")
    finally:
        readme.write_text(text, "utf-8")
    assert status == 1
    assert "the work tree has changes that are in no commit" in errors
    assert "--commit HEAD" in errors


def test_invalid_key_file_is_refused(clone, tmp_path):
    """Nothing of it is printed."""
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n", "ascii")
    status, errors = refused(clone, "0.1.0", "--key", key)
    assert status == 1
    assert "is no private key that openssl can read" in errors
    assert "openssl genpkey" in errors
    assert "hush" not in errors


def test_help_names_every_option(clone):
    done = subprocess.run([clone / "scripts" / "release", "--help"], text=True, capture_output=True,
                          check=True)
    for word in ("--image", "--key", "--output", "--commit", "scripts/bootstrap release", "SHA256SUMS"):
        assert word in done.stdout
