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
])
def test_literals_of_the_program(tree, text, found):
    tree("kinds/app/a.c", text)
    assert [(line, phrase) for _, line, phrase, _ in phrases.findings()] == found


def test_literals_of_tests_are_not_checked(tree):
    tree("tests/unit/test_a.c", 'f("nobody"); /* somebody */\n')
    assert [phrase for _, _, phrase, _ in phrases.findings()] == ["somebody"]


def test_literal_uses_are_allowed(tree, monkeypatch):
    tree("lib/sql/a.c", 'f("nobody", "somebody");\n')
    monkeypatch.setattr(phrases, "ALLOWED", {("lib/sql/a.c", "nobody")})
    assert [phrase for _, _, phrase, _ in phrases.findings()] == ["somebody"]
