# SPDX-License-Identifier: Apache-2.0
"""Random texts for readers of YAML: manifests in every style, mutations of given texts, and tokens in any
order."""

WORDS = ["a", "b c", "name", "x/y", "nginx:1.22", "~", "null", "Null", "true", "False", "yes", "No", "on",
         "OFF", "y", "N", "0", "-0", "007", "08", "0o17", "0x1F", "0b101", "0b", "1_000", "_1", "1__0", "+12",
         "-12", "1.5", "1.", ".5", "1e3", "1E+3", "1.5e-7", "1e21", "1e400", "-1.0", "0.0", "-0.0", ".inf",
         "-.Inf", ".nan", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
         "18446744073709551616", "0xFFFFFFFFFFFFFFFF", "1:30", "190:20:30",
         "2026-01-02", "2026-01-02T03:04:05Z", "=", "<<", "é", "日本", "\U0001f600", "a?b", "?x", "-x", "-1x",
         ":x", "x:y", "a#b", "#", "a #b", "%x", "@x", "`x", "!x", "&x", "*x", "[x", "]x", "{x", "a,b", "'", '"',
         "a'b", 'a"b', "\\", "a\\'b", "1.4733m", "http://x/?y=1", "---", "...", "--- x", "", " ", "x ", "x\ty"]
# Those that no reader refuses as plain scalars.
PLAIN = [w for w in WORDS if w and w.strip() == w
         and w[0] not in "#%@`!&*[]{}'\"=<-?:|>,." and not set(w) & set("#\"'")
         and ": " not in w and "\t" not in w]
ESCAPES = ["\\n", "\\t", "\\\\", '\\"', "\\'", "\\/", "\\0", "\\x41", "\\xe9", "\\u00e9", "\\u2028",
           "\\ud83d\\ude00",
           "\\ud800", "\\U0001F600", "\\U00110000", "\\e", "\\a", "\\_", "\\N", "\\L", "\\ ", "\\\n", "\\q",
           "\\\\'", "\\\\\\'"]
TAGS = ["!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "!!binary ", "!!timestamp ", "!!map ", "!!seq ",
        "!!set ", "!x ", "! ", "!<tag:yaml.org,2002:str> ", "!e!x ", "!!merge "]
TOKENS = ["a", "b", "1", "- ", "-", "? ", "?", ": ", ":", ", ", ",", "[", "]", "{", "}", "#", " #c\n", "\n",
          "\n", "\n  ",
          "\n    ", "\n ", "\n- ", "  ", "\t", "\r\n", "\r", "'", '"', "''", '""', "\\'", "\\", "|", ">",
          "|-\n", ">+\n",
          "|2\n", "&x ", "*x", "*x ", "!!str ", "!t ", "<<: ", "<<: *x\n", "\n---\n", "\n---", "---\n", "--- ",
          "\n...\n",
          "%YAML 1.1\n", "%TAG !e! tag:x,1:\n", "a: 1\n", "b: [1, 2]\n", '{"a": 1}', '{"a":"b"}\n', "null", "~",
          "\x85", "\u2028", "\xa0", "\ufeff", "@", "`", "%", "=", "\x7f", "\x0b", "x: y", "key:\n", '"k": "v"\n']
SEPARATORS = ["---\n", "---\n", "--- \n", "---#c\n", "--- # c\n", "---\t\n", "---\r\n", "----\n", "--- x\n",
              "---\n---\n", "...\n", "...\n---\n", "---\n...\n---\n", "\n", "# c\n---\n", "---", ""]
STARTS = ["", "", "", "", "", "---\n", "# c\n", "\n", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n",
          "%TAG !e! tag:x,1:\n---\n",
          "---#c\n", "--- # c\n", "--- ", "\ufeff", "...\n", " ", "\t", "\r\n"]
NAMES = [f"{a}{b}" for a in "abcdefgh" for b in ("", "1", "-x", ".y", " z")]
KEYS = ["a", "b", "c", "name", "a b", "1", "1.5", "0x10", "true", "no", "null", "~", "é", "<<", "x/y", "a?",
        "1e6", "=",
        ".inf", "", "2026-01-02"]


def _double(dice, text):
    """In double quotes, with escapes here and there."""
    parts = []
    for char in text:
        if dice.random() < 0.02:
            parts.append(dice.choice(ESCAPES))
        parts.append({"\\": "\\\\", '"': '\\"'}.get(char, char))
    if dice.random() < 0.1:
        parts.append(dice.choice(ESCAPES))
    return '"' + "".join(parts) + '"'


