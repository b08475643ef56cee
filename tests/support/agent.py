# SPDX-License-Identifier: Apache-2.0
"""steward's image on the node, for the pods that work on volumes."""

import os
import pathlib
import re
import shutil

from . import cluster as k8s
from . import paths, wait


def load(cluster, binary, folder):
    """Packs the program under test and loads it on the node; returns the image's name."""
    name = f"steward-agent:t{os.getpid()}"
    program = pathlib.Path(folder) / "steward"
    shutil.copy(binary, program)
    tar = pathlib.Path(folder) / "agent.tar"
    k8s.run([paths.SCRIPTS / "cluster", "pack", "--user=65532", name, tar, program])
    k8s.cluster_command(cluster.name, "image", tar)
    return name


def gateway(cluster, namespace):
    """The machine's address as the pods of a namespace see it."""
    pod = wait.until("a pod with an address", lambda: next(
        (p["status"]["podIP"] for p in cluster.list("pods", namespace)
         if p["status"].get("podIP")), None))
    route = k8s.run(["ip", "-4", "route", "get", pod]).stdout
    return re.search(r" src (\S+)", route)[1]
