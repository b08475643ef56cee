# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/layers.py finds each class of violation in a small tree that is right otherwise."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from support import paths

LAYERS = "0  base=lib/base\n1  kube=lib/kube  kinds=lib/kinds\n2  cmd=src/cmd\n"
FILES = {
    "scripts/lib/layers.txt": f"# Comment.\n{LAYERS}circle  kube/a kube/b\n",
    "docs/architecture.md": f"Text.\n{LAYERS}",
    "src/main.c": '#include "cmd/cmd.h"\nint main(void)\n{\n    return stw_run();\n}\n',
    "lib/base/base.h": "int stw_base(void);\n",
    "lib/base/base.c": '#include "base/base.h"\nint stw_base(void)\n{\n    return 0;\n}\n',
    "lib/kube/a_priv.h": "int stw_a(void);\n",
    "lib/kube/a.c": '#include "kube/a_priv.h"\n#include "kube/b.h"\nint stw_a(void)\n{\n    return stw_b();\n}\n',
    "lib/kube/b.h": "int stw_b(void);\n",
    "lib/kube/b.c": '#include "kube/b.h"\n#include "kube/a_priv.h"\n#include "base/base.h"\n'
                    "int stw_b(void)\n{\n    return stw_base();\n}\n",
    "lib/kinds/kind.h": "int stw_kind(void);\n",
    "lib/kinds/kind.c": '#include "kinds/kind.h"\nint stw_kind(void)\n{\n    return 0;\n}\n',
    "src/cmd/cmd.h": "int stw_run(void);\n",
    "src/cmd/cmd.c": '#include "cmd/cmd.h"\n#include "kube/b.h"\nint stw_run(void)\n{\n    return stw_b();\n}\n',
}


