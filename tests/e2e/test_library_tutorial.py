# SPDX-License-Identifier: Apache-2.0
"""docs/library/tutorial.md, word for word: its commands run in an empty folder."""

import os
import re
import shutil
import subprocess

import pytest

from support import paths
from support import steward as stw

PAGE = paths.TOP / "docs" / "library" / "tutorial.md"
BLOCK = re.compile(r"^```sh( node)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Reader:
    """Types what the page shows, in one shell."""

    def __init__(self, folder, cluster):
        self.folder, self.typed = folder, []
        self.env = {**os.environ, "STEWARD": str(paths.TOP), "PREFIX": str(folder / "prefix"),
                    "CCACHE_BASEDIR": str(folder)}
        programs = folder / "programs"
        programs.mkdir()
        (programs / "kubectl").symlink_to(shutil.which(cluster.env.get("KUBECTL", "kubectl")))
        self.env.update(KUBECONFIG=cluster.kubeconfig, STEWARD_CLUSTER_NAME=cluster.name,
                        PATH=f"{programs}:{os.environ['PATH']}")

    def type(self, text):
        """Runs a block after those before it, whose folder and variables last."""
        state = self.folder / "state"
        script = f"[ ! -e {state} ] || . {state}\n{text}\nexport -p >{state}; echo cd \"$PWD\" >>{state}\n"
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder,
                              env=self.env, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        self.typed.append(text)
        return done.stdout + done.stderr


def blocks():
    """[(needs a node, text)] of the page."""
    return [(bool(node), text) for node, text in BLOCK.findall(PAGE.read_text("utf-8"))]


def read(reader, found):
    """Types the blocks; returns all that was printed."""
    return "".join(reader.type(text) for _, text in found)


def shown():
    """What the page says is printed."""
    return re.findall(r"^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


NODE = os.geteuid() == 0


@(pytest.mark.node if NODE else lambda test: test)
def test_commands_of_the_tutorial_work(installed, tmp_path):
    """All of it; without a node up to part 4, which needs an API server alone."""
    stw.uninstall_webhooks(installed)
    printed = read(Reader(tmp_path, installed), [b for b in blocks() if NODE or not b[0]])
    for text in shown():
        assert text in printed
    assert "the ConfigMap is there, and the Greeting is Ready" in printed
    if NODE:
        assert "everybody" in printed
        assert installed.get("crd", "greetings.example.org") is None
