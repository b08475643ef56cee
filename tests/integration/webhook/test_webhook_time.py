# SPDX-License-Identifier: Apache-2.0
"""Slow clients, and the `timeout` parameter of the caller."""

import concurrent.futures
import contextlib
import resource
import subprocess
import time

import pytest

from support import wait
from support.webhook import JSON, VALIDATE, as_bytes, ask, raw_post, read_reply, review

REQUEST_TIMEOUT_S = 10
GOOD = as_bytes(review())


@pytest.mark.parametrize("value", ["10s", "30s", "1m", "1m30s", "2h", "500ms", "1.5s"])
def test_timeout_parameter_formats_are_accepted(webhook, value):
    """A request that is answered at once is in time for any of them."""
    assert webhook.post(review(), f"{VALIDATE}?timeout={value}")[0] == 200


@pytest.mark.parametrize("query", ["timeout=", "timeout=x", "timeout=10", "timeout=-1s", "timeout=0s",
                                   "timeout=1d", "a=b&timeout=nonsense", "timeout=" + "9" * 100 + "s"])
def test_bad_timeout_parameter_is_a_400(webhook, query):
    """A 400 that shows the format."""
    status, reply = webhook.post(review(), f"{VALIDATE}?{query}")
    assert status == 400 and "10s" in reply["message"]


@pytest.mark.parametrize("query", ["", "a=b", "xtimeout=x", "a=timeout=x"])
def test_other_query_parameters_are_ignored(webhook, query):
    """Only `timeout` is read."""
    assert webhook.post(review(), f"{VALIDATE}?{query}")[0] == 200


def test_request_after_its_timeout_is_not_reviewed(webhook):
    """A body that arrives after the caller's deadline is not reviewed.  The response names the
    timeout: the API server has given up by then."""
    request = raw_post(GOOD, f"{VALIDATE}?timeout=300ms")
    with webhook.tls() as sock:
        sock.sendall(request[:-10])
        time.sleep(1.5)  # the delay itself is tested
        sock.sendall(request[-10:])
        status, body = read_reply(sock)
    assert status == 504 and b"timeout" in body


def test_unused_connection_is_kept_for_its_first_request(webhook):
    """Go's client may open a connection that it does not need yet.  The time counts from the first
    request, seconds later."""
    with webhook.tls() as sock:
        time.sleep(3)  # longer than the caller's timeout
        sock.sendall(raw_post(GOOD, f"{VALIDATE}?timeout=2s"))
        assert read_reply(sock)[0] == 200


def test_idle_connection_outlives_the_request_timeout(make_webhook):
    """It is not closed before the idle timeout: the client might just be sending a request."""
    webhook = make_webhook("--webhook-request-timeout", "1s", "--webhook-idle-timeout", "20s")
    with webhook.tls() as sock:
        time.sleep(2.5)  # longer than a request may take
        sock.sendall(raw_post(GOOD))
        assert read_reply(sock)[0] == 200


def _last_until_cut(sock, feed):
    """Seconds until the peer closes the connection, while `feed` is sent each 0.2 s."""
    begin = time.monotonic()
    sock.settimeout(0.2)
    while time.monotonic() - begin < 4 * REQUEST_TIMEOUT_S:
        try:
            if feed:
                sock.send(feed)
            if sock.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - begin


