#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of fields in the pages of the kinds, one row for each field.

Usage: fields.py STEWARD FOLDER PAGE...

Writes each PAGE, with its tables made again, into FOLDER.  A table stands between two comments, such as
    <!-- fields: kinds/app/schema.yaml spec -->
    <!-- end of fields -->
The fields and the texts (`doc`, else `help`) are those of schema.yaml; types, limits and defaults are those of
the CRD that STEWARD prints.  `spec.grants` makes a table of the fields of one grant, which the table of `spec`
then leaves out.
"""

import functools
import pathlib
import re
import subprocess
import sys

import yaml

from kindc import Compiler
from yaml_lines import TOP, Map, Mistake, take

TABLE = re.compile(r"<!-- fields: (\S+) (\S+) -->\n.*?<!-- end of fields -->\n", re.DOTALL)
HEAD = "| field | type | default | |\n|---|---|---|---|\n"
INT32_MAX = 2**31 - 1  # as good as no limit
LISTS = {"LIST": "[]", "MAP": ".*"}  # what follows the name of a field in the name of one in its entries


def numbers(least, most, unit=""):
    """Limits in words, or nothing."""
    if most is None:
        return f"at least {least}{unit}" if least else ""
    return f"{least} to {most}{unit}" if least else f"at most {most}{unit}"


def characters(node):
    """Limits of a text.  That it is not empty needs no mention."""
    least = node.get("minLength", 0)
    return numbers(least if least > 1 else None, node.get("maxLength"), " characters")


def type_of(node):
    """The type and the limits of a field, from its node in the CRD."""
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    word = node.get("type", "any")
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if word == "integer":
        least, most = node.get("minimum"), node.get("maximum")
        return f"integer, {least} to {most}" if (most or INT32_MAX) < INT32_MAX else f"integer, at least {least}"
    if word == "string":
        form = {"date-time": "time"}.get(node.get("format"), word)
        return ", ".join(filter(None, [form, characters(node)]))
    if word == "array":
        return ", ".join(filter(None, ["list", numbers(node.get("minItems"), node.get("maxItems"))]))
    if word == "object" and "additionalProperties" in node:
        return ", ".join(filter(None, ["map", numbers(node.get("minProperties"), node.get("maxProperties"))]))
    return word


def text_of_default(value):
    """A default as it would be written in a manifest."""
    text = yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()
    return f"`{text}`" if isinstance(value, (str, list, dict)) else text


class Tables:
    """The tables of one kind.  `own` are the paths that have a table of their own."""

    def __init__(self, path, schema, own):
        self.compiler = Compiler(TOP / path)
        self.schema, self.own = schema, own

    def row(self, name, row, node, need):
        """One row; `need` is what stands for the default of a field without one."""
        text = " ".join((take(row, "doc", str) or node["description"]).split())
        text = text.removesuffix(".").replace("|", "\\|")
        default = text_of_default(node["default"]) if "default" in node else need
        fixed = "" if not row.get("immutable") or "annot change" in text else "; cannot change"
        return f"| `{name}` | {type_of(node)} | {default} | {text}{fixed} |\n"

    def rows(self, rows, node, path, prefix, parent):
        """The rows of the fields of an object.  `parent`: the object, if it may be absent."""
        for name, row in rows.items():
            below, is_required = node["properties"][name], name in node.get("required", ())
            kind = None
            if "row" not in row:
                row, (kind, *_) = self.compiler.resolve(row, row.where)
            fields = self.below(row)
            whole = fields is None or "doc" in row or f"{path}.{name}" in self.own
            if whole or kind in LISTS:
                need = "required" + (f" in `{parent}`" if parent else "")
                yield self.row(prefix + name, row, below, need if is_required else "")
            if whole:
                continue
            inner = below.get("items") or below.get("additionalProperties") or below
            yield from self.rows(fields, inner, f"{path}.{name}", f"{prefix}{name}{LISTS.get(kind, '')}.",
                                 None if is_required and not parent else name)

    def below(self, row):
        """The fields of an object, or of the entries of a list or map, that the row has; or None."""
        item = row.get("item")
        if isinstance(item, Map) and "row" not in item:
            row = self.compiler.resolve(item, item.where)[0]
        return row["fields"] if isinstance(row.get("fields"), Map) else None

    def table(self, path):
        """The table of what the path names."""
        first, *parts = path.split(".")
        rows, node = self.compiler.document[first], self.schema["properties"][first]
        for part in parts:
            node = node["properties"][part]
            node = node.get("items") or node.get("additionalProperties") or node
            rows = self.below(self.compiler.resolve(rows[part], rows[part].where)[0])
        return HEAD + "".join(self.rows(rows, node, path, "", None))


def main():
    """Writes the pages, or says what is wrong."""
    steward, folder, *pages = sys.argv[1:]
    printed = subprocess.run([steward, "print", "crds"], check=True, capture_output=True, text=True).stdout
    schemas = {crd["spec"]["names"]["singular"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
               for crd in yaml.safe_load_all(printed)}

    def made(own, match):
        path, what = match.groups()
        table = Tables(path, schemas[pathlib.Path(path).parent.name], own).table(what)
        return f"<!-- fields: {path} {what} -->\n{table}<!-- end of fields -->\n"
    try:
        for page in map(pathlib.Path, pages):
            text = page.read_text("utf-8")
            own = {what for _, what in TABLE.findall(text)}
            out = pathlib.Path(folder) / page.name
            out.write_text(TABLE.sub(functools.partial(made, own), text), "utf-8")
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
