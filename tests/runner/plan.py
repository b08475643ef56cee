# SPDX-License-Identifier: Apache-2.0
"""Which parts a command line asks for, and how each worker is started."""

import dataclasses
import json
import os
import pathlib
import subprocess
import time

from support import paths, versions

from . import files, results

TESTS = paths.TOP / "tests"
QUICK_LIST = TESTS / "quick.txt"
SLOW_LIST = TESTS / "slow.txt"
THOROUGH = "thorough"  # a marker of pytest and a suite of meson: left out of quick
# Files of integration that the libraries do not affect: integration13 leaves them out.  Of SQL it has the
# files on connections, logins, errors and sizes; which statements are sent is the same with any library.
NOT_OF_LIBRARIES = ("test_bootstrap.py", "test_chart.py", "test_compare.py", "test_completion.py",
                    "test_crd_rules.py", "test_crd_servers.py", "test_cron.py", "etcd/test_etcd_facts.py",
                    "test_hostile_sizes.py", "test_layers.py", "test_lessons.py", "test_readme.py",
                    "test_runner.py", "test_support.py",
                    *(f"sql/test_sql_{name}.py" for name in (
                        "attacks", "databases", "dual", "future", "grantors", "grants", "hostile", "marks",
                        "routines", "settings", "twins")))
SECONDS_OF_A_TEST = 3  # an estimate for files that never ran here


@dataclasses.dataclass
class Worker:
    """One process of a part, with what guard.py has to know."""

    command: list
    log: pathlib.Path
    report: object
    seconds: int = 4200
    env: dict = dataclasses.field(default_factory=dict)
    cluster: dict = None
    joins: str = ""         # the name of a cluster that another worker of the part brings up
    users: pathlib.Path = None  # shared by the workers of one cluster (files.Users)
    queue: pathlib.Path = None


@dataclasses.dataclass
class Part:
    """One line of the output: a suite, on one version of Kubernetes if it needs that."""

    name: str
    workers: list
    total: int = 0          # tests, or programs of several tests
    again: str = ""         # the command that runs one of its tests, {name}, again
    after: tuple = ()       # parts that must have ended before, if they run
    network: bool = False   # its workers share a network namespace of their own, which can have a node
    beside: bool = False    # runs from the beginning with what CPU the others leave: takes no place
    error: str = ""         # why it cannot run
    note: str = ""          # a line of the summary
    whole: bool = False     # all tests of its suite are in it


