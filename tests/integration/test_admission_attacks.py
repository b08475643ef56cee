# SPDX-License-Identifier: Apache-2.0
"""Attacks by clients without credentials that reach the admission port."""

import contextlib
import select
import threading

import pytest

from support import attack, cpu
from support.webhook import JSON, VALIDATE, Webhook, as_bytes, ask, inside_limit, my_web, raw_post, review

MIB = 1 << 20
BODY_MAX = 7 * MIB


# CPU time of a body


def _escaped(text):
    return "".join(f"\\u{ord(c):04x}" for c in text)


@pytest.mark.parametrize("keys", [24, 25, 400, 20000])
def test_long_escaped_keys_are_checked_in_linear_time(webhook, keys):
    """7 MiB of escaped keys that differ in their middle: the duplicate check is linear."""
    size = (BODY_MAX - 4096) // keys // 6 - 16
    edge = _escaped("a" * max(size // 2 - 4, 2))
    body = "{" + ",".join(f'"{edge}{i:06}{edge}":1' for i in range(keys)) + "}"
    assert len(body) < BODY_MAX
    before = cpu.seconds(webhook.process.pid)
    status, _ = webhook.post(body.encode())
    assert status == 400
    assert cpu.seconds(webhook.process.pid) - before < cpu.allowed(0.4)


def test_duplicate_escaped_key_is_found(webhook):
    """Long keys that differ only in their escapes are still duplicates."""
    key = "k" * 5000
    for others in (1, 100):
        more = ",".join(f'"{key}{i}":1' for i in range(others))
        status, reply = webhook.post(f'{{"{key}":1,{more},"{_escaped(key)}":2}}'.encode())
        assert status == 400 and "duplicate key" in reply["message"]


# Memory


@pytest.fixture
def small_webhook(steward_binary, tmp_path):
    """A webhook in a cgroup with what the shipped limit leaves for it."""
    with inside_limit(lambda join: Webhook(steward_binary, tmp_path / "small", ["--webhook-memory=48"],
                                           join)) as one:
        yield one


def test_bodies_of_many_values_are_survived(small_webhook):
    """Bodies of [1,1,1...: each byte would take ten bytes of memory."""
    assert attack.many_values(small_webhook) == attack.ALL


def test_unfinished_bodies_are_survived(small_webhook):
    """18 bodies whose last byte never arrives."""
    assert attack.without_end(small_webhook) == attack.ALL


def test_thousand_small_connections_are_survived(small_webhook):
    """1,000 connections with 64 KiB each."""
    assert attack.a_little_each(small_webhook) == attack.ALL


def test_overload_answers_503_with_retry_after(small_webhook):
    """503 with a message, and Retry-After."""
    with contextlib.ExitStack() as stack:
        codes = []
        for _ in range(8):
            sock = stack.enter_context(small_webhook.tls())
            sock.sendall(raw_post(b"", length=BODY_MAX).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
            data = sock.recv(65536)
            codes.append(int(data.split()[1]))
        assert 100 in codes and 503 in codes, codes


# Connections


def test_slow_connections_of_one_address_do_not_block_others(make_webhook):
    """One address takes all connections; requests of another one are still served each time."""
    webhook = make_webhook("--webhook-max-connections=64")
    stop = threading.Event()

    def hold():
        mine = [webhook.tcp("127.0.0.2") for _ in range(32)]
        while not stop.is_set():  # connections that are closed are opened again at once
            for sock in select.select(mine, [], [], 0.05)[0]:
                mine.remove(sock)
                sock.close()
                mine.append(webhook.tcp("127.0.0.2"))
        for sock in mine:
            sock.close()
    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert attack.honest(webhook, 60) == 60
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_connection_flood_keeps_active_clients(make_webhook):
    """A flood from another address does not close the kept-alive connection of an active client."""
    webhook = make_webhook("--webhook-max-connections=32")
    with contextlib.closing(webhook.https()) as connection:
        connection.connect()
        sock = connection.sock
        flood = [webhook.tls("127.0.0.3") for _ in range(60)]
        for _ in range(5):
            status, _, reply = ask(connection, "POST", VALIDATE, as_bytes(review(my_web())), JSON)
            assert status == 200 and reply["response"]["allowed"]
        assert connection.sock is sock
        for one in flood:
            one.close()
