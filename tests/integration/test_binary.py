# SPDX-License-Identifier: Apache-2.0
"""How the program is built, and the restrictions of the running process."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from support import net, paths, wait, webhook


unsanitized = pytest.mark.skipif(paths.sanitizer(), reason="a sanitizer is built in")


def readelf(*what):
    """readelf of the program."""
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed (binutils)")
    return subprocess.run(["readelf", "-W", *what, str(paths.steward_binary())],
                          capture_output=True, text=True, check=True).stdout


def test_program_is_position_independent():
    assert "DYN (Position-Independent Executable file)" in readelf("-h")


def test_relocations_are_read_only():
    assert "GNU_RELRO" in readelf("-l")
    dynamic = readelf("-d")
    assert re.search(r"\(FLAGS\)\s+BIND_NOW|\(BIND_NOW\)", dynamic), dynamic
    assert re.search(r"\(FLAGS_1\)\s+Flags: .*\bNOW\b", dynamic), dynamic


def test_no_memory_is_writable_and_executable():
    """The stack and each loaded segment."""
    segments = [line.split() for line in readelf("-l").splitlines()
                if re.match(r"\s+(LOAD|GNU_STACK)\s", line)]
    stack = [s for s in segments if s[0] == "GNU_STACK"]
    assert stack and len(segments) > 2
    for segment in segments:
        flags = "".join(segment[6:-1])
        assert not ("W" in flags and "E" in flags), segment
    assert "TEXTREL" not in readelf("-d")


def test_program_has_no_rpath():
    """No RPATH, through which a foreign library could be loaded.  (A build of the suite with
    another Debian's libraries names their folder.)"""
    if "/debian-" in readelf("-l"):
        pytest.skip("it is linked against libraries of the suite's own folder")
    assert not re.search(r"\((RPATH|RUNPATH)\)", readelf("-d"))


@unsanitized
def test_program_has_stack_protector_and_fortify():
    symbols = readelf("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    checked = set(re.findall(r"\b(__\w+_chk)\b", symbols))
    assert {"__snprintf_chk", "__vsnprintf_chk"} <= checked, checked


def test_program_exports_no_symbols():
    """Exported symbols could be interposed by a library."""
    exported = [line.split()[7].partition("@")[0] for line in readelf("--dyn-syms").splitlines()
                if re.search(r"\b(FUNC|OBJECT)\s+GLOBAL\s+DEFAULT\s+\d+\s", line)]
    assert [s for s in exported if s.startswith("stw_")] == []


# --- the process


@pytest.fixture
def running(tmp_path):
    """running(*flags): a `steward webhook` that is ready."""
    started = []

    def start(*flags):
        one = webhook.Webhook(paths.steward_binary(), tmp_path, flags).start()
        started.append(one)
        return one
    yield start
    for one in started:
        assert one.stop() == 0, one.log_text()


def status(one):
    """/proc/PID/status as a dict."""
    with open(f"/proc/{one.process.pid}/status", encoding="utf-8") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)


def tasks(one):
    """The same for each of its threads."""
    found = []
    for task in os.listdir(f"/proc/{one.process.pid}/task"):
        with open(f"/proc/{one.process.pid}/task/{task}/status", encoding="utf-8") as lines:
            found.append(dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line))
    return found


def said(one, text):
    """The log lines with this message."""
    return [e for e in one.log() if e["msg"] == text]


def test_every_thread_is_sandboxed(running):
    one = running()
    assert len(tasks(one)) > 3
    for task in tasks(one):
        assert (task["NoNewPrivs"], task["Seccomp"]) == ("1", "2"), task["Name"]
        assert int(task["Seccomp_filters"]) >= 1
    entry, = said(one, "sandbox entered") or said(one, "the kernel lacks a part of the sandbox")
    assert entry["seccomp"] is True and entry["landlock"] >= 0


def test_sandbox_can_be_switched_off(running):
    one = running("--sandbox=off")
    assert status(one)["Seccomp"] == "0" and not said(one, "sandbox entered")
    assert dumps(one) == ("0", "0")


def test_unknown_sandbox_setting_is_refused(steward_binary):
    result = subprocess.run([steward_binary, "webhook", "--webhook-cert-path=/tmp", "--sandbox=on"],
                            capture_output=True, text=True, timeout=20, check=False)
    assert result.returncode == 2
    assert '--sandbox: "on" is not auto or off' in result.stderr


def dumps(one):
    """The limits of a core dump's size."""
    with open(f"/proc/{one.process.pid}/limits", encoding="utf-8") as lines:
        line = next(x for x in lines if x.startswith("Max core file size"))
    return tuple(line.split()[4:6])


