#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds names of files that do not exist, in comments of C, Python and shell, in docstrings and in pages.

A name with a folder ("controller/manager/run.c") is the end of a path of the repository; one without ("run.c") is
the name of any file, and in a comment of the program's C one of the same folder.  Prints FILE:LINE and the
name, and ends with status 1 if there is one."""

import re
import sys

import phrases

NAME = re.compile(r"(?<![\w./<*${-])((?:[\w-]+/)*[\w-]+\.(?:[ch]|py|sh))\b(?![\w(-])")
# Made from the headers, with their installed names; about the files of another repository.
OTHER_PAGES = {"docs/library/reference.md", "docs/library/tutorial.md"}
# Files of other projects, generated ones and examples: (file, name).
ALLOWED = {
    ("docs/schema.md", "schema.h"),
    ("docs/schema.md", "schema.c"),
    ("docs/schema.md", "schema_kind.c"),
    ("docs/library/testing.md", "more.c"),
    ("lib/sql/mysql/privileges.c", "sql/privilege.h"),
    ("src/cmd/meson.build", "cmd/build.h"),
    ("tests/runner/__main__.py", "tests/e2e/test_x.py"),
    ("lib/base/process/reach.h", "sys/socket.h"),
    ("scripts/lib/go-build.sh", "helm.sh"),
    ("tests/support/chart.py", "helm.sh"),
    ("tests/hostile/main.c", "sanitizer/common_interface_defs.h"),
    ("tests/support/dblogin.py", "mysql.h"),
    ("tests/unit/support/world_set.h", "cmocka.h"),
}


def endings(path):
    """"lib/base/telemetry/log.c", "base/telemetry/log.c" and "log.c"."""
    parts = path.split("/")
    return {"/".join(parts[i:]) for i in range(len(parts))}


def parts(path, text):
    """(line, text) of what may name files; a page is looked at as a whole."""
    if path.suffix in (".c", ".h"):
        return phrases.c_comments(text)
    if path.suffix == ".md":
        return [(1, text)]
    read = phrases.reader(path, text)
    return read(text) if read else []


def is_there(name, path, known):
    """Whether a file has the name that a file of this path mentions."""
    own = path.suffix in (".c", ".h") and path.relative_to(phrases.TOP).parts[0] in phrases.PROGRAM
    return (path.parent / name).exists() if own and "/" not in name else name in known


def findings(files):
    """(file, line, name)."""
    names = {str(path.relative_to(phrases.TOP)): path for path in files}
    known = set().union(*map(endings, names))
    for name, path in names.items():
        if name in OTHER_PAGES:
            continue
        for start, text in parts(path, path.read_text("utf-8", errors="replace")):
            for match in NAME.finditer(text):
                if not is_there(match[1], path, known) and (name, match[1]) not in ALLOWED:
                    yield name, start + text.count("\n", 0, match.start()), match[1]


def main():
    """All findings."""
    found = list(findings([*phrases.files()]))
    for name, line, missing in found:
        print(f"{name}:{line}: {missing}: there is no such file")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
