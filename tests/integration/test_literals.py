# SPDX-License-Identifier: Apache-2.0
"""The small grammars of steward (names, keys, quantities, times, versions, references of images), and the code of
Kubernetes and of container runtimes (tests/oracles/literals): on the texts in that code's own tests, and on
mutations of them.  What differs is in docs/operations.md."""

import json
import re
import subprocess

import pytest

from support import compared, daily, oracles, paths

MUTATIONS = 20000
MODULES = {"k8s.io/apimachinery": 1500, "github.com/distribution/reference": 200}  # texts of each, at least
LEAST = {"dns1123Label": 200, "dns1123Subdomain": 200, "dns1035Label": 200, "labelKey": 200, "labelValue": 200,
         "envName": 200, "dataKey": 200, "host": 200, "quantity": 200, "image": 200, "percent": 50, "version": 50,
         "duration": 50, "time": 20}  # accepted by both
ALPHABET = 'aA0019.-_/:@+%[]*eEkKmMGinuTZzµ \t"'
TEN_YEARS_NS = 10 * 366 * 24 * 3600 * 10**9
QUANTITY_MAX = (2**63 - 1) * 10**9

# Why only steward refuses a text: a test of the text and of what the other says.
STRICTER = {
    "quantity": [
        lambda text, _: not re.match(r"[-+]?\.?[0-9]", text),  # no digit: the schema refuses it, too
        lambda text, _: re.search(r"[eE][-+]?0*[1-9][0-9]{2,}$", text),  # an exponent above 100
    ],
    "duration": [
        lambda text, _: text[0] in "+-",
        lambda _, their: int(their) > TEN_YEARS_NS,
    ],
    "version": [
        lambda text, _: re.search(r"[-+\s]", text),
        lambda _, their: max(map(int, their.split("."))) > 65535,
    ],
    "percent": [lambda text, _: int(text[:-1]) > 999999],
    "envName": [lambda text, _: len(text) > 253],
    "image": [
        lambda _, their: their[0] == "" and "_" in their[1],  # a registry's name with "_": no node can pull it
        lambda _, their: len(their[0]) + 1 + len(their[1]) > 255,
    ],
    "time": [lambda text, _: re.search(r"T\d:|,", text)],
}
# Why only steward accepts one.
LENIENT = {
    "dataKey": [lambda text, _: not 1 <= len(text) <= 253],  # the rows of the fields limit the length
    "time": [lambda text, _: re.search(r"[tz]|:60", text)],  # RFC 3339; not in metadata (schema/rule/envelope.c)
}


def _ask(program, texts):
    """[{grammar: value}] of each text."""
    encoded = [text.encode() for text in texts]
    question = b"".join(b"%d\n%s" % (len(text), text) for text in encoded)
    answer = subprocess.run([program], input=question, capture_output=True, check=True, timeout=300).stdout
    found = [json.loads(line) for line in answer.decode().splitlines()]
    assert len(found) == len(texts)
    return found


def _completed(image):
    """A reference as container runtimes complete it."""
    domain, path, tag, pinned = image
    if domain in ("", "docker.io", "index.docker.io"):
        domain, path = "docker.io", path if "/" in path else f"library/{path}"
    return [domain, path, tag, pinned]


def _ours(texts):
    found = _ask(paths.steward_binary().parents[1] / "tests" / "integration" / "literals_probe", texts)
    return [{**one, **({"image": _completed(one["image"])} if "image" in one else {})} for one in found]


def _theirs(texts):
    return _ask(oracles.program("literals"), texts)


def _same(grammar, text, own, their):
    """Durations are milliseconds and nanoseconds, and Go's floating point is up to one of these off for each
    fraction.  Only values up to 2^63-1 are told apart here."""
    if grammar == "duration":
        off = text.count(".")
        return (int(their) - off) // 10**6 <= int(own) <= (int(their) + off) // 10**6
    if grammar == "quantity" and abs(int(their[0])) > QUANTITY_MAX:
        return abs(int(own[0])) == QUANTITY_MAX
    return own == their