def test_slow_client_is_closed_in_every_phase(webhook):
    """Silence or a trickle, in the handshake, the head or the body: closed after the timeout."""
    def handshake(feed):
        sock = webhook.tcp()
        sock.send(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a ClientHello of 512 bytes
        return sock, feed and b"\x00"

    def head(feed):
        sock = webhook.tls()
        sock.send(b"POST " + VALIDATE.encode() + b" HTTP/1.1\r\nHost: x\r\nX: ")
        return sock, feed and b"y"

    def body(feed):
        sock = webhook.tls()
        sock.send(raw_post(b"{", length=100000))
        return sock, feed and b" "

    def nothing(_):
        return webhook.tcp(), None

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        slow = [phase(feed) for phase in (handshake, head, body, nothing) for feed in (None, True)]
        times = list(pool.map(lambda each: _last_until_cut(*each), slow))
        for sock, _ in slow:
            sock.close()
    assert all(REQUEST_TIMEOUT_S - 2 < t < 2 * REQUEST_TIMEOUT_S for t in times), times


def test_timeout_options_are_applied(make_webhook):
    """The options set the timeouts of a request and of an idle connection."""
    webhook = make_webhook("--webhook-request-timeout", "1s", "--webhook-idle-timeout", "2s")
    with webhook.tcp() as silent:
        assert 0.5 < _last_until_cut(silent, None) < 6  # and not 10
    with webhook.tls() as kept:
        kept.sendall(raw_post(GOOD))
        assert read_reply(kept)[0] == 200
        assert 1.5 < _last_until_cut(kept, None) < 10


def test_connection_limit_closes_the_oldest(make_webhook):
    """Above the limit the oldest connection without a finished request is closed; others stay."""
    webhook = make_webhook("--webhook-max-connections", "16")
    with contextlib.closing(webhook.https()) as served:
        assert ask(served, "POST", VALIDATE, GOOD, JSON)[0] == 200
        silent = [webhook.tcp() for _ in range(40)]
        assert _last_until_cut(silent[0], None) < 5
        assert ask(served, "POST", VALIDATE, GOOD, JSON)[0] == 200
        for sock in silent:
            sock.close()


@pytest.mark.parametrize("option", ["--webhook-max-connections=15", "--webhook-max-connections=1e9",
                                    "--webhook-request-timeout=0", "--webhook-request-timeout=2m",
                                    "--webhook-idle-timeout=10ms"])
def test_out_of_range_options_are_refused(steward_binary, option):
    """Refused at the start."""
    result = subprocess.run([steward_binary, "webhook", option], capture_output=True, text=True,
                            check=False, timeout=60)
    assert result.returncode != 0 and option.partition("=")[0] in result.stderr


def _thread_time(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_stalled_handshakes_use_no_cpu(make_webhook):
    """Fifty clients that stop during a handshake use no CPU time."""
    webhook = make_webhook()
    socks = [webhook.tcp() for _ in range(50)]
    for sock in socks:
        sock.send(b"\x16\x03\x01\x02\x00\x01")
    assert webhook.post(review())[0] == 200
    before = _thread_time(webhook.process.pid)
    time.sleep(1)  # a second in which nothing should happen
    assert _thread_time(webhook.process.pid) - before < 0.2
    for sock in socks:
        sock.close()


CROWD = 10000


@pytest.fixture
def crowd_size():
    """10,000, or what the file limit allows; the limit is restored afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(CROWD, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _arrive(webhook, number):
    """A slow connection: a third are silent, a third begin a handshake, a third nearly end it."""
    sock = webhook.tcp(f"127.{1 + number // 60000}.{number // 250 % 240}.{1 + number % 250}", 30)
    with contextlib.suppress(OSError):
        if number % 3 == 1:
            sock.send(b"\x16\x03\x01\x02\x00\x01")
        elif number % 3 == 2:
            sock.send(b"\x16\x03\x01\x02\x00\x01" + b"\x00" * 200)
    return sock


def test_ten_thousand_slow_connections_do_not_block(make_webhook, crowd_size):
    """Meanwhile an established client and new ones are served, and nothing is leaked afterwards."""
    webhook = make_webhook()
    crowd, slowest = [], 0.0
    with contextlib.closing(webhook.https()) as kept:
        assert ask(kept, "POST", VALIDATE, GOOD, JSON)[0] == 200
        sock = kept.sock
        for number in range(crowd_size):
            crowd.append(_arrive(webhook, number))
            if number % 500 == 499:
                begin = time.monotonic()
                assert ask(kept, "POST", VALIDATE, GOOD, JSON)[0] == 200
                slowest = max(slowest, time.monotonic() - begin)
                assert webhook.post(review())[0] == 200
        assert kept.sock is sock, "the established client lost its connection"
        assert webhook.readyz()[0] == 200
    assert slowest < wait.within(2), f"an established client waited {slowest:.2f} s"
    assert webhook.metric("process_open_fds") < 2000
    for sock in crowd:
        sock.close()
    wait.until("the descriptors to be given back",
               lambda: webhook.metric("process_open_fds") < 100)
    assert webhook.metric("process_resident_memory_bytes") < 400 << 20
