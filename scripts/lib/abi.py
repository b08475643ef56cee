# SPDX-License-Identifier: Apache-2.0
"""The symbols of libsteward: those of its modules that a public header (include/headers.txt) names.

Prints the version script include/libsteward.map; or with --sort, writes the interface that abidw has
described (--type-id-style hash) in an order that small changes of the source do not alter."""

import argparse
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

TOP = pathlib.Path(__file__).resolve().parents[2]
WORD = re.compile(r"\bstw_\w+")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
HEAD = ("# SPDX-License-Identifier: Apache-2.0\n"
        "# The symbols of libsteward; written by `scripts/lint --fix abi` from the public headers.\n")


def named(top):
    """The words of the public headers, without comments."""
    words = set()
    for name in (top / "include" / "headers.txt").read_text("utf-8").split():
        words |= set(WORD.findall(COMMENT.sub("", (top / name).read_text("utf-8"))))
    return words


def defined(archive):
    """The global symbols that an archive defines."""
    text = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", str(archive)],
                          capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines() if len(line.split()) > 2}


def name_base_types(root):
    """abidw's hashes of base types collide, and then depend on the order in which it met them."""
    names = {one.get("id"): "type-" + one.get("name").replace(" ", "-")
             for one in root.iter("type-decl")}
    for element in root.iter():
        for key in ("id", "type-id"):
            if element.get(key) in names:
                element.set(key, names[element.get(key)])


def name_symbols(root):
    """abidw names the symbol of a function only if the first source that it read defines it."""
    versions = {one.get("name"): one.get("version") for one in root.iter("elf-symbol")}
    for one in root.iter("function-decl"):
        name = one.get("name")
        if name in versions and not one.get("elf-symbol-id"):
            one.set("mangled-name", name)
            one.set("elf-symbol-id", f"{name}@@{versions[name]}")


def sort_interface(source, target):
    """One unit instead of those of the sources, with each type once, by kind and name."""
    tree = xml.parse(source)
    root = tree.getroot()
    name_base_types(root)
    name_symbols(root)
    units = root.findall("abi-instr")
    texts = {xml.tostring(one).strip(): one for unit in units for one in unit}
    for unit in units:
        root.remove(unit)
    merged = xml.SubElement(root, "abi-instr", {**units[0].attrib, "path": "libsteward"})
    merged.extend(texts[text] for text in sorted(
        texts, key=lambda text: (texts[text].tag, texts[text].get("name") or "", text)))
    xml.indent(tree)
    tree.write(target)


def main():
    """Prints the map, or sorts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=pathlib.Path, default=TOP)
    parser.add_argument("--build-dir", type=pathlib.Path, default="build")
    parser.add_argument("--sort", type=pathlib.Path, metavar="FILE",
                        help="sort what abidw prints, from standard input into FILE")
    args = parser.parse_args()
    if args.sort:
        sort_interface(sys.stdin, args.sort)
        return
    archive = args.top / args.build_dir / "include" / "static" / "libsteward.a"
    symbols = sorted(named(args.top) & defined(archive))
    print(HEAD + "STEWARD_0 {\nglobal:\n" + "".join(f"    {one};\n" for one in symbols) +
          "local:\n    *;\n};")


if __name__ == "__main__":
    main()
