#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a C file with the texts of files: embed.py FOLDER FILE..."""

import json
import pathlib
import sys


def literal(text):
    """A C string literal, one line of it for each line of the text."""
    return "\n".join("     " + json.dumps(line, ensure_ascii=True).replace("?", "\\?")
                     for line in text.splitlines(keepends=True))


def main():
    """Prints the table, in order of the names."""
    folder = pathlib.Path(sys.argv[1]).resolve()
    print('#include "cmd/new.h"\n\nconst struct stw_new_file stw_new_files[] = {')
    for path in sorted(pathlib.Path(name).resolve() for name in sys.argv[2:]):
        name = path.relative_to(folder).as_posix().removesuffix(".in")
        print(f'    {{"{name}",\n{literal(path.read_text("ascii"))}}},')
    print("    {0},\n};")


if __name__ == "__main__":
    main()
