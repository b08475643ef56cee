# SPDX-License-Identifier: Apache-2.0
"""The Secret with steward's certificates, and the certificates that the API server trusts."""

import base64

from . import wait
from .steward import NAMESPACE, WEBHOOK_CONFIGURATIONS

SECRET = "steward-webhook-server-cert"


def read(cluster):
    """{key: text}; {} when there is no Secret."""
    found = cluster.get("secret", SECRET, NAMESPACE) or {"data": {}}
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def bundles(cluster):
    """The bundle that the API server trusts, of each webhook."""
    return {base64.b64decode(w["clientConfig"].get("caBundle", "")).decode()
            for kind, name in WEBHOOK_CONFIGURATIONS for w in cluster.get(kind, name)["webhooks"]}


def wait_other(cluster, key, old, seconds=30):
    """Waits until the Secret has another value than `old` under this key; returns all of it."""
    def look():
        found = read(cluster)
        return found if found.get(key) not in (None, "", old) else None
    return wait.until(f"a new {key}", look, seconds)
