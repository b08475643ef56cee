# SPDX-License-Identifier: Apache-2.0
"""Two stewards in one run: that of a commit, built once, and that of the work tree.

Seconds differ from machine to machine and from hour to hour; the ratio of two programs that are
measured in turns differs much less.
"""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from bench.fleet import say
from support import paths, wait

OPTIONS = ["--buildtype=release", "-Dtests=disabled"]


def _run(*command, **kwargs):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **kwargs)


def released(commit=None):
    """A release build of a commit, kept in the cache; of the work tree for None."""
    if commit is None:
        folder = paths.TOP / "build-release"
        if not (folder / "build.ninja").exists():
            _run("meson", "setup", folder, paths.TOP, *OPTIONS)
        _run("ninja", "-C", folder, "src/steward")
        return folder / "src" / "steward"
    full = subprocess.run(["git", "-C", paths.TOP, "rev-parse", "--verify", f"{commit}^{{commit}}"],
                          check=True, capture_output=True, text=True).stdout.strip()
    kept = paths.cache_root() / "bench" / f"steward-{full[:12]}"
    if kept.exists():
        return kept
    say(f"Building steward {full[:12]} (once)")
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        source = pathlib.Path(folder, "source")
        source.mkdir()
        archive = subprocess.run(["git", "-C", paths.TOP, "archive", full], check=True,
                                 capture_output=True).stdout
        _run("tar", "-x", "-C", source, input=archive)
        _run("meson", "setup", source / "build", source, *OPTIONS, f"-Dcommit={full[:12]}")
        _run("ninja", "-C", source / "build", "src/steward")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "build" / "src" / "steward", kept)
    return kept


def binaries(reference):
    """{name: program}: the reference first, when there is one."""
    given = os.environ.get("STEWARD_BINARY")
    now = pathlib.Path(given) if given else released()
    return {**({"reference": released(reference)} if reference else {}), "now": now}


def image_env(commit=None):
    """The variables for the allocator that the image of a commit sets; of the work tree for None."""
    text = (paths.TOP / "Dockerfile").read_text("utf-8") if commit is None else subprocess.run(
        ["git", "-C", paths.TOP, "show", f"{commit}:Dockerfile"],
        check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r"^ENV (GLIBC_TUNABLES)=(\S+)$", text, re.MULTILINE))


def environments(reference):
    """{name: variables}, for the programs of binaries()."""
    return {"now": image_env(), **({"reference": image_env(reference)} if reference else {})}


def usage(pid):
    """CPU seconds, and context switches of all threads so far."""
    cpu = voluntary = involuntary = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        cpu += int((task / "schedstat").read_text("ascii").split()[0])
        for line in (task / "status").read_text("ascii").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                voluntary += int(line.split()[1])
            elif line.startswith("nonvoluntary_ctxt_switches"):
                involuntary += int(line.split()[1])
    return {"cpu_s": cpu / 1e9, "wakeups": voluntary, "preempted": involuntary}


def settled_usage(pid, seconds=120):
    """The same, once the process uses next to no CPU for two seconds."""
    seen = [(time.monotonic(), usage(pid))]

    def look():
        now = time.monotonic(), usage(pid)
        while len(seen) > 1 and now[0] - seen[1][0] >= 2:
            del seen[0]  # the first one left is two seconds old
        seen.append(now)
        return now[0] - seen[0][0] >= 2 and now[1]["cpu_s"] - seen[0][1]["cpu_s"] < 0.01
    wait.until("the process to have nothing to do", look, seconds, every=0.5)
    return seen[-1][1]


def less(after, before):
    """The difference of each figure."""
    return {key: after[key] - before[key] for key in after}


def medians(rounds):
    """Of each figure."""
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def ratios(now, reference):
    """`now` divided by `reference`, for each figure."""
    return {key: round(now[key] / reference[key], 3) for key in now
            if isinstance(now[key], (int, float)) and reference.get(key)}


def in_turns(names, rounds):
    """(round, name): the order alternates from round to round."""
    for n in range(rounds):
        for name in names if n % 2 == 0 else reversed(names):
            yield n, name
