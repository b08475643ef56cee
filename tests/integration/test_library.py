# SPDX-License-Identifier: Apache-2.0
"""libsteward as others get it: installed into a clean prefix, or as a subproject of meson."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from support import library, paths

CORE = paths.TOP / "docs" / "library" / "core.md"
REDIRECT = library.EXAMPLES / "redirect"
USER = """#include <stdio.h>
#include <steward/{header}.h>
int main(void) {{ return 0; }}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A support.library.Library."""
    return library.Library(tmp_path_factory.mktemp("library"))


def _symbols(file):
    text = library.run("nm", "--dynamic", "--defined-only", "--extern-only", "--format=posix", file)
    return {line.split()[0].partition("@")[0] for line in text.splitlines()}


def test_installed_files_are_complete(installed):
    """Both libraries, the headers and the pkg-config file; nothing of the program."""
    lib = installed.prefix / "lib"
    assert {path.name for path in lib.iterdir()} == {
        "libsteward-test.a", "libsteward.a", "libsteward.so", "libsteward.so.0", "libsteward.so.0.1.0",
        "pkgconfig"}
    assert "[libsteward.so.0]" in library.run("readelf", "-d", lib / "libsteward.so.0.1.0")
    assert not (installed.prefix / "bin").exists()
    listed = (paths.TOP / "include" / "headers.txt").read_text("utf-8").split()
    found = {path.relative_to(installed.prefix / "include" / "steward")
             for path in (installed.prefix / "include").rglob("*.h")}
    assert len(found) == len(listed) + 6
    assert not [path for path in found if path.name.endswith("_priv.h")]


def test_library_exports_only_its_prefix(installed):
    """A program may have functions of any other name."""
    symbols = _symbols(installed.prefix / "lib" / "libsteward.so")
    assert "stw_operator_main" in symbols and "stw_reconcile" in symbols
    assert not [one for one in symbols if not re.fullmatch(r"stw_\w+|STEWARD_0", one)]
    assert "stw_queue_create" not in symbols  # not in a public header


@pytest.mark.parametrize("header", ["base", "client", "kind", "controller", "operator", "test"])
def test_public_header_compiles_alone(installed, header, tmp_path):
    """An include of one of them compiles in another folder without warnings."""
    source = tmp_path / "user.c"
    source.write_text(USER.format(header=header), "utf-8")
    installed.compile(tmp_path, source)


def test_process_state_of_library_is_documented(installed):
    """What a whole process shares is named in docs/library/core.md; all else belongs to an object."""
    library_file = installed.prefix / "lib" / "libsteward.so"
    sections = dict(re.findall(r"\[ *(\d+)\] (\S+)", library.run("readelf", "--sections", "--wide", library_file)))
    rows = [line.split() for line in library.run("readelf", "--syms", "--wide", library_file).splitlines()]
    names = {row[7].partition(".")[0] for row in rows
             if len(row) >= 8 and row[3] in ("OBJECT", "TLS")
             and sections.get(row[6]) in (".bss", ".data", ".tbss", ".tdata")}
    names -= {"__dso_handle", "__TMC_END__", "completed"}  # of the compiler
    names -= {"dead_mark"}  # an address, never written
    state = CORE.read_text("utf-8").partition("## State of the process")[2]
    assert names == set(re.findall(r"`(\w+)`", state))


def test_core_page_lists_structs_and_functions():
    """docs/library/core.md: ten structs and twenty functions, all of them in use."""
    text = CORE.read_text("utf-8").partition("## State of the process")[0]
    names = re.findall(r"^\| `(stw_\w+)` \|", text, re.MULTILINE)
    structs = text.partition("## Functions")[0].count("\n| `stw_")
    assert (structs, len(names) - structs) == (10, 21)
    public = (paths.TOP / "include" / "headers.txt").read_text("utf-8").split()
    headers = "".join((paths.TOP / name).read_text("utf-8") for name in public)
    users = "".join(path.read_text("utf-8") for folder in ("examples", "src/new", "kinds")
                    for path in (paths.TOP / folder).rglob("*") if path.suffix in (".c", ".h", ".in"))
    for number, name in enumerate(names):
        declared = rf"^struct {name} {{" if number < structs else rf"\b{name}\("
        assert re.search(declared, headers, re.MULTILINE), name
        assert re.search(rf"\b{name}\b", users), name


def _comment(headers, name):
    """The comment right above the declaration of a function or macro, or ""."""
    found = re.search(rf"/\*((?:(?!\*/).)*)\*/\n(?:#define )?(?:[\w* ]+[ *])?{name}\(", headers, re.DOTALL)
    return " ".join(found[1].replace("\n *", " ").split()) if found else ""


def test_core_functions_have_comments():
    """Each of its functions has a comment of its own: purpose, threads, errors, and who owns what."""
    text = CORE.read_text("utf-8").partition("## Functions")[2].partition("## State")[0]
    public = (paths.TOP / "include" / "headers.txt").read_text("utf-8").split()
    headers = "".join((paths.TOP / name).read_text("utf-8") for name in public)
    for name in re.findall(r"^\| `(stw_\w+)` \|", text, re.MULTILINE):
        comment = _comment(headers, name)
        declared = re.search(rf"\b{name}\([^;]*;", headers)[0]
        assert len(comment) > 80, f"{name}: {comment}"
        assert re.search(r"\bthread\b|on the worker", comment), f"{name}: which threads may call it?"
        if name != "stw_log" and ("struct stw_error *err" in declared or "json_t *" in declared):
            assert re.search(r"[Rr]eturn|NULL|STW_ERR_|own|borrow|copied", comment), f"{name}: errors, ownership?"


def test_kinds_of_steward_use_public_headers():
    """Of the modules that deal with Kubernetes they include no others, except for those that are named here."""
    public = set((paths.TOP / "include" / "headers.txt").read_text("utf-8").split())
    used = {name for path in (paths.TOP / "kinds").rglob("*.[ch]") for name in re.findall(
        r'^#include "((?:kube|controller|operator|webhook)/[^"]+)"', path.read_text("utf-8"), re.MULTILINE)}
    assert len(used) > 15
    others = {name for name in used if not {name, f"lib/{name}"} & public}
    # For writes of DatabaseUser besides its children; for what EtcdCluster keeps of its clients.
    assert others == {"controller/queue/guard.h", "kube/cache/usage.h"}


def test_example_builds_with_pkg_config(installed, tmp_path):
    """It runs with the shared library, and applies its own rules."""
    program = installed.compile(tmp_path, REDIRECT / "redirect.c")
    assert "Usage: redirect COMMAND" in library.run(program, "--help", env=installed.env)
    assert "accepted" in library.run(program, "validate", REDIRECT / "sample.yaml", env=installed.env)
    crds = library.run(program, "print", "crds", env=installed.env)
    assert crds.count("kind: CustomResourceDefinition") == 1 and "redirects.example.org" in crds


def test_operator_name_appears_everywhere(installed, tmp_path):
    """Help, man page, completion, messages and manifests have the names of struct stw_operator."""
    program = installed.compile(tmp_path, REDIRECT / "redirect.c")
    commands = re.findall(r"^  ([a-z]+) ", library.run(program, "--help", env=installed.env), re.MULTILINE)
    assert {"run", "webhook", "validate", "doctor", "audit", "top", "migrate", "uninstall", "print",
            "version"} <= set(commands)
    calls = [["--help"], ["version"], *([name, "--help"] for name in commands),
             *(["completion", shell] for shell in ("bash", "zsh", "fish")),
             *(["print", what] for what in ("crds", "rbac", "webhooks", "user-roles", "man"))]
    for words in calls:
        printed = library.run(program, *words, env=installed.env)
        assert "steward" not in printed.lower(), words
        assert "{operator}" not in printed and "{domain}" not in printed, words
        assert "redirect" in printed, words
    for words in (["nonsense"], ["audit", "--nonsense"], ["doctor", "--kubeconfig=/no/such/file"],
                  ["uninstall", "--kubeconfig=/no/such/file"]):
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, **installed.env})
        assert done.returncode == 2 and done.stderr.startswith("redirect"), done.stderr
        assert "steward" not in done.stderr


def test_example_links_statically(installed, tmp_path):
    """The archive, and the shared libraries that the pkg-config file requires, are sufficient."""
    needed = installed.config("--print-requires", "--print-requires-private")
    words = [*library.run("pkg-config", "--libs", *needed).split(), "-lm", "-pthread"]
    program = tmp_path / "redirect"
    library.run("cc", *library.FLAGS, "-o", program, REDIRECT / "redirect.c", *installed.config("--cflags"),
                installed.prefix / "lib" / "libsteward.a", *words, env=installed.env)
    assert "libsteward" not in library.run("ldd", program)
    assert "Usage: redirect COMMAND" in library.run(program, "--help")


def test_library_builds_as_a_meson_subproject(tmp_path):
    """meson finds it in subprojects/libsteward without a word in meson.build, and builds the library only."""
    shutil.copytree(REDIRECT, tmp_path / "project")
    (tmp_path / "project" / "subprojects").mkdir()
    (tmp_path / "project" / "subprojects" / "libsteward").symlink_to(paths.TOP)
    compiler = {"CC": "ccache cc"} if shutil.which("ccache") else {}
    library.run("meson", "setup", tmp_path / "build", tmp_path / "project",
                env={**compiler, "PKG_CONFIG_PATH": ""})
    library.run("ninja", "-C", tmp_path / "build", "redirect", env=library.cache(paths.TOP))
    assert not list((tmp_path / "build").rglob("libkinds.a"))
    assert "Usage: redirect COMMAND" in library.run(tmp_path / "build" / "redirect", "--help")


def test_abi_check_finds_a_removed_function(installed, tmp_path):
    """A function that is gone is an incompatible change."""
    if not shutil.which("abidiff"):
        pytest.skip("no abidiff is here: run 'scripts/bootstrap lint'")
    text = (paths.TOP / "tests" / "data" / "libsteward.abi").read_text("utf-8")
    (tmp_path / "old.abi").write_text(text.replace("stw_operator_kind", "stw_operator_was"), "utf-8")
    done = subprocess.run(["abidiff", tmp_path / "old.abi", installed.prefix / "lib" / "libsteward.so"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode & 8, done.stdout
    assert "stw_operator_was" in done.stdout


@pytest.mark.parametrize("name, kind, crd, compiler", [
    ("lamps", "home.example.org/v1/Lamp", "lamps.home.example.org", "gcc"),
    ("edge-proxy-2", "a.b.c.example.org/v1alpha1/HTTPRoute", "httproutes.a.b.c.example.org", "clang"),
    ("x", "9.example.org/v2beta1/Service", "services.9.example.org", "gcc"),
], ids=["plain", "acronym", "short"])
def test_new_project_builds_and_passes_its_tests(installed, steward_binary, tmp_path, name, kind, crd, compiler):
    """`steward new` writes a repository that builds without warnings and passes its tests at once."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} is here: run 'scripts/bootstrap'")
    project, build = tmp_path / "project", tmp_path / "build"
    library.run(steward_binary, "new", name, kind, f"--folder={project}")
    written = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    lower = kind.rpartition("/")[2].lower()
    assert {"meson.build", f"src/{lower}.c", "tests/meson.build", "config/kustomization.yaml"} <= written
    assert not [name for name in written if re.search(r"@[A-Z]+@", (project / name).read_text("utf-8"))]
    installed.meson(project, build, compiler)
    said = library.run("meson", "test", "-C", build, "--no-rebuild", env=installed.env)
    counts = dict(re.findall(r"^(Ok|Expected Fail|Fail): +(\d+)", said, re.MULTILINE))
    assert counts == {"Ok": "4", "Expected Fail": "1", "Fail": "0"}, said
    library.run("meson", "compile", "-C", build, "manifests", env=installed.env)
    assert crd in (project / "config" / "crds.yaml").read_text("utf-8")
    for file in yaml.safe_load((project / "config" / "kustomization.yaml").read_text("utf-8"))["resources"]:
        assert all(yaml.safe_load_all((project / "config" / file).read_text("utf-8"))), file


