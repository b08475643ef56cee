# SPDX-License-Identifier: Apache-2.0
"""`steward validate` on files that are none, that never end, or that have no object."""

import json
import os
import socket
import subprocess

import pytest

GOOD = """\
apiVersion: operator.k8s-summit.org/v1
kind: MyWeb
metadata: {name: web}
spec: {image: "nginx:1.25", pageContentHtml: x}
"""
ACCEPTED, UNREADABLE = 0, 2
LIMIT = 16 << 20


@pytest.fixture(name="validate")
def make_validate(steward_binary, tmp_path):
    """validate(*args, **how): runs it in the folder of the test; it must end by itself."""
    def run(*args, **how):
        return subprocess.run([steward_binary, "validate", *args], cwd=tmp_path, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **how)
    return run


def _fifo(path):
    os.mkfifo(path)


def _socket(path):
    socket.socket(socket.AF_UNIX).bind(str(path))


def _links_to(target):
    return lambda path: path.symlink_to(target)


def _sparse(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


NO_FILES = [
    (_fifo, "is a named pipe"), (_socket, "is a socket"), (_links_to("/dev/zero"), "is a device"),
    (_links_to("/dev/tty"), "is a device"), (_links_to("/dev/null"), "is a device"),
    (_links_to("/dev/fd/0"), "is a named pipe"), (_links_to("x.yaml"), "symbolic links"),
    (_links_to("nowhere"), "No such file"), (_sparse, "is larger than 16 MiB"),
]


@pytest.mark.parametrize("make, words", NO_FILES)
@pytest.mark.parametrize("operand", ["x.yaml", "."])
def test_irregular_file_is_refused(validate, tmp_path, make, words, operand):
    make(tmp_path / "x.yaml")
    (tmp_path / "y.yaml").write_text(GOOD)
    result = validate(operand, "y.yaml", stdin=subprocess.PIPE)
    assert result.returncode == UNREADABLE
    assert "x.yaml: " in result.stderr and words in result.stderr
    assert "MyWeb web accepted" in result.stdout  # the others are judged


def test_link_to_a_folder_is_refused(validate, tmp_path):
    (tmp_path / "x.yaml").symlink_to("..")
    result = validate(".")
    assert result.returncode == UNREADABLE and "./x.yaml: is a folder" in result.stderr


def test_shell_pipes_are_read(steward_binary, validate, tmp_path):
    """As kubectl -f <(...) does."""
    (tmp_path / "y.yaml").write_text(GOOD)
    done = subprocess.run(["bash", "-c", '"$0" validate <(cat y.yaml) <(cat y.yaml)', steward_binary],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (ACCEPTED, "")
    assert "2 objects: 2 accepted" in done.stdout
    for name in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        assert validate(name, input=GOOD).returncode == ACCEPTED
        with open(tmp_path / "y.yaml", encoding="utf-8") as file:
            assert validate(name, stdin=file).returncode == ACCEPTED


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_endless_input_is_read_up_to_the_limit(validate, name):
    with open("/dev/zero", "rb") as endless:
        result = validate(name, stdin=endless)
    assert result.returncode == UNREADABLE
    assert "is larger than 16 MiB" in result.stderr


def test_input_size_limit_is_exact(validate, tmp_path):
    (tmp_path / "y.yaml").write_text(GOOD + "#" * (LIMIT - len(GOOD)))
    assert validate("y.yaml").returncode == ACCEPTED
    assert validate("-", input=GOOD + "#" * (LIMIT - len(GOOD))).returncode == ACCEPTED
    (tmp_path / "y.yaml").write_text(GOOD + "#" * (LIMIT - len(GOOD) + 1))
    assert validate("y.yaml").returncode == UNREADABLE
    assert validate("--old", "y.yaml", "-", input=GOOD).returncode == UNREADABLE


EMPTY = {
    "nothing": b"", "one line end": b"\n", "comments": b"# a\n# b\n", "a mark": "\ufeff".encode(),
    "a mark and a comment": "\ufeff# a\n".encode(), "separators": b"---\n" * 100000,
    "separators and comments": b"---\n# a\n" * 50000, "nulls": b"---\nnull\n" * 1000,
}
BROKEN = {
    "a program": b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 16, "NUL": b"\x00" * 4096,
    "UTF-16": GOOD.encode("utf-16"),
    "half a character": GOOD.encode() + b"\xe6\x97", "half a document": GOOD.encode()[:-20],
    "half JSON": b'{"a": "',
    "a list": b"- a\n", "text": b"hello\n", "ends in a key": b"a:\n  ? b", "ends in an escape": b'a: "\\',
}


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif"])
def test_many_non_objects_are_counted(validate, tmp_path, form):
    """Two bytes each: a thousand are reported, the others counted."""
    count = 1_000_000
    items = ",".join(["1"] * count)
    (tmp_path / "x.json").write_text('{"apiVersion": "v1", "kind": "List", "items": [%s]}' % items)
    result = validate("-o", form, "x.json")
    assert result.returncode == UNREADABLE, result.returncode
    report = result.stdout + result.stderr
    assert len(report) < 2_000_000
    assert "more could not be read" in report
    if form == "text":
        assert f"{count} could not be read" in report
    if form == "json":
        parsed = json.loads(result.stdout)
        assert parsed["summary"]["unreadable"] == count and len(parsed["objects"]) == 1001


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif"])
@pytest.mark.parametrize("name", [*EMPTY, *BROKEN])
def test_input_without_an_object_is_an_error(validate, tmp_path, name, form):
    """An error in each form, which says what is missing, and nothing else."""
    data = {**EMPTY, **BROKEN}[name]
    (tmp_path / "x.yaml").write_bytes(data)
    result = validate("-o", form, "x.yaml")
    report = result.stdout + result.stderr
    if name == "UTF-16" and result.returncode == ACCEPTED:
        return  # it is YAML
    assert result.returncode == UNREADABLE, result
    if name in EMPTY:
        assert "there is no object" in report
    else:
        assert "x.yaml" in report
    if form == "json":
        parsed = json.loads(result.stdout)
        assert parsed["summary"]["unreadable"] == 1 and parsed["objects"][0]["error"]


def test_byte_order_mark_is_skipped(validate, tmp_path):
    (tmp_path / "x.yaml").write_bytes("\ufeff".encode() + GOOD.encode())
    assert validate("x.yaml").returncode == ACCEPTED