def test_core_dumps_are_disabled(running):
    one = running()
    assert dumps(one) == ("0", "0")
    # Not dumpable: its memory belongs to root, whichever user it runs as.
    assert os.stat(f"/proc/{one.process.pid}/mem").st_uid == 0


# What a compromised process would try, and the resulting error: EPERM, EACCES or EAFNOSUPPORT.
REFUSED = {"execve": 1, "fork": 1, "ptrace": 1, "mount": 1, "setuid": 1, "packet-socket": 97,
           "writable-code": 13}
FENCED = {"read-outside": 13, "write-outside": 13, "write-inside": 13, "make": 13, "remove": 13}
ALLOWED = {"tcp-socket": 0, "memory": 0, "read-inside": 0}


def attempts(folder, *flags):
    """({name: errno} of what sandbox_probe.c tries within a steward, that steward, stopped)"""
    log, outside = folder / "attempts", folder / "outside"
    log.touch()
    outside.write_text("x")
    one = webhook.Webhook(paths.steward_binary(), folder / "in", flags)
    inside = one.certs / "file"
    inside.write_text("x")
    one.env = {"LD_PRELOAD": str(paths.steward_binary().parents[1] / "tests/integration/libsandbox_probe.so"),
               "SANDBOX_PROBE_LOG": str(log), "SANDBOX_PROBE_INSIDE": str(inside),
               "SANDBOX_PROBE_OUTSIDE": str(outside)}
    one.start()
    try:
        one.process.send_signal(signal.SIGUSR2)
        wait.until("the attempts", lambda: "end 0\n" in log.read_text())
        assert one.readyz()[0] == 200
    finally:
        assert one.stop() == 0, one.log_text()
    found = dict(line.split() for line in log.read_text().splitlines())
    return {name: int(error) for name, error in found.items() if name != "end"}, one


@unsanitized
def test_sandbox_refuses_forbidden_calls(tmp_path):
    found, one = attempts(tmp_path)
    fence = FENCED if said(one, "sandbox entered") else dict.fromkeys(FENCED, None)
    for name, error in {**REFUSED, **fence, **ALLOWED}.items():
        assert error is None or found[name] == error, (name, found)
    assert set(found) == set(REFUSED) | set(FENCED) | set(ALLOWED)


@unsanitized
def test_forbidden_calls_work_without_sandbox(tmp_path):
    """Proves that the test above can fail."""
    found, _ = attempts(tmp_path, "--sandbox=off")
    assert not [name for name in ("writable-code", *FENCED) if found[name] != 0], found
    assert not [name for name in ("execve", "fork", "ptrace", "mount") if found[name] == 1], found


def test_replaced_files_are_read_in_the_sandbox(running, tmp_path):
    """In the folders known at the start: a new certificate, time zones, /proc/self."""
    one = running()
    webhook.swap_pair(one.certs, webhook.make_pair(tmp_path / "new", "new"))
    wait.until("the new pair to be taken", lambda: len(
        said(one, "serving certificate in use")) == 2)
    eru = {"apiVersion": "mtsre.meitu.com/v1", "kind": "Eru", "metadata": {"name": "e"},
           "spec": {"schedule": "0 0 * * *", "timeZone": "Europe/Berlin", "deploymentname": "d"}}
    body = webhook.review(eru, kind={"group": "mtsre.meitu.com", "version": "v1", "kind": "Eru"},
                          resource={"group": "mtsre.meitu.com", "version": "v1", "resource": "erus"})
    code, reply = one.post(body, "/validate-mtsre-meitu-com-v1-eru")
    assert code == 200 and reply["response"]["allowed"], reply
    assert "timeZone" not in json.dumps(reply)
    _, text = net.http_get(f"http://127.0.0.1:{one.metrics_port}/metrics")
    for name in ("process_open_fds", "process_start_time_seconds", "process_cpu_seconds_total"):
        assert re.search(rf"^{name} [0-9.e+]*[1-9]", text, re.MULTILINE), name


def test_certificate_through_a_link_is_read(tmp_path, steward_binary):
    """Its folder contains symbolic links to files elsewhere, which are replaced there."""
    real = webhook.make_pair(tmp_path / "archive")
    one = webhook.Webhook(steward_binary, tmp_path)
    for name in ("tls.crt", "tls.key"):
        (one.certs / name).unlink()
        (one.certs / name).symlink_to(real / name)
    one.start()
    try:
        webhook.swap_pair(real, webhook.make_pair(tmp_path / "new", "new"))
        (one.certs / "touched").touch()  # else it is checked only once a minute
        wait.until("the new pair to be taken", lambda: len(
            said(one, "serving certificate in use")) == 2, 90)
    finally:
        assert one.stop() == 0
