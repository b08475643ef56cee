# SPDX-License-Identifier: Apache-2.0
"""CPU of `steward validate` for 10,000 MyWebs and for a quarter of them, in several forms.

The growth is the CPU of all divided by that of a quarter: 4 is linear, 16 quadratic.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import versus  # noqa: E402

GROWTH_MAX = 5
BLOCK = ("---\napiVersion: {group}\nkind: MyWeb\nmetadata:\n  name: web{i}\n"
         "spec:\n  image: nginx:1.25\n  pageContentHtml: hi\n  replicas: {replicas}\n")
GROUP = "operator.k8s-summit.org/v1"


def web(i, replicas=1):
    """One object."""
    return {"apiVersion": GROUP, "kind": "MyWeb", "metadata": {"name": f"web{i}"},
            "spec": {"image": "nginx:1.25", "pageContentHtml": "hi", "replicas": replicas}}


def documents(count, replicas=1):
    """A YAML document each."""
    return "".join(BLOCK.format(group=GROUP, i=i, replicas=replicas) for i in range(count))


def one_list(count):
    """A List in YAML, of objects in JSON."""
    items = "".join(f"- {json.dumps(web(i))}\n" for i in range(count))
    return f"apiVersion: v1\nkind: List\nitems:\n{items}"


def stream(count):
    """JSON objects, one after the other."""
    return "".join(json.dumps(web(i)) for i in range(count))


FORMS = {"documents": documents, "list": one_list, "json": stream}


def seconds(binary, folder, *args):
    """CPU seconds of one call; None if the program, a former one, does not accept all of it."""
    with subprocess.Popen([binary, "validate", *args], cwd=folder, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime if process.returncode == 0 else None


def one_form(binary, folder, name, count):
    """CPU seconds for `count` objects in this form."""
    if name != "old":
        (folder / "in.yaml").write_text(FORMS[name](count), "utf-8")
        return seconds(binary, folder, "in.yaml")
    (folder / "in.yaml").write_text(documents(count, replicas=2), "utf-8")
    (folder / "old.yaml").write_text(documents(count), "utf-8")
    return seconds(binary, folder, "--old", "old.yaml", "in.yaml")


def one_round(binary, folder, count):
    """The figures of one program, for the forms that it knows."""
    found = {}
    for name in (*FORMS, "old"):
        few, many = (one_form(binary, folder, name, part) for part in (count // 4, count))
        if few and many:
            found |= {f"{name}_{count // 4}_s": few, f"{name}_{count}_s": many, f"{name}_growth": many / few}
    return found


def measure(reference, count, rounds):
    """{name: medians}, and with a reference the ratios."""
    programs, found = versus.binaries(reference), {}
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
        for _, name in versus.in_turns(list(programs), rounds):
            found.setdefault(name, []).append(one_round(programs[name], pathlib.Path(folder), count))
    result = {name: versus.medians(each) for name, each in found.items()}
    if reference:
        result["ratio"] = versus.ratios(result["now"], result["reference"])
    return {"count": count, "rounds": rounds, **result}


def main():
    """The command line.  Status 1: the cost is not linear."""
    parser = argparse.ArgumentParser(prog="scripts/bench validate",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=10000, help="MyWebs (10000)")
    parser.add_argument("--rounds", type=int, default=5, help="of each program (5)")
    parser.add_argument("--reference", metavar="COMMIT", help="measure this one's steward, too")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    found = measure(args.reference, args.count, args.rounds)
    if len(found["now"]) != 3 * len((*FORMS, "old")):
        parser.error("steward validate has refused a form")
    missed = [key for key, value in found["now"].items() if key.endswith("_growth") and value > GROWTH_MAX]
    if args.output == "json":
        print(json.dumps(found, indent=1))
        return 1 if missed else 0
    names = [n for n in ("reference", "now", "ratio") if n in found]
    print(f"{args.count} MyWebs, medians of {args.rounds} rounds; a growth of 4 is linear")
    print(f"{'':20}" + "".join(f"{n:>12}" for n in names))
    for key in found["now"]:
        print(f"{key:20}" + "".join(f"{found[n].get(key, 0):>12.3f}" for n in names))
    for key in missed:
        print(f"{key} is above {GROWTH_MAX}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
