# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/phrases.py finds its phrases in the program's texts, wherever a literal is broken."""

import importlib.util

import pytest
from support import paths

spec = importlib.util.spec_from_file_location("phrases", paths.TOP / "scripts/lib/phrases.py")
phrases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(phrases)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """write(name, text) into a tree that phrases.py looks at."""
    monkeypatch.setattr(phrases, "TOP", tmp_path)
    monkeypatch.setattr(phrases, "files", lambda: [p for p in tmp_path.rglob("*") if p.is_file()])

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return write


@pytest.mark.parametrize("text, found", [
    ('f("nobody answers");\n', [(1, "nobody")]),
    ('int a;\nf("the pod is made "\n  "anew\\n");\n', [(2, "anew")]),
    ('f("kinds are passed\\nover");\n', [(1, "passed over")]),
    ('f("by " PRIu64 " of somebody");\n', [(1, "somebody")]),
    ('f("passed", "over");\n', []),
    ('f("passed" PRIu64 "over");\n', []),
    ("char q = '\"'; /* it */ char *nobody;\n", []),
    ('f("there is no Secret");\n', []),
    ('f("it is no object");\n', [(1, "is no object")]),
    ('f("these kinds only; without it all");\n', [(1, "without it")]),
])
def test_phrases_in_program_literals_are_found(tree, text, found):
    tree("kinds/app/a.c", text)
    assert [(line, phrase) for _, line, phrase, _ in phrases.findings()] == found


def test_literals_of_tests_are_not_checked(tree):
    tree("tests/unit/test_a.c", 'f("nobody"); /* somebody */\n')
    assert [phrase for _, _, phrase, _ in phrases.findings()] == ["somebody"]


def test_literal_uses_are_allowed(tree, monkeypatch):
    tree("lib/sql/a.c", 'f("nobody", "somebody");\n')
    monkeypatch.setattr(phrases, "ALLOWED", {("lib/sql/a.c", "nobody")})
    assert [phrase for _, _, phrase, _ in phrases.findings()] == ["somebody"]


def test_phrases_in_schema_texts_are_found(tree):
    tree("kinds/app/schema.yaml", "# Of nobody.\nspec:\n  a:\n    help: >-\n      It is passed\n      over.\n")
    assert [(line, phrase) for _, line, phrase, _ in phrases.findings()] == [(1, "nobody"), (4, "passed over")]


@pytest.mark.parametrize("name, text, missing", [
    ("kinds/app/run.h", "/* The run (status.c), its queue (controller/queue/queue.c). */\n", []),
    ("kinds/app/run.h", "/* One.\n * Two (app.c). */\n", [(2, "app.c")]),
    ("kinds/app/run.h", "/* As queue.c does. */\n", [(1, "queue.c")]),  # it is in another folder
    ("kinds/app/run.h", '#include "app.h"\nf("app.c");\n', []),
    ("tests/test_a.py", '"""As queue.c, app.c."""\n', [(1, "app.c")]),
    ("docs/a.md", "See `lib/status.c`, `app/status.c`.\n", [(1, "lib/status.c")]),
])
def test_missing_file_named_in_comment_is_found(tmp_path, monkeypatch, name, text, missing):
    """scripts/lib/filenames.py, beside the files kinds/app/status.c and controller/queue/queue.c."""
    monkeypatch.syspath_prepend(str(paths.TOP / "scripts/lib"))
    filenames = importlib.import_module("filenames")
    monkeypatch.setattr(filenames.phrases, "TOP", tmp_path)
    for file, content in (("kinds/app/status.c", ""), ("controller/queue/queue.c", ""), (name, text)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    found = filenames.findings([p for p in tmp_path.rglob("*") if p.is_file()])
    assert [(line, file) for _, line, file in found] == missing
