# SPDX-License-Identifier: Apache-2.0
"""Runs parts of the suite; called by scripts/test when the program is built."""

import argparse
import contextlib
import fcntl
import os
import pathlib
import shutil
import sys

from support import compared, paths, versions

from . import leftovers, plan, process, results, scheduler, screen

RETRIED_AT_MOST = 20

# In starting order.  Parts whose workers take longest come first, and short ones fill the places of the last.
# integration takes the CPU time that e2e and stages leave at first: their first files wait for minutes.
QUICK = ("node@newest", "integration", "e2e@newest", "lint", "unit")
ALL = ("e2e@newest", "integration", "stages@newest", "node@newest", "node@oldest", "integration13",
       "e2e@oldest", "hostile", "unit", "unit13", "demo", "lint", "contract@ci", "rights", "tested")
SUITES = {
    "quick": QUICK,
    "all": ALL,
    "sweep": ("contract@all",),
    "lint": ("lint",),
    "unit": ("unit",),
    "integration": ("integration",),
    "contract": ("contract@ci",),
    "demo": ("demo",),
    "debian13": ("integration13", "unit13"),
    "hostile": ("hostile",),
    "node": ("stages@newest", "node@newest", "node@oldest"),
    "e2e": ("stages@newest", "node@newest", "e2e@newest", "node@oldest", "demo", "e2e@oldest", "rights"),
}


