# SPDX-License-Identifier: Apache-2.0
"""scripts/bootstrap: what it reports without changing anything.

What it installs and builds is tested by all other tests, which use it.
"""

import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

from support import oracles, paths, versions, wait


def bootstrap(cache, *words, **env):
    """(exit status, output), with an empty cache folder."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), **env}
    done = subprocess.run([paths.SCRIPTS / "bootstrap", *words], env=env, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120)
    return done.returncode, done.stdout


def of_plan(command, cache, **env):
    """The result of running functions of scripts/lib/bootstrap-plan.sh."""
    script = f"""set -euo pipefail; LIB={paths.SCRIPTS}/lib; missing=() parts=() left_out=()
        for part in common apt cache versions debian-next s3-fetch go-build oracles programs bootstrap-plan; do
            . "$LIB/$part.sh"
        done
        {command}"""
    return subprocess.run(["bash", "-c", script], env={**os.environ, "XDG_CACHE_HOME": str(cache), **env},
                          text=True, check=False, capture_output=True, timeout=60)


def test_check_lists_missing_parts_without_changes(tmp_path):
    status, said = bootstrap(tmp_path, "--check", "cluster", "etcd", "servers", "kubernetes",
                             KUBEBUILDER_ASSETS="", TEST_ASSET_KUBE_APISERVER="")
    assert status == 1
    expected = [f"kubernetes-{v}" for v in versions.table()["KUBERNETES_CI"]] + \
        [f"etcd-{v}" for v in versions.table()["ETCD"][1:]] + \
        [f"{name.lower()}-{versions.newest(name)}" for name in ("MYSQL", "MARIADB", "POSTGRESQL")]
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.startswith("  ")}
    for part in [*expected, "together"]:
        minutes, word, mb, unit = rows[part]
        assert int(minutes) > 0 and int(mb) > 0 and (word, unit) == ("min", "MB")
    assert os.listdir(tmp_path) == []


def test_present_parts_are_not_listed(tmp_path):
    (tmp_path / "steward" / f"kubernetes-{versions.newest('KUBERNETES')}.r2").mkdir(parents=True)
    status, said = bootstrap(tmp_path, "--check", "cluster", KUBEBUILDER_ASSETS="")
    assert status == 1
    assert "kubernetes-" not in said and f"etcd-{versions.newest('ETCD')}" in said


def test_servers_of_kubebuilder_assets_are_used(tmp_path):
    status, said = bootstrap(tmp_path, "--check", "cluster", KUBEBUILDER_ASSETS="/opt/assets")
    left_out = said.partition("Left out:")[2]
    assert status == 1 and f"kubernetes-{versions.newest('KUBERNETES')}" in left_out
    assert "KUBEBUILDER_ASSETS" in left_out


def test_without_root_packages_are_left_out(tmp_path):
    said = of_plan("""is_root() { false; }; missing=(some-package); parts=(packages)
        plan_leave_out; printf '%s;' "${#parts[@]}" "${left_out[@]}" """, tmp_path).stdout
    assert said.startswith("0;packages: only root can install them") and "some-package" in said


def test_without_root_parts_without_packages_are_built(tmp_path):
    done = of_plan("""is_root() { false; }; have() { false; }; parts=(s3rver-1 mysql-1)
        part_impossible s3rver-1; have() { true; }; part_impossible mysql-1""", tmp_path)
    assert done.stdout.strip() == "it needs npm node, whose packages only root can install"


def test_version_without_go_mod_is_left_out(tmp_path):
    done = of_plan("parts=(kubernetes-1.2.3); plan_leave_out; echo ${#parts[@]} ${left_out[@]}", tmp_path,
                   KUBEBUILDER_ASSETS="", TEST_ASSET_KUBE_APISERVER="")
    assert done.stdout.startswith("0 kubernetes-1.2.3: there is no ")
    assert "'scripts/cluster vendor kubernetes-1.2.3' writes one" in done.stdout


@pytest.mark.parametrize("name", ["KUBERNETES", "HELM", "KUSTOMIZE", "OLM"])
def test_every_version_can_be_built(tmp_path, name):
    """The oldest Kubernetes is built from Debian's source package; all others have a go.mod."""
    for version in versions.table()[name][1 if name == "KUBERNETES" else 0:]:
        done = of_plan(f"is_root() {{ true; }}; part_impossible {name.lower()}-{version}", tmp_path,
                       KUBEBUILDER_ASSETS="", TEST_ASSET_KUBE_APISERVER="")
        assert (done.returncode, done.stdout) == (0, "")