def test_the_page_about_tests(installed, steward_binary, tmp_path):
    """docs/library/testing.md: its test, in a new project; and it fails when the operator does not do its work."""
    page = (paths.TOP / "docs" / "library" / "testing.md").read_text("utf-8")
    [source] = re.findall(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [target] = re.findall(r"^```meson\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    project, build = tmp_path / "greeter", tmp_path / "build"
    library.run(steward_binary, "new", "greeter", "example.org/v1/Greeting", f"--folder={project}")
    (project / "tests" / "more.c").write_text(source, "utf-8")
    with open(project / "tests" / "meson.build", "a", encoding="utf-8") as file:
        file.write(target)
    installed.meson(project, build)
    said = library.run("meson", "test", "-C", build, "--no-rebuild", "more", "reconcile", env=installed.env)
    assert re.search(r"^Ok: +2\b", said, re.MULTILINE), said
    kind = project / "src" / "greeting.c"
    kind.write_text(kind.read_text("utf-8").replace('"%s%s%s\\n"', '"%s%s%s"'), "utf-8")
    library.run("ninja", "-C", build, env=installed.env)
    done = subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", "more", "reconcile"],
                          env={**os.environ, **installed.env}, capture_output=True, text=True, timeout=120,
                          check=False)
    assert re.search(r"^Fail: +2\b", done.stdout, re.MULTILINE), done.stdout
    assert '"hello" != "hello\\n"' in done.stdout.replace("\n", "\\n")


def test_the_tests_of_an_example(installed, tmp_path):
    """examples/cronjob-lite: its schedule without a cluster."""
    build = installed.meson(library.EXAMPLES / "cronjob-lite", tmp_path / "build")
    said = library.run("meson", "test", "-C", build, "--no-rebuild", env=installed.env)
    assert re.search(r"^Ok: +1\b", said, re.MULTILINE), said


def test_no_operator_has_the_library_for_tests(installed, tmp_path):
    """Neither libsteward nor a program has a function of it."""
    program = installed.compile(tmp_path, REDIRECT / "redirect.c")
    for file in (installed.prefix / "lib" / "libsteward.so", installed.prefix / "lib" / "libsteward.a", program):
        assert "stw_test_" not in library.run("nm", file), file
    own = library.run("nm", "--defined-only", installed.prefix / "lib" / "libsteward-test.a")
    assert " T stw_test_begin" in own and " T stw_manager_create" not in own


@pytest.mark.thorough("builds the library once more")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_a_new_project_with_sanitizers(steward_binary, tmp_path, sanitizer):
    """The tests of `steward new` run with the project, the library and the library for tests under sanitizers."""
    project, build = tmp_path / "project", tmp_path / "build"
    library.run(steward_binary, "new", "greeter", "example.org/v1/Greeting", f"--folder={project}")
    (project / "subprojects").mkdir()
    (project / "subprojects" / "libsteward").symlink_to(paths.TOP)
    compiler = {"CC": "ccache cc"} if shutil.which("ccache") else {}
    library.run("meson", "setup", build, project, f"-Db_sanitize={sanitizer}", "-Db_lundef=false",
                env={**compiler, "PKG_CONFIG_PATH": ""})
    library.run("ninja", "-C", build, env=library.cache(paths.TOP))
    said = library.run("meson", "test", "-C", build, "--no-rebuild", "--timeout-multiplier=4",
                       env={"TSAN_OPTIONS": "halt_on_error=1:exitcode=66", "UBSAN_OPTIONS": "halt_on_error=1"})
    counts = dict(re.findall(r"^(Ok|Expected Fail|Fail): +(\d+)", said, re.MULTILINE))
    assert counts == {"Ok": "4", "Expected Fail": "1", "Fail": "0"}, said
