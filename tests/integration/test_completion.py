# SPDX-License-Identifier: Apache-2.0
"""The man page and the completions of shells: they have every command and option of --help."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

from support import paths

COMMANDS = ("run", "webhook", "validate", "doctor", "audit", "top", "migrate", "uninstall", "snapshot", "new",
            "print", "completion", "version")
# "  -o, --output=text|json", "  --yes[=true|false]"
OPTION = re.compile(r"^  (?:-(\w), )?--([a-z0-9-]+)(?:\[?=([^\]\n]+)\]?)?$", re.MULTILINE)


def says(*args):
    """Standard output of steward."""
    return subprocess.run([paths.steward_binary(), *args], text=True, check=True, capture_output=True,
                          timeout=60).stdout


def options_of(command):
    """[(letter, name, placeholder)] of the options that --help shows."""
    found = OPTION.findall(says(command, "--help"))
    assert ("h", "help", "") in found
    return found


@pytest.fixture(name="man", scope="module")
def fixture_man():
    """The source of the man page."""
    return says("print", "man")


@pytest.fixture(name="complete", scope="module")
def fixture_complete(tmp_path_factory):
    """complete(*words): what bash offers for the last word."""
    script = tmp_path_factory.mktemp("bash") / "steward"
    script.write_text(says("completion", "bash"), "utf-8")

    def run(*words, folder="/"):
        line = shlex.join(("steward", *words))
        done = subprocess.run(
            ["bash", "--norc", "-uc",
             f"source {script}; cd {folder}; COMP_WORDS=({line}) COMP_CWORD={len(words)}\n"
             "$(complete -p steward | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
             '((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"'],
            text=True, capture_output=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()
    return run


def test_commands_are_those_of_the_help():
    listed = re.findall(r"^  (\S+) ", says("--help"), re.MULTILINE)
    assert listed == list(COMMANDS)


def test_man_page_has_every_command_and_option(man):
    sections = dict(re.findall(r"^\.SS steward (\S+)\n(.*?)(?=^\.S[SH] )", man, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(COMMANDS)
    for command, section in sections.items():
        plain = section.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
        for letter, name, placeholder in options_of(command):
            if name != "help":  # once, for all commands
                written = f"{f'-{letter}, ' if letter else ''}--{name}"
                row = rf"^\.TP\n{written}\[?={re.escape(placeholder)}\]?$"
                assert re.search(row, plain, re.MULTILINE), written


def test_man_page_is_valid(man):
    assert not [line for line in man.splitlines() if line.startswith(".") and not re.match(
        r"\.(\\\"|(TH|SH|SS|TP|PP|B|BR|I|br|nf|fi|nh|ad)\b)", line)]
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=100n"], input=man, text=True,
                          capture_output=True, check=True, timeout=60)
    assert done.stderr == ""
    text = done.stdout
    assert "--leader-elect[=true|false]" in text
    assert "source <(steward completion bash)" in text
    assert "\\" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_completes_every_option(complete, command):
    options = options_of(command)
    assert {word.rstrip("=") for word in complete(command, "--")} == {f"--{name}" for _, name, _ in options}
    for letter, name, placeholder in options:
        words = placeholder.split("|")
        if len(words) == 1:
            continue
        assert complete(command, f"--{name}", "=", "") == words
        assert complete(command, f"--{name}", "=") == words
        assert complete(command, f"--{name}={words[0]}") == [f"--{name}={words[0]}"]
        if words != ["true", "false"]:
            assert complete(command, f"--{name}", words[1][:-1]) == [words[1]]
            assert not letter or complete(command, f"-{letter}", "") == words


@pytest.mark.parametrize("words, found", [
    (("ru",), ["run"]),
    (("--v",), ["--version"]),
    (("run", "--lea"), ["--leader-elect"]),
    (("run", "--leader-elect", "--log-l"), ["--log-level="]),
    (("run", "--namespace", ""), []),
    (("print", "u"), ["user-roles"]),
    (("print", "--url", "x", "web"), ["webhooks"]),
    (("audit", "etcdb"), ["etcdbackups"]),
    (("nonsense", ""), []),
])
def test_bash_completes_words(complete, words, found):
    assert complete(*words) == found


def test_bash_completes_files_and_folders(complete, tmp_path):
    (tmp_path / "my folder").mkdir()
    (tmp_path / "my file").touch()
    assert sorted(complete("run", "--config", "my", folder=tmp_path)) == ["my file", "my folder"]
    assert sorted(complete("validate", "my", folder=tmp_path)) == ["my file", "my folder"]
    assert complete("webhook", "--webhook-cert-path", "=", "", folder=tmp_path) == ["my folder"]


# What the script of a shell has for an option of a command.
WRITTEN = {
    "bash": r"\n    '{command} --{name}='",
    "zsh": r"\n    {command}\)\n(?: {{8}}[^;\n].*\n)*? {{8}}.*--{name}[=}}]",
    "fish": r"\ncomplete -c steward -n '__fish_seen_subcommand_from {command}' -l {name} ",
}


@pytest.mark.parametrize("shell", WRITTEN)
def test_shell_scripts_have_every_option(shell, tmp_path):
    script = tmp_path / "script"
    script.write_text(says("completion", shell), "utf-8")
    text = script.read_text("utf-8")
    for command in COMMANDS:
        for name in {name for _, name, _ in options_of(command)} - {"help"}:
            assert re.search(WRITTEN[shell].format(command=command, name=name), text), (command, name)
    assert re.search(r"--help\b|-l help\b", text)
    if shutil.which(shell):
        done = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_completed_operands_are_accepted(complete):
    operands = complete("print", "")
    assert len(operands) == 5
    for operand in operands:
        assert says("print", operand)
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    for command in complete("snapshot", ""):
        done = subprocess.run([paths.steward_binary(), "snapshot", command], capture_output=True, text=True,
                              check=False, timeout=60)
        assert "unknown command" not in done.stderr


def test_meson_installs_what_the_program_prints():
    installed = json.loads((paths.build() / "meson-info" / "intro-installed.json").read_text("utf-8"))
    by_end = {to.partition("/share/")[2]: source for source, to in installed.items()}
    for end, command in {"man/man1/steward.1": ("print", "man"),
                         "bash-completion/completions/steward": ("completion", "bash"),
                         "zsh/site-functions/_steward": ("completion", "zsh"),
                         "fish/vendor_completions.d/steward.fish": ("completion", "fish")}.items():
        with open(by_end[end], encoding="utf-8") as file:
            assert file.read() == says(*command)
