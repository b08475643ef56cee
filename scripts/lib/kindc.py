#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the schema.yaml of a kind to the tables in C that lib/schema reads, and to a header.

Usage: kindc.py SCHEMA.YAML FIELDS.C HEADER.H KIND.C

FIELDS.C has the fields of the spec, and KIND.C all else: so the functions in C that decode a part of the spec and
those that the kind names form no circle.

docs/schema.md describes the file.  A mistake is reported as FILE:LINE, what is wrong, and what to write."""

import json
import pathlib
import re
import sys

from yaml_lines import NAME, Map, Mistake, check_keys, find, load, take

# {word in the file: (type in C, format, word for the limits, types of a default)}
TYPES = {
    "string": ("STRING", None, "length", str), "time": ("STRING", "date-time", "length", ()),
    "text": ("TEXT", None, "length", str), "bool": ("BOOL", None, None, bool),
    "int": ("INT", None, "range", int), "int32": ("INT", "int32", "range", int),
    "int64": ("INT", "int64", "range", int), "list": ("LIST", None, "entries", list),
    "map": ("MAP", None, "entries", ()), "object": ("OBJECT", None, None, ()),
    "quantity": ("QUANTITY", None, None, (str, int)), "raw": ("RAW", None, None, ()),
    "intOrString": ("INT_OR_STRING", None, None, (str, int)),
}
LIMITS = ("range", "length", "entries")
# Keys that become a member of a struct as they are: {key: (member, type of the value)}.
FIELD_MEMBERS = {
    "help": ("help", str), "required": ("required", bool), "computed": ("computed", bool),
    "rangeRule": ("rule_range", bool), "unique": ("unique", bool), "immutable": ("immutable", bool),
    "rangeText": ("range_text", str), "typeText": ("type_text", str), "enum": ("values", list),
    "pattern": ("pattern", str), "listKeys": ("list_keys", list), "skip": ("skip", str), "check": ("check", NAME),
    "warn": ("warn", NAME), "celMax": ("cel_max", int), "open": ("open", bool), "known": ("known", NAME),
}
COLUMN_MEMBERS = {
    "name": ("name", str), "type": ("type", str), "path": ("json_path", str), "format": ("format", str),
    "help": ("help", str), "priority": ("priority", int),
}
KIND_MEMBERS = {
    "group": ("group", str), "version": ("version", str), "kind": ("kind", str), "plural": ("plural", str),
    "help": ("help", str), "shortNames": ("short_names", list), "categories": ("categories", list),
    "specLabels": ("spec_labels", list), "nameMax": ("name_max", int), "dns1035Name": ("dns1035_name", bool),
    "finalizer": ("finalizer", NAME), "finalizerLater": ("finalizer_later", bool),
    "defaultMore": ("default_more", NAME), "validate": ("validate", NAME), "adviseDelete": ("advise_delete", NAME),
}
SCALE_MEMBERS = {
    "specReplicas": ("spec_replicas", str), "statusReplicas": ("status_replicas", str),
    "selector": ("selector", str),
}
SHARED = ("types", "define", "rulesets")
KIND_KEYS = [*KIND_MEMBERS, *SHARED, "prefix", "include", "import", "operations", "scale", "spec", "status",
             "rules", "columns"]
FIELD_KEYS = [*FIELD_MEMBERS, *LIMITS, "type", "member", "default", "cel", "fields", "item", "struct", "table",
              "doc"]
CODES = ("required", "forbidden", "invalid", "duplicate")
RULE_KEYS = ["at", *CODES, "cel", "type", "expression", "each", "within", "core", "use"]
CORE_RULES = ("resources", "labels", "keys", "env")  # of schema/core.h
# Functions that a kind has in C: their declarations.
SIGNATURES = {
    "check": "const char *{}(const char *value)",
    "warn": "const char *{}(const char *value)",
    "defaultMore": "void {}(const struct stw_admission *a, struct stw_json spec, struct stw_defaults *d)",
    "validate": "void {}(const struct stw_admission *a, const void *spec, const void *old_spec, "
                "struct stw_findings *f)",
    "adviseDelete": "void {}(const struct stw_admission *a, struct stw_findings *f)",
}


def literal(text, where):
    """A string of C, with the constants that are named in it as {STW_NAME} or {PREFIX_NAME}."""
    if not isinstance(text, str):
        raise Mistake(where, f"{text} must be text: put it into quotes")
    if not text.isascii() or not text.isprintable():
        raise Mistake(where, "text must be one line of ASCII; join lines with '>-'")
    text = re.sub(r"\{([A-Z][A-Z0-9]*_[A-Z0-9_]+)\}", r'" \1 "', json.dumps(text))
    return text.removeprefix('"" ').removesuffix(' ""')


# --- $name and $name(argument, ...) in rules


def cut_arguments(text, begin, where):
    """(arguments, where they end) of the bracket that opens there."""
    depth, start, found = 0, begin + 1, []
    for match in re.compile(r"'[^']*'|\"[^\"]*\"|[][(){},]").finditer(text, begin):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0 or (depth == 1 and match[0] == ","):
            found.append(text[start:match.start()].strip())
            start = match.end()
        if depth == 0:
            return found, start
    raise Mistake(where, f"a bracket is not closed: {text[begin:]}")


def split_call(text, where):
    """("name", [argument, ...]) of "name(argument, ...)"."""
    match = re.fullmatch(r"(\w+)(\(.*\))?", text)
    if not match:
        raise Mistake(where, f"'{text}' must be a name, or one with parameters such as 'name(a, b)'")
    return match[1], cut_arguments(match[2], 0, where)[0] if match[2] else []


def read_heads(found, wanted):
    """{name: (parameters, value, place)} of a mapping with keys such as "name(a, b)"."""
    heads = {head: split_call(head, where) for head, where in found.at.items()}
    return {name: (parameters, take(found, head, wanted), found.at[head])
            for head, (name, parameters) in heads.items()}


def expand(text, define, values, where, depth=0):
    """The text with each $name replaced by the value of that parameter, or by what `define:` has for it."""
    if depth > 20:
        raise Mistake(where, f"this is defined by itself: {text[:80]}")
    out, at = "", 0
    while match := re.compile(r"\$(\w+)").search(text, at):
        out, at = out + text[at:match.start()], match.end()
        if match[1] in values:
            out += values[match[1]]
            continue
        parameters, body, place = find(match[1], define, where, "'define:' has no")
        given, at = cut_arguments(text, at, where) if parameters and text[at:at + 1] == "(" else ([], at)
        if len(given) != len(parameters):
            raise Mistake(where, f"'${match[1]}' takes {len(parameters)} arguments, not {len(given)}")
        given = [expand(argument, define, values, where, depth + 1) for argument in given]
        out += expand(body, define, dict(zip(parameters, given)), place, depth + 1)
    return out + text[at:]


# --- the tables


class Compiler:
    """`tables` are the lines of C so far, `declared` those of the header."""

    def __init__(self, path):
        self.document, self.anchors = load(path)
        self.kind = take(self.document, "kind", str, True).lower()
        prefix = take(self.document, "prefix", NAME)
        self.prefix = f"{prefix}_" if prefix else f"stw_{self.kind}_"
        self.struct = f"{prefix}_spec" if prefix else f"stw_{self.kind}"
        shared = {key: Map("") for key in SHARED}
        for document in (*self.imported(path.parent), self.document):
            check_keys(document, KIND_KEYS, "the file", "")
            for key in SHARED:
                shared[key].update(take(document, key, Map) or Map(""))
        self.types = shared["types"]
        self.define = read_heads(shared["define"], str)
        self.rulesets = read_heads(shared["rulesets"], list)
        self.tables, self.declared = [], {}

    def imported(self, folder):
        """The documents of `import:`."""
        files = take(self.document, "import", list) or Map("")
        for other, where in zip(files, files.at):
            if not (folder / str(other)).is_file():
                raise Mistake(where, f"there is no file {folder / str(other)}")
            yield load(folder / other)[0]

    def declare(self, name, declaration):
        """Adds a name of this kind to the header; others are declared by what `include:` lists."""
        if name.startswith(self.prefix):
            self.declared[name] = declaration.format(name) + ";"

    def members(self, found, known):
        """Members of a struct in C, for the keys that become one as they are."""
        for key, (member, wanted) in known.items():
            if key not in found:
                continue
            if wanted is list and isinstance(found[key], str):
                wanted = NAME  # of an array in C
            value, where = take(found, key, wanted), found.at[key]
            if wanted is list:
                texts = [literal(text, at) for text, at in zip(value, value.at)]
                value = "(const char *const[]){" + ", ".join([*texts, "NULL"]) + "}"
            elif wanted is str:
                value = literal(expand(value, self.define, {}, where), where)
            elif wanted is bool:
                value = str(value).lower()
            elif key in SIGNATURES:
                self.declare(value, SIGNATURES[key])
            yield f".{member} = {value}"

    def array(self, of, name, rows):
        """Adds a table of rows, each with its place in the file.  Returns its name."""
        self.declare(name, f"extern const {of} {{}}[]")
        lines = []
        for where, row in rows:
            file, line = where.rsplit(":", 1)
            lines += [f'#line {line} "{file}"', f"    {row},"]
        self.tables += [f"{'' if name in self.declared else 'static '}const {of} {name}[] = {{", *lines,
                        "    {0},", "};", ""]
        return name

    def resolve(self, row, where, depth=0):
        """(the row with the keys of its types, its entry in TYPES)."""
        check_keys(row, FIELD_KEYS, "a field", where)
        name = take(row, "type", str, True)
        if name in TYPES:
            return row, TYPES[name]
        base = find(name, {**dict.fromkeys(TYPES), **self.types}, row.at["type"], "there is no type")
        check_keys(base, FIELD_KEYS, "a type", self.types.at[name])
        if depth > 20:
            raise Mistake(row.at["type"], f"type '{name}' is made of itself")
        merged = Map(row.where)
        merged.update(base)
        for key in row.keys() - {"type"}:
            merged[key], merged.at[key] = row[key], row.at[key]
        return self.resolve(merged, where, depth + 1)

    def limits(self, row, word):
        """The member for range, length or entries, of which a type has at most one."""
        for key in LIMITS:
            if key not in row:
                continue
            if key != word:
                raise Mistake(row.at[key], f"type {row['type']} has no '{key}'" +
                              (f"; write '{word}'" if word else ""))
            pair = take(row, key, list)
            if len(pair) != 2 or not all(type(n) is int or re.fullmatch("[A-Z][A-Z0-9_]*", str(n)) for n in pair):
                raise Mistake(row.at[key], f"'{key}' must be [least, most]: whole numbers, or names in C")
            yield f"STW_RANGE({pair[0]}, {pair[1]})"

    def default(self, row, word, wanted):
        """The member for a default, which must keep the rules that stand beside it."""
        value, where = row["default"], row.at["default"]
        if not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool):
            raise Mistake(where, f"'default' does not fit type {row['type']}")
        if isinstance(row.get("enum"), list):
            find(value, row["enum"], where, "'enum' does not have the default")
        least, most = row.get(word) or (None, None)
        size = value if isinstance(value, int) else len(value)
        if (isinstance(least, int) and size < least) or (isinstance(most, int) and size > most):
            raise Mistake(where, f"the default is outside of {word} [{least}, {most}]")
        return f".def = {literal(json.dumps(value), where)}"

    def value_rules(self, row):
        """The member for rules in CEL on a single value."""
        if isinstance(row["cel"], str):
            return f".cel = {take(row, 'cel', NAME)}"
        rules = take(row, "cel", Map)
        pairs = [f"{{{literal(expand(take(rules, message, str), self.define, {}, where), where)}, "
                 f"{literal(message, where)}}}" for message, where in rules.at.items()]
        return ".cel = (const struct stw_cel[]){" + ", ".join([*pairs, "{0}"]) + "}"

    def field(self, name, row, table, struct, prefix):
        """A row.  A member below `prefix` has its value, unless there is no struct; tables below get the name
        `table`."""
        kind = form = word = wanted = None
        if "row" in row:
            check_keys(row, ("row", "member", "help", "doc"), "a field with 'row'", row.where)
        else:
            row, (kind, form, word, wanted) = self.resolve(row, row.where)
        member = struct and name and (take(row, "member", str) or
                                      prefix + re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower())
        if "row" in row:
            arguments = [f"struct {struct}", member] if member else []
            arguments += [literal(row["help"], row.at["help"])] if "help" in row else []
            return take(row, "row", NAME) + (f"({', '.join(arguments)})" if arguments else "")
        if name and "help" not in row:
            raise Mistake(row.where, f"'{name}' has no help; add 'help:' with a sentence for users")
        # The members of a part are in the struct of the whole.
        own = take(row, "struct", NAME)
        is_part = kind == "OBJECT" and isinstance(row.get("fields"), Map) and not own
        out = [f'.name = "{name}"', f"STW_FIELD(STW_T_{kind}, struct {struct}, {member})" if member and not is_part
               else f".type = STW_T_{kind}"]
        out += [*self.members(row, FIELD_MEMBERS), *self.limits(row, word)]
        out += [f'.format = "{form}"'] if form else []
        out += [self.default(row, word, wanted)] if "default" in row else []
        out += [self.value_rules(row)] if "cel" in row else []
        if isinstance(row.get("fields"), str):
            out.append(f".fields = {take(row, 'fields', NAME)}")
        elif "fields" in row or kind == "OBJECT":
            below = self.fields(take(row, "fields", Map, True), take(row, "table", NAME) or table, table,
                                struct if is_part else own, f"{member}." if member and is_part else "")
            out.append(f".fields = {below}")
        if isinstance(row.get("item"), str):
            out.append(f".item = &{take(row, 'item', NAME)}")
        elif kind in ("LIST", "MAP"):
            item = self.field("", take(row, "item", Map, True), f"{table}_item", None, "")
            out.append(f".item = &(const struct stw_field){item}")
        return "{" + ", ".join(out) + "}"

    def fields(self, rows, name, table, struct, prefix):
        """Adds a table of fields.  Returns its name."""
        found = []
        for field, where in rows.at.items():
            if not isinstance(rows[field], Map):
                raise Mistake(where, f"'{field}' must be a mapping with 'type:' and 'help:'")
            found.append((where, self.field(field, rows[field], f"{table}_{field}", struct, prefix)))
        return self.array("struct stw_field", name, found)

    def check_path(self, path, where):
        """Refuses a path to a field that the spec does not have."""
        rows = self.document["spec"]
        for part in path.split("."):
            if not isinstance(rows, Map):
                return
            row = find(part, rows, where, f"'{path}' names no field: the spec has no")
            rows = None if "row" in row else self.resolve(row, where)[0].get("fields")

    def rules(self, items, values):
        """(place, row) of each rule, with values for its parameters."""
        for rule, where in zip(items, items.at):
            check_keys(rule, RULE_KEYS, "a rule", where)
            for each in take(rule, "each", list) or [Map("")]:
                if not isinstance(each, Map):
                    raise Mistake(rule.at["each"], "'each' must be a list of mappings, such as [{field: size}]")
                given = {name: expand(take(each, name, str), self.define, values, where) for name in each}
                yield from self.rule(rule, {**values, **given}, where)

    def rule(self, rule, values, where):
        """The same of one rule."""
        text = {key: expand(take(rule, key, str), self.define, values, rule.at[key])
                for key in rule if key != "each"}
        if "use" in rule:
            name, given = split_call(text["use"], where)
            parameters, items, _ = find(name, self.rulesets, where, "'rulesets:' has no")
            if len(given) != len(parameters):
                raise Mistake(where, f"'{name}' takes {len(parameters)} arguments, not {len(given)}")
            yield from self.rules(items, dict(zip(parameters, given)))
            return
        take(rule, "at", str, True)
        self.check_path(text["at"], rule.at["at"])
        out = [f'.at = "{text["at"]}"']
        if "core" in rule:  # takes: whether there is a value, the value, its path
            find(text["core"], CORE_RULES, rule.at["core"], "there is no core rule")
            parts = text["at"].split(".")
            there = " && ".join(f"has(self.{'.'.join(parts[:n])})" for n in range(1, len(parts) + 1))
            yield where, f'STW_CEL_{text["core"].upper()}("{there}", "self.{text["at"]}", "{text["at"]}")'
            return
        if "within" in rule:
            yield where, "{" + f'{out[0]}, .within = {take(rule, "within", NAME)}' + "}"
            return
        codes = [code for code in CODES if code in rule]
        if len(codes) != 1:
            raise Mistake(where, f"a rule needs one of {', '.join(CODES)}: with the message")
        if text.get("type") not in (None, "entries", "transition"):
            raise Mistake(rule.at["type"], "'type' must be entries or transition")
        take(rule, "cel", str, True)
        out += [f".type = STW_CEL_{text['type'].upper()}"] if "type" in rule else []
        out += [f".code = STW_{codes[0].upper()}", f".message = {literal(text[codes[0]], rule.at[codes[0]])}"]
        out += [f".{member} = {literal(text[key], rule.at[key])}"
                for key, member in (("expression", "expression"), ("cel", "rule")) if key in rule]
        yield where, "{" + ", ".join(out) + "}"

    def columns(self, items):
        """(place, row) of each column; a word is a column that schema/rows.h has."""
        for column, where in zip(items, items.at):
            if isinstance(column, str):
                yield where, f"STW_COLUMN_{column.upper()}"
                continue
            check_keys(column, COLUMN_MEMBERS, "a column", where)
            yield where, "{" + ", ".join(self.members(column, COLUMN_MEMBERS)) + "}"

    def compile_fields(self):
        """The tables of the spec's fields."""
        rows = take(self.document, "spec", Map, True)
        self.fields(rows, f"{self.prefix}spec_fields", "spec", self.struct, "")
        return self.tables

    def compile_kind(self):
        """The other tables, and last the kind."""
        self.tables = []
        document, name = self.document, self.kind
        for key in ("group", "version", "plural", "help"):
            take(document, key, str, True)
        members = [*self.members(document, KIND_MEMBERS), f'.singular = "{name}"', ".namespaced = true"]
        operations = take(document, "operations", list, True)
        members.append(f".operations = {' | '.join(f'STW_{operation}' for operation in operations)}")
        members += [f".spec = {self.prefix}spec_fields", f".spec_size = sizeof(struct {self.struct})"]
        status = self.fields(take(document, "status", Map, True), "status", "status", None, "")
        members.append(f".status = {status}")
        if "rules" in document:
            rules = self.rules(take(document, "rules", list), {})
            members.append(f".cel = {self.array('struct stw_cel_rule', f'{self.prefix}cel', rules)}")
        columns = self.columns(take(document, "columns", list, True))
        members.append(f".columns = {self.array('struct stw_column', 'columns', columns)}")
        if "scale" in document:
            scale = take(document, "scale", Map)
            check_keys(scale, SCALE_MEMBERS, "'scale'", scale.where)
            scale = ", ".join(self.members(scale, SCALE_MEMBERS))
            members.append(f".scale = &(const struct stw_scale){{{scale}}}")
        self.declared[f"stw_kind_{name}"] = f"extern const struct stw_kind stw_kind_{name};"
        return [*self.tables, f"const struct stw_kind stw_kind_{name} = {{",
                *(f"    {member}," for member in members), "};"]

    def values(self):
        """A macro for each value with an anchor: the name by which C uses it.  Of a list, it is the length."""
        for anchor, (where, value) in self.anchors.items():
            value = len(value) if isinstance(value, list) else value
            if not re.fullmatch("[A-Z][A-Z0-9_]*", anchor) or type(value) not in (str, int) or "$" in str(value):
                raise Mistake(where, f"'&{anchor}' must be in capitals, at a text without '$', a number or a list")
            yield f"#define {self.prefix.upper()}{anchor} {value if type(value) is int else literal(value, where)}"


def main():
    """Writes the files, or says what is wrong."""
    path, fields_file, header_file, kind_file = map(pathlib.Path, sys.argv[1:])
    try:
        compiler = Compiler(path)
        fields, kind = compiler.compile_fields(), compiler.compile_kind()
        values = list(compiler.values())
        include = take(compiler.document, "include", list) or ()
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 1
    name = compiler.kind
    note = f"/* Written by scripts/lib/kindc.py from kinds/{name}/schema.yaml: change that file. */"
    guard = f"STW_KINDS_{name.upper()}_SCHEMA_H"
    include = [f'#include "{file}"' for file in (f"kinds/{name}/spec.h", *include, "schema/rows.h")]
    for file, lines in ((fields_file, fields), (kind_file, kind)):
        file.write_text("\n".join([note, *include, "", *lines, ""]), "ascii")
    header = [note, f"#ifndef {guard}", f"#define {guard}", "", '#include "schema/kind.h"', "", *values, "",
              *compiler.declared.values(), "", "#endif", ""]
    header_file.write_text("\n".join(header), "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
