# SPDX-License-Identifier: Apache-2.0
"""README's table "Tested with", generated from the versions in scripts/lib/versions.sh.

`PYTHONPATH=tests python3 -m support.tested` prints it.
"""

from . import versions

NAMES = {"KUBERNETES": "Kubernetes", "ETCD": "etcd", "MYSQL": "MySQL", "MARIADB": "MariaDB",
         "POSTGRESQL": "PostgreSQL", "HELM": "helm", "KUSTOMIZE": "kustomize",
         "VERSITYGW": "versitygw"}


def line(server, version):
    """The release line of a version, "11.8" of "11.8.9": the fixes within one do not matter here, and
    Debian's archive has only the newest of each."""
    parts = version.removeprefix("v").split(".")
    return parts[0] if server == "POSTGRESQL" else ".".join(parts[:2])


def servers():
    """Those of NAMES that versions.sh has."""
    return [server for server in NAMES if server in versions.table()]


def listed(server):
    """The release lines that a full run starts, oldest first."""
    name = "KUBERNETES_CI" if server == "KUBERNETES" else server
    return [line(server, version) for version in versions.table()[name]]


def table():
    """The table in README."""
    rows = ["| server | oldest | newest | also |", "|---|---|---|---|"]
    for server in servers():
        lines = listed(server)
        rows.append(f"| {NAMES[server]} | {lines[0]} | {lines[-1]} | {', '.join(lines[1:-1])} |")
    return "\n".join(rows).replace("|  |", "| |") + "\n"


def sweep():
    """The versions of `scripts/test sweep`, as README writes them."""
    return ", ".join(versions.table()["KUBERNETES"])


if __name__ == "__main__":
    print(table(), sweep(), sep="\n")
