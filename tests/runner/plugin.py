# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin of a worker: takes test files from a queue that workers share, and reports each
test.

Environment, all optional:
  STEWARD_TEST_QUEUE    the queue of files (runner/files.py); default: all tests run
  STEWARD_TEST_REPORT   one JSON object a line: {"start": ID} and {"id", "outcome", "seconds", "cpu", "text"};
                        "cpu": seconds of CPU of the worker and of its children that ended in the test
  STEWARD_TEST_COLLECT  a file for [{id, marks: [NAME, ...], cluster: whether it uses one}, ...]
  STEWARD_TEST_ONLY     a file that names the tests to run: a file, a function or an ID a line

A file's tests stay together in one worker, since they share fixtures.
"""

import gc
import json
import os
import pathlib

from . import files

TEXT_LIMIT = 20000


def _groups(items):
    """{file: [item, ...]}"""
    found = {}
    for item in items:
        found.setdefault(item.nodeid.partition("::")[0], []).append(item)
    return found


def names_in(path):
    """The lines of a list of tests, without comments."""
    lines = (line.partition("#")[0].strip() for line in pathlib.Path(path).read_text("utf-8").splitlines())
    return [line for line in lines if line]


def is_named(nodeid, names):
    """Whether a list of tests has this one, by its ID, its function or its file."""
    return bool({nodeid, nodeid.partition("[")[0], nodeid.partition("::")[0]} & set(names))


def pytest_collection_modifyitems(config, items):
    """Keeps only the tests that a list names."""
    path = os.environ.get("STEWARD_TEST_ONLY")
    if path:
        names = names_in(path)
        out = [item for item in items if not is_named(item.nodeid, names)]
        items[:] = [item for item in items if is_named(item.nodeid, names)]
        config.hook.pytest_deselected(items=out)


def pytest_collection_finish(session):
    """Writes the tests that were found.  They stay until the end, so that the garbage collector need not
    look at them."""
    gc.freeze()
    path = os.environ.get("STEWARD_TEST_COLLECT")
    if path:
        found = [{"id": item.nodeid, "marks": sorted({mark.name for mark in item.iter_markers()}),
                  "cluster": "cluster" in getattr(item, "fixturenames", ())} for item in session.items]
        pathlib.Path(path).write_text(json.dumps(found), "utf-8")


def pytest_runtestloop(session):
    """Runs one file after the other, in the order of the queue."""
    queue = os.environ.get("STEWARD_TEST_QUEUE")
    if not queue or session.config.option.collectonly or session.testsfailed:
        return None
    groups = _groups(session.items)
    items = groups.get(files.take(queue), [])
    while items:
        following = []
        for number, item in enumerate(items):
            last = number + 1 == len(items)
            if last:  # the next test decides which fixtures end after this one
                following = groups.get(files.take(queue), [])
            after = (following or [None])[0] if last else items[number + 1]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        items = following
    return True


class _Report:
    """Writes a line when a test starts, and one when it has ended."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.test = None
        self.cpu = 0

    def write(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid):
        self.test = {"id": nodeid, "outcome": "passed", "seconds": 0, "text": ""}
        self.cpu = sum(os.times()[:4])
        self.write({"start": nodeid})

    def pytest_runtest_logreport(self, report):
        test = self.test
        test["seconds"] += report.duration
        if report.failed:
            test["text"] += f"{report.longreprtext[-TEXT_LIMIT:]}\n"
            test["outcome"] = "failed"
        elif report.skipped and test["outcome"] == "passed":
            expected = hasattr(report, "wasxfail")
            test["outcome"] = "xfailed" if expected else "skipped"
            test["text"] = report.wasxfail if expected else _reason(report)

    def pytest_runtest_logfinish(self):
        self.test["cpu"] = round(sum(os.times()[:4]) - self.cpu, 2)
        self.write(self.test)


def _reason(report):
    """Why a test was skipped."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext


def pytest_configure(config):
    """Registers the report if the environment names a file for it."""
    path = os.environ.get("STEWARD_TEST_REPORT")
    if path and not config.option.collectonly:
        config.pluginmanager.register(_Report(path))
