#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what one kind adds to an installation: a kustomize component each for config/kinds, and the
rights of each for the chart.

    kinds.py STEWARD components FOLDER    FOLDER/none and FOLDER/KIND
    kinds.py STEWARD rights FOLDER        FOLDER/KIND.yaml
    kinds.py STEWARD argocd FOLDER        FOLDER/GROUP/KIND/health.lua, from FOLDER/health.lua
"""

import pathlib
import subprocess
import sys

import yaml

HEADER = '# "scripts/lint --fix generated" writes this file again.\n'
# A kind that cannot be chosen alone: `steward print --kinds` says so.
NEEDS = {"EtcdRestore": ["EtcdCluster"]}
ROLES = ("steward-manager-role", "steward-own-role", "steward-storage-class-role",
         "steward-cluster-id-role")
RBAC = {"group": "rbac.authorization.k8s.io", "version": "v1"}
HOOKS = {"group": "admissionregistration.k8s.io", "version": "v1"}


class Dumper(yaml.SafeDumper):
    """Text of several lines as a block, to be read."""


Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(
    "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None))


def dump(data):
    """YAML in the order of the keys."""
    return yaml.dump(data, Dumper=Dumper, sort_keys=False)


def printed(steward, *arguments):
    """The objects that `steward print` prints."""
    text = subprocess.run([steward, "print", *arguments], check=True, capture_output=True,
                          text=True, timeout=60).stdout
    return [o for o in yaml.safe_load_all(text) if o]


def rules(steward, kinds):
    """{role: rules} with these kinds."""
    found = {o["metadata"]["name"]: o["rules"]
             for o in printed(steward, "rbac", "--kinds", ",".join(kinds)) if "rules" in o}
    return {name: found.get(name, []) for name in ROLES}


def difference(more, less):
    """The rules of each role in `more` that `less` does not have."""
    return {name: [r for r in more[name] if r not in less[name]] for name in ROLES}


def target(name, scope):
    """The target of the patch of a role."""
    return {**RBAC, "kind": "Role" if name == "steward-own-role" else "ClusterRole", "name": scope}


def patch(where, operations):
    """A JSON patch, as kustomize takes it."""
    return {"target": where, "patch": dump(operations)}


def adds(path, values):
    """Operations that append each of the values."""
    return [{"op": "add", "path": f"{path}/-", "value": value} for value in values]


def write(path, data):
    """A component."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    path.write_text(HEADER + dump({**head, **data}), "utf-8")


def hooks(steward, kinds):
    """{configuration: webhooks}"""
    return {o["kind"]: o["webhooks"] for o in printed(steward, "webhooks", "--kinds", kinds)}


def write_none(folder, core, crds):
    """The component that takes all kinds away."""
    patches = [patch(target(name, name), [{"op": "replace", "path": "/rules", "value": core[name]}])
               for name in ROLES]
    patches += [patch({**HOOKS, "kind": f"{kind}WebhookConfiguration"},
                      [{"op": "replace", "path": "/webhooks", "value": []}])
                for kind in ("Mutating", "Validating")]
    patches += [patch({**RBAC, "kind": "ClusterRole", "name": f"steward-{role}-role"},
                      [{"op": "replace", "path": "/rules", "value": []}])
                for role in ("admin", "editor", "viewer")]
    patches += [{"patch": dump({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": crd["metadata"]["name"]}, "$patch": "delete"})} for crd in crds]
    write(folder / "none" / "kustomization.yaml", {"patches": patches})


def write_kind(steward, folder, crd, core):
    """The component that adds a kind."""
    kind = crd["spec"]["names"]["kind"]
    needs = NEEDS.get(kind, [])
    less = rules(steward, needs) if needs else core
    patches = [patch(target(name, name), adds("/rules", added))
               for name, added in difference(rules(steward, [kind, *needs]), less).items() if added]
    before = hooks(steward, ",".join(needs)) if needs else {}
    for configuration, entries in hooks(steward, ",".join([kind, *needs])).items():
        patches.append(patch({**HOOKS, "kind": configuration}, adds(
            "/webhooks", [h for h in entries if h not in before.get(configuration, [])])))
    for role in printed(steward, "user-roles", "--kinds", ",".join([kind, *needs])):
        patches.append(patch(
            {**RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]},
            adds("/rules", [r for r in role["rules"]
                            if r["resources"][0].split("/")[0] == crd["spec"]["names"]["plural"]])))
    patches.append(patch(
        {"group": "apps", "version": "v1", "kind": "Deployment", "name": "steward-controller-manager"},
        adds("/spec/template/spec/containers/0/args", [f"--kinds={kind}"])))
    write(folder / kind.lower() / "kustomization.yaml", {"resources": ["crd.yaml"], "patches": patches})
    (folder / kind.lower() / "crd.yaml").write_text(
        HEADER + dump(crd), "utf-8")


def write_components(steward, folder):
    """All components."""
    crds = printed(steward, "crds")
    alone = [c["spec"]["names"]["kind"] for c in crds if c["spec"]["names"]["kind"] not in NEEDS]
    first, *others = [rules(steward, [kind]) for kind in alone]
    core = {name: [r for r in first[name] if all(r in other[name] for other in others)]
            for name in ROLES}
    write_none(folder, core, crds)
    for crd in crds:
        write_kind(steward, folder, crd, core)


def write_rights(steward, folder):
    """The rights of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for crd in printed(steward, "crds"):
        kind = crd["spec"]["names"]["kind"]
        roles = rules(steward, [kind, *NEEDS.get(kind, [])])
        (folder / f"{kind}.yaml").write_text(
            HEADER + dump(roles), "utf-8")


def write_argocd(steward, folder):
    """health.lua for each kind, where Argo CD's own sources have such files, and a ConfigMap patch."""
    script = (folder / "health.lua").read_text("utf-8")
    data = {}
    for crd in printed(steward, "crds"):
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        path = folder / group / kind / "health.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, "utf-8")
        data[f"resource.customizations.health.{group}_{kind}"] = script
    (folder / "argocd-cm.yaml").write_text(HEADER + dump({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": data}), "utf-8")


def main():
    """See above."""
    steward, what, folder = sys.argv[1:]
    write = {"components": write_components, "rights": write_rights, "argocd": write_argocd}[what]
    write(steward, pathlib.Path(folder))


main()
