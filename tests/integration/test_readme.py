# SPDX-License-Identifier: Apache-2.0
"""What the README shows of `steward validate` is what it prints."""

import os
import subprocess

import pytest

from support import readme


@pytest.mark.parametrize("command, output", readme.commands("steward"))
def test_shown_is_printed(steward_binary, tmp_path, command, output):
    for name, text in readme.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "steward").symlink_to(steward_binary)
    env = dict(os.environ, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    result = subprocess.run(command, shell=True, cwd=tmp_path, env=env, text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert result.stdout == output


def test_there_is_something_to_test():
    assert readme.commands("steward") and readme.commands("kubectl")
