# SPDX-License-Identifier: Apache-2.0
"""`steward top` in a terminal: a pseudo-terminal, and a replica that is a double on loopback."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

from support import served, webhook

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
TOKEN = "a-token-of-the-engineer"
ESCAPES = "\x1b[31m\x1b]0;owned\x07\u009b2J\r\n\u202e"


class _Replica(served.Handler):
    """/debug/state and /metrics; `server.hangs`: no answer."""

    def do_GET(self):
        """Counts its requests."""
        if self.server.hangs.is_set():
            self.server.ends.wait(60)
            return
        self.server.looks += self.path == "/debug/state"
        self.server.tokens.add(self.headers["Authorization"])
        body = json.dumps({
            "build": {"version": "9.9.9"}, "started": "2026-01-01T00:00:00Z", "uptimeSeconds": 10,
            "reconciles": True, "queues": [{"kind": "MyWeb", "depth": self.server.looks}],
            "errors": [{"kind": "MyWeb", "namespace": "shop", "name": f"web{ESCAPES}", "error": ESCAPES}],
        }) if self.path == "/debug/state" else "nothing\n"
        self.reply(body=body.encode())


@pytest.fixture
def replica(tmp_path):
    """The double; its `options` are those of top."""
    certs = webhook.make_pair(tmp_path / "certs")
    server = served.Served(_Replica, pair=certs)
    server.looks, server.tokens, server.hangs, server.ends = 0, set(), threading.Event(), threading.Event()
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    server.options = ["--url", server.url, "--token-file", token,
                      "--ca-file", certs / "tls.crt"]
    yield server
    server.ends.set()
    server.close()


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *command, rows=24, columns=100):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.text = ""
        self.process = subprocess.Popen([str(c) for c in command], stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, start_new_session=True,
                                        preexec_fn=self._take)

    def _take(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that ^C and resizes become signals

    def resize(self, rows, columns):
        """Another window."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, what, seconds=30):
        """Reads until `what`(all new text) is true; the new text."""
        begin, deadline = len(self.text), time.monotonic() + seconds
        while not what(self.text[begin:]):
            assert time.monotonic() < deadline, self.text[begin:]
            if select.select([self.master], [], [], 0.2)[0]:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")
        return self.text[begin:]

    def type(self, keys):
        """Keys."""
        os.write(self.master, keys.encode())

    def end(self):
        """Its exit status; checks that the terminal is as before."""
        status = self.process.wait(20)
        while select.select([self.master], [], [], 0.2)[0]:
            self.text += os.read(self.master, 65536).decode("utf-8", "replace")
        assert termios.tcgetattr(self.slave) == self.before
        assert self.text.count(ENTER) == self.text.count(LEAVE) > 0
        assert self.text.rindex(LEAVE) > self.text.rindex(ENTER)
        assert self.text.count("\x1b[?25l") == self.text.count("\x1b[?25h")  # the cursor
        return status

    def close(self):
        """In any case."""
        self.process.kill()
        self.process.wait(20)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(steward_binary, replica):
    """terminal(*arguments): a Terminal that runs `steward top`."""
    with contextlib.ExitStack() as stack:
        def start(*arguments, **size):
            one = Terminal(steward_binary, "top", *replica.options, *arguments, **size)
            stack.callback(one.close)
            return one
        yield start


def test_screen_is_refreshed_and_escapes_hostile_text(terminal, replica):
    one = terminal("--interval", "500ms")
    one.read_until(lambda text: text.count("\x1b[H") >= 3)
    one.type("q")
    assert one.end() == 0
    assert r"shop/web\x1b[31m\x1b]0;owned\x07\u009b2J\r\n\u202e" in one.text
    ours = re.sub(r"\x1b\[(\?1049[hl]|\?25[hl]|[HJK])|\r\n", "", one.text)
    assert all(" " <= c <= "~" for c in ours), ours
    assert replica.looks >= 3 and replica.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in one.text


def test_window_resize_redraws(terminal):
    one = terminal("--interval", "1h", columns=60)
    text = one.read_until(lambda text: text.endswith("\x1b[J"))
    assert max(len(line) for line in re.sub(r"\x1b\[\??\d*\w", "", text).split("\r\n")) == 60
    one.resize(6, 20)
    text = one.read_until(lambda text: text.endswith("\x1b[J"))
    assert text.startswith("\x1b[H") and "lines 1 to 4 of" in text
    lines = re.sub(r"\x1b\[\??\d*\w", "", text).split("\r\n")
    assert len(lines) == 6 and max(map(len, lines)) == 20
    one.type("q")
    assert one.end() == 0


