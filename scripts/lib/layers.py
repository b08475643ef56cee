#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the modules of the program use each other as lib/layers.txt says.

Six rules: an include and a symbol come from a lower layer or from the module itself; a header
named *_priv.h is included from its own module only; headers never include each other
in a circle, sources only where layers.txt lists it; files call each other in a circle only where
layers.txt lists it with a reason; the symbols of a kind have the prefix of layers.txt; docs/architecture.md
shows the layers of layers.txt.  Symbols are read from the static libraries of the build directory.

Usage: layers.py [--build-dir DIR] [--top DIR]

Prints FILE:LINE and a sentence for each violation, and ends with status 1 if there is one."""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

import components

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


class Table:
    """lib/layers.txt: `folder` and `layer` of each module, and the circles that are allowed: `circles` of
    includes, and `calls` of functions with their reasons.  `prefix` of the symbols of some modules."""

    def __init__(self, path):
        self.folder, self.layer, self.circles, self.calls, self.lines = {}, {}, [], [], []
        self.prefix = {}
        for line in path.read_text("utf-8").splitlines():
            words = line.split()
            if not words or words[0] == "#":
                continue
            if line[0].isspace():
                self.calls[-1][1].extend(words)
                continue
            if words[0] == "calls":
                self.calls.append((" ".join(words[1:]), []))
                continue
            if words[0] == "prefix":
                self.prefix.update(word.split("=") for word in words[1:])
                continue
            if words[0] == "circle":
                self.circles.append(sorted(words[1:]))
                continue
            self.lines.append(line)
            for word in words[1:]:
                module, _, folder = word.rpartition("=")
                self._add(module or folder, folder, int(words[0]))
        self.top = path.resolve().parents[2]
        self._expand(self.top)

    def _add(self, module, folder, layer):
        self.folder[module], self.layer[module] = folder, layer

    def _expand(self, top):
        """Replaces "kinds/*" by the folders of kinds that have no line of their own."""
        for pattern in [m for m in self.folder if m.endswith("/*")]:
            layer = self.layer.pop(pattern)
            base = self.folder.pop(pattern)[:-2]
            named = set(self.folder.values())
            for path in sorted((top / base).iterdir()):
                if path.is_dir() and f"{base}/{path.name}" not in named:
                    self._add(path.name, f"{base}/{path.name}", layer)

    def may_use(self, module, target):
        """Whether a module may use another, or itself."""
        return target == module or self.layer[target] < self.layer[module]

    def files(self):
        """(module, file) of every C file; main.c belongs to the highest layer."""
        for module, folder in self.folder.items():
            for path in self.members(folder):
                yield module, path
        if (self.top / "src" / "main.c").exists():
            yield max(self.layer, key=self.layer.get), self.top / "src" / "main.c"

    def members(self, folder):
        """The C files of a module: of its folder, and of the rooms in it."""
        rooms = [path for path in sorted((self.top / folder).glob("*/"))
                 if path.is_dir() and f"{folder}/{path.name}" not in self.folder.values()]
        return [path for room in [self.top / folder, *rooms] for path in sorted(room.glob("*.[ch]"))]

    def module_of(self, header):
        """The module that an include names ("base/error.h"), or None."""
        folder = header.rpartition("/")[0]
        modules = {include_folder(f): m for m, f in self.folder.items()}
        return modules.get(folder) or modules.get(folder.rpartition("/")[0])


def include_folder(folder):
    """How includes name a folder: lib and src are on the include path."""
    return re.sub(r"^(lib|src)/", "", str(folder))


def include_problem(table, module, header):
    """What is wrong with an include by a file of this module; or ""."""
    if header.startswith(".."):
        return "includes name the module (\"base/error.h\"), never \"..\""
    if "/" not in header:
        return ""
    target = table.module_of(header)
    if not target:
        return f"no module of scripts/lib/layers.txt has the folder '{header.rpartition('/')[0]}'"
    if not table.may_use(module, target):
        return f"{module} must not use {target}: it is not on a lower layer (scripts/lib/layers.txt)"
    if header.endswith("_priv.h") and target != module:
        return "a private header is included from its own module only"
    return ""


def check_includes(table):
    """A sentence for each include that is wrong."""
    for module, path in table.files():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            problem = include_problem(table, module, match[1]) if match else ""
            if problem:
                yield f"{path.relative_to(table.top)}:{number}: #include \"{match[1]}\": {problem}"


def includes(path):
    """The headers that a file includes by module and name."""
    return {m[1] for m in map(INCLUDE.match, path.read_text("utf-8").splitlines()) if m}


def find_header_circles(table):
    """Groups of headers that include each other.  Sources play no part."""
    uses = {include_folder(path.relative_to(table.top)): includes(path)
            for _, path in table.files() if path.suffix == ".h"}
    return sorted(g for g in components.strong(uses) if len(g) > 1)


def find_circles(table):
    """Groups of files, without their endings, whose headers and sources include each other."""
    uses = collections.defaultdict(set)
    for _, path in table.files():
        name = re.sub(r"(_priv)?\.[ch]$", "", include_folder(path.relative_to(table.top)))
        uses[name] |= {re.sub(r"(_priv)?\.h$", "", header) for header in includes(path)} - {name}
    return sorted(g for g in components.strong(uses) if len(g) > 1)


def check_circles(table):
    """A sentence for each circle of headers, for each other one that is not listed, and for each that
    is listed and gone."""
    for group in find_header_circles(table):
        yield f"these headers include each other: {' '.join(group)}"
    found = find_circles(table)
    for group in found:
        if group not in table.circles:
            yield f"these include each other: {' '.join(group)}"
    for group in table.circles:
        if group not in found:
            yield f"scripts/lib/layers.txt lists a circle that is gone: {' '.join(group)}"


def sources(table, folder):
    """{name of an object without its ending: file without its ending, as includes name it}.  meson writes "_"
    for the "/" behind a room."""
    found = [path.relative_to(table.top / folder).with_suffix("").as_posix() for path in table.members(folder)]
    return {one.replace("/", "_"): f"{include_folder(folder)}/{one}" for one in found}


class Symbols:
    """What the objects of the static libraries define and use.  `owner` has (module, file) of each symbol,
    `uses` (module, file, object, symbol) for each one that an object takes from others."""

    def __init__(self, table, build):
        self.owner, self.uses, self.missing = {}, [], []
        for module, folder in table.folder.items():
            libraries = [*(build / folder).glob("*.a")]
            if not libraries:
                self.missing.append(f"{build / folder}: no static library is built there")
            for library in libraries:
                self._read(module, include_folder(folder), library, sources(table, folder))

    def _read(self, module, folder, library, names):
        out = subprocess.run(["nm", "-A", "-g", str(library)], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            where, _, rest = line.rpartition(":")
            where, words = where.rpartition(":")[2], rest.split()
            file = re.sub(r"^meson-generated_.._|([.]c)?[.]o$", "", where.rpartition("/")[2])
            file = names.get(file, f"{folder}/{file}")  # a generated one is in no room
            if len(words) == 2 and words[0] == "U":
                self.uses.append((module, file, where, words[1]))
            elif len(words) == 3:
                self.owner[words[2]] = module, file

    def edges(self):
        """{(file, other file): symbols that the file takes from the other one}."""
        found = collections.defaultdict(set)
        for _, file, _, symbol in self.uses:
            target = self.owner.get(symbol, (None, file))[1]
            if target != file:
                found[file, target].add(symbol)
        return found

    def circles(self):
        """Groups of files whose functions and tables use each other."""
        graph = collections.defaultdict(set)
        for file, target in self.edges():
            graph[file].add(target)
        return sorted(g for g in components.strong(graph) if len(g) > 1)


def check_symbols(table, symbols):
    """A sentence for each symbol that is taken from a module that may not be used."""
    yield from symbols.missing
    for module, _, where, symbol in symbols.uses:
        target = symbols.owner.get(symbol, (module,))[0]
        if not table.may_use(module, target):
            yield f"{where}: {module} must not use {symbol}() of {target} (scripts/lib/layers.txt)"


def show_uses(symbols, group, files):
    """For each of these files, one symbol by which it is in the circle of the group, each way."""
    edges = sorted(pair for pair in symbols.edges().items() if set(pair[0]) <= set(group))
    shown = [next(e for e in edges if e[0][way] == file) for file in files for way in (0, 1)]
    for line in dict.fromkeys(f"  {file} uses {min(taken)} of {target}" for (file, target), taken in shown):
        yield line


def check_calls(table, symbols):
    """A sentence for each circle of calls that layers.txt does not list in this very extent."""
    listed = {file for _, files in table.calls for file in files}
    found = symbols.circles()
    for group in found:
        new = sorted(set(group) - listed)
        if new:
            yield (f"these files use each other in a circle, which scripts/lib/layers.txt does not list: "
                   f"{' '.join(new)}")
            yield from show_uses(symbols, group, new)
        elif group not in [sorted(files) for _, files in table.calls]:
            yield (f"this circle of files is listed with others or in parts in scripts/lib/layers.txt: "
                   f"{' '.join(group)}")
    gone = sorted(listed - {file for group in found for file in group})
    if gone:
        yield f"scripts/lib/layers.txt lists files that are in no circle of calls: {' '.join(gone)}"
    for reason, files in table.calls:
        if not reason:
            yield f"scripts/lib/layers.txt: a circle of calls without a reason: {' '.join(files)}"


def check_prefixes(table, symbols):
    """A sentence for each symbol of a kind without its prefix, except its rows in the tables of the program."""
    for symbol, (module, file) in sorted(symbols.owner.items()):
        prefix = table.prefix.get(module, "")
        if not symbol.startswith(prefix) and symbol not in (f"stw_kind_{module}", f"stw_controller_{module}"):
            yield (f"{file}: {symbol} does not begin with {prefix}, as the names of {module} do "
                   "(scripts/lib/layers.txt)")


def check_page(table):
    """docs/architecture.md shows the layers."""
    page = (table.top / "docs" / "architecture.md").read_text("utf-8")
    if "\n".join(table.lines) not in page:
        yield "docs/architecture.md: does not show the layers as scripts/lib/layers.txt has them"


def main():
    """All violations."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--top", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--build-dir", type=pathlib.Path)
    options = parser.parse_args()
    table = Table(options.top / "scripts" / "lib" / "layers.txt")
    found = [*check_includes(table), *check_circles(table),
             *check_page(table)]
    if options.build_dir:
        symbols = Symbols(table, options.build_dir)
        found += [*check_symbols(table, symbols), *check_calls(table, symbols), *check_prefixes(table, symbols)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