@pytest.fixture
def tree(tmp_path):
    """The folder of the small tree."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def build(tree):
    """Static libraries of the tree, as meson lays them out."""
    for folder in ("lib/base", "lib/kube", "lib/kinds", "src/cmd"):
        out = tree / "build" / folder
        out.mkdir(parents=True)
        for source in (tree / folder).glob("*.c"):
            subprocess.run(["cc", "-I", tree / "lib", "-I", tree / "src", "-c", source,
                            "-o", out / f"{source.stem}.o"], check=True)
        subprocess.run(["ar", "rcs", out / f"lib{out.name}.a", *out.glob("*.o")], check=True)
    return ["--build-dir", str(tree / "build")]


def check(tree, *options):
    """(exit status, what it printed)."""
    program = pathlib.Path(paths.TOP) / "scripts" / "lib" / "layers.py"
    done = subprocess.run([sys.executable, program, "--top", tree, *options], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


def plant(tree, name, text):
    """Puts a line before the first one of a file."""
    path = tree / name
    path.write_text(text + "\n" + path.read_text())


def test_tree_without_violations_passes(tree):
    assert check(tree, *build(tree)) == (0, "")


@pytest.mark.parametrize("name,line,problem", [
    ("lib/base/base.c", '#include "kinds/kind.h"', "base must not use kinds"),  # a higher layer
    ("lib/kube/b.h", '#include "kinds/kind.h"', "kube must not use kinds"),  # the same layer
    ("src/cmd/cmd.c", '#include "kube/a_priv.h"', "a private header is included from its own module only"),
    ("src/main.c", '#include "kube/a_priv.h"', "a private header is included from its own module only"),
    ("lib/kube/b.c", '#include "../base/base.h"', "includes name the module"),
    ("lib/kube/b.c", '#include "webhook/server.h"',
     "no module of scripts/lib/layers.txt has the folder 'webhook'"),
])
def test_forbidden_include_is_named(tree, name, line, problem):
    plant(tree, name, line)
    status, text = check(tree)
    assert status == 1
    assert text.startswith(f"{name}:1: {line}: {problem}")
    assert "\n" not in text


def test_unlisted_include_circle_is_found(tree):
    (tree / "lib" / "kinds" / "more.h").write_text('#include "kinds/kind.h"\n')
    plant(tree, "lib/kinds/kind.c", '#include "kinds/more.h"')
    assert check(tree) == (1, "these include each other: kinds/kind kinds/more")


def test_header_circle_cannot_be_listed(tree):
    plant(tree, "lib/kube/a_priv.h", '#include "kube/b.h"')
    plant(tree, "lib/kube/b.h", '#include "kube/a_priv.h"')
    assert check(tree) == (1, "these headers include each other: kube/a_priv.h kube/b.h")


def test_listed_circle_that_is_gone_is_found(tree):
    path = tree / "lib" / "kube" / "b.c"
    path.write_text(path.read_text().replace('#include "kube/a_priv.h"\n', ""))
    status, text = check(tree)
    assert (status, text) == (1, "scripts/lib/layers.txt lists a circle that is gone: kube/a kube/b")


def test_forbidden_symbol_without_include_is_found(tree):
    plant(tree, "lib/base/base.c", "int stw_kind(void);\nint stw_up(void);\nint stw_up(void)\n{\n"
                                   "    return stw_kind();\n}")
    status, text = check(tree, *build(tree))
    assert status == 1
    assert text.endswith("base.o: base must not use stw_kind() of kinds (scripts/lib/layers.txt)")


def test_call_circle_without_include_is_found(tree):
    plant(tree, "lib/kube/b.c", "int stw_a(void);\nint stw_back(void);\nint stw_back(void)\n{\n"
                                "    return stw_a();\n}")
    status, text = check(tree, *build(tree))
    assert status == 1
    assert text == ("these files use each other in a circle, which scripts/lib/layers.txt does not list: "
                    "kube/a kube/b\n"
                    "  kube/a uses stw_b of kube/b\n  kube/b uses stw_a of kube/a")


@pytest.mark.parametrize("row,problem", [
    ("calls  Reason.\n       kube/a kube/b\n", ""),
    ("calls\n       kube/a kube/b\n",
     "scripts/lib/layers.txt: a circle of calls without a reason: kube/a kube/b"),
    ("calls  Reason.\n       kube/a\n       kube/b kinds/kind\n",
     "this circle of files is listed with others or in parts in scripts/lib/layers.txt: kube/a kube/b\n"
     "scripts/lib/layers.txt lists files that are in no circle of calls: kinds/kind"),
])
def test_list_of_call_circles_is_exact(tree, row, problem):
    plant(tree, "lib/kube/b.c", "int stw_a(void);\nint stw_back(void);\nint stw_back(void)\n{\n"
                                "    return stw_a();\n}")
    with open(tree / "scripts" / "lib" / "layers.txt", "a", encoding="utf-8") as layers:
        layers.write(row)
    assert check(tree, *build(tree)) == (1 if problem else 0, problem)


def test_symbols_of_a_kind_have_its_prefix(tree):
    """Except its rows in the tables of the program."""
    plant(tree, "scripts/lib/layers.txt", "prefix  kinds=shop_")
    plant(tree, "lib/kinds/kind.c", "int shop_open(void);\nint shop_open(void)\n{\n    return 0;\n}\n"
                                    "int stw_kind_kinds, stw_controller_kinds;")
    assert check(tree, *build(tree)) == (
        1, "kinds/kind: stw_kind does not begin with shop_, as the names of kinds do (scripts/lib/layers.txt)")


def test_architecture_page_must_show_the_layers(tree):
    plant(tree, "scripts/lib/layers.txt", "3  more=src/more")
    (tree / "src" / "more").mkdir()
    assert check(tree)[1].startswith("docs/architecture.md: does not show the layers")


def test_source_tree_has_no_violations():
    """Without the symbols, which scripts/lint checks after it has built."""
    assert shutil.which("nm")
    assert check(pathlib.Path(paths.TOP)) == (0, "")
