# SPDX-License-Identifier: Apache-2.0
"""What steward may do, as its roles say, and what it has done, as the API server's audit log says.

A grant is (role, apiGroup, resource or resource/subresource, verb, resourceNames or ()); a use is
(namespace or "", apiGroup, resource or resource/subresource, verb, name or "").
"""

import datetime
import itertools
import json
import os
import pathlib

import yaml

from . import cluster as k8s
from . import steward as stw

FOLDER = "STEWARD_TEST_RIGHTS"  # where a run leaves what it has seen


def granted(binary):
    """{grant: namespace or None} of `steward print rbac`; None: everywhere."""
    found = {}
    for role in yaml.safe_load_all(k8s.run([binary, "print", "rbac"]).stdout):
        if not role or role["kind"] not in ("Role", "ClusterRole"):
            continue
        for rule in role["rules"]:
            for group, resource, verb in itertools.product(rule["apiGroups"], rule["resources"],
                                                           rule["verbs"]):
                grant = (role["metadata"]["name"], group, resource, verb,
                         tuple(rule.get("resourceNames", ())))
                found[grant] = role["metadata"].get("namespace")
    return found


def permits(grant, where, use):
    """Whether a grant, which holds in the namespace `where` or everywhere, is enough for a use."""
    _, group, resource, verb, names = grant
    return (use[1:4] == (group, resource, verb) and where in (None, use[0])
            and (not names or use[4] in names))


def _uses(entry):
    """The uses of an audit entry."""
    ref = entry.get("objectRef", {})
    if "resource" not in ref:
        return
    resource = ref["resource"] + (f"/{ref['subresource']}" if "subresource" in ref else "")
    name = ref.get("name", "") or _selected(entry["requestURI"])
    # An apply that makes an object is a patch that needs the right to create, too.
    made = entry["verb"] == "patch" and entry.get("responseStatus", {}).get("code") == 201
    for verb in [entry["verb"], *(["create"] if made else [])]:
        yield ref.get("namespace", ""), ref.get("apiGroup", ""), resource, verb, name


def _selected(uri):
    """The name that a list or watch is limited to: it counts as the object's for its rights."""
    _, found, rest = uri.partition("fieldSelector=metadata.name%3D")
    return rest.partition("&")[0] if found else ""


def _by_steward(entry, since):
    """By the program and not by a test in its name; who acts as somebody else has that one's
    rights."""
    return (entry["user"]["username"] == stw.USER and "impersonatedUser" not in entry
            and entry.get("userAgent", "").startswith("steward/")
            and entry["requestReceivedTimestamp"] >= since)


def used(audit_log, since=""):
    """(uses that went through, uses that were forbidden) by steward's ServiceAccount, since a time
    as the log has it."""
    through, forbidden = set(), set()
    with open(audit_log, encoding="utf-8", errors="replace") as log:
        for line in log:
            if stw.USER not in line:
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # being written
            if _by_steward(entry, since):
                refused = entry.get("responseStatus", {}).get("code") == 403
                (forbidden if refused else through).update(_uses(entry))
    return through, forbidden


def now():
    """The time as the audit log has it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def leave(audit_log, since):
    """Notes for a later look what this run has seen, in the folder that the environment names."""
    folder = os.environ.get(FOLDER)
    if folder and os.path.exists(audit_log):
        os.makedirs(folder, exist_ok=True)
        through, forbidden = used(audit_log, since)
        path = pathlib.Path(folder) / f"{os.getpid()}.json"
        path.write_text(json.dumps({"through": sorted(through), "forbidden": sorted(forbidden)}),
                        "utf-8")


def left(folder):
    """All that was noted: (through, forbidden)"""
    through, forbidden = set(), set()
    for path in pathlib.Path(folder).glob("*.json"):
        seen = json.loads(path.read_text("utf-8"))
        through |= {tuple(use) for use in seen["through"]}
        forbidden |= {tuple(use) for use in seen["forbidden"]}
    return through, forbidden


def beyond(grants, uses):
    """Uses that no grant permits."""
    return sorted(u for u in uses if not any(permits(g, w, u) for g, w in grants.items()))


def idle(grants, uses):
    """Grants that no use needed."""
    return sorted(g for g, w in grants.items() if not any(permits(g, w, u) for u in uses))
