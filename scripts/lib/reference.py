#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the reference of the library as Markdown, made from its public headers.

Usage: reference.py FILE...

A header is documented by its first comment, and each declaration by the comment above it.  A
declaration without a comment, in a group that has none, is a fault: it is named, and the exit code
is 1.
"""

import pathlib
import re
import sys

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
NAME = re.compile(r"^#define (\w+)|^(?:typedef )?(?:struct|enum|union) (\w+)\s*\{"
                  r"|\b(stw_\w+)\(|^typedef [^;]*?\b(stw_\w+)\(|\b(stw_\w+)(?:\[\])?;$",
                  re.MULTILINE)
FORWARD = re.compile(r"(?:(?:struct|enum|union) \w+;\s*)+")
SECTION = re.compile(r"^/\* --- (.*?)\*/$", re.DOTALL)


def prose(comment):
    """The text of a comment, as paragraphs."""
    lines = [re.sub(r"^ \* ?", "", line) for line in comment[2:-2].strip("\n").split("\n")]
    text = "\n".join(line.rstrip() for line in lines).strip()
    return re.sub(r"\.  (?=[A-Z`<])", ". ", text)


def without_guard(text):
    """The declarations of a header: no include guard, no includes, no part for analysers."""
    text = re.sub(r"#ifdef __clang_analyzer__.*?#endif\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^#ifndef (\w+)\n#define \1\n|^#include [^\n]*\n|^#endif\s*\Z", "", text,
                  flags=re.MULTILINE)
    return text


def signature(code):
    """An inline function is shown by its declaration."""
    return re.sub(r"^(static inline [^{;]*?)\n\{.*?^\}", r"\1;", code,
                  flags=re.MULTILINE | re.DOTALL)


def chunks(text):
    """Groups of lines without an empty line between them, outside of braces and comments."""
    group, depth, inside = [], 0, False
    for line in text.split("\n"):
        if not line.strip() and depth == 0 and not inside:
            if group:
                yield "\n".join(group)
            group = []
            continue
        group.append(line)
        bare = TOKEN.sub("", line)
        inside = ("/*" in bare) if not inside else ("*/" not in line)
        depth += bare.count("{") - bare.count("}")
    if group:
        yield "\n".join(group)


def names(code):
    """The names that a group declares, each once, in order."""
    bare = TOKEN.sub(lambda m: "" if m[0].startswith("/") else '""', code)
    bare = re.sub(r"\{.*?^\}", "{}", bare, flags=re.MULTILINE | re.DOTALL)
    bare = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", bare)
    found = []
    for line in re.split(r";\s*\n|\n(?=#)", bare):
        match = NAME.search(line.strip() + (";" if not line.strip().startswith("#") else ""))
        name = match and next(filter(None, match.groups()))
        if name and name not in found and not name.endswith("_") and not name.endswith("_MEMBERS"):
            found.append(name)
    return found


def page(path, shown):
    """(lines of Markdown, declarations without a comment) of one header."""
    text = path.read_text("utf-8")
    first = TOKEN.match(text)
    intro = prose(first[0]).partition("\n")[2].strip()
    lines, bad = [f"## `<steward/{shown}>`", "", intro, ""], []
    for group in chunks(without_guard(text[first.end():])):
        section = SECTION.match(group.split("*/")[0] + "*/") if group.startswith("/* --- ") else None
        if section:
            title, _, rest = prose("/*" + section[1] + "*/").partition(".")
            lines += [f"**{title.strip().capitalize()}.** {rest.strip()}".strip(), ""]
            group = group.partition("*/")[2].strip("\n")
            if not group:
                continue
        code, said = signature(group), ""
        if code.startswith("/*"):
            comment, _, rest = code.partition("*/")
            said, code = prose(comment + "*/"), rest.strip("\n")
        found = names(code)
        if not found or FORWARD.fullmatch(code):
            continue
        if not said and "/*" not in code:
            bad += found
        lines += ["### " + ", ".join(f"`{name}`" for name in found[:4])
                  + (" …" if len(found) > 4 else ""), ""]
        lines += [said, ""] if said else []
        lines += ["```c", code, "```", ""]
    return lines, bad


def main():
    """Prints the reference of the headers that the arguments name."""
    bad = []
    print("# Reference of libsteward\n\n"
          "Made from the public headers by `scripts/lint --fix generated`.\n")
    for argument in sys.argv[1:]:
        path = pathlib.Path(argument)
        lines, missing = page(path, "/".join(path.parts[-2:]))
        bad += [f"{path}: {name}" for name in missing]
        print("\n".join(lines))
    for one in bad:
        print(f"{one} has no comment", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
