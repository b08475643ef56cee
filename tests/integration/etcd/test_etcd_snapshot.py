# SPDX-License-Identifier: Apache-2.0
"""Snapshots of real members through lib/etcd: intact, and damaged by a proxy."""

import base64
import functools
import hashlib
import http.server
import json
import os
import threading
import time
import urllib.request

import pytest

from support import etcd, net
from support.etcdprobe import Probe

SNAPSHOT = "/v3/maintenance/snapshot"


@pytest.fixture(scope="module")
def cluster(version):
    """One member with some MB of data, for all tests of this file."""
    with etcd.Cluster(1, version) as c:
        fill(c, "key")
        yield c


def fill(c, prefix):
    """Writes 3 MB."""
    for i in range(60):
        value = base64.b64encode(bytes([i]) * 50000).decode()
        key = base64.b64encode(f"{prefix}-{i}".encode()).decode()
        code, answer = c.members[0].post("/v3/kv/put", {"key": key, "value": value})
        assert code == 200, answer


@pytest.fixture
def probe(cluster):
    """A probe with short timeouts for calls and streams."""
    with Probe.of(cluster, timeout_ms=2000, stall_ms=1000) as p:
        yield p


@functools.cache
def pieces_of(member):
    """The pieces of a member's snapshot.  Fetched before the probe asks, whose stall timeout would
    otherwise run meanwhile."""
    request = urllib.request.Request(member.client_url + SNAPSHOT, b"{}")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return [base64.b64decode(json.loads(text)["result"]["blob"]) for text in reply]


class Mangler:
    """A proxy in front of a member.  The pieces of a snapshot are passed to `mangle`, which yields
    what is sent: bytes, or seconds to wait.  With `cut`, the connection is closed before the end of
    the response."""

    def __init__(self, member, mangle, cut=False):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                """Forwards the request."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == SNAPSHOT:
                    self.stream(pieces_of(member))
                    return
                request = urllib.request.Request(member.client_url + self.path, body)
                with urllib.request.urlopen(request, timeout=20) as reply:
                    answer = reply.read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def stream(self, pieces):
                """Sends the pieces in chunks, as the member does."""
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in mangle(list(pieces)):
                    if isinstance(part, (int, float)):
                        outer.ended.wait(part)
                    elif part:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                        self.wfile.flush()
                if cut:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

            def handle_one_request(self):
                """The client may close the connection at any time."""
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                """Logs nothing."""

        pieces_of(member)
        self.ended = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", net.free_port()), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def endpoint(self):
        """Its URL and address."""
        return {"url": f"http://localhost:{self.server.server_port}", "address": "127.0.0.1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


def line(piece):
    """One line of the stream."""
    return json.dumps({"result": {"blob": base64.b64encode(piece).decode()}}).encode() + b"\n"


def lines(pieces):
    """All lines of the stream."""
    return [line(piece) for piece in pieces]


@pytest.mark.every_version("the form of the stream")
def test_snapshot_equals_that_of_etcdctl(cluster, probe, tmp_path):
    """Hash, revision and number of keys equal those of etcdctl; the SHA-256 is the file's."""
    ours, theirs = tmp_path / "ours.db", tmp_path / "theirs.db"

    def save():
        theirs.unlink(missing_ok=True)
        cluster.ctl("snapshot", "save", theirs)
        return cluster.snapshot_status(theirs)

    # etcd writes for itself as well, the more so after its start, and its file grows by that.
    for _ in range(20):
        before = save()
        ours.unlink(missing_ok=True)
        got = probe.fine("snapshot", cluster.members[0], file=str(ours))
        if save() == before:
            break
    assert cluster.snapshot_status(ours) == before
    data = ours.read_bytes()
    assert got["size"] == str(len(data)) and got["sha256"] == hashlib.sha256(data).hexdigest()
    assert got["version"].startswith(cluster.version)
    status = cluster.snapshot_status(ours)
    assert status["revision"] == int(got["revision"]) == 61
    assert probe.fine("check", file=str(ours))["sha256"] == got["sha256"]


