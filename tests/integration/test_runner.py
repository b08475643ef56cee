# SPDX-License-Identifier: Apache-2.0
"""scripts/test itself: its counts, the distribution of files to workers, and the cleanup after a
run that was interrupted or killed."""

import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import types

import pytest

from runner import __main__ as runner_main
from runner import files, guard, plan, plugin, process, results, scheduler, screen
from support import cluster as k8s
from support import paths, wait

# A test that runs for a minute and kills components of its cluster meanwhile.
LONG = "tests/integration/test_kube.py::test_cache_is_complete_after_api_server_crashes"


@pytest.fixture
def start():
    """start(folder, *words): starts another run, which is ended with the test."""
    started = []

    def one(folder, *words):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("STEWARD_CLUSTER_", "STEWARD_TEST_", "PYTEST_"))}
        env.update(PYTHONPATH=str(paths.TOP / "tests"), STEWARD_TEST_LOGS=str(folder / "logs"))
        build = paths.steward_binary().parent.parent
        with (folder / "out").open("w", encoding="utf-8") as log:
            started.append(subprocess.Popen(
                [sys.executable, "-m", "runner", *words, "--no-node", "--build", build,
                 "--python", sys.executable], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True))
        return started[-1]
    yield one
    for run in started:
        if run.poll() is None:
            run.terminate()
            run.wait(240)


def clusters_of(run):
    """The clusters of a run, also incomplete ones."""
    folder = pathlib.Path(os.environ.get("STEWARD_CLUSTERS", f"/tmp/steward-clusters-{os.geteuid()}"))
    return list(folder.glob(f"test-{run.pid}-*"))


def processes_of(name):
    """The processes that a run started, and their children."""
    return [pid for pid in process.pids() if process.run_of(pid) == name]