class Plan:
    """Makes the parts of a command line of scripts/test."""

    def __init__(self, options, logs, run):
        self.options = options
        self.logs = logs
        self.run = run
        self.clusters = 0
        self.collections = {}
        self.durations = {**slow_files(), **_read_json(durations_file())}

    def parts(self):
        """Every part that has something to do."""
        made = []
        for name in self.options.parts:
            suite, _, version = name.partition("@")
            made.append(getattr(self, f"part_{suite}")(name, version))
        return [part for part in made if part]

    # --- suites without pytest ---

    def part_lint(self, name, _version):
        """scripts/lint with nice, beside all other parts: they mostly wait, and it uses the idle cores."""
        if self.options.filter or self.options.tests:
            return None
        log = self.logs / "lint.log"
        command = ["nice", paths.SCRIPTS / "lint", "--build-dir", self.options.build]
        checks = subprocess.run([paths.SCRIPTS / "lint", "--list"], check=True, capture_output=True,
                                text=True).stdout.split()
        return Part(name, [Worker(command, log, results.LintReport(log))], len(checks),
                    again="scripts/lint {name}", beside=True, whole=True)

    def part_unit(self, name, _version):
        """All programs that meson knows as tests."""
        return self.meson(name, self.options.build, ["meson"])

    def part_unit13(self, name, _version):
        """The same with Debian's next compiler and libraries."""
        if not self.options.next:
            return None
        inside = [paths.SCRIPTS / "lib" / "next-run.sh", self.options.next, "meson"]
        return self.meson(name, self.options.next, inside)

    def part_hostile(self, name, _version):
        """Hostile objects of each kind, other ones each day."""
        if not self.options.hostile:
            return None
        seed = os.environ.get("STEWARD_HOSTILE_SEED") or time.strftime("%Y%m%d", time.gmtime())
        part = self.meson(name, self.options.hostile, ["meson"], "--suite=hostile")
        if part:
            part.workers[0].env["STEWARD_HOSTILE_SEED"] = seed
            part.again = f"STEWARD_HOSTILE_SEED={seed} scripts/test hostile -k {{name}}"
            part.note = f"20,000 objects of each kind, with STEWARD_HOSTILE_SEED={seed}"
        return part

    def meson(self, name, build, meson, suite="--no-suite=hostile"):
        """The programs of one build folder; `meson` is a command."""
        listed = subprocess.run([*meson, "test", "-C", build, "--no-rebuild", suite, "--list"],
                                check=True, capture_output=True, text=True).stdout
        found = [line.partition(" / ") for line in listed.splitlines() if " / " in line]
        brief = self.options.quick or build == self.options.next
        names = [name for suites, _, name in found if not (brief and THOROUGH in suites)]
        if self.options.filter:
            names = [n for n in names if self.options.filter in n]
        if not names or self.options.tests:
            return None
        report = pathlib.Path(build) / "meson-logs" / "testlog.json"
        report.unlink(missing_ok=True)
        command = [*meson, "test", "-C", build, "--no-rebuild", "--print-errorlogs", suite,
                   "--num-processes", str(2 * (os.cpu_count() or 2)),
                   *(["--no-suite", THOROUGH] if brief else []),
                   *(names if self.options.filter else [])]
        words = "debian13" if build == self.options.next else "unit"
        return Part(name, [Worker(command, self.logs / f"{name}.log", results.MesonReport(report))],
                    len(names), again=f"scripts/test {words} -k {{name}}",
                    whole=not (self.options.filter or brief))

    # --- suites of pytest ---

    def part_integration(self, name, _version):
        """The real program with real servers; the cluster has no node."""
        env = {"STEWARD_TEST_VERSIONS": "all"} if self.options.all_versions else {}
        return self.pytest(name, "integration", workers=3, cluster=self.cluster(False), split=True, env=env)

    def part_integration13(self, name, _version):
        """The tests of built programs, with Debian's next libraries and this machine's servers."""
        if not self.options.next:
            return None
        return self.pytest(name, "integration", f"not {THOROUGH}", workers=2, cluster=self.cluster(False),
                           split=True, env={"STEWARD_BUILD_DIR": str(self.options.next)},
                           words=[f"--ignore={TESTS / 'integration' / file}" for file in NOT_OF_LIBRARIES])

    def part_e2e(self, name, version):
        """End-to-end tests that need no node."""
        marks = "not node" if version != "oldest" else "not node and oldest"
        return self.pytest(name, "e2e", marks, workers=3 if version != "oldest" else 2,
                           cluster=self.cluster(False))

    def part_node(self, name, version):
        """Tests that need pods that run, without those of part_stages if there is one.  Without a
        node they count as skipped."""
        marks = "node" if version != "oldest" else "node and oldest"
        if f"stages@{version}" in self.options.parts:
            marks += " and not stage"
        return self.alone_in_network(self.pytest(name, "e2e", marks, cluster=self.node_cluster()))

    def part_stages(self, name, _version):
        """Tests that keep to a namespace of their own: three workers share the node."""
        return self.alone_in_network(self.pytest(name, "e2e", "node and stage", workers=3, shared=True,
                                                 cluster=self.node_cluster()))

    def alone_in_network(self, part):
        """A network can have one node.  A given cluster can be reached in the network of the caller only."""
        if part:
            part.network = self.options.node and not self.options.given_cluster
        return part

    def part_contract(self, name, _version):
        """What steward relies on, on one version of the API server."""
        return self.pytest(name, "contract")

    def part_rights(self, name, _version):
        """What steward was seen to do in all other parts, compared with what it may do."""
        env = {"STEWARD_TEST_RIGHTS_WHOLE": "1"} if self.options.whole else {}
        return self.pytest(name, "rights", env=env, after=("integration", "e2e", "node", "stages"))

    def part_demo(self, name, _version):
        """scripts/demo, which brings up a cluster of its own; in the machine's network, as for users."""
        return self.pytest(name, "demo")

    def part_tested(self, name, _version):
        """README's table of versions, compared with what was started."""
        env = {"STEWARD_TEST_STARTED_WHOLE": "1"} if self.options.whole else {}
        return self.pytest(name, "tested", env=env,
                           after=("integration", "e2e", "node", "stages", "contract", "demo"))

    def cluster(self, node):
        """Arguments of `scripts/cluster up`; {} when the tests get an existing cluster."""
        if self.options.given_cluster:
            return {}
        return {"arguments": ["--audit", *(["--node"] if node else [])]}

    def node_cluster(self):
        """The same with a node; {} without one, since nothing but skipped tests is left."""
        return self.cluster(True) if self.options.node else {}

    def pytest(self, name, folder, marks="", workers=1, cluster=None, shared=False, split=False, env=None,
               after=(), words=()):
        """A part of the tests of one folder that have these marks; None when there is none.  Each worker
        has a cluster of its own, or the first one's if it is shared.  If the files are split, one worker
        more has the only cluster, and takes the files that use it."""
        # Clusters that a test brings up for itself are of this version, too.
        version = name.partition("@")[2]
        env = {**(env or {}), **({"STEWARD_KUBERNETES": version} if version else {})}
        # Each worker and each collection would compile all modules again.
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self.logs / "compiled")}
        env = {"STEWARD_BUILD_DIR": str(self.options.build), **compiled, "PYTHONPATH": str(TESTS),
               **self.options.env, **env}
        only = {"STEWARD_TEST_ONLY": str(QUICK_LIST)} if self.options.quick and folder == "e2e" else {}
        if self.options.quick:
            marks = " and ".join([*([marks] if marks else []), f"not {THOROUGH}"])
        command = [*self.options.python, "-m", "pytest", *self.where(folder), "--rootdir", TESTS,
                   "-c", TESTS / "pytest.ini", "-p", "runner.plugin", *words,
                   *(["-k", self.options.filter] if self.options.filter else [])]
        if self.where(folder) == []:
            return None
        found, error = self.collect(command, {**env, **only}, marks)
        command += ["-m", marks] if marks else []
        if error:
            return Part(name, [], 1, error=error, again=f"scripts/test {name.partition('@')[0]}")
        if not found:
            return None
        if self.options.given_cluster and cluster is not None:
            workers = 1
        total = sum(len(one["tests"]) for one in found.values())
        part = Part(name, [], total, again=self.again(name), after=after,
                    whole=not (self.options.filter or self.options.tests or self.options.quick))
        first = None
        queues = self.queues(name, found, workers, cluster if split else None)
        for number, (queue, has_cluster) in enumerate(queues, 1):
            label = f"{name}.{number}" if workers > 1 else name
            report = self.logs / f"{label}.json"
            own = first if shared and first else self.named(cluster if has_cluster else None)
            first = first or own
            joins = own["name"] if shared and own and number > 1 else ""
            part.workers.append(Worker(
                [*command, f"--basetemp={self.logs / label}", f"--junitxml={self.logs / label}.xml"],
                self.logs / f"{label}.log", results.PytestReport(report),
                env={**env, **only, "STEWARD_TEST_QUEUE": str(queue), "STEWARD_TEST_REPORT": str(report),
                     **({"STEWARD_CLUSTER_NAME": own["name"]} if own else {}),
                     **({} if self.options.node else {"STEWARD_TEST_NO_NODE": "1"})},
                cluster=None if joins else own, joins=joins, queue=queue,
                users=self.logs / f"{name}.users" if shared and own else None))
        return part

    def queues(self, name, found, workers, cluster):
        """(queue, whether it gets a cluster) of each worker.  With a cluster, files that do not use it have
        workers without one, since it takes CPU all the time; the worker that has it is the first."""
        def queue(label, chosen):
            path = self.logs / f"{name}{label}.queue"
            files.write(path, sorted(chosen, key=lambda f: -self.estimate(name, f, len(found[f]["tests"]))))
            return path

        users = [f for f in found if not cluster or found[f]["cluster"]]
        others = [f for f in found if f not in users]
        chosen = []
        if users:
            chosen += [(queue("", users), True)] * (1 if others else min(workers, len(users)))
        if others:
            chosen += [(queue(".others", others), False)] * min(workers, len(others))
        return chosen

    def once_more(self, part, names):
        """A part with these tests of a pytest part, in one worker with a cluster of its own."""
        first, label = part.workers[0], f"{part.name}.again"
        only, queue, report = (self.logs / f"{label}.{end}" for end in ("only", "queue", "json"))
        only.write_text("".join(f"{name}\n" for name in names), "utf-8")
        files.write(queue, dict.fromkeys(name.partition("::")[0] for name in names))
        own = self.named(first.cluster)
        env = {**first.env, "STEWARD_TEST_ONLY": str(only), "STEWARD_TEST_QUEUE": str(queue),
               "STEWARD_TEST_REPORT": str(report),
               **({"STEWARD_CLUSTER_NAME": own["name"]} if own else {})}
        worker = Worker([*first.command[:-2], f"--basetemp={self.logs / label}",
                         f"--junitxml={self.logs / label}.xml"], self.logs / f"{label}.log",
                        results.PytestReport(report), env=env, cluster=own, queue=queue)
        return dataclasses.replace(part, name=f"{part.name} again", workers=[worker], after=(),
                                   total=len(names), whole=False)

    def where(self, folder):
        """The paths of the tests for pytest."""
        if not self.options.tests:
            return [TESTS / folder]
        return [paths.TOP / test for test in self.options.tests if test.split("/")[1] == folder]

    def named(self, cluster):
        """The cluster's arguments, with a name that no other worker has."""
        if not cluster:
            return None
        self.clusters += 1
        return dict(cluster, name=f"test-{self.run.partition(' ')[0]}-{self.clusters}")

    def again(self, name):
        """The command that runs one test again."""
        suite, _, version = name.partition("@")
        words = ["scripts/test"]
        if suite in ("e2e", "node", "stages", "contract") and version not in ("", "newest"):
            words.append(f"--kubernetes {version}")
        if self.options.sanitize:
            words.append(f"--sanitize {self.options.sanitize}")
        return " ".join([*words, "'tests/{name}'"])

    def collect(self, command, env, marks):
        """({file: {tests, cluster}}, error) of the tests with these marks, from pytest's own collection,
        which parts of one folder and one version share."""
        key = str((command, env))
        if key not in self.collections:
            path = self.logs / f"collection-{len(self.collections)}"
            done = subprocess.run([str(word) for word in [*command, "--collect-only", "-q"]], check=False,
                                  env=dict(os.environ, **env, STEWARD_TEST_COLLECT=str(path)), text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.collections[key] = (_read_json(path), "") if done.returncode in (0, 5) else ([], done.stdout)
        tests, error = self.collections[key]
        found = {}
        for test in (t for t in tests if has_marks(t["marks"], marks)):
            file = found.setdefault(test["id"].partition("::")[0], {"tests": [], "cluster": False})
            file["tests"].append(test["id"])
            file["cluster"] = file["cluster"] or test["cluster"]
        return found, error

    def estimate(self, name, file, count):
        """Seconds that a file will take, by the last run, the list of slow files, or its number of tests."""
        return self.durations.get(f"{name} {file}", self.durations.get(file, count * SECONDS_OF_A_TEST))


def has_marks(own, expression):
    """Whether a test with these marks is selected by an expression such as "node and not stage"."""
    return all((term.removeprefix("not ") in own) != term.startswith("not ")
               for term in expression.split(" and ") if term)


def slow_files():
    """{file: seconds} of the list."""
    lines = (line.partition("#")[0].split() for line in SLOW_LIST.read_text("utf-8").splitlines())
    return {words[0]: float(words[1]) for words in lines if words}


def durations_file():
    """Where the seconds of each test file are kept from run to run."""
    return paths.cache_root() / "test-durations.json"


def keep_durations(parts):
    """For the next run: how long each file took in each part, if all of its tests ran."""
    kept = _read_json(durations_file())
    seen = {}
    for part in (part for part in parts if part.whole):
        for test in (t for w in part.workers for t in w.report.tests
                     if "::" in t.name and t.outcome != "skipped"):
            key = f"{part.name} {test.name.partition('::')[0]}"
            seen[key] = seen.get(key, 0) + test.seconds
    kept.update({key: round(seconds, 1) for key, seconds in seen.items()})
    path = durations_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(f".{os.getpid()}").write_text(json.dumps(kept, indent=0, sort_keys=True), "utf-8")
    path.with_suffix(f".{os.getpid()}").replace(path)


def _read_json(path):
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def versions_of(text):
    """The versions of Kubernetes that a name means."""
    if text == "ci":
        return versions.table()["KUBERNETES_CI"]
    if text == "all":
        return versions.table()["KUBERNETES"]
    if text in ("newest", "oldest"):
        return [getattr(versions, text)("KUBERNETES")]
    return [text]
