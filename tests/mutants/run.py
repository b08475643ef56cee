#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Removes one guard after the other from steward, and reports which test notices.

Each edit is made in a copy of the tree; what the test needs is built there, and the test has to
fail.  Without any edit it has to pass: that is checked first.  An edit whose text is no longer in
its file ends this with the file and the text: find out what became of the guard, and correct the
list (tests/mutants/plan.py, lessons.py, databaseuser.py).  A test that does not notice is the finding: correct it.

Tests of tests/e2e run in the cluster that $STEWARD_CLUSTER_NAME names, or in a new one without a
node.  There, tests that need a node are skipped and reported as such."""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

# These imports need the path set above.
from mutants import databaseuser, lessons, plan  # noqa: E402
from support import cluster as k8s  # noqa: E402

MUTANTS = [*plan.MUTANTS, *lessons.MUTANTS, *databaseuser.MUTANTS]
TIMEOUT_S = 400


class Skipped(Exception):
    """The test cannot run here."""


def ended(command, folder, env):
    """(exit status, output).  All processes that it started are killed at the end.  A time-out is a
    failure."""
    with subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        try:
            said = process.communicate(timeout=TIMEOUT_S)[0]
        except subprocess.TimeoutExpired:
            end()
            said = process.communicate()[0] + "\nERROR: no end\nE   no end\n"
        finally:
            end()
    return process.returncode, said


class Copy:
    """A copy of the tree, and its build."""

    def __init__(self, folder, jobs):
        self.tree, self.build, self.jobs = folder / "tree", folder / "build", jobs
        self._fill()
        if not (self.build / "build.ninja").exists():
            self._run(["meson", "setup", self.build, self.tree])
        self.tests = {t["name"]: t for t in self._introduced("tests")}
        self.probes = [t["filename"][0] for t in self._introduced("targets")
                       if "/tests/integration/" in t["filename"][0]]

    def _fill(self):
        listed = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"],
                                check=True, capture_output=True, text=True).stdout.splitlines()
        for name in listed:
            source, target = TOP / name, self.tree / name
            if not source.is_file():
                target.unlink(missing_ok=True)
            elif not target.is_file() or source.read_bytes() != target.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    def _introduced(self, what):
        return json.loads((self.build / f"meson-info/intro-{what}.json").read_text("utf-8"))

    @staticmethod
    def _run(command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")

    @contextlib.contextmanager
    def without(self, edits):
        """Applies the edits for as long as the context lasts."""
        before = {name: (self.tree / name).read_text("utf-8") for name, _, _ in edits}
        after = dict(before)
        for name, old, new in edits:
            if old not in after[name]:
                raise SystemExit(f"{name} no longer has: {old}")
            after[name] = after[name].replace(old, new, 1)
        self._write(after)
        try:
            yield
        finally:
            self._write(before)

    def _write(self, texts):
        for name, text in texts.items():
            (self.tree / name).write_text(text, "utf-8")

    def failure(self, test):
        """The message of a test that fails; None: it passes."""
        return self._python(test) if ".py" in test else self._unit(*test.partition(":")[::2])

    def _ninja(self, *targets):
        self._run(["ninja", "-C", self.build, f"-j{self.jobs}",
                   *(os.path.relpath(target, self.build) for target in targets)])

    def _unit(self, name, function):
        [program] = self.tests[name]["cmd"]
        self._ninja(program)
        status, said = ended([program], self.build, self.tests[name]["env"])
        failed = set(re.findall(r"\[  FAILED  \] ([\w/]+)", said))
        if status < 0:  # killed by a signal: in the last test that began
            failed.update(re.findall(r"\[ RUN      \] ([\w/]+)", said)[-1:])
        if status == 0 or (function and function not in failed):
            return None
        words = re.findall(r"ERROR[ :\]-]*\n?(.+)", said)
        return words[0] if words else f"status {status}"

    def _python(self, test):
        self._ninja(self.build / "src/steward", *self.probes)
        status, said = ended(
            [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=short", test],
            self.tree / "tests", {"STEWARD_BUILD_DIR": str(self.build)})
        if status == 0:
            if " passed" not in said.splitlines()[-1]:
                raise Skipped(test)
            return None
        words = re.findall(r"^E +(.*)", said, re.MULTILINE)
        if status > 1 or not words:
            raise SystemExit(f"{test}:\n{said}")
        return words[0]


def chosen(words):
    """All, or those of these lessons or with such a text in their description."""
    return [m for m in MUTANTS if not words or any(
        word in m.lesson.split(", ") or len(word) > 3 and word in m.what for word in words)]


class Trial:
    """Runs mutants against tests; `missed`: no test failed, `skipped`: a test cannot run here."""

    def __init__(self, copy):
        self.copy, self.missed, self.skipped = copy, [], []
        self._sound = set()

    def _check_sound(self, test):
        if test not in self._sound:
            said = self.copy.failure(test)
            if said is not None:
                raise SystemExit(f"{test} fails as it is: {said}")
            self._sound.add(test)

    def _noticed(self, mutant):
        for test in mutant.tests:
            self._check_sound(test)
        with self.copy.without(mutant.edits):
            for test in mutant.tests:
                said = self.copy.failure(test)
                if said is not None:
                    return f"{test}: {said[:100]}"
        self.missed.append(mutant)
        return f"NOT NOTICED by {', '.join(mutant.tests)}"

    def take(self, mutant):
        """Tries one mutant, and prints the result."""
        began = time.monotonic()
        try:
            said = self._noticed(mutant)
        except Skipped as test:
            self.skipped.append(mutant)
            said = f"not tried: {test} is skipped here"
        print(f"{mutant.lesson:4} {mutant.what:50} {time.monotonic() - began:4.0f} s  {said}",
              flush=True)


@contextlib.contextmanager
def cluster_for(mutants):
    """Sets $STEWARD_CLUSTER_NAME when a test needs a cluster."""
    needed = any(test.startswith("e2e/") for m in mutants for test in m.tests)
    if not needed or os.environ.get("STEWARD_CLUSTER_NAME"):
        yield
        return
    name = os.environ["STEWARD_CLUSTER_NAME"] = f"mutants-{os.getpid()}"
    try:
        k8s.cluster_command(name, "up", "--audit")
        yield
    finally:
        k8s.cluster_command(name, "down")


@contextlib.contextmanager
def folder_of(given):
    """The folder of the copy."""
    if given:
        yield pathlib.Path(given).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="steward-mutants-") as name:
        yield pathlib.Path(name)


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, epilog=(
        "The exit status is 0 only if every one that was tried was noticed."),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", metavar="LESSON|WORDS",
                        help="only those of a lesson (E10, I6), or with these words; default: all")
    parser.add_argument("--folder", help="keeps the copy and its build there, for the next time")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="of the compiler")
    parser.add_argument("--list", action="store_true", help="only says which there are")
    return parser.parse_args()


def main():
    given = options()
    mutants = chosen(given.which)
    if given.list:
        for m in mutants:
            print(f"{m.lesson:4} {m.what:50} {', '.join(m.tests)}")
        return 0
    if not importlib.util.find_spec("pytest"):
        raise SystemExit(f"{sys.executable} has no pytest: install it with 'scripts/bootstrap test', "
                         "or begin the command with /usr/bin/python3")
    with folder_of(given.folder) as folder, cluster_for(mutants):
        trial = Trial(Copy(folder, given.jobs))
        for mutant in mutants:
            trial.take(mutant)
    print(f"{len(mutants)} mutants, {len(trial.missed)} not noticed, "
          f"{len(trial.skipped)} not tried")
    return 1 if trial.missed or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
