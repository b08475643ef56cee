# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine, as /proc shows them."""

import ctypes
import os
import pathlib
import signal
import subprocess
import time

RUN = "STEWARD_TEST_RUN"  # "PID START" of the run that a process belongs to, in its environment

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent):
    """Has the kernel send SIGTERM to this process when its parent ends, in any way."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the run has ended")


def adopt_orphans():
    """Descendants whose parent ends become children of this process, also daemons."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def stat(pid):
    """(state, parent's pid, start time) or None when there is no such process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = fields.rpartition(") ")[2].split()
    return fields[0], int(fields[1]), fields[19]


def identity(pid):
    """"PID START": a pid that the kernel gives to another process later has another start time."""
    found = stat(pid)
    return f"{pid} {found[2]}" if found and found[0] not in "ZX" else ""


def alive(name):
    """Whether the process of this identity runs."""
    pid = name.partition(" ")[0]
    return pid.isdigit() and identity(pid) == name


def pids():
    """The pids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(of):
    """The pids of all living children of a process, their children, and so on."""
    children = {}
    for pid in pids():
        found = stat(pid)
        if found and found[0] not in "ZX":
            children.setdefault(found[1], []).append(pid)
    left, result = [of], set()
    while left:
        more = children.get(left.pop(), [])
        result.update(more)
        left.extend(more)
    return result


def command_line(pid):
    """Its arguments; [] when it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace") \
            .split("\0")[:-1]
    except OSError:
        return []


def run_of(pid):
    """The identity of the run that started a process; "" when none did or it is unreadable."""
    try:
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    for variable in variables:
        if variable.startswith(RUN.encode() + b"="):
            return variable.partition(b"=")[2].decode("utf-8", "replace")
    return ""


def send(processes, number):
    """Sends a signal to each of these; those that have ended already are skipped."""
    for pid in processes:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def new_network():
    """A file descriptor of a new network namespace, which has only the loopback interface."""
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if child.stdout.readline() != b"up\n":
            raise OSError(f"no network namespace can be made: {' '.join(command)}")
        network = os.open(f"/proc/{child.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        child.stdin.close()
    return network


def reap():
    """Takes the exit status of each child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end(find, grace=5):
    """Ends all processes that find() returns: SIGTERM first, and SIGKILL after `grace` seconds."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10)):
        deadline = time.monotonic() + seconds
        asked = set()
        while True:
            reap()
            left = set(find())
            if not left:
                return
            send(left - asked, number)
            send(left - asked, signal.SIGCONT)
            asked |= left
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