def _word(dice):
    return dice.choice(PLAIN if dice.random() < 0.9 else WORDS)


def _scalar(dice, flow):
    text = _word(dice)
    style = dice.random()
    tag = dice.choice(TAGS) if dice.random() < 0.03 else ""
    if style < 0.2:
        return tag + _double(dice, text)
    if style < 0.35:
        return tag + "'" + text.replace("'", "''") + "'"
    if flow and style < 0.8:
        return tag + text.strip("[]{},:#\"'")
    return tag + text


def _key(dice):
    key = dice.choice(NAMES if dice.random() < 0.85 else KEYS)
    if dice.random() < 0.2:
        return _double(dice, key)
    return key


def _flow(dice, depth):
    choice = dice.random()
    if depth <= 0 or choice < 0.4:
        return _scalar(dice, True)
    if choice < 0.43:
        return dice.choice(["*x", "*y", "&x {d: 1}", "&y {a: [1]}", "&z v", ""])
    items = dice.randrange(4)
    comma = dice.choice([", ", ",", " , ", ",\n "])
    if choice < 0.7:
        return "[" + comma.join(_flow(dice, depth - 1) for _ in range(items)) + dice.choice(["", "", ","]) + "]"
    colon = dice.choice([": ", ": ", ": ", ": ", ": ", ": ", ":", " : "])
    return "{" + comma.join(f"{_key(dice)}{colon}{_flow(dice, depth - 1)}" for _ in range(items)) + "}"


def _block_scalar(dice, indent):
    head = dice.choice("|>") + dice.choice(["", "", "-", "+", "2", "1-", "+1", " # c"])
    pad = " " * (indent + dice.choice([1, 2, 2, 2, 4]))
    lines = [dice.choice([pad] * 12 + [pad + " ", pad + " ", pad + "\t", "", "\t"]) + dice.choice(WORDS)
             for _ in range(dice.randrange(4))]
    return head + "\n" + "".join(line + dice.choice(["\n", "\n", "\n\n"]) for line in lines)


def _block(dice, depth, indent):
    """What follows "key:" or "-", with the line's end."""
    choice = dice.random()
    if depth <= 0 or choice < 0.35:
        end = dice.choice(["\n", "\n", "\n", " # c\n", "#c\n", " \n", "\t\n", "\n\n"])
        return " " + _scalar(dice, False) + end
    if choice < 0.45:
        return " " + _flow(dice, 2) + "\n"
    if choice < 0.53:
        return " " + _block_scalar(dice, indent)
    if choice < 0.55:
        return dice.choice([" *x\n", " *y\n", " &x {e: 1}\n", " &y {}\n", " &z v\n", "\n", " |\n", " &z\n"])
    if choice < 0.59:
        return " " + _word(dice) + "\n" + " " * (indent + 2) + _word(dice) + "\n"
    anchor = dice.choice([""] * 9 + [" &x", " &z", " !!map"])
    step = indent + dice.choice([2, 2, 2, 2, 1, 4])
    if choice < 0.8:
        return anchor + "\n" + _map(dice, depth - 1, step)
    return anchor + "\n" + _list(dice, depth - 1, dice.choice([step, indent]))


def _map(dice, depth, indent):
    out = []
    for _ in range(1 + dice.randrange(4)):
        pad = " " * indent
        if dice.random() < 0.01:
            pad = dice.choice(["\t", " " * (indent + 1), pad + "\t"])
        if dice.random() < 0.05:
            merge = dice.choice(["*x", "*y", "{a: 1}", "{a: 1, h: !!int 2}", "[*x, *y]", "{a: 1}",
                                 "[{a: 1}, {b: 2}]",
                                 "{h: {a: 1}}", "{d: [*x]}"] * 3 + ["1", "null", "*x y"])
            out.append(f"{pad}<<: {merge}\n")
        elif dice.random() < 0.02:
            out.append(f"{pad}? {_key(dice)}\n{pad}:{_block(dice, depth, indent)}")
        else:
            out.append(f"{pad}{_key(dice)}{dice.choice([':', ':', ':', ':', ' :'])}{_block(dice, depth, indent)}")
    return "".join(out)


def _list(dice, depth, indent):
    out = []
    for _ in range(1 + dice.randrange(3)):
        pad = " " * indent
        if depth > 0 and dice.random() < 0.4:
            out.append(f"{pad}- " + _map(dice, depth - 1, indent + 2).lstrip(" "))
        else:
            out.append(f"{pad}-" + _block(dice, depth, indent))
    return "".join(out)


