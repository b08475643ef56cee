# SPDX-License-Identifier: Apache-2.0
"""Runs a health check as Argo CD does: the script gets the global `obj` and returns a table."""

import json
import subprocess

# Argo CD opens no library but the base, table, string and a part of os.
_HOST = """
local environment = {obj = OBJECT, ipairs = ipairs, pairs = pairs, type = type, tostring = tostring,
                     tonumber = tonumber, next = next, string = string, table = table}
local health = assert(loadfile(arg[1], "t", environment))()
assert(type(health) == "table" and type(health.status) == "string")
io.write(health.status, "\\n", health.message or "")
"""


def _literal(value):
    """A JSON value as Lua."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ",".join(f"[{_literal(k)}]={_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ",".join(map(_literal, value)) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\x{b:02x}" for b in value.encode()) + '"'
    return json.dumps(value)


def health(path, obj):
    """{"status": ..., "message": ...} of an object."""
    host = _HOST.replace("OBJECT", _literal(obj))
    result = subprocess.run(["lua5.4", "-", path], input=host, check=True, capture_output=True,
                            text=True, timeout=30)
    status, _, message = result.stdout.partition("\n")
    return {"status": status, "message": message}
