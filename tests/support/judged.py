# SPDX-License-Identifier: Apache-2.0
"""Objects of tests/cases and of the unit tests of the kinds, and the verdicts of `steward validate` on them."""

import collections
import json
import os
import subprocess

import yaml

from . import paths, steward


RATCHETS = 30  # the minor version from which on a schema accepts a bad value that has not changed

# What an API server says about a case, as far as the functions below read it.
Answer = collections.namedtuple("Answer", "status message")


class Case:
    """One object, or a change of it."""

    def __init__(self, api_version, kind, obj, old):
        self.api_version, self.kind, self.object, self.old = api_version, kind, obj, old
        self.refused = None   # by steward
        self.errors = []      # of steward
        self.answer = None    # of an API server

    @property
    def plural(self):
        return self.kind.lower() + "s"

    def path(self, namespace):
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"

    @property
    def name(self):
        return self.object["metadata"]["name"]

    def __repr__(self):
        said = self.answer.message[:500] if self.answer else ""
        return (f"{self.kind} {json.dumps(self.object.get('spec'))[:600]}\n  old "
                f"{json.dumps((self.old or {}).get('spec'))[:400]} status "
                f"{json.dumps((self.old or {}).get('status'))}\n  steward {self.errors}\n  server {said}")


def noted(folder):
    """The texts of all questions of the unit tests of the specs: [(group/version, kind, object, old)]."""
    target, tests = folder / "judged", paths.build() / "tests" / "unit" / "kinds"
    for binary in [tests / "test_kinds_cases", *sorted(tests.rglob("test_*_spec"))]:
        if binary.is_file() and os.access(binary, os.X_OK):
            subprocess.run([binary], check=True, capture_output=True, cwd=paths.TOP,
                           env={**os.environ, "STEWARD_JUDGED": str(target)})
    records = target.read_text("utf-8", "surrogateescape").split("\x1e")
    return [tuple(r.split("\x1f")) for r in dict.fromkeys(records) if r]


def texts_of(metadata, field):
    """Labels or annotations, without what the API server itself refuses."""
    found = metadata.get(field)
    return {k: v for k, v in found.items() if isinstance(v, str) and " " not in k} \
        if isinstance(found, dict) else {}


def usable(text, api_version, kind, name, namespace):
    """The object with a name of its own; None when it has no spec, or NUL, which `steward validate` refuses
    as YAML."""
    if r"\u0000" in text:
        return None
    try:
        obj = json.loads(text)
    except ValueError:
        return None
    if not isinstance(obj, dict) or not isinstance(obj.get("spec"), dict):
        return None
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    kept = {"apiVersion": api_version, "kind": kind, "spec": obj["spec"],
            "metadata": {"name": name, "namespace": namespace,
                         "labels": texts_of(metadata, "labels")}}
    if isinstance(obj.get("status"), dict):
        kept["status"] = obj["status"]
    return kept


def cases(folder, namespace):
    """[Case] of all questions that have a spec."""
    found = []
    for number, (api_version, kind, text, old_text) in enumerate(noted(folder)):
        name = f"c{number}"
        obj = usable(text, api_version, kind, name, namespace)
        old = usable(old_text, api_version, kind, name, namespace) if old_text else None
        if kind in steward.KINDS and obj and (old or not old_text):
            found.append(Case(api_version, kind, obj, old))
    return found


def pools_of(all_cases):
    """{kind: {field of the spec: [values]}}, and the statuses of clusters, from all these cases."""
    pools, statuses = {}, [None]
    for case in all_cases:
        for obj in filter(None, (case.object, case.old)):
            pool = pools.setdefault((case.api_version, case.kind), {})
            for field, value in obj["spec"].items():
                if len(json.dumps(value)) < 5000:
                    pool.setdefault(field, []).append(value)
            if "status" in obj:
                statuses.append(obj["status"])
    return pools, statuses


def mixed(rng, value, other):
    """A value between two of the same field: objects exchange members."""
    if not isinstance(value, dict) or not isinstance(other, dict):
        return other
    result = dict(value)
    for key in other:
        if rng.random() < 0.5:
            result[key] = mixed(rng, value[key], other[key]) if key in value else other[key]
    for key in list(result):
        if rng.random() < 0.1:
            del result[key]
    return result


def drawn(rng, pool, needed):
    """A spec with some of the fields of a pool, and those that are needed."""
    few = rng.choice((0.1, 0.25, 0.5))
    spec = {}
    for field, values in pool.items():
        if field in needed or rng.random() < few:
            spec[field] = mixed(rng, rng.choice(values), rng.choice(values))
    return spec


def changed(rng, spec, pool):
    """The spec with one to three of its fields drawn again or gone."""
    result = dict(spec)
    for field in rng.sample(sorted(pool), min(len(pool), rng.randint(1, 3))):
        result.pop(field, None)
        if rng.random() < 0.8:
            result[field] = mixed(rng, spec.get(field), rng.choice(pool[field]))
    return result


