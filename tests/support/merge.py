# SPDX-License-Identifier: Apache-2.0
"""The patch that `kubectl apply` sends: how a manifest, the previous one and the object differ."""

import json

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def merged(obj, patch):
    """The object after a JSON merge patch (RFC 7396); neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def three_way(live, manifest, wanted):
    """The JSON merge patch that turns a live object into `wanted` and removes what the previous
    manifest had and this one lacks; {} when nothing differs.  Lists are replaced as a whole."""
    noted = live["metadata"].get("annotations", {}).get(LAST_APPLIED)
    before = json.loads(noted) if noted else {}
    return merged(_taken_away(before, manifest, live), _changed(live, wanted))


def _changed(live, wanted):
    """The part of `wanted` that differs from the live object."""
    patch = {}
    for key, value in wanted.items():
        have = live.get(key)
        if isinstance(value, dict) and isinstance(have, dict):
            inner = _changed(have, value)
            if inner:
                patch[key] = inner
        elif value != have:
            patch[key] = value
    return patch


def _taken_away(before, manifest, live):
    """None for each field of the previous manifest that this one lacks and the object has."""
    patch = {}
    for key, value in before.items():
        if key not in live:
            continue
        if key not in manifest:
            patch[key] = None
        elif all(isinstance(one.get(key), dict) for one in (before, manifest, live)):
            inner = _taken_away(value, manifest[key], live[key])
            if inner:
                patch[key] = inner
    return patch
