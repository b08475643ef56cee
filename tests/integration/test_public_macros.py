# SPDX-License-Identifier: Apache-2.0
"""The macros of the public headers: no warnings at the level of `steward new`, and an error for a wrong member."""

import shutil
import subprocess

import pytest

from support import paths

SOURCE = """#include "schema/field.h"
struct lamp {{ int watts; int64_t power; const char *color; char name[8]; bool lit; struct stw_json tags;
              struct {{ int64_t level; }} shade; }};
static const struct stw_field shade[] = {{{{0}}}};
const struct stw_field lamp_row = {{.name = "x", STW_FIELD({type}, struct lamp, {member}), .fields = shade}};
"""
RIGHT = [("STW_T_INT", "power"), ("STW_T_STRING", "color"), ("STW_T_BOOL", "lit"), ("STW_T_LIST", "tags"),
         ("STW_T_OBJECT", "shade"), ("STW_T_INT", "shade.level")]
WRONG = [("STW_T_INT", "watts", "a field of STW_T_INT needs a member of type int64_t"),
         ("STW_T_INT", "color", "a field of STW_T_INT needs a member of type int64_t"),
         ("STW_T_LIST", "color", "needs a member of type struct stw_json"),
         ("STW_T_TEXT", "color", "needs a member of type struct stw_json"),
         ("STW_T_STRING", "name", "a field of STW_T_STRING needs a member of type const char *"),
         ("STW_T_STRING", "tags", "a field of STW_T_STRING needs a member of type const char *"),
         ("STW_T_BOOL", "watts", "a field of STW_T_BOOL needs a member of type bool"),
         ("STW_T_OBJECT", "power", "a field of STW_T_OBJECT needs a member that is a struct")]


USER = paths.TOP / "tests" / "integration" / "macros_user.c"
compilers = pytest.mark.parametrize("compiler", ["gcc", "clang"])


def _need(compiler):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} is here: run 'scripts/bootstrap'")


def _compile(compiler, field, member):
    """The compiler's messages, of C11 without extensions."""
    return subprocess.run(
        [compiler, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-",
         f"-I{paths.TOP / 'lib'}"], input=SOURCE.format(type=field, member=member), capture_output=True,
        text=True, timeout=60, check=False)


@compilers
def test_public_macros_compile_without_warnings(compiler):
    """meson's warning_level=2, which `steward new` writes."""
    _need(compiler)
    done = subprocess.run([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           *(f"-I{paths.TOP / folder}" for folder in ("include", "lib", ".")), USER],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@compilers
def test_member_of_another_type_does_not_compile(compiler):
    _need(compiler)
    for field, member in RIGHT:
        done = _compile(compiler, field, member)
        assert done.returncode == 0, done.stderr
    for field, member, text in WRONG:
        done = _compile(compiler, field, member)
        assert done.returncode != 0 and text in done.stderr, (field, member, done.stderr)
