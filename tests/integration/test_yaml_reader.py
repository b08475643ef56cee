# SPDX-License-Identifier: Apache-2.0
"""The YAML reader and that of kubectl (tests/oracles/yaml) on the same texts: generated ones, and mutations of
the samples.  steward may refuse more, for the reasons of docs/operations.md; it never accepts what kubectl
refuses, nor reads another value."""

import json
import re
import subprocess

import pytest

from support import compared, daily, oracles, paths, yamltexts

COUNT = 20000
LEAST_ACCEPTED = 1000

# What only steward refuses: patterns of its messages.
STRICTER = [
    r'the key ".*" is there already, in line \d+$',
    r'invalid JSON at .*: duplicate key ".*"$',
    r"kubectl ignores (this text after|what follows) the end of a document",
    r"an integer is outside the 64-bit range|a key is a number beyond 64 bits",
    r"a number is too large",
    r"a text must not hold the character NUL|invalid JSON at .*: \"\\u0000\" is not allowed",
    r"found invalid Unicode character escape code|invalid JSON at .*surrogate",
    r"a byte order mark \(U\+FEFF\) is allowed only",
    r"invalid (leading|trailing) UTF-8 octet|incomplete UTF-8|invalid length of a UTF-8 sequence|"
    r"invalid JSON at .*UTF-8",
    r"!!binary holds bytes that are not text",
    r"in brackets and braces kubectl reads a (comma|question mark)",
    r"found unexpected ':'",
    r"kubectl reads no text after the dashes",
    r"the document grows too large when its aliases are written out",
    r"the value is not a !!timestamp",
]
# In JSON that is read again as YAML because of the list above.
STRICTER_JSON = [r"control characters are not allowed", r"the escape \\/ is not one of YAML 1.1"]
# Text after the end of a document that changes how libyaml reads the document, a null key in a map that a
# merge replaces, a bracket in a tag.
STRICTER_SELDOM = [r"control characters are not allowed", r"did not find expected key", r"a key must not be null",
                   r"did not find expected whitespace or line break"]
SELDOM = 1000  # one of these texts

