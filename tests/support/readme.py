# SPDX-License-Identifier: Apache-2.0
"""The README's examples: files it shows, and commands with what they print."""

import re

from . import paths

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    """The text of each fenced block of this language."""
    text = (paths.TOP / "README.md").read_text("utf-8")
    return [body for found, body in _BLOCK.findall(text) if found == language]


def files():
    """{name: text} of blocks whose first line is "# NAME"."""
    found = {}
    for body in blocks("yaml"):
        first, _, rest = body.partition("\n")
        if first.startswith("# "):
            found[first[2:]] = rest
    return found


def commands(program):
    """[(command line, expected output)] of the console blocks that call this program."""
    found = []
    for body in blocks("console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.split()[0] == program:
                found.append((command, output))
    return found