def wait_for_the_test(run, folder):
    """Until the test runs; then its cluster runs, too."""
    def look():
        assert run.poll() is None, (folder / "out").read_text("utf-8")
        reports = list((folder / "logs").glob("*.json"))
        return any('"start"' in path.read_text("utf-8") for path in reports)
    wait.until("the test to run", look, 400, every=0.2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_run_leaves_nothing_running(start, tmp_path, number):
    run = start(tmp_path, LONG)
    name = process.identity(run.pid)
    wait_for_the_test(run, tmp_path)
    assert clusters_of(run) and processes_of(name)
    os.kill(run.pid, number)
    status = run.wait(180)
    wait.until("nothing to be left", lambda: not processes_of(name) and not clusters_of(run), 180,
               every=0.2)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    if number != signal.SIGKILL:
        assert "Interrupted" in (tmp_path / "out").read_text("utf-8")


def test_next_run_ends_leftovers_of_a_killed_run(start, tmp_path):
    run = start(tmp_path, LONG)
    name = process.identity(run.pid)
    wait_for_the_test(run, tmp_path)
    guards = [pid for pid in processes_of(name) if "runner.guard" in process.command_line(pid)]
    assert len(guards) == 1
    process.send([*guards, run.pid], signal.SIGKILL)
    run.wait(60)
    assert clusters_of(run) and processes_of(name)
    (tmp_path / "next").mkdir()
    following = start(tmp_path / "next", "integration", "-k", "no_test_is_called_so")
    assert following.wait(240) == 0
    assert not processes_of(name) and not clusters_of(run)


def test_each_file_goes_to_one_worker(tmp_path):
    queue = tmp_path / "queue"
    names = [f"test_{number}.py" for number in range(200)]
    files.write(queue, names)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        taken = pool.map(files.take, [queue] * 220, chunksize=1)
    assert sorted(filter(None, taken)) == sorted(names)
    assert files.left(queue) == []


def hold(path, held, ending):
    """Plays a worker that uses the cluster of another one."""
    users = files.Users(path)
    users.hold()
    held.set()
    ending.wait(60)


def test_shared_cluster_ends_after_its_last_user(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, ending = context.Event(), context.Event()
    owner = files.Users(tmp_path / "users")
    assert not owner.wait_up(0)
    owner.tell("up")
    assert owner.wait_up(0)
    other = context.Process(target=hold, args=(tmp_path / "users", held, ending))
    other.start()
    assert held.wait(60)
    assert not owner.wait_alone(0.5)
    ending.set()
    assert owner.wait_alone(60)
    other.join(60)
    assert other.exitcode == 0
    owner.tell("down")
    assert not files.Users(tmp_path / "users").wait_up(5)


def test_stages_share_one_node(tmp_path, monkeypatch):
    """One worker starts the cluster, the other joins it; tests for all namespaces run elsewhere."""
    found = {f"e2e/test_{x}.py": {"tests": [f"e2e/test_{x}.py::test"], "cluster": True} for x in "ab"}
    monkeypatch.setattr(plan.Plan, "collect", lambda *_: (found, ""))
    for name in [n for n in os.environ if n.startswith(("STEWARD_CLUSTER_", "STEWARD_TEST_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["runner", "--build", "build", "--python", sys.executable, "node"])
    options = runner_main.arguments()
    options.node, options.env = True, {}
    parts = {part.name: part for part in plan.Plan(options, tmp_path, "1 1").parts()}
    first, second = parts["stages@newest"].workers  # no more workers than files
    assert second.joins == first.cluster["name"] and second.cluster is None
    assert first.users == second.users and first.queue == second.queue
    assert first.env["STEWARD_CLUSTER_NAME"] == second.env["STEWARD_CLUSTER_NAME"] == second.joins
    marks = {name: part.workers[0].command[-3] for name, part in parts.items()}
    assert marks == {"stages@newest": "node and stage", "node@newest": "node and not stage",
                     "node@oldest": "node and oldest"}
    assert all(part.network for part in parts.values()) and len(parts["node@newest"].workers) == 1
    options.given_cluster = "mine"
    assert not any(part.network for part in plan.Plan(options, tmp_path, "1 1").parts())


@pytest.mark.parametrize("given, pattern", [("5", "5"), ("", "20[0-9]{6}")])
def test_hostile_objects_name_their_seed(tmp_path, monkeypatch, given, pattern):
    """In the summary, and in the command that runs one again; without one it is the date."""
    monkeypatch.setattr(plan.Plan, "meson", lambda _self, name, *_: plan.Part(
        name, [plan.Worker([], tmp_path / "log", None)], 7))
    monkeypatch.setenv("STEWARD_HOSTILE_SEED", given)
    monkeypatch.setattr(sys, "argv", ["runner", "--build", "build", "--hostile", "build-hostile", "--python",
                                      sys.executable, "hostile"])
    options = runner_main.arguments()
    [part] = plan.Plan(options, tmp_path, "1 1").parts()
    seed = part.workers[0].env["STEWARD_HOSTILE_SEED"]
    assert re.fullmatch(pattern, seed)
    assert f"STEWARD_HOSTILE_SEED={seed}" in part.note
    assert part.again.startswith(f"STEWARD_HOSTILE_SEED={seed} ")
    options.hostile = ""
    assert plan.Plan(options, tmp_path, "1 1").parts() == []


@pytest.mark.parametrize("own, expression, selected", [
    ((), "", True), (("node",), "not node", False), ((), "not node", True),
    (("node",), "node and not stage", True),
    (("node", "stage"), "node and not stage", False), (("node",), "node and oldest", False),
    (("node", "oldest"), "node and oldest", True)])
def test_marker_expression_selects_as_pytest(own, expression, selected):
    """As pytest's -m selects them."""
    assert plan.has_marks(own, expression) == selected


def test_only_files_using_the_cluster_get_it(tmp_path, monkeypatch):
    """Of integration; it is the first worker's, which runs what failed once more."""
    found = {f"integration/test_{x}.py": {"tests": ["a", "b"], "cluster": x == "c"} for x in "abc"}
    monkeypatch.setattr(plan.Plan, "collect", lambda *_: (found, ""))
    for name in [n for n in os.environ if n.startswith(("STEWARD_CLUSTER_", "STEWARD_TEST_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["runner", "--build", "build", "--python", sys.executable, "integration"])
    options = runner_main.arguments()
    options.env = {}
    [part] = plan.Plan(options, tmp_path, "1 1").parts()
    assert part.total == 6
    assert [bool(one.cluster) for one in part.workers] == [True, False, False]
    assert ["STEWARD_CLUSTER_NAME" in one.env for one in part.workers] == [True, False, False]
    assert [files.left(one.queue) for one in part.workers] == [
        ["integration/test_c.py"], *[["integration/test_a.py", "integration/test_b.py"]] * 2]
    found.pop("integration/test_c.py")
    [part] = plan.Plan(options, tmp_path, "1 1").parts()
    assert [bool(one.cluster) for one in part.workers] == [False, False]


def test_background_part_takes_no_slot(monkeypatch):
    """Others start in their order, up to the limit."""
    stages, node, unit = (plan.Part(name, ["worker"]) for name in ("stages", "node", "unit"))
    lint = plan.Part("lint", ["worker"], beside=True)
    runs = scheduler.Scheduler([stages, node, unit, lint], None, "1 1", None, limit=1)
    monkeypatch.setattr(scheduler.Scheduler, "start", lambda self, part, worker:
                        self.started.append(scheduler.Running(part, worker)))
    runs.start_what_can()
    assert [one.part.name for one in runs.active()] == ["stages", "lint"]
    runs.limit = 2
    runs.start_what_can()
    assert [one.part.name for one in runs.active()] == ["stages", "lint", "node"]
    runs.active()[0].status = 0
    runs.start_what_can()
    assert [one.part.name for one in runs.active()] == ["lint", "node", "unit"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_part_has_its_own_network():
    """Its workers share it, and it ends with its last process and descriptor."""
    runs = scheduler.Scheduler([], types.SimpleNamespace(jobs=1), "1 1", None)
    first, second = (plan.Part(name, [], network=True) for name in ("node@newest", "node@oldest"))
    fds = [runs.inside_network(part)[0][0] for part in (first, first, second)]
    try:
        assert fds[0] == fds[1]
        names = {os.readlink(f"/proc/self/fd/{fd}") for fd in fds} | {os.readlink("/proc/self/ns/net")}
        assert len(names) == 3
        links = subprocess.run([*runs.inside_network(first)[1], "ip", "-json", "address"],
                               pass_fds=fds[:1], check=True, capture_output=True, text=True).stdout
        [loopback] = json.loads(links)
        assert [a["local"] for a in loopback["addr_info"]] == ["127.0.0.1", "::1"]
    finally:
        for fd in set(fds):
            os.close(fd)


def test_part_without_network_fails_with_the_reason(monkeypatch):
    def refused():
        raise OSError("not permitted")
    monkeypatch.setattr(process, "new_network", refused)
    runs = scheduler.Scheduler([], types.SimpleNamespace(jobs=1), "1 1", None)
    network, inside = runs.inside_network(plan.Part("node@newest", [], network=True))
    ended = subprocess.run([*inside, "true"], check=False, capture_output=True, text=True)
    assert (network, ended.returncode, ended.stdout) == ([], guard.CLUSTER_FAILED, "not permitted\n")


def entry(result, stderr=""):
    """A line of meson's testlog.json."""
    return {"name": "steward:unit / base/x", "result": result, "duration": 1, "stderr": stderr}


@pytest.mark.parametrize("given, counts", [
    (entry("OK", "[  PASSED  ] 7 test(s).\n"), (7, 0, 0, 0)),
    (entry("OK"), (1, 0, 0, 0)),
    (entry("FAIL", "[  PASSED  ] 5 test(s).\n[  FAILED  ] t: 2 test(s), listed below:\n"), (5, 2, 0, 0)),
    (entry("TIMEOUT"), (0, 1, 0, 0)),
    (entry("ERROR", "[  PASSED  ] 5 test(s).\n"), (5, 1, 0, 0)),
    (entry("SKIP"), (0, 0, 1, 0)),
])
def test_program_output_is_counted(given, counts):
    assert results.of_program(given).counts == (*counts, 0)


def test_pytest_report_is_read_while_it_grows(tmp_path):
    path = tmp_path / "report"
    report = results.PytestReport(path)
    report.look()
    end = {"id": "a.py::t", "outcome": "xfailed", "seconds": 1, "text": ""}
    path.write_text(json.dumps({"start": "a.py::t"}) + "\n" + json.dumps(end)[:20], "utf-8")
    report.look()
    assert (report.running, report.tests) == ("a.py::t", [])
    path.write_text(json.dumps({"start": "a.py::t"}) + "\n" + json.dumps(end) + "\n", "utf-8")
    report.look()
    assert report.running == "" and [t.outcome for t in report.tests] == ["xfailed"]


def test_lint_report_is_read(tmp_path):
    path = tmp_path / "report"
    path.write_text("  format       ok          1.0 s\n  tidy         FAILED   2 min 40 s\na.c:1: bad\n",
                    "utf-8")
    report = results.LintReport(path)
    report.look()
    assert [(t.name, t.outcome, t.seconds, t.text) for t in report.tests] == \
        [("format", "passed", 1, ""), ("tidy", "failed", 160, "a.c:1: bad\n")]


SUITE = '''
import os, pytest
def test_good(): pass
def test_bad(): assert 1 == 2
def test_skipped(): pytest.skip("no reason")
@pytest.mark.xfail(strict=True, reason="known")
def test_known(): assert False
def test_teardown(broken): pass
@pytest.fixture
def broken():
    yield
    raise ValueError("in teardown")
'''


def run_pytest(folder, *files_of_it, **env):
    """Runs pytest with the plugin on a folder; returns the report."""
    report = folder / "report"
    queue = folder / "queue"
    files.write(queue, files_of_it)
    env = {**os.environ, "PYTHONPATH": str(paths.TOP / "tests"), "STEWARD_TEST_QUEUE": str(queue),
           "STEWARD_TEST_REPORT": str(report), **env}
    subprocess.run([sys.executable, "-m", "pytest", "-p", "runner.plugin", "-p", "no:cacheprovider",
                    "--rootdir", folder, folder], env=env, check=False, capture_output=True, timeout=60)
    found = results.PytestReport(report)
    found.look()
    return found


def test_each_outcome_is_reported(tmp_path):
    (tmp_path / "test_a.py").write_text(SUITE, "utf-8")
    report = run_pytest(tmp_path, "test_a.py")
    assert {t.name.partition("::")[2]: t.outcome for t in report.tests} == {
        "test_good": "passed", "test_bad": "failed", "test_skipped": "skipped",
        "test_known": "xfailed", "test_teardown": "failed"}
    assert "assert 1 == 2" in report.tests[1].text and "in teardown" in report.tests[4].text


def test_only_files_of_the_queue_run_and_in_its_order(tmp_path):
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text("def test_x(): pass\ndef test_y(): pass\n", "utf-8")
    report = run_pytest(tmp_path, "test_c.py", "test_a.py")
    assert [t.name for t in report.tests] == ["test_c.py::test_x", "test_c.py::test_y",
                                              "test_a.py::test_x", "test_a.py::test_y"]


TWICE = """
import pathlib
def test_fails_at_first():
    seen = pathlib.Path(__file__).with_name("seen")
    before = seen.exists()
    seen.touch()
    assert before
def test_bad(): assert 1 == 2
def test_good(): pass
"""


@pytest.fixture
def own_tests(tmp_path, monkeypatch):
    """The runner works on a temporary folder, whose suite is called demo."""
    for name in ("runner", "support"):
        (tmp_path / name).symlink_to(paths.TOP / "tests" / name)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (tmp_path / "demo").mkdir()
    monkeypatch.setattr(plan, "TESTS", tmp_path)
    for name in [n for n in os.environ if n.startswith(("STEWARD_CLUSTER_", "STEWARD_TEST_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STEWARD_TEST_LOGS", str(tmp_path / "logs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield tmp_path / "demo"
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("words, status, last", [
    ([], 1, "1 passed, 2 failed, 0 skipped"),
    (["--retry"], 1, "2 passed, 1 failed, 0 skipped"),
])
def test_failed_test_runs_again(own_tests, monkeypatch, capsys, words, status, last):
    """It is listed as flaky, with its failure; a test that fails again counts as failed."""
    (own_tests / "test_a.py").write_text(TWICE, "utf-8")
    monkeypatch.setattr(sys, "argv", ["runner", "demo", *words, "--no-node", "--build", str(own_tests),
                                      "--python", sys.executable])
    assert runner_main.main() == status
    said = capsys.readouterr().out
    assert said.endswith(f"{last}\n")
    assert "FAILED demo: demo/test_a.py::test_bad" in said
    assert ("FLAKY demo: demo/test_a.py::test_fails_at_first" in said) == bool(words)


def test_two_runs_do_not_share_a_log_folder(own_tests, monkeypatch):
    """The second one says whom to wait for, and leaves the logs of the first alone."""
    (own_tests / "test_a.py").write_text("def test_good(): pass\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["runner", "demo", "--no-node", "--build", str(own_tests),
                                      "--python", sys.executable])
    logs = own_tests.parent / "logs"
    logs.mkdir()
    (logs / "mine").touch()
    with runner_main.alone(logs):
        with pytest.raises(SystemExit) as refused:
            runner_main.main()
        assert (logs / "mine").exists()
    assert f"Process {os.getpid()} runs tests" in refused.value.code
    assert runner_main.main() == 0


def test_dead_worker_names_its_test(tmp_path):
    (tmp_path / "test_a.py").write_text("import os\ndef test_x(): os._exit(3)\n", "utf-8")
    report = run_pytest(tmp_path, "test_a.py")
    assert report.running == "test_a.py::test_x" and report.tests == []


def test_slow_files_start_first(tmp_path, monkeypatch):
    """By the last run; on a new machine by the list, whose files exist."""
    assert [file for file in plan.slow_files() if not (plan.TESTS / file).is_file()] == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    slow, seconds = next(iter(plan.slow_files().items()))
    new = plan.Plan(None, tmp_path, "1 1")
    assert new.estimate("e2e@newest", slow, 1) == seconds > new.estimate("e2e@newest", "other.py", 20)
    plan.durations_file().parent.mkdir()
    plan.durations_file().write_text(json.dumps({f"e2e@newest {slow}": 1}), "utf-8")
    assert plan.Plan(None, tmp_path, "1 1").estimate("e2e@newest", slow, 1) == 1


def test_quick_list_names_existing_tests():
    names = plugin.names_in(plan.QUICK_LIST)
    listed = k8s.run([sys.executable, "-m", "pytest", paths.TOP / "tests" / "e2e", "--rootdir",
                      paths.TOP / "tests", "-c", paths.TOP / "tests" / "pytest.ini", "--collect-only",
                      "-q"], env={k: v for k, v in os.environ.items() if "STEWARD_TEST_" not in k}).stdout
    tests = listed.split()
    assert [n for n in names if not any(plugin.is_named(t, [n]) for t in tests)] == []


@pytest.mark.parametrize("words, kept", [(["-k", "good"], []), ([], ["demo demo/test_a.py"])])
def test_durations_are_kept_only_of_whole_parts(own_tests, monkeypatch, words, kept):
    """Those of some tests of a file would be an estimate for all."""
    (own_tests / "test_a.py").write_text(
        "import pytest\ndef test_good(): pass\ndef test_skipped(): pytest.skip('')\n", "utf-8")
    (own_tests / "test_b.py").write_text("import pytest\ndef test_skipped(): pytest.skip('')\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["runner", "demo", *words, "--no-node", "--build", str(own_tests),
                                      "--python", sys.executable])
    assert runner_main.main() == 0
    assert list(json.loads(plan.durations_file().read_text("utf-8"))) == kept


def test_durations_are_readable():
    assert [screen.duration(s) for s in (0.44, 59.96, 60, 3599)] == \
        ["0.4 s", "59.9 s", "1 min 00 s", "59 min 59 s"]


def test_summary_lists_comparisons(own_tests, monkeypatch, capsys):
    (own_tests / "test_a.py").write_text(
        "from support import compared\n"
        "def test_one(): compared.note('botocore', '1.29', 1500)\n"
        "def test_two(): compared.note('botocore', '1.29', 500)\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["runner", "demo", "--no-node", "--build", str(own_tests),
                                      "--python", sys.executable])
    assert runner_main.main() == 0
    said = capsys.readouterr().out
    assert "Cases compared with other implementations\n      2,000  botocore 1.29\n" in said
    assert said.endswith("2 passed, 0 failed, 0 skipped\n")
