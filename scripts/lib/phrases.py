#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds phrases that have a plainer word, in comments, docstrings, pages and the program's texts.

The program's texts are the string literals of the C files of lib, controller, webhook, certs, kinds and
src: log lines, errors, events, conditions, metric and CRD help, usage texts.

Prints FILE:LINE, the phrase and what to write instead, and ends with status 1 if there is one.  With
--count it prints how often each phrase occurs, and ends with status 0.  Literal uses are listed in
ALLOWED.
"""

import ast
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]

# (phrase, what to write instead)
PHRASES = [(re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE), instead) for phrase, instead in [
    (r"somebody|someone|nobody", "the actor: another client, another writer, no client"),
    (r"whoever", "the actor: the caller, the client"),
    (r"anew", "again, recreated"),
    (r"passed over", "skipped"),
    (r"held against", "compared with"),
    (r"(?:goes|go|going) by (?!itself|name|default)", "depends on, uses"),
    (r"stands? in|stands there|stands still", "is in"),
    (r"(?:is|are|was|were) no (?!longer\b|more\b|better\b|other\b|such\b|less\b)[a-z]+(?<!there)",
     "is not a"),
    (r"so many|so long as", "up to N; as long as"),
    (r"but for", "except"),
    (r"of its own accord", "by itself"),
    (r"it shall", "it must, it will"),
    (r"(?<=; )without (?:it|them)(?=,? (?:all|its|that of|those of|the pod's)\b)", "(default: X)"),
]]
# "there is no Secret" is plain; "a learner is no voter" is not.
PLAIN = re.compile(r"\b(?:there|which there) (?:is|are|was|were) no\b", re.IGNORECASE)

# Literal uses: (file, phrase), such as a text of a server that the code compares with.  "nobody" is a
# Unix user.
ALLOWED = {
    ("tests/support/dbserver.py", "nobody"),
    ("tests/support/postgres.py", "nobody"),
}

C_PARTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
# What may be between two pieces of one literal: a comment, or a macro such as PRId64.
C_BETWEEN = re.compile(r"(?:\s|/\*.*?\*/|\b[A-Za-z_]\w*\b)*\Z", re.DOTALL)
C_ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|x[0-9a-fA-F]+|.)|.", re.DOTALL)
PROGRAM = ("lib", "controller", "webhook", "certs", "operator", "kinds", "src")


def c_comments(text):
    """(line, text) of each comment of a C file."""
    for match in C_PARTS.finditer(text):
        if match[0].startswith("/"):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def c_strings(text):
    """(line, text) of each string literal of a C file, its pieces joined; macros between them are a %."""
    literal, start, end = "", None, 0
    for match in C_PARTS.finditer(text):
        if not match[0].startswith('"'):
            continue
        between = text[end:match.start()]
        if start is not None and not C_BETWEEN.match(between):
            yield text.count("\n", 0, start) + 1, literal
            start = None
        if start is None:
            literal, start = "", match.start()
        elif between.strip():
            literal += "%"
        literal += C_ESCAPE.sub(lambda m: " " if m[0][0] == "\\" else m[0], match[0][1:-1])
        end = match.end()
    if start is not None:
        yield text.count("\n", 0, start) + 1, literal


def c_program(text):
    """(line, text) of each comment and string literal of a C file of the program."""
    yield from c_comments(text)
    yield from c_strings(text)


def python_comments(text):
    """(line, text) of each comment and docstring of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                yield node.body[0].lineno, node.body[0].value.value


def hash_comments(text):
    """(line, text) of each line that is a comment of a shell script, YAML or meson file."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            yield number, line


def schema(text):
    """(line, text) of each comment, help and message of a schema.yaml."""
    yield from hash_comments(text)
    for token in yaml.scan(text):
        if isinstance(token, yaml.ScalarToken):
            yield token.start_mark.line + 1, token.value


def page(text):
    """(line, text) of a page, without its code blocks and code spans."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "`", text)
    yield 1, text


def reader(path, text):
    """The function that finds what is looked at in this file; None: nothing is."""
    if path.suffix in (".c", ".h"):
        return c_program if path.relative_to(TOP).parts[0] in PROGRAM else c_comments
    if path.suffix == ".md":
        return page
    if path.suffix == ".yaml" and path.relative_to(TOP).parts[0] == "kinds":
        return schema
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return python_comments
    if path.suffix in (".sh", ".yaml") or path.name in ("meson.build", "Dockerfile") or text.startswith("#!"):
        return hash_comments
    return None


def files():
    """The tracked and the new files; no data of tests and nothing that is generated."""
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"],
                         cwd=TOP, capture_output=True, text=True, check=True).stdout
    for name in out.splitlines():
        path = TOP / name
        if path.is_file() and not re.match(r"tests/(data|fuzz/corpus|fuzz/regression)/", name):
            yield path


def findings():
    """(file, line, phrase, what to write instead)."""
    for path in files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        read = reader(path, text)
        if read is None or path == pathlib.Path(__file__).resolve():
            continue
        name = str(path.relative_to(TOP))
        for start, part in read(text):
            for rx, instead in PHRASES:
                for match in rx.finditer(part):
                    if PLAIN.search(part[max(0, match.start() - 12):match.end()]):
                        continue
                    line = start + part.count("\n", 0, match.start())
                    if (name, " ".join(match[0].split()).lower()) not in ALLOWED:
                        yield name, line, " ".join(match[0].split()), instead


def main():
    """All findings, or how many there are of each."""
    found = list(findings())
    if sys.argv[1:] == ["--count"]:
        for phrase, count in collections.Counter(p.lower() for _, _, p, _ in found).most_common():
            print(f"{count:6} {phrase}")
        print(f"{len(found):6} altogether")
        return 0
    for name, line, phrase, instead in found:
        print(f"{name}:{line}: \"{phrase}\": {instead}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
