# SPDX-License-Identifier: Apache-2.0
"""A steward that is killed by SIGKILL after a chosen write (lib/base/process/fault.h)."""

import contextlib
import os
import pathlib
import subprocess
import time

from . import lock, paths
from . import steward as stw
from .cluster import run


def binary():
    """$STEWARD_FAULTS_BINARY, or one built next to the build under test, which takes half a minute
    the first time.  Only one worker builds; others wait for it."""
    given = os.environ.get("STEWARD_FAULTS_BINARY")
    if given:
        return pathlib.Path(given)
    build = paths.steward_binary().parents[1]
    faults = build.with_name(build.name + "-faults")
    with lock.held(build / "faults.lock"):
        if not (faults / "build.ninja").exists():
            # Otherwise as the build under test, so that ccache has most of its files.
            run(["meson", "setup", faults, paths.TOP, "-Dfault_points=true", "-Dtests=disabled",
                 "-Dwerror=true"])
        run(["ninja", "-C", faults, "src/steward"], timeout=600)
    return faults / "src" / "steward"


class OfScene:
    """A stage that starts such a build, otherwise as the steward of a databaseuser.Environment."""

    def __init__(self, dbenv):
        self.dbenv, self.folder = dbenv, dbenv.folder

    def start(self, ready=True, env=None, args=()):
        """A steward; `env` has where it dies."""
        dbenv = self.dbenv
        one = stw.Steward(binary(), dbenv.cluster, dbenv.cluster.kubeconfig_steward, dbenv.folder,
                          [*dbenv.steward.args, *args], name="dying")
        one.env = {**dbenv.steward.env, **(env or {})}
        return one.start(ready=ready)


class Dying:
    """Starts steward on a stage again and again, each killed after its first write (or number `at`),
    until a state is reached; `deaths` names the writes.  One that has nothing to write for
    `patience` seconds is killed, too: "waiting"."""

    def __init__(self, stage, limit=120, patience=None, at=1):
        self.stage, self.limit, self.patience, self.at = stage, limit, patience, at
        self.log = stage.folder / "faults.log"
        self.deaths = []

    def until(self, done):
        """Starts one after the other, until done() is true and none has anything left to write."""
        while len(self.deaths) < self.limit:
            self.log.write_text("")
            one = self.stage.start(ready=False, env={"STEWARD_FAULT_AT": str(self.at),
                                                     "STEWARD_FAULT_LOG": str(self.log)})
            if self._reached(one, done):
                one.kill()
                return self
            waited, died_of = one.running(), self.log.read_text().split()
            one.kill()
            assert waited or died_of, f"steward ended by itself:\n{one.log_tail()}"
            self.deaths.append("waiting" if waited else died_of[-1])
        raise AssertionError(f"after {self.limit} deaths it is not done: {self.deaths[-20:]}")

    def _reached(self, one, done):
        """Whether done() is true before it dies or has waited for too long."""
        until = time.monotonic() + (self.patience or float("inf"))
        while one.running() and time.monotonic() < until:
            if done():
                return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(0.5)
        return False
