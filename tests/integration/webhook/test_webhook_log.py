# SPDX-License-Identifier: Apache-2.0
"""A log that is not read, and threads that are stuck: what goes on, what is reported, and the end."""

import contextlib
import os
import time

import pytest

from support import net, paths, stuck, wait
from support.webhook import DENIALS, PipedWebhook, deny, review


@pytest.fixture
def piped_webhook(steward_binary, tmp_path):
    """Starts a PipedWebhook with these arguments."""
    webhooks = []

    def start(*args):
        webhooks.append(PipedWebhook(steward_binary, tmp_path / f"webhook{len(webhooks)}", args))
        return webhooks[-1].start()
    yield start
    for webhook in webhooks:
        if webhook.process.poll() is None:
            webhook.process.kill()
            webhook.process.wait()
        os.close(webhook.end)


def probe(webhook, endpoint):
    """(status, text)"""
    return net.http_get(f"http://127.0.0.1:{webhook.health_port}/{endpoint}?verbose")


def test_unread_log_does_not_block_admission(piped_webhook):
    """Each review is answered, lost lines are counted, and the stop takes no longer than usual."""
    webhook = piped_webhook()
    deny(webhook)
    dropped = webhook.metric("steward_log_lines_dropped_total")
    assert 0 < dropped < DENIALS
    assert probe(webhook, "livez")[0] == 200 and probe(webhook, "readyz")[0] == 200
    assert webhook.stop(15) == 0


def test_log_reports_the_number_of_dropped_lines(piped_webhook):
    """The order is kept, the gap is reported where it is, and the last lines are there."""
    webhook = piped_webhook()
    deny(webhook)
    dropped = webhook.metric("steward_log_lines_dropped_total")
    before = len([entry for entry in webhook.log() if "denied" in entry["msg"]])

    def reported():
        return sum(entry["lines"] for entry in webhook.log() if "were dropped" in entry["msg"])
    wait.until("the number of lost lines", lambda: reported() == dropped)
    deny(webhook, 3)
    webhook.terminate()
    log = webhook.drained()
    assert webhook.process.wait(15) == 0
    denials = [entry for entry in log if "denied" in entry["msg"]]
    assert before <= len(denials) == DENIALS + 3 - dropped
    assert [entry["time"] for entry in log] == sorted(entry["time"] for entry in log)
    assert log[-1]["msg"] == "stopping"


def admission_threads(webhook):
    """libmicrohttpd names its threads.  Those of the metrics port and of the probe port are later ones."""
    return [number for number, name in stuck.threads(webhook.process.pid) if name.startswith("MHD-")]


def gate(webhook):
    """The thread that accepts connections."""
    return [number for number, name in stuck.threads(webhook.process.pid) if name == "gate"]


@pytest.mark.parametrize("name", ["gate", "admission"])
def test_livez_fails_for_a_stuck_thread(make_webhook, name):
    """A thread of the webhook that stops: /livez fails and names it, until it goes on."""
    webhook = make_webhook("--webhook-request-timeout", "1s")
    assert probe(webhook, "livez")[0] == 200
    found = gate(webhook) if name == "gate" else admission_threads(webhook)
    assert found, stuck.threads(webhook.process.pid)
    with stuck.thread(found[0]):
        status, text = wait.until("/livez to fail", lambda: (
            answer if (answer := probe(webhook, "livez"))[0] == 500 else None), 20)
        who = 'the thread "gate"' if name == "gate" else "admission thread "
        assert "[-]webhook failed: " + who in text
        assert " stuck for 3 s" in text, (status, text)
    wait.until("/livez to pass", lambda: probe(webhook, "livez")[0] == 200, 20)


def test_livez_passes_while_threads_are_busy(make_webhook):
    """Reviews that keep the threads busy for longer than one probe waits do not fail it."""
    webhook = make_webhook("--webhook-request-timeout", "1s")
    end = time.monotonic() + 4
    while time.monotonic() < end:
        deny(webhook, 20)
        assert probe(webhook, "livez")[0] == 200


def test_livez_flood_does_not_load_threads(make_webhook):
    """The threads are asked once a second at most, however often /livez is asked."""
    webhook = make_webhook()
    for _ in range(200):
        assert probe(webhook, "livez")[0] == 200
    wait.until("the connections to be closed", lambda: sockets(webhook) <= 6)
    assert webhook.post(review())[0] == 200


def sockets(webhook):
    """How many sockets the process has."""
    folder = f"/proc/{webhook.process.pid}/fd"
    links = []
    for number in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"{folder}/{number}"))
    return len([link for link in links if link.startswith("socket:")])


def test_stop_ends_despite_a_stuck_thread(piped_webhook):
    """The process ends by itself after the sum of its deadlines, with status 1 and a line."""
    webhook = piped_webhook()
    with stuck.thread(admission_threads(webhook)[0]):
        webhook.terminate()
        wait.until("the line", lambda: "the stop took too long" in webhook.log_text(), 60)
    assert webhook.process.wait(10) == 1


def test_deployment_restarts_on_failing_livez():
    """The kubelet asks /livez, and restarts after three failures."""
    text = (paths.TOP / "config/manager/manager.yaml").read_text("utf-8")
    probe_lines = text.partition("livenessProbe:")[2].partition("readinessProbe:")[0]
    assert "path: /livez\n" in probe_lines and "periodSeconds: 20\n" in probe_lines
    assert "failureThreshold" not in probe_lines
