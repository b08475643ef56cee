# SPDX-License-Identifier: Apache-2.0
"""The examples of the README and of pages in docs/: files they show, and commands with their
output."""

import re
import shlex
import textwrap

from . import paths

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(language, page="README.md", section=""):
    """The text of each fenced block of this language; of one section, those below its heading."""
    text = (paths.TOP / page).read_text("utf-8")
    if section:
        text = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^#+ [^\n]*\n\n|\Z)", text,
                         re.MULTILINE | re.DOTALL)[1]
    return [textwrap.dedent(body) for _, found, body in _BLOCK.findall(text) if found == language]


def files():
    """{name: text} of blocks whose first line is "# NAME", which is copied with the rest."""
    found = {}
    for body in blocks("yaml"):
        first = body.partition("\n")[0]
        if first.startswith("# "):
            found[first[2:]] = body
    return found


def commands(program, page="README.md", section=""):
    """[(command line, expected output)] of the console blocks that call this program."""
    found = []
    for body in blocks("console", page, section):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.split()[0] == program:
                found.append((command, output))
    return found


def named(page):
    """{name: text} of blocks after a paragraph with "`NAME`" and a colon at its end."""
    text = (paths.TOP / page).read_text("utf-8")
    found = re.findall(r"`([\w-]+\.yaml)`(?:(?!\n\n).)*:\n\n```yaml\n(.*?)^```$", text,
                       re.MULTILINE | re.DOTALL)
    return dict(found)


def answers(page):
    """[(manifest, the webhook's answer)], from consecutive blocks of the page."""
    text = (paths.TOP / page).read_text("utf-8")
    block = r"((?:(?!```).)*)```\n"
    return re.findall(rf"```yaml\n{block}```text\n{block}", text, re.DOTALL)


def kubectl(cluster, namespace, command, folder, check=True):
    """All output of a command in this namespace; its files and its home are in `folder`."""
    arguments = [str(folder / a) if (folder / a).is_file() else a.replace("$HOME", str(folder))
                 for a in shlex.split(command)[1:]]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    if "-n" not in arguments[:at]:
        arguments[at:at] = ["-n", namespace]
    return printed(cluster.kubectl(*arguments, timeout=600, check=check), namespace)


def printed(result, namespace):
    """The output of a kubectl, without what only some versions print: since 1.33 it names the
    namespace of a deleted object."""
    return (result.stdout + result.stderr).replace(f" deleted from {namespace} namespace", " deleted")


def follow(cluster, namespace, page, folder, section="Try it", may_say=()):
    """Runs the kubectl commands of a section, one by one: each prints what the page shows, in any
    order of its lines, and maybe the lines `may_say`.  A generator of the commands, after each."""
    for name, text in named(page).items():
        (folder / name).write_text(text, encoding="utf-8")
    for command, output in commands("kubectl", page, section):
        found = kubectl(cluster, namespace, command, folder, check=False)
        lines = [sorted(line.rstrip() for line in text.splitlines() if line.strip() and line not in may_say)
                 for text in (found, output)]
        assert lines[0] == lines[1], f"{command}\n{found}"
        yield command


def check_answer(cluster, namespace, body, said):
    """Asserts that the webhook's answer to a manifest of `answers` is that of the page."""
    result = cluster.kubectl("apply", "--dry-run=server", "-n", namespace, "-f", "-", stdin=body,
                             check=False)
    for line in said.splitlines():
        assert line in result.stderr
