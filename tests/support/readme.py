# SPDX-License-Identifier: Apache-2.0
"""The examples of the README and of pages in docs/: files they show, and commands with what they
print."""

import re
import textwrap

from . import paths

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(language, page="README.md"):
    """The text of each fenced block of this language."""
    text = (paths.TOP / page).read_text("utf-8")
    return [textwrap.dedent(body) for _, found, body in _BLOCK.findall(text) if found == language]


def files():
    """{name: text} of blocks whose first line is "# NAME"."""
    found = {}
    for body in blocks("yaml"):
        first, _, rest = body.partition("\n")
        if first.startswith("# "):
            found[first[2:]] = rest
    return found


def commands(program, page="README.md"):
    """[(command line, expected output)] of the console blocks that call this program."""
    found = []
    for body in blocks("console", page):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.split()[0] == program:
                found.append((command, output))
    return found