@pytest.mark.every_version("the form of the stream")
def test_snapshot_contains_acknowledged_writes(cluster, probe, tmp_path):
    """The reported revision is at least that of the last acknowledged write, and is in the file."""
    member = cluster.members[0]
    _, answer = member.post("/v3/kv/put", {"key": "YQ==", "value": "YQ=="})
    got = probe.fine("snapshot", member, file=str(tmp_path / "s.db"))
    status = cluster.snapshot_status(tmp_path / "s.db")
    assert status["revision"] >= int(got["revision"]) >= int(answer["header"]["revision"])


def test_memory_does_not_grow_with_the_snapshot(cluster, tmp_path, monkeypatch):
    """The stream is read line by line: far less than the 3 MB that were added."""
    # The address sanitizer would keep freed memory.
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "")
                       + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
    with Probe.of(cluster) as probe:
        def snapshot():
            return int(probe.fine("snapshot", cluster.members[0], file=str(tmp_path / "s.db"))["size"])
        size, before = snapshot(), _memory_kb(probe)
        fill(cluster, "more")
        grown = [snapshot() for _ in range(3)][-1] - size
        assert grown > 2_500_000
        assert _memory_kb(probe) - before < 2000


def _memory_kb(probe):
    with open(f"/proc/{probe.process.pid}/status", encoding="ascii") as file:
        return next(int(row.split()[1]) for row in file if row.startswith("VmHWM"))


# --- mangled

def one_byte_short(pieces):
    """The last byte is missing."""
    return lines([*pieces[:-1], pieces[-1][:-1]])


def one_byte_short_in_the_middle(pieces):
    """A byte of the database is missing."""
    return lines([pieces[0][:-1], *pieces[1:]])


def one_byte_more(pieces):
    """Something follows the hash."""
    return lines([*pieces, b"x"])


