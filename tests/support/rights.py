# SPDX-License-Identifier: Apache-2.0
"""What steward may do, by its roles, and what it has done, by the API server's audit log.

A grant is (role, apiGroup, resource or resource/subresource, verb, resourceNames or ()); a use is
(namespace or "", apiGroup, resource or resource/subresource, verb, name or "").
"""

import datetime
import itertools
import json
import os
import pathlib
import re

import yaml

from . import cluster as k8s
from . import steward as stw

FOLDER = "STEWARD_TEST_RIGHTS"  # the folder in which a run records what it has seen


# What each kind is run with: `--kinds` names what it needs.
KINDS = {"MyWeb": ("MyWeb",), "DatabaseUser": ("DatabaseUser",), "Eru": ("Eru",), "App": ("App",),
         "EtcdCluster": ("EtcdCluster",), "EtcdBackup": ("EtcdBackup",),
         "EtcdRestore": ("EtcdCluster", "EtcdRestore")}


def granted(binary, kinds=(), namespace=stw.NAMESPACE):
    """{grant: namespace or None} of `steward print rbac` for these kinds, or all; None: everywhere."""
    found = {}
    options = ["--namespace", namespace, *(["--kinds", ",".join(kinds)] if kinds else [])]
    for role in yaml.safe_load_all(k8s.run([binary, "print", "rbac", *options]).stdout):
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
    """Whether a grant, valid in the namespace `where` or everywhere, is enough for a use."""
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
    # An apply that creates an object is a patch that needs the right to create, too.
    made = entry["verb"] == "patch" and entry.get("responseStatus", {}).get("code") == 201
    for verb in [entry["verb"], *(["create"] if made else [])]:
        yield ref.get("namespace", ""), ref.get("apiGroup", ""), resource, verb, name


def _selected(uri):
    """The name that a list or watch is limited to: authorization treats it as the object's name."""
    _, found, rest = uri.partition("fieldSelector=metadata.name%3D")
    return rest.partition("&")[0] if found else ""


def _part(entry):
    """The controller that sent it: its worker threads name themselves in the user agent; else ""."""
    found = re.fullmatch(r"steward/\S+ \(([a-z]+)\)", entry["userAgent"])
    return found[1] if found else ""


def _by_steward(entry, since, user):
    """Whether the program sent it, not a test in its name.  An impersonated request has the rights
    of the other user."""
    return (entry["user"]["username"] == user and "impersonatedUser" not in entry
            and entry.get("userAgent", "").startswith("steward/")
            and entry["requestReceivedTimestamp"] >= since)


def used(audit_log, since="", user=stw.USER, parts=None):
    """(allowed uses, forbidden uses) by steward's ServiceAccount, since a time in the log's format.
    `parts` also gets {controller: allowed uses}."""
    through, forbidden = set(), set()
    with open(audit_log, encoding="utf-8", errors="replace") as log:
        for line in log:
            if user not in line:
                continue
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # being written
            if _by_steward(entry, since, user):
                refused = entry.get("responseStatus", {}).get("code") == 403
                (forbidden if refused else through).update(_uses(entry))
                if parts is not None and not refused:
                    parts.setdefault(_part(entry), set()).update(_uses(entry))
    return through, forbidden


def now():
    """The time in the audit log's format."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def leave(audit_log, since):
    """Records what this run has seen, in the folder that the environment names."""
    folder = os.environ.get(FOLDER)
    if folder and os.path.exists(audit_log):
        os.makedirs(folder, exist_ok=True)
        parts = {}
        through, forbidden = used(audit_log, since, parts=parts)
        path = pathlib.Path(folder) / f"{os.getpid()}.json"
        path.write_text(json.dumps({"through": sorted(through), "forbidden": sorted(forbidden),
                                    "parts": {p: sorted(u) for p, u in parts.items()}}), "utf-8")


def leave_kind(kind, through):
    """Records what a steward with this kind alone used, beside what leave() records."""
    folder = os.environ.get(FOLDER)
    if folder:
        os.makedirs(folder, exist_ok=True)
        path = pathlib.Path(folder) / f"{kind}-{os.getpid()}.kind"
        path.write_text(json.dumps({"parts": {kind.lower(): sorted(through)}}), "utf-8")


def of_parts(folder):
    """{controller: uses} of all that was recorded; "": of threads that work for several."""
    found = {}
    for path in pathlib.Path(folder).iterdir():
        for part, uses in json.loads(path.read_text("utf-8"))["parts"].items():
            found.setdefault(part, set()).update(tuple(use) for use in uses)
    return found


def left(folder):
    """All that was recorded: (allowed, forbidden)"""
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
