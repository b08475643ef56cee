# SPDX-License-Identifier: Apache-2.0
"""Starts the workers of all parts, several at a time, and waits for them."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from . import guard, process

# Workers that run at the same time: most of them wait for a server most of the time.
WORKERS_A_CORE = 4
END_SECONDS = 180  # for guards to end what they started
LOOK_SECONDS = 0.3  # between two looks at all workers, which take a millisecond of CPU time


class Running:
    """A worker that was started."""

    def __init__(self, part, worker):
        self.part = part
        self.worker = worker
        self.process = None
        self.begin = time.monotonic()
        self.end = None
        self.cpu = 0
        self.status = None


class Scheduler:
    """Runs parts; `show` is called several times a second, with this object."""

    def __init__(self, parts, options, run, show, limit=0):
        self.parts = parts
        self.options = options
        self.run_name = run
        self.show = show
        self.started = []
        self.waiting = [(part, worker) for part in parts for worker in part.workers]
        self.limit = limit or options.jobs or int(WORKERS_A_CORE * (os.cpu_count() or 1))
        self.interrupted = 0
        self.networks = {}  # part's name: file descriptor of its network namespace

    def run(self):
        """Runs until all have ended, or until a signal arrives."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupt)
        while (self.waiting or self.active()) and not self.interrupted:
            self.start_what_can()
            self.look()
            self.show(self)
            time.sleep(LOOK_SECONDS)
        if self.interrupted:
            self.end_all()

    def interrupt(self, number, _frame):
        """A signal from the caller: end everything."""
        self.interrupted = self.interrupted or number

    def active(self):
        """Workers that run now."""
        return [one for one in self.started if one.status is None]

    def of(self, part):
        """The workers of a part that were started."""
        return [one for one in self.started if one.part is part]

    def has_ended(self, part):
        """Whether all its workers have."""
        return not any(p is part for p, _ in self.waiting) and \
            not any(one.part is part for one in self.active())

    def can_start(self, part):
        """Whether the parts in `after` have ended."""
        return all(self.has_ended(p) for p in self.parts if p.name.partition("@")[0] in part.after)

    def has_place(self, part):
        """Whether fewer workers than the limit run, or this one needs no place."""
        return part.beside or sum(not one.part.beside for one in self.active()) < self.limit

    def start_what_can(self):
        """Starts waiting workers in their order, up to the limit."""
        for part, worker in list(self.waiting):
            if self.has_place(part) and self.can_start(part):
                self.waiting.remove((part, worker))
                self.start(part, worker)

    def start(self, part, worker):
        """Starts a guard, which starts the worker."""
        one = Running(part, worker)
        specification = {
            "command": [str(word) for word in worker.command], "folder": str(self.options.top),
            "env": {**worker.env, process.RUN: self.run_name}, "log": str(worker.log),
            "seconds": worker.seconds, "scripts": str(self.options.top / "scripts"),
            "cluster": worker.cluster, "given_cluster": worker.joins or self.options.given_cluster,
            "joins": worker.joins, "users": str(worker.users or ""),
            "queue": str(worker.queue or ""), "parent": os.getpid()}
        path = worker.log.with_suffix(".worker")
        path.write_text(json.dumps(specification, indent=1), "utf-8")
        # Several clusters start at the same time, so each start takes longer.  Their programs are Go's: with
        # one thread each they do not wake and search for others, while all CPUs are busy anyway.  With GOGC
        # an API server of 290 MB has 370 MB, and takes a fifth less of a CPU.
        env = {"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "240s", "GOMAXPROCS": "1", "GOGC": "400", **os.environ,
               "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1]),
               "PYTHONDONTWRITEBYTECODE": "1", process.RUN: self.run_name}
        network, inside = self.inside_network(part)
        with open(worker.log, "a", encoding="utf-8") as log:
            one.process = subprocess.Popen([*inside, sys.executable, "-m", "runner.guard", path], env=env,
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           pass_fds=network, start_new_session=True)
        self.started.append(one)

    def inside_network(self, part):
        """(descriptors, words before a command) of the part's network namespace, which ends with its last
        process or descriptor: bridges and rules of the packet filter cannot stay.  If there can be none, the
        command fails with the reason."""
        if not part.network:
            return [], []
        try:
            if part.name not in self.networks:
                self.networks[part.name] = process.new_network()
        except OSError as error:
            return [], ["sh", "-c", f'echo "$0"; exit {guard.CLUSTER_FAILED}', str(error)]
        network = self.networks[part.name]
        return [network], ["nsenter", f"--net=/proc/self/fd/{network}", "--"]

    def look(self):
        """Reads new reports, and the exit status of workers that have ended."""
        for one in self.active():
            one.worker.report.look()
            pid, status, usage = os.wait4(one.process.pid, os.WNOHANG)
            if pid:
                one.worker.report.look()
                one.end = time.monotonic()
                one.cpu = usage.ru_utime + usage.ru_stime
                one.status = one.process.returncode = os.waitstatus_to_exitcode(status)

    def end_all(self):
        """Ends the guards, which end what they started."""
        self.waiting = []
        process.send([one.process.pid for one in self.active()], signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while self.active() and time.monotonic() < deadline:
            self.look()
            self.show(self)
            time.sleep(LOOK_SECONDS)
        process.send([one.process.pid for one in self.active()], signal.SIGKILL)


REASONS = {guard.CLUSTER_FAILED: "its cluster did not come up",
           guard.TOO_LONG: "it was ended because its time was over",
           guard.UNCLEAN: "its tests left processes or clusters behind, or ended a component of their cluster"}


def trouble(one):
    """Why a worker failed apart from its tests; "" when it did not."""
    report = one.worker.report
    if one.status == guard.INTERRUPTED:
        return ""
    if one.status in REASONS:
        return REASONS[one.status]
    if report.running:
        return f"it ended with status {one.status} in {report.running}"
    if one.status not in (0, 5) and not any(
            test.count("failed") or test.count("flaky") for test in report.tests):
        return f"it ended with status {one.status}"
    return ""


def unfinished(scheduler, part):
    """How many tests of a part neither ran nor were reported: a failure of the part."""
    if part.error or not scheduler.of(part) or scheduler.interrupted:
        return 0
    return max(0, part.total - sum(len(one.worker.report.tests) for one in scheduler.of(part)))
