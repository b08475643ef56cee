# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/kindc.py writes the tables of a schema.yaml, and names the line of each mistake;
scripts/lib/fields.py writes the tables of fields in a page."""

import importlib
import re
import subprocess
import sys

import pytest
from support import paths

SCHEMA = r"""kind: Shop
group: example.com
version: v1
plural: shops
help: A shop.
operations: [CREATE]
validate: stw_shop_validate
types:
  name: {type: string, length: [1, 63], pattern: ^$word$, check: stw_shop_check_name}
define:
  has(field): has(self.$field)
  open: $has(door) && self.door.count > 0
  word: "[a-z]+"
rulesets:
  pair(a, b):
  - at: $b
    required: $b goes with $a
    cel: "!$has($a) || $has($b)"
spec:
  size: {type: int32, range: [1, &SIZE_MAX 9], default: 3, help: Its size.}
  ownerName: {type: name, help: Its owner.}
  colour:
    type: string
    enum: &COLOURS [Red, &GREEN Green]
    default: Red
    cel:
      &NOT_BROWN must not be "brown": self != 'brown'
      "{STW_SHOP_DULL} and dull": self != 'grey'
    help: >-
      What it looks
      like.
  door:
    type: object
    help: Its door.
    fields:
      count: {type: int, member: doors, help: How many.}
  shelves:
    type: list
    entries: [0, SHELVES_MAX]
    help: Its shelves.
    item: {type: object, fields: {label: {type: name, help: Text.}}}
rules:
- at: size
  invalid: &TOO_SMALL too small
  cel: "!($open) || self.size > 1"
- use: pair(ownerName, colour)
- each: [{field: size}, {field: colour}]
  at: $field
  type: transition
  forbidden: keep it
  cel: self.$field == oldSelf.$field || self.name.matches('^a$')
status:
  since: {type: time, help: Since when.}
columns:
- {name: Size, type: integer, path: .spec.size}
- Age
"""

ROWS = r"""
    {.name = "label", .type = STW_T_STRING, .help = "Text.", .pattern = "^[a-z]+$", .check = stw_shop_check_name,
     STW_RANGE(1, 63)},
    {.name = "size", STW_FIELD(STW_T_INT, struct stw_shop, size), .help = "Its size.", STW_RANGE(1, 9),
     .format = "int32", .def = "3"},
    {.name = "ownerName", STW_FIELD(STW_T_STRING, struct stw_shop, owner_name), .help = "Its owner.",
     .pattern = "^[a-z]+$", .check = stw_shop_check_name, STW_RANGE(1, 63)},
    {.name = "colour", STW_FIELD(STW_T_STRING, struct stw_shop, colour), .help = "What it looks like.",
     .values = (const char *const[]){"Red", "Green", NULL}, .def = "\"Red\"",
     .cel = (const struct stw_cel[]){{"self != 'brown'", "must not be \"brown\""},
     {"self != 'grey'", STW_SHOP_DULL " and dull"}, {0}}},
    {.name = "count", STW_FIELD(STW_T_INT, struct stw_shop, doors), .help = "How many."},
    {.name = "door", .type = STW_T_OBJECT, .help = "Its door.", .fields = spec_door},
    {.name = "shelves", STW_FIELD(STW_T_LIST, struct stw_shop, shelves), .help = "Its shelves.",
     STW_RANGE(0, SHELVES_MAX), .item = &(const struct stw_field){.name = "", .type = STW_T_OBJECT,
     .fields = spec_shelves_item}},
    {.at = "size", .code = STW_INVALID, .message = "too small",
     .rule = "!(has(self.door) && self.door.count > 0) || self.size > 1"},
    {.at = "colour", .code = STW_REQUIRED, .message = "colour goes with ownerName",
     .rule = "!has(self.ownerName) || has(self.colour)"},
    {.at = "colour", .type = STW_CEL_TRANSITION, .code = STW_FORBIDDEN, .message = "keep it",
     .rule = "self.colour == oldSelf.colour || self.name.matches('^a$')"},
    {.name = "since", .type = STW_T_STRING, .help = "Since when.", .format = "date-time"},
    {.name = "Size", .type = "integer", .json_path = ".spec.size"},
    STW_COLUMN_AGE,
