# SPDX-License-Identifier: Apache-2.0
"""The symbols of libsteward: those of its modules that a public header (include/headers.txt) names.

Prints the version script include/libsteward.map."""

import argparse
import pathlib
import re
import subprocess

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


def main():
    """Prints the map."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=pathlib.Path, default=TOP)
    parser.add_argument("--build-dir", type=pathlib.Path, default="build")
    args = parser.parse_args()
    archive = args.top / args.build_dir / "include" / "static" / "libsteward.a"
    symbols = sorted(named(args.top) & defined(archive))
    print(HEAD + "STEWARD_0 {\nglobal:\n" + "".join(f"    {one};\n" for one in symbols) +
          "local:\n    *;\n};")


if __name__ == "__main__":
    main()
