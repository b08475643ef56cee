# SPDX-License-Identifier: Apache-2.0
"""The versions of other servers, from scripts/lib/versions.sh: {"ETCD": ["3.4.23", ...], ...}."""

import functools
import re

from . import paths


@functools.cache
def table():
    """{NAME: [version, ...]}, oldest first, for each NAME_VERSIONS of the file."""
    text = (paths.SCRIPTS / "lib" / "versions.sh").read_text("utf-8")
    return {name: versions.split()
            for name, versions in re.findall(r"^readonly (\w+)_VERSIONS='([^']*)'$", text, re.M)}


def oldest(name):
    """The oldest version of a server that the suite has."""
    return table()[name][0]


def newest(name):
    """The newest one."""
    return table()[name][-1]
