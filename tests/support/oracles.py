# SPDX-License-Identifier: Apache-2.0
"""Oracles: programs around other projects' Go modules, which tests compare with steward.  Their sources
are in tests/oracles, and scripts/lib/oracles.sh puts them into the cache."""

import hashlib
import os
import re

from . import paths

FOLDER = paths.TOP / "tests" / "oracles"


def versions(name):
    """The versions in which this oracle is built, oldest first; none if it is built once."""
    found = [path.parent.name for path in (FOLDER / name).glob("*/go.mod")]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def program(name, version=None):
    """The path of the program.  It is an error if it is not built."""
    folder = FOLDER / name / version if version else FOLDER / name
    sources = [FOLDER / name / "main.go", folder / "go.mod", folder / "go.sum"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    path = paths.cache_root() / "oracles" / "-".join([name, *([version] if version else []), digest])
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"{path} is not there: run 'scripts/bootstrap oracles' first")
    return path


def module_version(name, module, version=None):
    """The version of a module that the program is built with, "0.37.2"."""
    folder = FOLDER / name / version if version else FOLDER / name
    return re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", (folder / "go.mod").read_text("utf-8"),
                     re.M)[1]
