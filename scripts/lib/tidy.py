#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on C files, several at a time, except on those that it found clean before.

Usage: tidy.py BUILD-DIR CACHE-DIR FILE...

A result depends on clang-tidy, .clang-tidy, the compiler's arguments, and the bytes of the file and
of all that it includes, which ninja has recorded in the last build.  For a clean result an empty
file, named by the hash of all these, is kept in the cache.  Findings are not cached, so that they
are shown again.  The exit status is 1 when there is a finding.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

KEEP_SECONDS = 30 * 24 * 3600


@functools.cache
def digest(path):
    """The hash of a file's bytes; "" when it is gone."""
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def includes(build):
    """{object: [file, ...]} as `ninja -t deps` prints them, relative to the build folder."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True,
                          text=True).stdout
    found, files = {}, []
    for line in text.splitlines():
        if line.startswith("    "):
            files.append(line.strip())
        elif line and not line.startswith("ninja:"):
            name, _, rest = line.partition(": #deps")
            files = found[name] = []
            if "(STALE)" in rest:
                found.pop(name)
    return found


def keys(build, files):
    """{file: hash or ""}; "" for a file whose includes are unknown."""
    tool = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True, text=True).stdout
    same = tool + digest(".clang-tidy")
    dependencies = includes(build)
    found = dict.fromkeys(files, "")
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text("utf-8")):
        file = os.path.relpath(os.path.join(build, entry["file"]))
        if file in found and entry["output"] in dependencies:
            parts = [same, entry["command"].removeprefix("ccache "),
                     *(f"{name} {digest(os.path.join(build, name))}"
                       for name in dependencies[entry["output"]])]
            found[file] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return found


def check(build, file):
    """(what clang-tidy printed, whether it is clean)"""
    done = subprocess.run(["clang-tidy", "-p", build, "--quiet", file], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = done.stdout or (done.stderr if done.returncode else "")
    return said, done.returncode == 0


def forget_old(cache):
    """Removes results not used for KEEP_SECONDS: their files have changed since."""
    for path in cache.iterdir():
        if time.time() - path.stat().st_mtime > KEEP_SECONDS:
            path.unlink(missing_ok=True)


def main(build, cache, *files):
    """Exit status."""
    cache = pathlib.Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    forget_old(cache)
    names = keys(build, files)
    new = [file for file in files if not names[file] or not (cache / names[file]).exists()]
    for file in set(files) - set(new):
        os.utime(cache / names[file])
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, (said, clean) in zip(new, pool.map(functools.partial(check, build), new)):
            print(said, end="")
            bad += not clean
            if clean and names[file]:
                (cache / names[file]).touch()
    print(f"{len(new)} of {len(files)} files checked, the others have not changed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
