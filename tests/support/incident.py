# SPDX-License-Identifier: Apache-2.0
"""A runbook of docs/runbooks.md, runbook: its alert fires on what steward's metrics show, and each of its
commands is typed.

    with incident.follow("StewardHotLoop", cluster) as runbook:
        runbook.before(steward.metrics_text())
        ...                                      # the cause
        runbook.fires(steward.metrics_text)
        assert "web" in runbook.kubectl("get deployments")
        ...                                      # what the page advises, and its effect

tests/e2e/test_runbooks.py demands such a block for each runbook.
"""

import contextlib
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

import yaml

from . import paths, readme, wait

PAGE = "docs/runbooks.md"
STEP = 30  # seconds between two samples
_BEFORE = 120  # samples, an hour
_AFTER = 300
_SERIES = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
# What the ServiceMonitor adds to the series of a process.
_TARGET = {"namespace": "steward-system", "pod": "steward-0"}


def rules():
    """{alert: rule}"""
    spec = yaml.safe_load((paths.TOP / "config" / "prometheus" / "rules.yaml").read_text("utf-8"))["spec"]
    return {rule["alert"]: rule for group in spec["groups"] for rule in group["rules"]}


def _seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def _samples(text, expression):
    """{series: value} of the metrics that the expression names."""
    found = {}
    for name, labels, value in _SERIES.findall(text):
        if re.search(rf"\b{name}\b", expression):
            own = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
            words = ",".join(f'{k}="{v}"' for k, v in sorted({**_TARGET, **own}.items()))
            found[f"{name}{{{words}}}"] = float(value)
    return found


class Incident:
    """One alert and its section of the page."""

    def __init__(self, alert, cluster):
        self.alert, self.cluster, self.rule = alert, cluster, rules()[alert]
        self.commands = "".join(readme.blocks("sh", PAGE, alert)).splitlines()
        self.typed, self.fired = set(), False
        self.before_text, self.before_at = "", 0.0

    def before(self, text):
        """Takes the metrics before the cause.  The alert does not fire on them."""
        self.before_text, self.before_at = text, time.monotonic()
        assert not self._firing(text), f"{self.alert} fires before the cause"

    def fires(self, metrics, later=0):
        """The alert fires when the metrics stay as they are now, and counters in a rate() go on to grow
        as they did.  `metrics`: a text, or what returns it, which is called until the alert fires, since steward
        counts after it has written.  `later`: that many seconds from now, for one that waits for time to pass."""
        def look():
            text = metrics() if callable(metrics) else metrics
            assert self._firing(text, later), f"{self.alert} does not fire: {_samples(text, self.rule['expr'])}"
            return True
        self.fired = wait.until("the alert", look, 20 if callable(metrics) else 0, every=0.5)

    def ends(self, metrics):
        """It does not fire when the metrics stay as they are now."""
        def look():
            text = metrics() if callable(metrics) else metrics
            self.before_text, self.before_at = text, time.monotonic()
            assert not self._firing(text), f"{self.alert} fires: {_samples(text, self.rule['expr'])}"
            return True
        wait.until("the end of the alert", look, 20 if callable(metrics) else 0, every=0.5)

    def command(self, words):
        """The words of the only command of the page with this text, which is then typed."""
        [found] = [c for c in self.commands if words in c]
        self.typed.add(found)
        return shlex.split(found)

    def kubectl(self, words):
        """Types this command; its output."""
        program, *arguments = self.command(words)
        assert program == "kubectl"
        result = self.cluster.kubectl(*arguments, check="can-i" not in arguments)
        return result.stdout + result.stderr

    def logs(self, text):
        """What the page's `kubectl logs` shows of a steward that is a process, whose log is this."""
        self.command("logs deployment/steward-controller-manager")
        return text

    def _firing(self, text, later=0):
        elapsed = max(time.monotonic() - self.before_at, 1)
        grows = "rate(" in self.rule["expr"]
        held = _seconds(self.rule.get("for", "0s")) + 2 * STEP + (600 if grows else 0)
        return firing([self.rule], (self.before_text, text), held, elapsed if grows else 0, later) != []


def firing(alerts, texts, held, elapsed=0, later=0):
    """The alerts of these rules that fire, by promtool, `held` seconds after the metrics have changed from
    the first of two texts to the second.  With `elapsed`, what grew within these seconds goes on to."""
    now, series = time.time() + later, []
    alerts = [{**rule, "expr": rule["expr"].replace("time()", repr(now))} for rule in alerts]
    old, new = (_samples(text, " ".join(rule["expr"] for rule in alerts)) for text in texts)
    for name in sorted({*old, *new}):
        first = f"{old[name]!r}x{_BEFORE - 1}" if name in old else f"_x{_BEFORE - 1}"
        step = (new.get(name, 0) - old.get(name, 0)) / elapsed * STEP if elapsed else 0
        series.append({"series": name, "values": f"{first} " + (
            f"{new[name]!r}+{step!r}x{_AFTER}" if name in new else "stale")})
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    files = {"rules": {"groups": [{"name": "steward", "rules": alerts}]},
             "test": {"rule_files": ["rules"], "evaluation_interval": f"{STEP}s", "tests": [{
                 "interval": f"{STEP}s", "input_series": series, "promql_expr_test": [
                     {"expr": expression, "eval_time": f"{_BEFORE * STEP + held}s", "exp_samples": []}]}]}}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (pathlib.Path(folder) / name).write_text(yaml.safe_dump(content), "utf-8")
        result = subprocess.run(["promtool", "test", "rules", "test"], cwd=folder, text=True,
                                capture_output=True, timeout=60, check=False)
    said = result.stdout + result.stderr
    assert result.returncode == 0 or "got:" in said, said
    return re.findall(r'alertname="(\w+)"', said.partition("got:")[2]) if result.returncode else []


@contextlib.contextmanager
def follow(alert, cluster):
    """An Incident.  At the end its alert has fired, and all commands of its section have been typed."""
    one = Incident(alert, cluster)
    yield one
    assert one.fired, f"{alert} did not fire"
    left = [c for c in one.commands if c not in one.typed]
    assert not left, f"commands of {PAGE}#{alert.lower()} that were not typed: {left}"