def test_kubernetes_is_built_after_its_etcd(tmp_path):
    parts = of_plan("kubernetes_parts 1.20.2 1.35.4 1.37.2", tmp_path).stdout.split()
    assert parts == ["kubernetes-1.20.2", "etcd-3.6.16", "kubernetes-1.35.4", "etcd-3.7.3",
                     "kubernetes-1.37.2"]


def test_lint_needs_the_newest_kustomize(tmp_path):
    _status, said = bootstrap(tmp_path, "--check", "lint")
    assert f"kustomize-{versions.newest('KUSTOMIZE')}" in said


def test_waiting_for_the_cache_names_its_holder(tmp_path):
    """The holder ends as soon as it is named; the waiting one then finds the result."""
    path = tmp_path / "steward" / "build.lock"
    path.parent.mkdir()
    path.write_text("process 42 (builds x 1)\n")
    with open(path, "r+b") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        script = f"""set -euo pipefail; LIB={paths.SCRIPTS}/lib
            for part in common apt versions cache s3-fetch; do . "$LIB/$part.sh"; done
            s3_cached() {{ true; }}; s3_fetch"""
        with subprocess.Popen(["bash", "-c", script], env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
                              text=True, stderr=subprocess.PIPE) as waiting:
            assert "Waiting for process 42 (builds x 1)" in waiting.stderr.readline()
            fcntl.flock(holder, fcntl.LOCK_UN)
            assert waiting.wait(30) == 0


def test_estimate_is_the_time_of_the_last_run(tmp_path):
    before = of_plan("part_seconds s3rver-1", tmp_path).stdout
    done = of_plan("""part_record s3rver-1 5; part_record etcd-9 6; part_record s3rver-1 421
        part_seconds s3rver-1; echo; minutes 421""", tmp_path)
    assert before == "60" and done.stdout.split("\n") == ["421", "8 min"]


def test_interrupted_run_continues(tmp_path):
    """Completed parts are recorded, and not made again."""
    made = """part_there() { grep -q "^$1 " "$(cache_root)/bootstrap-seconds" 2>/dev/null; }
        part_make() { echo "make $1"; [[ $1 != etcd-2 || -n ${GO_ON:-} ]]; }; groups=(x) mode=install
        group_parts() { echo etcd-1 etcd-2 etcd-3; }; parts_of x; plan_run"""
    first = of_plan(made, tmp_path)
    assert first.returncode != 0 and first.stdout.split("\n")[:-1] == ["make etcd-1", "make etcd-2"]
    assert "[1 of 3] etcd-1 (about 3 min left)" in first.stderr
    again = of_plan(made, tmp_path, GO_ON="1")
    assert again.returncode == 0 and again.stdout.split("\n")[:-1] == ["make etcd-2", "make etcd-3"]
    assert "[1 of 2] etcd-2 (about 2 min left)" in again.stderr


@pytest.mark.parametrize("function", ["lockf", "flock"])
def test_lock_holder_is_named(tmp_path, function):
    path = tmp_path / "lock"
    path.touch()
    assert of_plan(f"lock_holder {path}", tmp_path).returncode != 0
    program = f"""import fcntl, sys; file = open({str(path)!r}, "w"); fcntl.{function}(file, fcntl.LOCK_EX)
print("locked", flush=True); sys.stdin.read()"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        assert of_plan(f"lock_holder {path}", tmp_path).stdout == str(holder.pid)
        holder.stdin.close()
    wait.until("the lock to be free", lambda: of_plan(f"lock_holder {path}", tmp_path).returncode)


def test_oracles_are_missing_until_each_is_built(tmp_path, monkeypatch):
    """Tests find a program where the scripts put it; a changed source is not built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    modules = of_plan("oracle_modules", tmp_path).stdout.split()
    assert [m for m in modules if m.startswith("crd/")] != []
    assert "oracles" in bootstrap(tmp_path, "--check", "oracles")[1]
    for module in modules:
        path = pathlib.Path(of_plan(f"oracle_program {module}", tmp_path).stdout)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert path == oracles.program(*module.split("/"))
    assert of_plan("oracles_missing", tmp_path).stdout == ""
    assert of_plan("parts_of oracles; echo ${#parts[@]}", tmp_path).stdout == "0\n"
    path.rename(f"{path}-of-another-source")
    assert of_plan("oracles_missing", tmp_path).stdout.split() == [modules[-1]]
    with pytest.raises(RuntimeError, match="run 'scripts/bootstrap oracles' first"):
        oracles.program(*modules[-1].split("/"))


def test_wrong_arguments_are_an_error(tmp_path):
    assert bootstrap(tmp_path, "--nothing")[0] == 2
    assert bootstrap(tmp_path, "no-group")[0] == 2