@pytest.mark.parametrize("how, number", [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT),
                                         (None, signal.SIGTERM), (None, signal.SIGHUP)])
def test_signals_restore_the_terminal(terminal, replica, how, number):
    """Also while a replica does not answer."""
    one = terminal("--interval", "500ms")
    one.read_until(lambda text: text.count("\x1b[H") >= 2)
    replica.hangs.set()
    before = replica.looks
    one.read_until(lambda text: replica.looks == before)
    if how:
        one.type(how)
    else:
        os.kill(one.process.pid, number)
    assert one.end() == -number


def test_stop_and_continue_restore_the_screen(terminal):
    one = terminal("--interval", "500ms")
    one.read_until(lambda text: text.count("\x1b[H") >= 2)
    os.kill(one.process.pid, signal.SIGTSTP)
    one.read_until(lambda text: LEAVE in text)
    assert os.waitpid(one.process.pid, os.WUNTRACED)[1] & 0xff == 0x7f
    assert termios.tcgetattr(one.slave) == one.before
    os.kill(one.process.pid, signal.SIGCONT)
    one.read_until(lambda text: ENTER in text and text.count("\x1b[H") >= 2)
    one.type("q")
    assert one.end() == 0


def test_arrow_keys_scroll(terminal):
    """Without asking again."""
    one = terminal("--interval", "1h", rows=6)
    assert "lines 1 to 4 of" in one.read_until(lambda text: text.endswith("\x1b[J"))
    one.type("\x1b[B\x1b[B")
    assert "lines 3 to 6 of" in one.read_until(lambda text: "lines 3" in text and text.endswith("\x1b[J"))
    one.type("\x1b[H")
    one.read_until(lambda text: "lines 1 to 4 of" in text and text.endswith("\x1b[J"))
    one.type("q")
    assert one.end() == 0


def test_space_refreshes_at_once(terminal, replica):
    one = terminal("--interval", "1h")
    one.read_until(lambda text: text.endswith("\x1b[J"))
    assert replica.looks == 1
    one.type(" ")
    one.read_until(lambda text: text.endswith("\x1b[J"))
    assert replica.looks == 2
    one.type("q")
    assert one.end() == 0


def once(binary, *arguments):
    """A finished `steward top`, whose standard output is a pipe."""
    return subprocess.run([binary, "top", *arguments], text=True, capture_output=True, timeout=60,
                          check=False)


def test_output_without_terminal_is_printed_once(steward_binary, replica):
    done = once(steward_binary, *replica.options)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("#  REPLICA ") and "9.9.9" in done.stdout
    assert all(" " <= c <= "~" or c == "\n" for c in done.stdout)
    assert replica.looks == 1


def test_unreadable_replica_is_reported(steward_binary, replica, tmp_path):
    url, token_file = replica.options[:2], replica.options[2:4]
    done = once(steward_binary, *url, *token_file)  # a CA that the system does not know
    assert done.returncode == 1 and "cannot be read: https://127.0.0.1:" in done.stdout
    assert replica.looks == 0 and not replica.tokens
    done = once(steward_binary, *replica.options, "--tls-server-name", "other.example")
    assert done.returncode == 1 and "cannot be read: " in done.stdout and replica.looks == 0
    done = once(steward_binary, *url, "--token-file", tmp_path / "none")
    assert done.returncode == 2 and str(tmp_path / "none") in done.stderr


@pytest.mark.parametrize("arguments, words", [
    (["--url", "http://127.0.0.1:1", "--token-file", "x"], '"http://127.0.0.1:1" does not begin with https://'),
    (["--url", "https://127.0.0.1:1"], "--url needs --token-file"),
    (["--ca-file", "x"], "--ca-file and --tls-server-name are for --url"),
    (["--interval", "1ms"], "--interval"),
    (["pods"], "it takes options only"),
])
def test_wrong_arguments_are_an_error(steward_binary, arguments, words):
    done = once(steward_binary, *arguments)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""