"""
VALUES = {"SIZE_MAX": "9", "COLOURS": "2", "GREEN": '"Green"', "NOT_BROWN": r'"must not be \"brown\""',
          "TOO_SMALL": '"too small"'}


@pytest.fixture
def compile_schema(tmp_path, monkeypatch):
    """compile_schema(text): (the tables, the header, what was wrong)."""
    monkeypatch.syspath_prepend(str(paths.TOP / "scripts/lib"))
    kindc = importlib.import_module("kindc")
    out = [tmp_path / name for name in ("schema.c", "schema.h", "schema_kind.c")]

    def run(text, capsys):
        (tmp_path / "schema.yaml").write_text(text)
        monkeypatch.setattr("sys.argv", ["kindc.py", str(tmp_path / "schema.yaml"), *map(str, out)])
        fields, header, kind = [""] * 3 if kindc.main() != 0 else [path.read_text() for path in out]
        return fields + kind, header, capsys.readouterr().err
    return run


def test_each_field_and_rule_becomes_a_row(compile_schema, capsys):
    """One line each, below its place in the file; values with an anchor and functions are in the header."""
    source, header, said = compile_schema(SCHEMA, capsys)
    assert said == ""
    lines = source.splitlines()
    for row in ROWS.strip("\n").replace(",\n     ", ", ").splitlines():
        assert row in lines
    at = lines.index("    STW_COLUMN_AGE,")
    assert lines[at - 1].startswith(f"#line {SCHEMA.splitlines().index('- Age') + 1} ")
    for name, value in VALUES.items():
        assert f"#define STW_SHOP_{name} {value}\n" in header
    assert "const char *stw_shop_check_name(const char *value);\n" in header
    assert header.count("stw_shop_validate(") == 1


def test_names_of_the_kind_begin_with_its_prefix(compile_schema, capsys):
    """Also those of constants in texts, and the struct of the spec."""
    text = SCHEMA.replace("kind: Shop", "kind: Shop\nprefix: sh").replace("stw_shop_", "sh_")
    source, header, said = compile_schema(text.replace("{STW_SHOP_DULL}", "{SH_DULL}"), capsys)
    assert said == ""
    assert "STW_FIELD(STW_T_INT, struct sh_spec, size)" in source
    assert "sizeof(struct sh_spec)" in source
    assert 'SH_DULL " and dull"' in source
    assert "#define SH_SIZE_MAX 9\n" in header
    assert "const char *sh_check_name(const char *value);\n" in header
    assert "stw_shop" not in source and "stw_kind_shop;" in header


@pytest.mark.parametrize("old, new, said", [
    ("help: A shop.", "hepl: A shop.", "the file has no key 'hepl'; did you mean 'help'?"),
    ("plural: shops", "kind: Shop", "'kind' stands twice; the first is at "),
    ("version: v1", "version: 1", "'version' must be text; put it into quotes"),
    ("version: v1", "version: [v1", "this is not YAML: "),
    ("  size: {type: int32", "  size: {type: int23", "there is no type 'int23'; did you mean 'int32'?"),
    ("  size: {type: int32", "  size: {type: int32, requierd: true", "no key 'requierd'; did you mean 'required'"),
    ("  size: {type: int32", "  size: {type: int32, required: yes please", "'required' must be true or false"),
    ("range: [1, &SIZE_MAX 9]", "length: [1, &SIZE_MAX 9]", "type int32 has no 'length'; write 'range'"),
    ("range: [1, &SIZE_MAX 9]", "range: [1]", "'range' must be [least, most]"),
    ("default: 3", "default: 10", "the default is outside of range [1, 9]"),
    ("default: 3", "default: three", "'default' does not fit type int32"),
    ("    default: Red", "    default: Rde", "'enum' does not have the default 'Rde'; did you mean 'Red'?"),
    ("  ownerName: {type: name, help: Its owner.}", "  ownerName: {type: name}", "'ownerName' has no help"),
    ("  ownerName: {type: name, help: Its owner.}", "  ownerName: text", "'ownerName' must be a mapping"),
    ("{type: string, length: [1, 63], pattern: ^$word$, check: stw_shop_check_name}", "{type: name}",
     "'name' is made of itself"),
    ("plural: shops", "import: [../other.yaml]", "there is no file "),
    ("check: stw_shop_check_name", "check: check-name", "'check' must be a name in C"),
    ("[Red, &GREEN Green]", "[Red, 1]", "1 must be text: put it into quotes"),
    ("    enum: &COLOURS [Red, &GREEN Green]", "    enum: [Red, &green Green]", "'&green' must be in capitals"),
    ("    item: {type: object, fields: {label: {type: name, help: Text.}}}", "", "'item' is missing"),
    ('  cel: "!($open)', '  cel: "!($opne)', "'define:' has no 'opne'; did you mean 'open'?"),
    ("  has(field): has(self.$field)", "  has(field): $has($field)", "this is defined by itself"),
    ("  open: $has(door)", "  open: $has(door", "a bracket is not closed"),
    ("  open: $has(door)", "  open: $has(door, window)", "'$has' takes 1 arguments, not 2"),
    ("- use: pair(ownerName, colour)", "- use: piar(ownerName, colour)", "no 'piar'; did you mean 'pair'?"),
    ("- use: pair(ownerName, colour)", "- use: pair(ownerName)", "'pair' takes 2 arguments, not 1"),
    ("- at: size", "- at: sise", "'sise' names no field: the spec has no 'sise'; did you mean 'size"),
    ("- at: size", "- at: door.size", "'door.size' names no field: the spec has no 'size'"),
    ("  invalid: &TOO_SMALL too small", "", "a rule needs one of required, forbidden, invalid, duplicate"),
    ("- each: [{field: size}, {field: colour}]", "- each: [size, colour]", "'each' must be a list of mappings"),
    ("  type: transition", "  type: change", "'type' must be entries or transition"),
])
def test_schema_error_names_its_line(compile_schema, capsys, old, new, said):
    """FILE:LINE, what is wrong, and often what was meant."""
    assert SCHEMA.count(old) == 1  # of a key that is gone, the line is that of the mapping
    wrong = SCHEMA.replace(old, new)
    *_, found = compile_schema(wrong, capsys)
    assert said in found
    line = int(found.split("schema.yaml:")[1].split(":")[0])
    assert new.strip() in wrong.splitlines()[line - 1]


def test_c_compiler_names_schema_line_of_unknown_member(compile_schema, capsys, tmp_path):
    """A row has the place of its field."""
    source, *_ = compile_schema(SCHEMA, capsys)
    (tmp_path / "kinds/shop").mkdir(parents=True)
    (tmp_path / "kinds/shop/spec.h").write_text(
        "#define SHELVES_MAX 1\nstruct stw_shop {\nint64_t size, doors;\nconst char *owner, *colour;\n"
        'struct stw_json shelves;\n};\n#include "../../schema.h"\n')
    done = subprocess.run(["cc", "-fsyntax-only", "-I", tmp_path, "-I", paths.TOP / "lib", "-include",
                           "schema/kind.h", "-x", "c", "-"],
                          input=source, capture_output=True, text=True, check=False)
    line = SCHEMA.splitlines().index("  ownerName: {type: name, help: Its owner.}") + 1
    assert f"schema.yaml:{line}:" in done.stderr and "owner_name" in done.stderr


def test_page_has_a_row_for_each_field(tmp_path):
    """`doc` is the text of the row, and takes the fields below it with it; a table of a part leaves it out of the
    table of the whole; other text of the page stays."""
    tables = [("app", "spec"), ("app", "spec.restartOnChange"), ("databaseuser", "spec.grants")]
    page = tmp_path / "page.md"
    page.write_text("Before.\n" + "".join(
        f"<!-- fields: kinds/{kind}/schema.yaml {what} -->\nold\n<!-- end of fields -->\n"
        for kind, what in tables) + "After.\n")
    (tmp_path / "out").mkdir()
    subprocess.run([sys.executable, paths.TOP / "scripts/lib/fields.py", paths.steward_binary(),
                    tmp_path / "out", page], check=True)
    text = (tmp_path / "out" / "page.md").read_text()
    assert text.startswith("Before.\n<!-- fields") and text.endswith("end of fields -->\nAfter.\n")
    assert "old" not in text.splitlines()
    app, restart, grants = (re.findall("^[|] `(.*?)` [|] (.*?) [|] (.*?) [|] ", part, re.MULTILINE)
                            for part in text.split("<!-- end of fields -->")[:3])
    assert ("config.logLevel", "`trace`, `debug`, `info`, `warn`, `error`", "`info`") in app
    assert ("image", "string, at most 1024 characters", "required") in app
    assert ("ingress.tls.secretName", "string", "required in `tls`") in app
    assert "autoscaling.behavior" in [name for name, _, _ in app]
    assert not [name for name, _, _ in app if name.startswith(("autoscaling.behavior.", "restartOnChange."))]
    assert ("minIntervalSeconds", "integer, 60 to 86400", "300") in restart
    assert ("privileges", "list, 1 to 40", "required") in grants