def arguments():
    """The options from scripts/test, which has checked most of them."""
    parser = argparse.ArgumentParser(prog="scripts/test", add_help=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("-k", dest="filter", default="")
    parser.add_argument("--build", required=True)
    parser.add_argument("--next", default="")
    parser.add_argument("--hostile", default="")
    parser.add_argument("--python", required=True)
    parser.add_argument("--sanitize", default="")
    parser.add_argument("--kubernetes", default="")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--no-node", dest="node", action="store_false")
    parser.add_argument("--retry", action="store_true")
    options = parser.parse_args()
    options.python = [options.python]
    options.top = paths.TOP
    options.tests = [word for word in options.words if word.startswith("tests/")]
    names = [word for word in options.words if not word.startswith("tests/")]
    options.assets = bool(os.environ.get("KUBEBUILDER_ASSETS")
                          or os.environ.get("TEST_ASSET_KUBE_APISERVER"))
    existing = os.environ.get("USE_EXISTING_CLUSTER") == "true"
    options.given_cluster = os.environ.get("STEWARD_CLUSTER_NAME") or ("existing" if existing else "")
    if options.given_cluster:
        options.jobs = 1  # parts that use it would disturb each other
    options.node = options.node and os.geteuid() == 0
    options.quick = not options.words and not options.filter
    options.parts = parts_of(names or suites_of(options.tests)
                             or (["all"] if options.filter else ["quick"]), options)
    options.all_versions = "all" in names
    options.whole = "all" in names and options.node and not options.filter and not options.kubernetes \
        and not options.given_cluster and not options.assets
    return options


def suites_of(tests):
    """The suites of these tests: tests/e2e/test_x.py::test_y belongs to e2e."""
    found = []
    for test in tests:
        folder = test.split("/")[1]
        if folder not in SUITES and folder not in ("rights", "tested"):
            raise SystemExit(f"scripts/test: '{test}' is not a test of pytest")
        found.append(folder)
    return found


def parts_of(suites, options):
    """The names of parts, without duplicates, with versions filled in."""
    found = []
    for suite in suites:
        for part in SUITES.get(suite, (suite,)):
            name, at, version = part.partition("@")
            if not at:
                found.append(part)
            elif name == "contract":
                found += [f"contract@{v}" for v in plan.versions_of(options.kubernetes or version)]
            elif one_server(options):
                found += [part] if version == "newest" else []
            elif not options.kubernetes or \
                    plan.versions_of(options.kubernetes) == plan.versions_of(version):
                found.append(part)
            elif version == "newest" and options.kubernetes not in ("oldest", versions.oldest("KUBERNETES")):
                found.append(f"{name}@{options.kubernetes}")
    return list(dict.fromkeys(found))


def one_server(options):
    """Whether the environment determines the Kubernetes version."""
    return options.assets or bool(options.given_cluster)


def say(text):
    """Prints a message for people."""
    print(text, file=sys.stderr, flush=True)


def main():
    """Exit status of scripts/test."""
    options = arguments()
    run = process.identity(os.getpid())
    leftovers.clean(paths.SCRIPTS, say)
    logs = pathlib.Path(os.environ.get("STEWARD_TEST_LOGS") or f"{options.build}/test-logs")
    with alone(logs):
        return run_parts(options, run, logs)


def run_parts(options, run, logs):
    """Runs what the options ask for; the exit status."""
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    options.env = {"STEWARD_TEST_RIGHTS": str(logs / "seen-rights"),
                   "STEWARD_TEST_STARTED": str(logs / "started"),
                   compared.FILE: str(logs / "compared")}
    say(f"Logs are kept in {logs}")
    planned = plan.Plan(options, logs, run)
    parts = planned.parts()
    if not parts:
        say("No test has such a name.")
        print("0 passed, 0 failed, 0 skipped")
        return 0
    show = screen.Terminal() if sys.stderr.isatty() else screen.Log()
    runs = scheduler.Scheduler(parts, options, run, show)
    runs.run()
    show.draw(runs)
    plan.keep_durations(parts)
    if options.retry and not runs.interrupted:
        retry(planned, runs, options, run)
    return report(runs, logs)


@contextlib.contextmanager
def alone(logs):
    """Keeps the folder of logs for this run; ends the program when another one uses it."""
    logs.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{logs}.lock", "a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            sys.exit(f"Process {lock.read()} runs tests with the logs in {logs}: wait for it, or give "
                     "another --build-dir")
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def retry(planned, runs, options, run):
    """Runs failed tests of pytest again, alone: those that pass now are flaky.  If many failed, the
    machine is not the cause, and nothing runs again."""
    failed = {}
    for part in runs.parts:
        if any(isinstance(w.report, results.PytestReport) for w in part.workers):
            tests = [t for one in runs.of(part) for t in one.worker.report.tests
                     if t.outcome == "failed"]
            failed.update({part.name: (part, tests)} if tests else {})
    if not 0 < sum(len(tests) for _, tests in failed.values()) <= RETRIED_AT_MOST:
        return
    again = [planned.once_more(part, [t.name for t in tests]) for part, tests in failed.values()]
    second = scheduler.Scheduler(again, options, run, screen.Log(), limit=1)
    second.run()
    runs.interrupted = second.interrupted
    for part, (_, tests) in zip(again, failed.values()):
        passed = {t.name for t in part.workers[0].report.tests if t.outcome == "passed"}
        for test in tests:
            test.outcome = "flaky" if test.name in passed else "failed"


def report(runs, logs):
    """Prints the summary, whose last line programs read, too; returns the exit status."""
    text = (screen.failures(runs) + screen.flaky(runs) + screen.slowest(runs) + screen.table(runs) +
            screen.comparisons(compared.noted(logs / "compared")))
    sums = screen.sums(runs)
    text += "".join(f"{part.name}: {part.note}\n" for part in runs.parts if part.note)
    if sums["xfailed"]:
        text += f"{sums['xfailed']} failed as expected (xfail: a known defect of the product)\n"
    if runs.interrupted:
        text += "Interrupted: the sum is that of what ran.\n"
    if sums["flaky"]:
        text += f"{sums['flaky']} of the passed ones are flaky: they failed at first (above)\n"
    last = f"{sums['passed'] + sums['flaky']} passed, {sums['failed']} failed, {sums['skipped']} skipped"
    (logs / "summary").write_text(f"{text}{last}\n", "utf-8")
    print(f"{text}{last}", flush=True)
    if runs.interrupted:
        return 128 + runs.interrupted
    return 1 if sums["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