def one_bit_flipped(pieces):
    """One bit of the database is flipped."""
    middle = bytearray(pieces[len(pieces) // 2])
    middle[100] ^= 8
    return lines([*pieces[:len(pieces) // 2], bytes(middle), *pieces[len(pieces) // 2 + 1:]])


def one_bit_of_the_hash(pieces):
    """One bit of the hash is flipped."""
    last = bytearray(pieces[-1])
    last[-1] ^= 1
    return lines([*pieces[:-1], bytes(last)])


def no_hash(pieces):
    """The hash, a message of its own, is missing."""
    assert len(pieces[-1]) == 32
    return lines(pieces[:-1])


def a_piece_lost(pieces):
    """One message of the stream is missing."""
    return lines(pieces[:1] + pieces[2:])


def pieces_swapped(pieces):
    """Two messages of the stream are swapped."""
    return lines([pieces[1], pieces[0], *pieces[2:]])


def nothing(_pieces):
    """No message."""
    return []


DAMAGE = {one_byte_short: "damaged", one_byte_short_in_the_middle: "damaged",
          one_byte_more: "damaged", one_bit_flipped: "damaged", one_bit_of_the_hash: "damaged",
          no_hash: "does not end with its SHA-256", a_piece_lost: "damaged",
          pieces_swapped: "damaged", nothing: "cut"}


@pytest.mark.every_version("the form of the stream")
@pytest.mark.parametrize("mangle", DAMAGE, ids=lambda f: f.__name__)
def test_damaged_snapshot_is_refused(cluster, probe, tmp_path, mangle):
    """Each kind, in the stream and in the resulting file."""
    file = tmp_path / "s.db"
    with Mangler(cluster.members[0], mangle) as proxy:
        answer = probe.fails("snapshot", "FAILED", proxy, file=str(file))
    assert DAMAGE[mangle] in answer["error"] and "sha256" not in answer
    again = probe.fails("check", "FINE", file=str(file))
    assert DAMAGE[mangle] in again["error"]


@pytest.mark.every_version("the form of the stream")
def test_unmodified_stream_through_proxy_passes(cluster, probe, tmp_path):
    """Proves that the damage in the tests above comes from `mangle`."""
    with Mangler(cluster.members[0], lines) as proxy:
        probe.fine("snapshot", proxy, file=str(tmp_path / "s.db"))


def test_stream_lines_may_be_split_anywhere(cluster, probe, tmp_path):
    """The chunks of HTTP do not match lines."""
    def mangle(pieces):
        text = b"".join(lines(pieces))
        return [text[i:i + 4999] for i in range(0, len(text), 4999)]
    with Mangler(cluster.members[0], mangle) as proxy:
        probe.fine("snapshot", proxy, file=str(tmp_path / "s.db"))


def test_truncated_stream_is_an_error(cluster, probe, tmp_path):
    """The connection is closed within the stream."""
    with Mangler(cluster.members[0], lambda p: lines(p)[:10], cut=True) as proxy:
        probe.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"))


def test_error_line_in_stream_is_reported(cluster, probe, tmp_path):
    """An error line after a status of 200."""
    said = {"error": {"grpc_code": 14, "http_code": 503, "message": "etcdserver: no leader"}}
    with Mangler(cluster.members[0],
                 lambda p: [*lines(p)[:3], json.dumps(said).encode() + b"\n"]) as proxy:
        answer = probe.fails("snapshot", "NO_LEADER", proxy, file=str(tmp_path / "s.db"))
    assert "no leader" in answer["error"]


@pytest.mark.parametrize("rubbish, says", [
    (b"<html>\n", "not JSON"), (b'{"other":1}\n', "no result"),
    (b'{"result":{"blob":"?"}}\n', "not base64"), (b'{"result":{"blob":7}}\n', "not base64"),
    (b"x" * (3 << 20), "over 262144 bytes")],
    ids=["html", "no-result", "no-base64", "number", "endless"])
def test_garbage_stream_is_an_error(cluster, probe, tmp_path, rubbish, says):
    """A specific error message for each."""
    with Mangler(cluster.members[0], lambda p: [*lines(p)[:3], rubbish]) as proxy:
        answer = probe.fails("snapshot", "FAILED", proxy, file=str(tmp_path / "s.db"))
    assert says in answer["error"]


def test_stalled_stream_is_aborted(cluster, probe, tmp_path):
    """Aborted after the stall timeout, here 1 s, long before the timeout of the whole call."""
    with Mangler(cluster.members[0], lambda p: [*lines(p)[:3], 30]) as proxy:
        answer = probe.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"))
    assert answer["code"] == "Timeout" and "no data for 1 s" in answer["error"]
    assert int(answer["ms"]) < 3000


def test_slow_stream_completes(cluster, probe, tmp_path):
    """Longer than a call's timeout and the stall timeout, as long as data arrives."""
    def mangle(pieces):
        for i, text in enumerate(lines(pieces)):
            yield text
            if i < 8:
                yield 0.4
    with Mangler(cluster.members[0], mangle) as proxy:
        answer = probe.fine("snapshot", proxy, file=str(tmp_path / "s.db"))
    assert int(answer["ms"]) > 3000


def test_total_timeout_ends_a_stream(cluster, probe, tmp_path):
    """Even if data arrives continuously."""
    def mangle(pieces):
        for text in lines(pieces):
            yield text
            yield 0.2
    with Mangler(cluster.members[0], mangle) as proxy:
        answer = probe.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"),
                             timeout_ms=1500)
    assert answer["code"] == "Timeout" and int(answer["ms"]) < 2500


def test_sink_error_ends_the_stream(cluster, probe, tmp_path):
    """Its error message is returned, without a fault of etcd."""
    answer = probe.fails("snapshot", "FINE", cluster.members[0], file=str(tmp_path / "s.db"),
                         fail_after=100000)
    assert answer["error"] == "the store is full"


def test_cancel_ends_the_snapshot(cluster, tmp_path):
    """Immediately."""
    with Probe.of(cluster) as p, Mangler(cluster.members[0],
                                         lambda pieces: [*lines(pieces)[:3], 30]) as proxy:
        p.ask("cancel", after_ms=500)
        begin = time.monotonic()
        answer = p.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"))
        assert answer["code"] == "Cancelled" and time.monotonic() - begin < 3


def test_dead_member_is_unreachable(cluster, probe, tmp_path):
    """Connection refused."""
    at = {"url": f"http://localhost:{net.free_port()}", "address": "127.0.0.1"}
    probe.fails("snapshot", "UNREACHABLE", at, file=str(tmp_path / "s.db"))
