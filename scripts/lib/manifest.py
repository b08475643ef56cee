# SPDX-License-Identifier: Apache-2.0
"""Reads what `kubectl kustomize` printed on standard input and writes one manifest, the same for
every version of kubectl.

The order suits both directions.  `kubectl apply -f` creates an object before those that need it.
`kubectl delete -f` also goes from top to bottom: it removes the webhooks first, so that no request
is refused because steward is gone.

Usage: manifest.py COMMENT, which becomes the first line, or several"""

import signal
import sys

import yaml

ORDER = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Namespace",
         "PriorityClass", "CustomResourceDefinition", "ServiceAccount", "Role", "ClusterRole",
         "RoleBinding", "ClusterRoleBinding", "PriorityLevelConfiguration", "FlowSchema", "ConfigMap",
         "Service", "PodDisruptionBudget", "Deployment"]
FIRST = ["apiVersion", "kind", "metadata"]  # of each object; other fields follow by name


class Dumper(yaml.SafeDumper):
    """Dumps multi-line strings as literal blocks, and writes no aliases."""

    def ignore_aliases(self, data):
        return True


def _text(dumper, data):
    style = "|" if "\n" in data else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


Dumper.add_representer(str, _text)


def place(obj):
    """The sort key of an object.  A kind that ORDER lacks fails: its place has to be decided."""
    return ORDER.index(obj["kind"]), obj["metadata"]["name"]


def in_order(value, first=()):
    """The same with sorted keys, those of `first` before the others."""
    if isinstance(value, list):
        return [in_order(v) for v in value]
    if not isinstance(value, dict):
        return value
    keys = [k for k in first if k in value] + sorted(k for k in value if k not in first)
    return {k: in_order(value[k]) for k in keys}


def comment_of(text):
    """The lines of a text as lines of a comment."""
    if yaml.reader.Reader.NON_PRINTABLE.search(text):
        sys.exit("render: COMMENT has a control character")
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may stop early: `| head`
    print(comment_of(sys.argv[1]), end="")
    for obj in sorted((o for o in yaml.safe_load_all(sys.stdin) if o), key=place):
        print("---")
        print(yaml.dump(in_order(obj, FIRST), Dumper=Dumper, sort_keys=False, width=10000,
                        default_flow_style=False), end="")


main()
