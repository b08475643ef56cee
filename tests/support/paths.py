# SPDX-License-Identifier: Apache-2.0
"""Paths of the checkout and of the program under test."""

import functools
import os
import pathlib
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = TOP / "scripts"
SAMPLES = TOP / "config" / "samples"


def build():
    """$STEWARD_BUILD_DIR, else build/."""
    return TOP / os.environ.get("STEWARD_BUILD_DIR", "build")


def steward_binary():
    """$STEWARD_BINARY, else the one in build()."""
    path = pathlib.Path(os.environ.get("STEWARD_BINARY", build() / "src" / "steward"))
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"{path} is not there: run 'scripts/test' or 'ninja -C build' first")
    return path


@functools.cache
def sanitizer():
    """Whether the program is built with a sanitizer, and so needs more than a release."""
    linked = subprocess.run(["ldd", steward_binary()], capture_output=True, text=True,
                            check=True).stdout
    return re.search(r"lib[atu]+san", linked) is not None


def cache_root():
    """The folder of scripts/lib/common.sh's function of this name."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "steward"
