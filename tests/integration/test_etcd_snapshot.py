# SPDX-License-Identifier: Apache-2.0
"""Snapshots of real members through controller/etcd: whole, and mangled on their way by a proxy that
stands before the real member."""

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
    """One member with some MB in it, for all tests of this file."""
    with etcd.Cluster(1, version) as c:
        fill(c, "key")
        yield c


def fill(c, prefix):
    """3 MB."""
    for i in range(60):
        value = base64.b64encode(bytes([i]) * 50000).decode()
        key = base64.b64encode(f"{prefix}-{i}".encode()).decode()
        code, answer = c.members[0].post("/v3/kv/put", {"key": key, "value": value})
        assert code == 200, answer


@pytest.fixture
def probe(cluster):
    """Its calls and streams are given up early."""
    with Probe.of(cluster, timeout_ms=2000, stall_ms=1000) as p:
        yield p


@functools.cache
def pieces_of(member):
    """A member's snapshot as it streams it.  Taken before the probe asks, whose time of silence runs
    while nothing comes."""
    request = urllib.request.Request(member.client_url + SNAPSHOT, b"{}")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return [base64.b64decode(json.loads(text)["result"]["blob"]) for text in reply]


class Mangler:
    """Passes everything on to a member; the pieces of a snapshot go through `mangle` first, which
    yields what is sent: bytes, or seconds to wait.  With `cut`, the connection ends without the end
    of the answer."""

    def __init__(self, member, mangle, cut=False):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                """Passes it on."""
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
                """In chunks, as the member does."""
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
                """The other end may hang up at any time."""
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                """Says nothing."""

        pieces_of(member)
        self.ended = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", net.free_port()), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def endpoint(self):
        """Where it listens."""
        return {"url": f"http://localhost:{self.server.server_port}", "address": "127.0.0.1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


def line(piece):
    """A line of the stream."""
    return json.dumps({"result": {"blob": base64.b64encode(piece).decode()}}).encode() + b"\n"


def lines(pieces):
    """All of them."""
    return [line(piece) for piece in pieces]


@pytest.mark.every_version("the form of the stream")
def test_a_snapshot_is_that_of_etcdctl(cluster, probe, tmp_path):
    """The same hash, revision and number of keys as etcdctl's own; its SHA-256 is ours."""
    ours, theirs = tmp_path / "ours.db", tmp_path / "theirs.db"
    got = probe.fine("snapshot", cluster.members[0], file=str(ours))
    cluster.ctl("snapshot", "save", theirs)
    assert cluster.snapshot_status(ours) == cluster.snapshot_status(theirs)
    data = ours.read_bytes()
    assert got["size"] == str(len(data)) and got["sha256"] == hashlib.sha256(data).hexdigest()
    assert got["version"].startswith(cluster.version)
    status = cluster.snapshot_status(ours)
    assert status["revision"] == int(got["revision"]) == 61
    assert probe.fine("check", file=str(ours))["sha256"] == got["sha256"]


@pytest.mark.every_version("the form of the stream")
def test_what_was_written_before_is_in_it(cluster, probe, tmp_path):
    """The revision that is told is at least that of the last answered write, and is in the file."""
    member = cluster.members[0]
    _, answer = member.post("/v3/kv/put", {"key": "YQ==", "value": "YQ=="})
    got = probe.fine("snapshot", member, file=str(tmp_path / "s.db"))
    status = cluster.snapshot_status(tmp_path / "s.db")
    assert status["revision"] >= int(got["revision"]) >= int(answer["header"]["revision"])


def test_memory_does_not_grow_with_the_snapshot(cluster, tmp_path, monkeypatch):
    """A line at a time: far less than the 3 MB that were added."""
    # The address sanitizer would keep what has been freed.
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
    """One bit of the database."""
    middle = bytearray(pieces[len(pieces) // 2])
    middle[100] ^= 8
    return lines([*pieces[:len(pieces) // 2], bytes(middle), *pieces[len(pieces) // 2 + 1:]])


def one_bit_of_the_hash(pieces):
    """One bit of the hash."""
    last = bytearray(pieces[-1])
    last[-1] ^= 1
    return lines([*pieces[:-1], bytes(last)])


def no_hash(pieces):
    """The hash comes in a message of its own: it is left out."""
    assert len(pieces[-1]) == 32
    return lines(pieces[:-1])


def a_piece_lost(pieces):
    """One message of the stream."""
    return lines(pieces[:1] + pieces[2:])


def pieces_swapped(pieces):
    """Two messages of the stream."""
    return lines([pieces[1], pieces[0], *pieces[2:]])


def nothing(_pieces):
    """No message at all."""
    return []


DAMAGE = {one_byte_short: "damaged", one_byte_short_in_the_middle: "damaged",
          one_byte_more: "damaged", one_bit_flipped: "damaged", one_bit_of_the_hash: "damaged",
          no_hash: "does not end with its SHA-256", a_piece_lost: "damaged",
          pieces_swapped: "damaged", nothing: "cut"}


@pytest.mark.every_version("the form of the stream")
@pytest.mark.parametrize("mangle", DAMAGE, ids=lambda f: f.__name__)
def test_damage_is_refused(cluster, probe, tmp_path, mangle):
    """Each kind, in the stream and in the file that came of it."""
    file = tmp_path / "s.db"
    with Mangler(cluster.members[0], mangle) as proxy:
        answer = probe.fails("snapshot", "FAILED", proxy, file=str(file))
    assert DAMAGE[mangle] in answer["error"] and "sha256" not in answer
    again = probe.fails("check", "FINE", file=str(file))
    assert DAMAGE[mangle] in again["error"]


@pytest.mark.every_version("the form of the stream")
def test_a_proxy_that_mangles_nothing(cluster, probe, tmp_path):
    """Otherwise the tests above would prove nothing."""
    with Mangler(cluster.members[0], lines) as proxy:
        probe.fine("snapshot", proxy, file=str(tmp_path / "s.db"))


def test_lines_may_come_in_any_pieces(cluster, probe, tmp_path):
    """Chunks of the transport are no lines."""
    def mangle(pieces):
        text = b"".join(lines(pieces))
        return [text[i:i + 4999] for i in range(0, len(text), 4999)]
    with Mangler(cluster.members[0], mangle) as proxy:
        probe.fine("snapshot", proxy, file=str(tmp_path / "s.db"))


def test_a_stream_that_ends_early(cluster, probe, tmp_path):
    """The connection is closed in the middle."""
    with Mangler(cluster.members[0], lambda p: lines(p)[:10], cut=True) as proxy:
        probe.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"))


def test_an_error_in_mid_stream(cluster, probe, tmp_path):
    """A line that is an error, behind a status of 200."""
    said = {"error": {"grpc_code": 14, "http_code": 503, "message": "etcdserver: no leader"}}
    with Mangler(cluster.members[0],
                 lambda p: [*lines(p)[:3], json.dumps(said).encode() + b"\n"]) as proxy:
        answer = probe.fails("snapshot", "NO_LEADER", proxy, file=str(tmp_path / "s.db"))
    assert "no leader" in answer["error"]


@pytest.mark.parametrize("rubbish, says", [
    (b"<html>\n", "no JSON"), (b'{"other":1}\n', "no result"),
    (b'{"result":{"blob":"?"}}\n', "no base64"), (b'{"result":{"blob":7}}\n', "no base64"),
    (b"x" * (3 << 20), "over 1048576 bytes")],
    ids=["html", "no-result", "no-base64", "number", "endless"])
def test_what_is_no_stream(cluster, probe, tmp_path, rubbish, says):
    """A sentence for each."""
    with Mangler(cluster.members[0], lambda p: [*lines(p)[:3], rubbish]) as proxy:
        answer = probe.fails("snapshot", "FAILED", proxy, file=str(tmp_path / "s.db"))
    assert says in answer["error"]


def test_a_stream_that_stands_still(cluster, probe, tmp_path):
    """Given up after the time of silence, here 1 s, long before the time of the whole."""
    with Mangler(cluster.members[0], lambda p: [*lines(p)[:3], 30]) as proxy:
        answer = probe.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"))
    assert answer["code"] == "Timeout" and "nothing came for 1 s" in answer["error"]
    assert int(answer["ms"]) < 3000


def test_a_slow_stream_is_waited_for(cluster, probe, tmp_path):
    """Longer than the time of one call and than the time of silence, as long as something comes."""
    def mangle(pieces):
        for i, text in enumerate(lines(pieces)):
            yield text
            if i < 8:
                yield 0.4
    with Mangler(cluster.members[0], mangle) as proxy:
        answer = probe.fine("snapshot", proxy, file=str(tmp_path / "s.db"))
    assert int(answer["ms"]) > 3000


def test_the_time_of_the_whole_ends_it(cluster, probe, tmp_path):
    """Also when something comes all the time."""
    def mangle(pieces):
        for text in lines(pieces):
            yield text
            yield 0.2
    with Mangler(cluster.members[0], mangle) as proxy:
        answer = probe.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"),
                             timeout_ms=1500)
    assert answer["code"] == "Timeout" and int(answer["ms"]) < 2500


def test_the_sink_may_end_it(cluster, probe, tmp_path):
    """Its own words come back, and etcd had no trouble."""
    answer = probe.fails("snapshot", "FINE", cluster.members[0], file=str(tmp_path / "s.db"),
                         fail_after=100000)
    assert answer["error"] == "the store is full"


def test_cancel_ends_a_snapshot(cluster, tmp_path):
    """At once."""
    with Probe.of(cluster) as p, Mangler(cluster.members[0],
                                         lambda pieces: [*lines(pieces)[:3], 30]) as proxy:
        p.ask("cancel", after_ms=500)
        begin = time.monotonic()
        answer = p.fails("snapshot", "UNREACHABLE", proxy, file=str(tmp_path / "s.db"))
        assert answer["code"] == "Cancelled" and time.monotonic() - begin < 3


def test_a_dead_member_gives_none(cluster, probe, tmp_path):
    """Nobody listens."""
    at = {"url": f"http://localhost:{net.free_port()}", "address": "127.0.0.1"}
    probe.fails("snapshot", "UNREACHABLE", at, file=str(tmp_path / "s.db"))
