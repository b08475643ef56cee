# SPDX-License-Identifier: Apache-2.0
"""docs/runbooks.md: a heading for each alert, and commands that work."""

import re
import shlex

import pytest
import yaml

from support import kustomize, paths, readme, wait
from support import steward as stw

PAGE = "docs/runbooks.md"
TEXT = (paths.TOP / PAGE).read_text("utf-8")
RULES = yaml.safe_load((paths.TOP / "config" / "prometheus" / "rules.yaml").read_text("utf-8"))
ALERTS = [r for group in RULES["spec"]["groups"] for r in group["rules"]]
COMMANDS = "".join(readme.blocks("sh", PAGE)).splitlines()


def anchors(text):
    """The anchors of the headings."""
    return {h.lower().replace(" ", "-").replace(",", "")
            for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_a_heading_for_each_alert():
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert headings == [r["alert"] for r in ALERTS]
    for rule in ALERTS:
        assert rule["annotations"]["runbook_url"] == f"{PAGE}#{rule['alert'].lower()}"


def test_links_lead_somewhere():
    for page, anchor in re.findall(r"\]\(([\w.-]+\.md)(?:#([\w-]+))?\)", TEXT):
        text = (paths.TOP / "docs" / page).read_text("utf-8")
        assert not anchor or anchor in anchors(text), (page, anchor)


@pytest.fixture(scope="module")
def looked_after(installed, steward_binary, tmp_path_factory):
    """config/default is applied and a steward leads, so its Lease and its Secret exist."""
    kustomize.apply(installed, kustomize.CONFIG / "default")
    stw.uninstall_webhooks(installed)
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("runbooks"), ["--leader-elect"]).start()
    try:
        wait.until("it to lead", lambda: one.metric("leader_election_master_status") == 1, 40)
        yield installed
    finally:
        assert one.stop() == 0, one.log_tail()
        installed.delete("deployment", "steward-controller-manager", stw.NAMESPACE)
        for service in ("steward-webhook-service", "steward-metrics-service"):
            installed.delete("service", service, stw.NAMESPACE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_work(looked_after, command):
    program, *arguments = shlex.split(command)
    assert program == "kubectl"
    result = looked_after.kubectl(*arguments)
    assert "can-i" not in arguments or result.stdout.strip() == "yes"
