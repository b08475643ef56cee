# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/proc.sh: how it detects that a program has exited."""

import os
import subprocess

import pytest
from support import paths

# Its first thread exits at once; the port stays in use until the other one exits, too.
LISTENER = """
import ctypes, os, socket, threading
taken = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: os.read(0, 1)).start()
print(taken.getsockname()[1], flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""
LOOK = """
set -euo pipefail; LIB=$1 CLUSTER=$2 PID=$3
for part in common proc; do . "$LIB/$part.sh"; done
until proc_stat "$PID" && [[ $PROC_STATE == Z ]]; do sleep 0.05; done
echo "$PID $PROC_START" >"$CLUSTER/run/listener.pid"
proc_state listener
"""


def test_process_lives_until_its_last_thread_ends(tmp_path):
    """Otherwise a component would be restarted before its port is free."""
    (tmp_path / "run").mkdir()

    def state():
        return subprocess.run(["bash", "-c", LOOK, "-", paths.SCRIPTS / "lib", tmp_path,
                               str(one.pid)], check=True, text=True, capture_output=True,
                              timeout=30).stdout
    with subprocess.Popen(["/usr/bin/python3", "-c", LISTENER], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as one:
        assert one.stdout.readline()
        assert state() == "running"
        one.stdin.close()
        one.stdin = None
        assert one.stdout.read() == b""  # it has no open descriptors left
        assert state() == "stopped"


LAUNCH = """
set -euo pipefail; LIB=$1 CLUSTER=$2
for part in common proc; do . "$LIB/$part.sh"; done
eval "$3"
proc_define teller sh -c 'printf "<%s>" "$STEWARD_TEST_RUN"'
proc_launch teller
wait_until 30 proc_ended
cat "$CLUSTER/log/teller.log"
"""


@pytest.mark.parametrize("settings, told", [("MADE_BY_RUN=''", "<>"), ("MADE_BY_RUN='7 8'", "<7 8>"),
                                            ("", "<1 2>")])
def test_component_belongs_to_the_run_of_its_cluster(tmp_path, settings, told):
    """Otherwise a test that restarts a component of a given cluster would get the cluster ended by the
    next run."""
    for folder in ("run", "log"):
        (tmp_path / folder).mkdir()
    done = subprocess.run(["bash", "-c", LAUNCH, "-", paths.SCRIPTS / "lib", tmp_path,
                           f"{settings}\nproc_ended() {{ ! proc_find teller; }}"], check=True, text=True,
                          capture_output=True, timeout=60, env={**os.environ, "STEWARD_TEST_RUN": "1 2"})
    assert done.stdout == told