KNOWN = {  # each of them was read differently once
    "a directive with a version": b"%YAML 1.1\n---\na: 1\n",
    "a directive with a tag": b"%TAG !e! tag:example.com,2000:app/\n---\na: 1\n",
    "text after the dashes": b"--- {a: 1}\n",
    "a question mark in a list": b"a: [http://x/?y=1]\n",
    "dots between dashes": b"a: 1\n---\n...\n---\nb: 2\n",
    "a tag before a comma": b"{a: {b: !x, c: d}}\n",
    "a number beyond 64 bits": b'{"a": 1e400}\n',
    "JSON and no YAML": b'{"a": 1}\n{"b": 2}\n---\nc: 3\n',
    "another value than an object in JSON": b'{"a": 1}\ntrue: 2\n',
    "a tag that a merge replaces": b"a: {<<: {b: !!int x}, b: 1}\n",
}
KNOWN_GOOD = {
    "a stream of JSON": (b'{"a": 1}\n{"b": 2}{"c": 3}\n', [{"a": 1}, {"b": 2}, {"c": 3}]),
    "JSON and YAML": (b'{"a": 1}\n---\nb: 2\n', [{"a": 1}, {"b": 2}]),
    "null in a stream of JSON": (b'{"a": 1}\nnull\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
    "an escaped quote": (b'a: "it\\\'s \\\\\'"\nb: \'\\\'\n', [{"a": "it's \\'", "b": "\\"}]),
    "a comment after the dashes": (b"a: 1\n---#comment\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "dashes in a block scalar": (b"a: |\n---\nb: 2\n", [{"a": ""}, {"b": 2}]),
    "no newline at the end": (b"a: |\n  b", [{"a": "b\n"}]),
    "two carriage returns": (b"a: |\n  b\r\r\n  c\r\n", [{"a": "b\nc\n"}]),
}


def _ask(program, texts):
    """[documents, or the error as a string] of each text."""
    question = b"".join(b"%d\n%s" % (len(text), text) for text in texts)
    result = subprocess.run([program], input=question, capture_output=True, check=True, timeout=300)
    answers = result.stdout.decode(errors="replace").split("\n")[:-1]
    assert len(answers) == len(texts)
    return [a[1:] if a.startswith("!") else _objects(json.loads(a, parse_int=_number, parse_float=_number))
            for a in answers]


def _number(text):
    """Go writes some floats as integers."""
    value = float(text)
    return ("number", int(text) if re.fullmatch(r"-?\d{1,15}", text) else value)


def _objects(documents):
    """kubectl refuses a document that is not an object, after it has read it."""
    return documents if all(isinstance(d, dict) for d in documents) else "a document is not an object"


@pytest.fixture(scope="module")
def ours():
    """The reader under test."""
    binary = paths.steward_binary().parents[1] / "tests" / "integration" / "yaml_probe"
    return lambda texts: _ask(binary, texts)


@pytest.fixture(scope="module")
def theirs():
    """kubectl's."""
    program = oracles.program("yaml")
    return lambda texts: _ask(program, texts)


def _seeds():
    return [path.read_text("utf-8") for folder in ("config/samples", "tests/data")
            for path in sorted((paths.TOP / folder).rglob("*.[yj][as][mo][ln]")) if path.stat().st_size]


def _matches(rows, message):
    return any(re.search(row, message) for row in rows)


def _is_documented(text, message):
    return _matches(STRICTER, message) or (text.lstrip().startswith(b"{") and _matches(STRICTER_JSON, message))


def test_yaml_is_read_as_kubectl_reads_it(ours, theirs):
    """No text is accepted that kubectl refuses; no value differs; what only steward refuses is documented."""
    texts = yamltexts.generate(daily.dice("yaml"), COUNT, _seeds())
    lenient, different, undocumented, seldom, accepted = [], [], [], [], 0
    for text, own, their in zip(texts, ours(texts), theirs(texts)):
        if isinstance(own, str):
            if not isinstance(their, str) and not _is_documented(text, own):
                (seldom if _matches(STRICTER_SELDOM, own) else undocumented).append((text, own, their))
        elif isinstance(their, str):
            lenient.append((text, own, their))
        elif own != their:
            different.append((text, own, their))
        else:
            accepted += 1
    print(f"{len(texts)} texts, of which both accept {accepted}")
    compared.note("k8s.io/apimachinery", f"{oracles.module_version('yaml', 'k8s.io/apimachinery')} "
                  "(kubectl's reader of YAML)", len(texts))
    assert (lenient[:5], different[:5], undocumented[:5]) == ([], [], [])
    assert len(seldom) <= COUNT / SELDOM, seldom
    assert accepted >= LEAST_ACCEPTED


@pytest.mark.parametrize("what", KNOWN)
def test_yaml_refused_by_kubectl_is_refused(ours, theirs, what):
    """Both say so."""
    assert isinstance(theirs([KNOWN[what]])[0], str)
    assert isinstance(ours([KNOWN[what]])[0], str)


@pytest.mark.parametrize("what", KNOWN_GOOD)
def test_yaml_applied_by_kubectl_is_read(ours, theirs, what):
    """Both read the same documents."""
    text, documents = KNOWN_GOOD[what]
    expected = json.loads(json.dumps(documents), parse_int=_number, parse_float=_number)
    assert theirs([text])[0] == expected
    assert ours([text])[0] == expected


def test_numbers_are_compared_exactly(ours, theirs):
    """So that a difference of type or of a digit is not lost in the comparison."""
    assert ours([b"a: 1"]) == theirs([b"a: 1"]) != ours([b"a: true"])
    assert ours([b"a: 1.5"]) != theirs([b"a: 1.25"])
