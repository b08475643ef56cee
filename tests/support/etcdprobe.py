# SPDX-License-Identifier: Apache-2.0
"""tests/integration/etcd_probe: lib/etcd, driven by commands."""

import json
import subprocess

from . import paths


def _binary():
    return paths.build() / "tests" / "integration" / "etcd_probe"


class Probe:
    """One probe process; etcd_probe.c documents `config`."""

    def __init__(self, **config):
        config = {key: value if isinstance(value, (int, str)) else str(value)
                  for key, value in config.items()}
        self.process = subprocess.Popen([_binary(), json.dumps(config)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    @classmethod
    def of(cls, cluster, **config):
        """A probe that has the certificates of a support.etcd.Cluster."""
        tls = cluster.folder / "tls"
        secure = {"ca": cluster.ca, "cert": tls / "tls.crt",
                  "key": tls / "tls.key"} if cluster.tls else {}
        return cls(**{**secure, **config})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.close()
        assert kind or status == 0, f"the probe ended with {status}"

    def ask(self, op, *at, **command):
        """Sends a command; its answer.  `at`: members, or endpoints as dicts."""
        endpoints = [m if isinstance(m, dict) else m.endpoint() for m in at]
        self.process.stdin.write(json.dumps({"op": op, "at": endpoints, **command}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the probe ended with {self.process.wait(10)}"
        return json.loads(line)

    def fine(self, op, *at, **command):
        """A command that has to succeed; its answer."""
        answer = self.ask(op, *at, **command)
        assert answer["result"] == 0 and answer["trouble"] == "FINE", answer
        return answer

    def fails(self, op, trouble, *at, **command):
        """A command that has to fail with this trouble; its answer."""
        answer = self.ask(op, *at, **command)
        assert answer["result"] == -1 and answer["trouble"] == trouble, answer
        return answer

    def round(self, *at):
        """A health round; its result for each."""
        return self.ask("round", *at)["round"]

    def close(self):
        """Ends it; the exit status, which is not 0 after a sanitizer's report."""
        if self.process.poll() is None:
            self.process.stdin.close()
        status = self.process.wait(30)
        self.process.stdout.close()
        return status