@pytest.fixture(scope="module")
def literals():
    """{module: texts}; the parts in quotes, such as those of a JSON document, are texts, too."""
    lines = subprocess.run([oracles.program("literals"), "--literals"], capture_output=True, text=True, check=True,
                           timeout=60).stdout.splitlines()
    found = {module: set() for module in MODULES}
    for package, text in (line.split("\t") for line in lines):
        text = json.loads(text)
        module = next(m for m in MODULES if package.startswith(m))
        found[module] |= {part for part in (text, *re.findall(r'"([^"\\\n]*)"', text)) if "\0" not in part}
    return {module: sorted(texts) for module, texts in found.items()}


def _mutate(dice, text, others):
    chars = list(text[:400])
    if dice.random() < 0.2:  # other numbers, times ...
        return "".join(dice.choice("0012359") if c.isdigit() and dice.random() < 0.3 else c for c in chars)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        at = dice.randrange(len(chars) + 1)
        what = dice.random()
        if what < 0.3:
            chars.insert(at, dice.choice(ALPHABET))
        elif what < 0.5:
            chars[at:at + 1] = dice.choice(ALPHABET)
        elif what < 0.7:
            del chars[at:at + dice.choice([1, 1, 2, 3])]
        elif what < 0.9:
            other = dice.choice(others)[:300]
            chars[at:] = other[dice.randrange(len(other) + 1):]
        else:
            start = dice.randrange(len(chars) + 1)
            chars[at:at] = chars[start:start + dice.choice([1, 3, 60, 200])]
    return "".join(chars)


def _mutations(dice, texts):
    """Half of them of texts that a grammar accepts, each grammar as often as any other."""
    verdicts = _theirs(texts)
    good = [[text for text, verdict in zip(texts, verdicts) if grammar in verdict] for grammar in LEAST]
    return [_mutate(dice, dice.choice(dice.choice(good) if dice.random() < 0.5 else texts), texts)
            for _ in range(MUTATIONS)]


def _is_documented(grammar, text, their):
    rows = LENIENT if their is None else STRICTER
    return any(row(text, their) for row in rows.get(grammar, []))


def _differences(texts, counts):
    undocumented = []
    for text, own, their in zip(texts, _ours(texts), _theirs(texts)):
        for grammar in {*own, *their}:
            if grammar in own and grammar in their:
                counts[grammar] = counts.get(grammar, 0) + 1
                known = _same(grammar, text, own[grammar], their[grammar])
            else:
                known = _is_documented(grammar, text, their.get(grammar))
            if not known:
                undocumented.append((grammar, text, own.get(grammar), their.get(grammar)))
    return undocumented


def test_literals_are_judged_as_by_kubernetes(literals):
    """Accepted, refused, and read as the same value, except for the documented differences."""
    texts = sorted({text for some in literals.values() for text in some})
    texts += _mutations(daily.dice("literals"), texts)
    counts = {}
    undocumented = _differences(texts, counts)
    print(f"{len(texts)} texts; accepted by both: {counts}")
    for module, least in MODULES.items():
        assert len(literals[module]) >= least
        compared.note(module, f"{oracles.module_version('literals', module)} (the texts of its tests)",
                      len(literals[module]))
    compared.note(" and ".join(MODULES), "(changes of the texts of their tests)", MUTATIONS)
    assert undocumented[:10] == []
    assert {g: n for g, n in LEAST.items() if counts.get(g, 0) < n} == {}


@pytest.mark.parametrize("grammar, text, other", [
    ("percent", "25%", "26%"), ("quantity", "1.5Gi", "1.5Mi"), ("image", "a/b:1", "a/b:2"),
    ("duration", "1.5s", "1.502s"), ("time", "1998-05-05T05:05:05.1Z", "1998-05-05T05:05:05.100001Z")])
def test_comparison_distinguishes_values(grammar, text, other):
    """So that the comparison is not only one of what is accepted."""
    own, their = _ours([text])[0][grammar], _theirs([text, other])
    assert _same(grammar, text, own, their[0][grammar])
    assert not _same(grammar, text, own, their[1][grammar])
