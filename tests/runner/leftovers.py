# SPDX-License-Identifier: Apache-2.0
"""Ends what remains of a run that was killed together with its guards."""

import glob
import os
import pathlib
import re
import signal
import subprocess
import time

from . import process

WAIT_SECONDS = 120


def _of_dead_runs():
    """{pid: run} of processes whose run has ended."""
    found = {}
    for pid in process.pids():
        run = process.run_of(pid)
        if run and not process.alive(run) and pid != os.getpid():
            found[pid] = run
    return found


def _guards():
    return [pid for pid in _of_dead_runs() if "runner.guard" in process.command_line(pid)]


def _clusters_of(folder, dead):
    """Names of clusters with a process of a dead run, and of those made by a run that is gone."""
    found = set()
    for path in glob.glob(f"{folder}/*/run/*.pid"):
        words = pathlib.Path(path).read_text("utf-8").split()
        if words and words[0].isdigit() and int(words[0]) in dead:
            found.add(path.split("/")[-3])
    for path in glob.glob(f"{folder}/test-*"):
        name = re.fullmatch(r"test-(\d+)-\d+", os.path.basename(path))
        if name and "runner" not in process.command_line(int(name.group(1))):
            found.add(name.group(0))
    return found


def clean(scripts, say):
    """Called at the start of a run: ends what earlier runs left, and keeps what others use."""
    if _guards():
        say("Waiting until an interrupted run has ended its clusters ...")
    deadline = time.monotonic() + WAIT_SECONDS
    while _guards() and time.monotonic() < deadline:
        time.sleep(0.1)
    left = _of_dead_runs()
    folder = os.environ.get("STEWARD_CLUSTERS", f"/tmp/steward-clusters-{os.geteuid()}")
    clusters = _clusters_of(folder, left)
    if left:
        say(f"Ending {len(left)} processes that an interrupted run left")
        process.send(left, signal.SIGKILL)
    for name in sorted(clusters):
        say(f"Ending the cluster '{name}' of an interrupted run")
        subprocess.run([scripts / "cluster", "down", "--name", name], check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=300)
