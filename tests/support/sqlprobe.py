# SPDX-License-Identifier: Apache-2.0
"""tests/integration/sql_probe: lib/sql, driven by commands."""

import base64
import json
import os
import subprocess

from . import paths


def _binary():
    return paths.build() / "tests" / "integration" / "sql_probe"


CLUSTER = "5a7e0000-0000-4000-8000-000000000001"


def account(user, password="s3cret-Pa55", **more):
    """A command's account; `password` may be bytes, or None for unknown."""
    raw = password.encode("utf-8", "surrogateescape") if isinstance(password, str) else password
    return {"user": user, "hosts": ["%"], "owner": f"shop/{user}"[:300], "uid": "uid-1",
            "cluster": CLUSTER,
            **({} if raw is None else {"password": base64.b64encode(raw).decode()}), **more}


def grant(database, *privileges, schema=None, table=None, option=False):
    """One entry of grants."""
    return {"database": database, "schema": schema, "table": table,
            "privileges": list(privileges), "option": option}


class Probe:
    """One probe process on a list of targets."""

    def __init__(self, folder, *targets, die_after=None, pause_after=None, epoch=None,
                 cluster=CLUSTER):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "targets.json"
        file.write_text(json.dumps(list(targets)))
        self.default = targets[0]["name"]
        self.stderr = open(folder / "stderr", "ab")
        self.stderr_path = folder / "stderr"
        env = {**os.environ, "SQL_PROBE_CLUSTER": cluster}
        if epoch:
            env["SQL_PROBE_EPOCH"] = str(epoch)
        if die_after:
            env["SQL_PROBE_DIE_AFTER"] = str(die_after)
        if pause_after:
            env["SQL_PROBE_PAUSE_AFTER"] = str(pause_after)
        self.process = subprocess.Popen([_binary(), file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.stderr, text=True,
                                        env=env)
        self.said = []

    def send(self, op, **command):
        """Sends a command and does not wait."""
        command = {"op": op, "target": self.default, **command}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def read(self):
        """The next answer; None when the probe has ended."""
        line = self.process.stdout.readline()
        self.said.append(line)
        return json.loads(line) if line else None

    def ask(self, op, **command):
        """Sends a command; its answer, or None when the probe ended during it."""
        try:
            self.send(op, **command)
        except BrokenPipeError:
            return None
        return self.read()

    def sync(self, **command):
        """stw_account_sync, which has to succeed."""
        report = self.ask("sync", **command)
        assert report and report["result"] == 0, report
        return report

    def fails(self, op, trouble, **command):
        """A command that has to fail with this trouble; its report."""
        report = self.ask(op, **command)
        assert report and report["result"] == -1 and report["trouble"] == trouble, report
        return report

    def drop(self, **command):
        """stw_account_drop, which has to succeed."""
        report = self.ask("drop", **command)
        assert report and report["result"] == 0, report
        return report

    def metric(self, name):
        """The lines of a metric."""
        text = self.ask("metrics")["metrics"]
        return [line for line in text.splitlines() if line.startswith(name)]

    def heard(self):
        """All its output, on both streams."""
        return "".join(self.said) + self.stderr_path.read_text("utf-8", "replace")

    def close(self):
        """Ends it; the exit status, which is not 0 after a sanitizer's report."""
        if self.process.poll() is None:
            self.process.stdin.close()
        status = self.process.wait(30)
        self.process.stdout.close()
        self.stderr.close()
        return status
