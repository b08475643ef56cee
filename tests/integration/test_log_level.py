# SPDX-License-Identifier: Apache-2.0
"""A change of the log level in the configuration file takes effect at once."""

import json
import signal
import subprocess

from support import net, wait, webhook


def test_log_level_follows_the_file(steward_binary, tmp_path):
    certs = webhook.make_pair(tmp_path / "certs", "webhook")
    config, log = tmp_path / "steward.yaml", tmp_path / "log"
    config.write_text("logLevel: info\n", encoding="utf-8")

    def told():
        return [json.loads(line)["logLevel"] for line in log.read_text("utf-8").splitlines()
                if '"log level changed"' in line]

    def write(text):
        """Replaces the file atomically, like a mounted ConfigMap."""
        new = tmp_path / "new"
        new.write_text(text, encoding="utf-8")
        new.rename(config)
    with open(log, "wb") as out, subprocess.Popen(
            [steward_binary, "webhook", "--config", config, "--webhook-cert-path", certs,
             "--webhook-bind-address", f"127.0.0.1:{net.free_port()}",
             "--metrics-bind-address", "0", "--health-probe-bind-address", "0"],
            stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            wait.until("it to begin", lambda: "serving probes" in log.read_text("utf-8"))
            write("logLevel: debug\n")
            wait.until("the level to be debug", lambda: told() == ["debug"])
            write("logLevel: loud\n")
            wait.until("a level that is none to be refused",
                       lambda: "log level refused" in log.read_text("utf-8"))
            write("# the default\n")
            wait.until("the default again", lambda: told() == ["debug", "info"])
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
