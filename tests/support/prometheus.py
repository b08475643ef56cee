# SPDX-License-Identifier: Apache-2.0
"""A Prometheus of Debian's package, on loopback, that reads a steward's metrics."""

import json
import shutil
import subprocess
import urllib.parse

import yaml

from . import net, wait


def program():
    """Its path, or None."""
    return shutil.which("prometheus")


class Prometheus:
    """Scrapes each second.  `scrape` is one element of scrape_configs, without a name."""

    def __init__(self, folder, scrape):
        self.folder, self.port, self.process = folder, net.free_port(), None
        config = {"global": {"scrape_interval": "1s"},
                  "scrape_configs": [{"job_name": "steward", **scrape}]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config), "utf-8")

    def start(self):
        with open(self.folder / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                [program(), f"--config.file={self.folder}/prometheus.yml",
                 f"--storage.tsdb.path={self.folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        wait.until("prometheus to answer", lambda: self.query("up"), 60)
        return self

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def query(self, expression):
        """The series that an expression returns, as (labels, value)."""
        quoted = urllib.parse.quote(expression)
        status, text = net.http_get(f"http://127.0.0.1:{self.port}/api/v1/query?query={quoted}")
        assert status in (200, 400, 422, 503), (status, text)
        reply = json.loads(text) if status != 503 else {}
        if reply.get("status") != "success":
            raise ValueError(f"{expression}: {reply.get('error', text)}")
        return [(s["metric"], float(s["value"][1])) for s in reply["data"]["result"]]
