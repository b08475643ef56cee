# SPDX-License-Identifier: Apache-2.0
"""scripts/render: what it prints, and to whom."""

import signal
import subprocess

import pytest
import yaml
from support import gotools, paths

RENDER = paths.SCRIPTS / "render"
FOLDER = paths.TOP / "config" / "default"
pytestmark = pytest.mark.skipif(bool(gotools.missing("kustomize")), reason="kustomize is not built")


def install(comment):
    """Renders config/default with this comment."""
    return subprocess.run([RENDER, "install", FOLDER, comment], text=True, capture_output=True, check=False,
                          timeout=120)


@pytest.mark.parametrize("comment, head", [
    ("of steward 0.1.0", ["# of steward 0.1.0", "---"]),
    ("one\nkind: Namespace", ["# one", "# kind: Namespace", "---"]),
    ("one\r\ntwo\u2028three\u0085four", ["# one", "# two", "# three", "# four", "---"]),
    ("one\n\ntwo\n", ["# one", "#", "# two", "---"])])
def test_comment_lines_are_yaml_comments(comment, head):
    done = install(comment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:len(head)] == head
    assert all("kind" in o for o in yaml.safe_load_all(done.stdout))


def test_comment_with_control_character_is_refused():
    done = install("one \x07")
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.splitlines() == ["render: COMMENT has a control character"]


def test_closed_pipe_causes_no_traceback():
    with subprocess.Popen([RENDER, "install", FOLDER], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as one:
        assert one.stdout.readline().startswith("# ")
        one.stdout.close()
        assert one.stderr.read() == ""
        assert one.wait(60) in (128 + signal.SIGPIPE, -signal.SIGPIPE)
