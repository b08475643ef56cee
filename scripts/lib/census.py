#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints counts that show how easy the C code is to read: its size, names that do not say what they
do, files that include or use each other in circles, and phrases of lib/phrases.py.

Usage: census.py [--build-dir DIR], whose static libraries say which files use each other."""

import argparse
import collections
import pathlib
import re

import layers
import phrases

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ("lib", "src", "controller", "webhook", "certs", "operator", "kinds")
STRINGS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
FUNCTION = re.compile(r"^(static )?(?:inline )?(?:[A-Za-z_]\w*[ *]+)+(\w+) ?\(([^;{}]*)\)\n\{(.*?)^\}",
                      re.MULTILINE | re.DOTALL)
PROTOTYPE = re.compile(r"^(?!static|extern|typedef|struct \w+;)[A-Za-z_][\w ]*[ *](\w+)\([^;{]*;", re.MULTILINE)
TAG = re.compile(r"^(?:struct|enum|union) (\w+)\n?\s*\{", re.MULTILINE)
AGREED = {"main", "status_unchecked"}  # entry points that several kinds have
AGREED_TAGS = {"stw_conn"}  # a connection, which each engine of lib/sql defines for itself
# Callbacks whose parameters libmicrohttpd prescribes.
PRESCRIBED = {"handle_metrics_request", "handle_probe_request", "retrieve_certificate", "stw_request_handle"}
PARAMETERS_MAX = 7


def sources():
    """{file: text} of the program's C files."""
    return {str(path.relative_to(TOP)): path.read_text("utf-8")
            for folder in PROGRAM for path in sorted((TOP / folder).rglob("*.[ch]"))}


def functions(texts):
    """(file, name, is static, parameters) of each function."""
    for name, text in texts.items():
        plain = STRINGS.sub(lambda m: m[0] if m[0].startswith(("\"", "'")) else " ", text)
        for match in FUNCTION.finditer(plain):
            parameters = 0 if match[3].strip() in ("void", "") else match[3].count(",") + 1
            yield name, match[2], bool(match[1]), parameters


def declared(texts):
    """(functions that it declares, header) of each header that libsteward does not install."""
    public = (TOP / "include" / "headers.txt").read_text("utf-8").split()
    for name, text in texts.items():
        if name.endswith(".h") and name not in public:
            plain = re.sub(r"^#.*(?:\\\n.*)*", "", STRINGS.sub(" ", text), flags=re.MULTILINE)
            yield len(PROTOTYPE.findall(plain)), name


def main():
    """All counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build-dir", type=pathlib.Path, default=TOP / "build")
    texts = sources()
    table = layers.Table(TOP / "scripts" / "lib" / "layers.txt")
    circles = layers.find_circles(table)
    calls = layers.Symbols(table, parser.parse_args().build_dir).circles()
    tests = sum(len(p.read_text("utf-8").splitlines()) for p in (TOP / "tests").rglob("*.[ch]"))
    python = sum(len(p.read_text("utf-8").splitlines()) for p in (TOP / "tests").rglob("*.py"))
    found = list(functions(texts))
    static = [f for f in found if f[2]]
    one_word = [f for f in static if "_" not in f[1]]
    where = collections.defaultdict(set)
    for name, function, *_ in static:
        where[function].add(name)
    often = {f: len(w) for f, w in where.items() if len(w) >= 5 and f not in AGREED}
    tags = collections.Counter(tag for t in texts.values() for tag in set(TAG.findall(t)))
    largest = max(declared(texts))
    rows = [
        ("lines of C, without tests", sum(len(t.splitlines()) for t in texts.values())),
        ("lines of C in tests", tests),
        ("lines of Python in tests", python),
        ("files of C, without tests", len(texts)),
        ("functions", len(found)),
        (f"functions with more than {PARAMETERS_MAX} parameters",
         sum(f[3] > PARAMETERS_MAX and f[1] not in PRESCRIBED for f in found)),
        ("static functions", len(static)),
        ("... with a name of one word, in percent", round(100 * len(one_word) / max(1, len(static)), 1)),
        ("names of static functions in five or more files", len(often)),
        ("functions declared in {1}, the largest private header".format(*largest), largest[0]),
        ("struct and enum tags that are defined twice or more",
         sum(n > 1 and t not in AGREED_TAGS for t, n in tags.items())),
        ("circles of headers that include each other", len(layers.find_header_circles(table))),
        ("circles of files through a source, all listed in layers.txt", len(circles)),
        ("circles of files that use each other, all listed in layers.txt", len(calls)),
        ("... files in circles", sum(map(len, calls))),
        ("includes that break a rule of layers.txt", len(list(layers.check_includes(table)))),
        ("phrases with a plainer word", len(list(phrases.findings()))),
    ]
    for what, count in rows:
        print(f"{count:8}  {what}")
    for group in circles:
        print(f"circle of includes: {' '.join(group)}")
    for group in calls:
        print(f"circle of {len(group)} files: {' '.join(group)}")
    for name, count in sorted(often.items(), key=lambda item: -item[1]):
        print(f"in {count} files: {name}()")


if __name__ == "__main__":
    main()