NEEDED = {"MyWeb": ("image",), "App": ("image",), "Eru": ("deploymentname",),
          "DatabaseUser": ("user", "password"), "EtcdCluster": (),
          "EtcdBackup": ("storageType",), "EtcdRestore": ("etcdCluster",)}


def generated(rng, all_cases, count, namespace):
    """[Case]: `count` new objects and as many changes of each kind, drawn from these cases."""
    pools, statuses = pools_of(all_cases)
    found = []
    for (api_version, kind), pool in sorted(pools.items()):
        for number in range(2 * count):
            def build(spec, status=None, kind=kind, api_version=api_version, number=number):
                obj = {"apiVersion": api_version, "kind": kind, "spec": spec, "metadata": {
                    "name": f"g{kind.lower()}{number}", "namespace": namespace,
                    "labels": {"target": "main"}}}
                return {**obj, "status": status} if status else obj
            spec = drawn(rng, pool, NEEDED[kind])
            if number < count:
                found.append(Case(api_version, kind, build(spec), None))
            else:
                status = rng.choice(statuses) if kind == "EtcdCluster" else None
                found.append(Case(api_version, kind, build(changed(rng, spec, pool)),
                                  build(spec, status)))
    return found


def has_fraction(value):
    """Whether a number is written like 1.0.  CEL reads none in a field that may be a number or a
    string; neither kubectl nor etcd writes one."""
    if isinstance(value, dict):
        return any(map(has_fraction, value.values()))
    if isinstance(value, list):
        return any(map(has_fraction, value))
    return isinstance(value, float)


def judge(all_cases, folder):
    """Asks `steward validate`."""
    now, old = folder / "now.yaml", folder / "old.yaml"
    with open(now, "w", encoding="utf-8") as file:
        yaml.safe_dump_all([c.object for c in all_cases], file)
    with open(old, "w", encoding="utf-8") as file:
        yaml.safe_dump_all([c.old for c in all_cases if c.old], file)
    done = subprocess.run([paths.steward_binary(), "validate", "--lenient", "-o", "json", "--old", old,
                           now], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    verdicts = {o["name"]: o for o in json.loads(done.stdout)["objects"]}
    for case in all_cases:
        verdict = verdicts[case.name]
        assert verdict["verdict"] in ("accepted", "refused"), verdict
        case.refused = verdict["verdict"] == "refused"
        case.errors = [f"{e['field']}: {e['message']}" for e in verdict.get("errors", [])]


def stricter(all_cases, minor):
    """Those that steward accepts, and an API server of this minor version does not."""
    return [c for c in all_cases if not c.refused and c.answer.status >= 300
            and not has_fraction(c.object) and (not c.old or minor >= RATCHETS)]


def new_refused(all_cases):
    """The new objects that steward refuses, and those of them that the API server accepts."""
    bad = [c for c in all_cases if c.refused and not c.old]
    return bad, [c for c in bad if c.answer.status != 422]


def seen_by_rules(error, old):
    """Whether CEL can see what an error of a change says."""
    field = error.split(":")[0]
    if field == "spec.version" and "version" not in old["spec"]:
        return False  # a defect: test_crd_rules.py, test_rule_compares_with_the_running_version
    return (field.startswith("spec") and "[" not in field
            and "0 or between" not in error and "unknown time zone" not in error)


def changes_refused(all_cases):
    """The same for changes, except those of labels, of the range of node ports and of time zones, which
    CEL does not see, and of single entries of lists and maps, which it cannot tell apart."""
    bad = [c for c in all_cases if c.refused and c.old and any(seen_by_rules(e, c.old) for e in c.errors)]
    return bad, [c for c in bad if c.answer.status < 300]


def quantity(rng):
    """A text like a quantity.  Many are 0 or close to 0."""
    digits = "".join(rng.choice("000159") for _ in range(rng.choice((1, 1, 2, 4, 19))))
    fraction = "." + "".join(rng.choice("000159") for _ in range(rng.randint(0, 9)))
    suffix = rng.choice(["", "", "m", "m", "m", "n", "u", "k", "Mi", "E", "e3", "e-3", "E2", "x"])
    return rng.choice(["", "", "", "+", "-"]) + digits + rng.choice(["", fraction]) + suffix


def of_quantities(rng, count, namespace):
    """[Case]: new MyWebs with such requests and limits, and changes of them."""
    def build(number):
        lists = {at: {name: rng.choice((quantity(rng), quantity(rng), rng.randint(-1, 3)))
                      for name in ("cpu", "memory", "example.com/gpu") if rng.random() < 0.4}
                 for at in ("limits", "requests")}
        return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                "metadata": {"name": f"q{number}", "namespace": namespace},
                "spec": {"image": "a", "resources": lists}}
    return [Case("operator.k8s-summit.org/v1", "MyWeb", build(number),
                 build(number) if number % 3 == 0 else None) for number in range(count)]
