#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds includes that climb: a room may use only the rooms on floors below it, and itself.

Prints FILE:LINE and a sentence for each, and ends with status 1 if there is one.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]

# Room: its folder and its floor.  Two rooms on one floor do not know each other.
ROOMS = {
    "base": ("src/base", 0),
    "kube": ("src/kube", 1),
    "kinds": ("src/kinds", 1),
    "certs": ("certs", 2),
    "webhook": ("webhook", 3),
    "controller": ("controller", 3),
    "cmd": ("src/cmd", 4),
}
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def files():
    """(room, file) of every C file; main.c belongs to the command."""
    for room, (folder, _) in ROOMS.items():
        for path in sorted((TOP / folder).rglob("*.[ch]")):
            yield room, path
    yield "cmd", TOP / "src" / "main.c"


def complaint(room, header):
    """What is wrong when a file of this room includes the header; "" when nothing is."""
    if header.startswith(".."):
        return "includes go by room (\"base/error.h\"), never by \"..\""
    if "/" not in header:
        return ""
    target = header.split("/")[0]
    if target == room:
        return ""
    if target not in ROOMS:
        return f"there is no room '{target}'"
    if ROOMS[target][1] >= ROOMS[room][1]:
        return f"an include must not climb: {room} is not above {target} (docs/architecture.md)"
    return ""


def main():
    """Looks at every line of every file."""
    bad = 0
    for room, path in files():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            text = complaint(room, match[1]) if match else ""
            if text:
                print(f"{path.relative_to(TOP)}:{number}: #include \"{match[1]}\": {text}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