def _json(dice, depth):
    choice = dice.random()
    if depth <= 0 or choice < 0.5:
        return dice.choice(["1", "-1", "1.0", "1.5", "1e3", "1E400", "true", "null",
                            '"a"', '"a\\u00e9"', '"\\/"', '"\x7f"',
                            '"\\ud83d\\ude00"', '"\\ud800"', '"é"', "01", "'a'", "a", "9223372036854775808",
                            "1e20",
                            '"\x85"', '"a\\tb"', '"a\tb"', "-0", "-0.0", "0.1", '"\\b\\f"', '"\\u0000"'])
    blank = dice.choice(["", " ", "\n", "\n  ", "\t"])
    if choice < 0.7:
        return "[" + ("," + blank).join(_json(dice, depth - 1) for _ in range(dice.randrange(3))) + "]"
    keys = dice.sample(["a", "b", "c", "é", "", "a b"], dice.randrange(4))
    return "{" + blank + ("," + blank).join(f'"{k}":{blank}{_json(dice, depth - 1)}' for k in keys) + blank + "}"


def _json_stream(dice):
    text = dice.choice(["", "", " ", "\n", "\t\n", "\r\n"])
    for _ in range(1 + dice.randrange(4)):
        text += "{" + f'"k":{_json(dice, 2)}' + "}"
        text += dice.choice(["", "\n", "\n", "\n\n", " ", "\t", "\n---\n", "---\n", "\na: 1\n", "\n#c\n", ",",
                             "\n...\n",
                             "\nnull\n", "\n[1]\n", "x"])
    return text


def _manifests(dice):
    text = dice.choice(STARTS) if dice.random() < 0.4 else ""
    for _ in range(1 + dice.randrange(3)):
        choice = dice.random()
        if dice.random() < 0.7:  # for aliases
            text += "x: &x {a: 1, b: [2]}\ny: &y {c: v}\n"
        if choice < 0.9:
            text += _map(dice, 3, 0 if dice.random() < 0.97 else 2)
        elif choice < 0.93:
            text += _list(dice, 3, 0)
        else:
            text += _flow(dice, 3) + "\n"
        text += "---\n" if dice.random() < 0.6 else dice.choice(SEPARATORS)
    return text


def _tokens(dice):
    text = "".join(dice.choice(TOKENS) for _ in range(1 + dice.randrange(10)))
    start = dice.choice(["", "k: ", "k:\n- ", "k: [", "{k: ", 'k: "', "k: |\n  ", "k:\n  l: "])
    return start + text + dice.choice(["", "\n", "]", "}", '"'])


def _aliases(dice):
    """A document that is made of aliases, to the limit of what kubectl reads and beyond."""
    plain, size, times = dice.randrange(300), dice.choice([1, 5, 50, 150]), dice.choice([1, 10, 50, 200])
    text = "x: &x\n" + "".join(f"  k{i}: {i}\n" for i in range(size))
    text += "".join(f"p{i}: {i}\n" for i in range(plain))
    if dice.random() < 0.5:
        return text + "list:\n" + "- *x\n" * times
    return text + "".join(f"m{i}:\n  <<: *x\n  k1: !!int {i}\n" for i in range(times))


def _mutated(dice, seeds):
    """A few changes of a piece of a given text."""
    lines = dice.choice(seeds).splitlines(keepends=True)
    at = dice.randrange(len(lines)) if len(lines) > 25 else 0
    text = "".join(lines[at:at + 25])
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.choice([0, 0, 1, 1, 2, 10]))
        put = dice.choice(TOKENS + ESCAPES + TAGS + SEPARATORS) if dice.random() < 0.7 else ""
        text = text[:at] + put + text[end:]
    return text


def generate(dice, count, seeds):
    """`count` texts, as bytes."""
    makers = [_manifests, _manifests, _tokens, _json_stream, lambda d: _mutated(d, seeds)]
    texts = []
    for _ in range(count):
        text = (_aliases if dice.random() < 0.002 else dice.choice(makers))(dice)
        if dice.random() < 0.05:
            text = text.replace("\n", "\r\n")
        if dice.random() < 0.1:
            text = text.rstrip("\n")
        data = text.encode()
        if dice.random() < 0.01:
            at = dice.randrange(len(data) + 1)
            data = data[:at] + bytes([dice.choice([0, 1, 0x80, 0xC0, 0xFE, 0xFF, 0xED])]) + data[at:]
        texts.append(data)
    return texts
