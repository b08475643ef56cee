# SPDX-License-Identifier: Apache-2.0
"""The parent of one worker: brings its cluster up, runs the worker, and ends all that it started.

It adopts orphans of the worker and of its cluster, so that all of them can be found and ended, and
so that their CPU time is counted.  It ends when the run ends, also when that is killed.

Usage: python3 -m runner.guard SPECIFICATION (a JSON file, see main)
"""

import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from . import files, process

CLUSTER_FAILED = 70  # exit status: the cluster did not come up
TOO_LONG = 71        # the worker was ended at its time limit
UNCLEAN = 72         # the tests passed, but processes or clusters remained, or a component did not run
INTERRUPTED = 130
TEARDOWN_SECONDS = 30
UP_SECONDS = 900       # the first may have to wait until a build has ended


class Interrupted(Exception):
    """The run ends."""


class TimeOver(Exception):
    """The worker has reached its time limit."""


def _interrupted(_number, _frame):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, _ignored)
    raise Interrupted


def _ignored(_number, _frame):
    """A handler, unlike SIG_IGN, is not inherited by a program that is started."""


def _time_over(_number, _frame):
    raise TimeOver


class Guard:
    """One worker and all that it starts."""

    def __init__(self, spec):
        self.spec = spec
        self.cluster = spec.get("cluster")
        self.users = files.Users(spec["users"]) if spec.get("users") else None
        self.clusters = os.environ.get("STEWARD_CLUSTERS", f"/tmp/steward-clusters-{os.geteuid()}")
        self.is_up = False  # its cluster, which then has all components until it is taken down
        self.log = open(spec["log"], "a", encoding="utf-8")

    def say(self, text):
        """A line in the worker's log."""
        self.log.write(f"{text}\n")
        self.log.flush()

    def start(self, command):
        """A child whose output goes to the log."""
        environment = dict(os.environ, **self.spec.get("env", {}))
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                stdout=self.log, stderr=subprocess.STDOUT, env=environment,
                                cwd=self.spec["folder"])

    def wait(self, child, seconds):
        """Its exit status; meanwhile adopted processes that have ended are reaped."""
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            while child.returncode is None:
                pid, status = os.waitpid(-1, 0)
                if pid == child.pid:
                    child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return child.returncode

    def attend(self, command, seconds, number=signal.SIGTERM):
        """The exit status of a command.  When its time is over or the run ends, the command gets a
        signal and time to clean up, and the exception is raised again."""
        child = self.start(command)
        try:
            return self.wait(child, seconds)
        except (TimeOver, Interrupted) as why:
            self.say(f"It is ended after {seconds} s." if isinstance(why, TimeOver)
                     else "The run is interrupted.")
            child.send_signal(number)
            try:
                self.wait(child, TEARDOWN_SECONDS)
            except TimeOver:
                child.kill()
                self.wait(child, 10)
            raise

    def up(self):
        """The worker's cluster."""
        try:
            return self.attend([self.spec["scripts"] + "/cluster", "up", "--name", self.cluster["name"],
                                *self.cluster["arguments"]], UP_SECONDS) == 0
        except TimeOver:
            return False

    def run(self):
        """Exit status of the worker, or one of those above."""
        queue = self.spec.get("queue")
        if self.spec.get("joins"):
            self.users.hold()
        if queue and not files.left(queue):
            return 0  # other workers have taken all files
        if self.spec.get("joins") and not self.users.wait_up(UP_SECONDS):
            return CLUSTER_FAILED
        if self.cluster and not self.up():
            return CLUSTER_FAILED
        self.is_up = True
        if self.cluster and self.users:
            self.users.tell("up")
        try:
            # SIGINT as from Ctrl-C: pytest's fixtures end what they started.
            return self.attend(self.spec["command"], self.spec["seconds"], signal.SIGINT)
        except TimeOver:
            return TOO_LONG

    def clusters_left(self):
        """Names of clusters with a process that descends from this one."""
        ours, found = process.descendants(os.getpid()), set()
        for path in glob.glob(f"{self.clusters}/*/run/*.pid"):
            try:
                pid = pathlib.Path(path).read_text("utf-8").split()[0]
            except (OSError, IndexError):
                continue
            if pid.isdigit() and int(pid) in ours and not self.is_given(path):
                found.add(path.split("/")[-3])
        if self.cluster and os.path.isdir(f"{self.clusters}/{self.cluster['name']}"):
            found.add(self.cluster["name"])
        return found

    def is_given(self, path):
        """Whether it belongs to the cluster that the caller of scripts/test has given to the tests."""
        given = self.spec.get("given_cluster")
        return bool(given) and path.startswith(f"{self.clusters}/{given}/")

    def given_pids(self):
        """Components of the given cluster that a test has restarted: they stay."""
        given, found = self.spec.get("given_cluster"), set()
        for path in glob.glob(f"{self.clusters}/{given}/run/*.pid") if given else ():
            found.add(int(pathlib.Path(path).read_text("utf-8").split()[0]))
        return found

    def down(self, name):
        """Ends a cluster; true when nothing of it is left."""
        try:
            self.attend([self.spec["scripts"] + "/cluster", "down", "--name", name], 120)
        except TimeOver:
            pass
        return not os.path.isdir(f"{self.clusters}/{name}")

    def all_run(self):
        """Whether every component of the worker's cluster runs: tests on a cluster without one of
        them fail for no reason of their own."""
        try:
            return self.attend([self.spec["scripts"] + "/cluster", "status", "--name",
                                self.cluster["name"]], 60) == 0
        except TimeOver:
            return False

    def others(self):
        """Processes that should not be there any more."""
        return process.descendants(os.getpid()) - self.given_pids()

    def clean(self):
        """Ends everything; true when only the worker's own cluster had to be ended."""
        clean = True
        if self.cluster and self.users:
            self.users.wait_alone(self.spec["seconds"])
            self.users.tell("down")
        if self.cluster and self.is_up and not self.all_run():
            self.say("A component of the cluster does not run.")
            clean = False
        for name in self.clusters_left():
            if not self.cluster or name != self.cluster["name"]:
                self.say(f"The tests left the cluster '{name}' behind.")
                clean = False
            clean = self.down(name) and clean
        # Processes that end by themselves right after their parent do not count.
        deadline = time.monotonic() + 5
        while self.others() and time.monotonic() < deadline:
            process.reap()
            time.sleep(0.05)
        for pid in self.others():
            self.say(f"The tests left process {pid} behind: {' '.join(process.command_line(pid))}")
            clean = False
        process.end(self.others)
        return clean


def main(path):
    """Runs the worker that the file specifies: command, folder, env, log, seconds, scripts, cluster
    (or null: name and arguments of `scripts/cluster up`), joins (the name of another worker's
    cluster, or ""), users (a file that the workers of a shared cluster have in common, or ""),
    given_cluster, queue (or null), parent (the run's pid)."""
    spec = json.loads(pathlib.Path(path).read_text("utf-8"))
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGALRM, _time_over)
    process.adopt_orphans()
    process.die_with_parent(spec["parent"])
    guard = Guard(spec)
    try:
        status = guard.run()
    except Interrupted:
        status, guard.is_up = INTERRUPTED, False
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    clean = guard.clean()
    return status if clean or status != 0 else UNCLEAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
