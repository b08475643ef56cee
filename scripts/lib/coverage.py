#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many lines of each folder have run, from the counters of a build with -Db_coverage=true.

Usage: coverage.py [--files | --lines FILE] BUILD

Reads the counters with gcov.  An object that never ran counts as well: none of its lines ran.  A
line of a header counts as run if it ran in any object that includes it."""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
OBJECTS_AT_ONCE = 32


def counts_of(notes, build):
    """[(file, line, count)] of some objects, which their .gcno files name."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", *notes], cwd=build, check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"coverage: gcov: {done.stderr}")
    found = []
    for text in done.stdout.splitlines():
        report = json.loads(text)
        for file in report["files"]:
            path = os.path.normpath(os.path.join(report["current_working_directory"], file["file"]))
            found += [(path, line["line_number"], line["count"]) for line in file["lines"]]
    return found


def read_counts(build):
    """{file: {line: count}} of the program's own sources, without the tests."""
    notes = sorted(p for p in build.rglob("*.gcno") if build / "tests" not in p.parents)
    if not notes:
        sys.exit(f"coverage: {build} is not built with -Db_coverage=true")
    lines = collections.defaultdict(dict)
    parts = [notes[i:i + OBJECTS_AT_ONCE] for i in range(0, len(notes), OBJECTS_AT_ONCE)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda part: counts_of(part, build), parts):
            for path, line, count in found:
                if path.startswith(f"{TOP}/") and not path.startswith(f"{build}/"):
                    name = os.path.relpath(path, TOP)
                    lines[name][line] = lines[name].get(line, 0) + count
    return lines


def print_row(name, counts):
    """One line of the table."""
    run = sum(count > 0 for count in counts)
    print(f"{name:44} {run:6} of {len(counts):6} {100 * run / max(1, len(counts)):6.1f} %")


def print_table(lines, files):
    """A line for each folder, for each file on request, and the sum."""
    folders = collections.defaultdict(list)
    for name in sorted(lines):
        folders[os.path.dirname(name)].append(name)
    for folder, names in sorted(folders.items()):
        print_row(f"{folder}/", [count for name in names for count in lines[name].values()])
        for name in names if files else ():
            print_row(f"  {os.path.basename(name)}", lines[name].values())
    print_row("all", [count for counts in lines.values() for count in counts.values()])


def print_source(counts, name):
    """The file, with the count of each line; "-" has no code."""
    for number, text in enumerate((TOP / name).read_text("utf-8").splitlines(), 1):
        count = counts.get(number)
        print(f"{'-' if count is None else count or '#####':>9} {number:5} {text}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--lines", metavar="FILE")
    parser.add_argument("build", type=pathlib.Path)
    given = parser.parse_args()
    lines = read_counts(given.build.resolve())
    if given.lines:
        if given.lines not in lines:
            sys.exit(f"coverage: {given.lines} is not compiled")
        print_source(lines[given.lines], given.lines)
    else:
        print_table(lines, given.files)


if __name__ == "__main__":
    main()
